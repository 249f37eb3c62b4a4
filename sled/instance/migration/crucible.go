package migration

import (
	"encoding/json"
	"fmt"

	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// Volumes in a Crucible go along with a VM that runs: the target opens them with a higher generation,
// by which their downstairs cut off the source. By Propolis' sources, a target opens them once the
// source has let the VM go (the phase Finish; bin/propolis-server/src/lib/migrate/destination.rs, and
// start_vm with MigratedIn in src/lib/vm/state_driver.rs). So a migration that fails has opened
// nothing: the source runs on, and writes. And a target that cannot open them has the only VM, which
// fails: it is started again there, as one whose sled has lost its power.
//
// Guess acknowledged-writes-arrive: what a guest has written before it is paused is with the
// downstairs when the target opens the volume. An upstairs acknowledges a write before it is, and a
// source neither flushes its volumes nor closes them (lib/propolis/src/block/crucible.rs).
// Check: `fio --verify` on a Crucible volume in a guest, without flushes, and migrate it again and again

// crucibleDisk is a volume in a Crucible in the document for another sled.
type crucibleDisk struct {
	ID           string   `json:"id"`
	Targets      []string `json:"targets"`
	BlockSize    uint64   `json:"block_size"`
	ExtentBlocks uint64   `json:"blocks_per_extent"`
	Extents      uint32   `json:"extents"`
	ReadOnly     bool     `json:"readonly,omitempty"`
	Key          string   `json:"key,omitempty"`
	Above        uint64   `json:"above,omitempty"`
}

// crucibleDisks are those of a record.
func crucibleDisks(disks []record.CrucibleDisk) (all []crucibleDisk) {
	for _, d := range disks {
		all = append(all, crucibleDisk{d.ID, d.Targets, d.BlockSize, d.ExtentBlocks, d.Extents, d.ReadOnly, d.Key, d.Above})
	}
	return all
}

// VolumeObstacles lists what keeps the volumes in a Crucible of a VM that comes from being those of a
// record. Own is what Propolis is asked for here, with digests; theirs is what the source's has, in the
// open. Key is that of digests.
func VolumeObstacles(r record.Record, own, theirs spec.InstanceSpec, key []byte) (problems []spec.Problem) {
	there := map[string]spec.Component{} // by the server's spelling
	for name, part := range theirs.Components {
		there[spec.Key(name)] = part
	}
	for _, name := range own.Components.Keys() {
		mine, is := own.Components[name].(spec.CrucibleStorage)
		had, _ := there[spec.Key(name)].(spec.CrucibleStorage)
		for _, d := range r.Spec.Crucible {
			if !is || d.Request != mine.Request {
				continue
			}
			if why := d.Obstacle(had.Request, key); why != "" {
				problems = append(problems, spec.Problem{Path: spec.Path(name, "request_json"), What: why})
			}
		}
	}
	return problems
}

// FailedThereError is a VM that has moved, and failed on its target when it was to run: it runs
// nowhere.
type FailedThereError struct{ Name, Peer string }

// Error names both.
func (e *FailedThereError) Error() string {
	return fmt.Sprintf("instance %q moved to %s, and its VM failed there before it ran: it runs on neither sled", e.Name, e.Peer)
}

func (*FailedThereError) Kind() fault.Kind { return fault.Failed }

// Hint says what starts it again.
func (e *FailedThereError) Hint() string {
	return "to start it again, run on the target: sledctl instance ensure " + e.Name
}

// HasFailed reports whether the target's sledctl has printed an instance whose VM has failed.
func HasFailed(there []byte) bool {
	var told struct {
		State string `json:"state"`
	}
	return json.Unmarshal(there, &told) == nil && told.State == string(record.Failed)
}
