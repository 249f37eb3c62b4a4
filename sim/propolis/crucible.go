package propolis

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/sim/world"
)

// live runs fn if the machine is live.
func (c *call) live(fn func(*world.Tx, *world.Process) (answer, error)) (a answer, err error) {
	err = c.view(func(tx *world.Tx, p *world.Process) (err error) {
		if !active(tx, p) {
			return noInstance()
		}
		a, err = fn(tx, p)
		return err
	})
	return a, err
}

// volume is a volume construction request as far as it is looked at
// (oxidecomputer/crucible, crucible-client-types).
type volume struct {
	Type       string   `json:"type"`
	ID         string   `json:"id"`
	Generation uint64   `json:"gen"`
	SubVolumes []volume `json:"sub_volumes"`
	ReadOnly   *volume  `json:"read_only_parent"`
	Opts       *struct {
		Target []string `json:"target"`
	} `json:"opts"`
}

// openCrucible is a volume whose downstairs answer: each region has the three
// that the upstairs wants. What they keep is not simulated.
func openCrucible(request string) error {
	var v volume
	_ = json.Unmarshal([]byte(request), &v) // what is no request opens nothing
	return v.open()
}

func (v volume) open() error {
	below := v.SubVolumes
	if v.ReadOnly != nil {
		below = append(below[:len(below):len(below)], *v.ReadOnly)
	}
	switch {
	case v.Type == "volume":
	case v.Type == "region" && v.Opts != nil && len(v.Opts.Target) == 3:
	case v.Type == "region":
		return errors.New("bad Crucible volume: a region has three targets")
	default:
		return errors.New("not simulated: a Crucible volume of type " + strconv.Quote(v.Type))
	}
	for _, sub := range below {
		if err := sub.open(); err != nil {
			return err
		}
	}
	return nil
}

// opened is a volume to which a guest may write.
type opened struct {
	id         string
	generation uint64
}

// written are the volumes to which the guest of a machine may write, in order.
func written(vm *world.VM) (all []opened) {
	var s instanceSpec
	_ = json.Unmarshal(vm.Spec, &s) // our own
	for _, key := range sortedKeys(s.Components) {
		has := s.Components[key].contents()
		if s.Components[key].Type != "crucible_storage_backend" || has.ReadOnly {
			continue
		}
		var v volume
		if json.Unmarshal([]byte(has.Volume), &v) != nil {
			continue
		}
		o := opened{id: v.ID}
		for _, sub := range v.SubVolumes {
			o.generation = max(o.generation, sub.Generation)
		}
		all = append(all, o)
	}
	return all
}

// upstairs names the ones of a machine: another server is another.
func upstairs(tx *world.Tx, vm *world.VM) string {
	at := slices.IndexFunc(tx.State.Processes, func(p *world.Process) bool { return p.VM == vm })
	if at < 0 {
		return ""
	}
	p := tx.State.Processes[at]
	return fmt.Sprint(tx.State.Seed, " ", p.Zone, " ", p.PID)
}

// activate is what a machine does when it is run first: its backends start (start of
// lib/propolis/src/block/crucible.rs in oxidecomputer/propolis). One that cannot fails it.
func activate(tx *world.Tx, vm *world.VM) error {
	if tx.Crucible == nil {
		return nil
	}
	for _, v := range written(vm) {
		if err := tx.Crucible.Activate(v.id, upstairs(tx, vm), v.generation); err != nil {
			return err
		}
	}
	return nil
}

// comes reports whether a machine that has come from another server has not opened its volumes yet.
func comes(vm *world.VM, now time.Time) bool {
	m := unsure(vm.In)
	return m != nil && !m.Fails && !m.Flows(now)
}

// takeOver is what a machine does that has come: its backends start as those of one that is run, and
// before its vCPUs (start_vm in bin/propolis-server/src/lib/vm/state_driver.rs of
// oxidecomputer/propolis, MigratedIn). By then the source has let it go, so that one which cannot
// runs nowhere.
func takeOver(tx *world.Tx, vm *world.VM) {
	runs := slices.IndexFunc(vm.Timeline, func(point world.Timepoint) bool { return point.State == "Running" })
	if runs < 0 || activate(tx, vm) == nil {
		return
	}
	vm.Timeline = vm.Timeline[:runs:runs]
	publish(vm, nil, "Failed", "", vm.In.End)
	vm.Console.Cut(vm.In.End)
}

// Write has the guest of a machine write to each volume in a Crucible that it has. The error is
// that of the first one which refuses.
func Write(tx *world.Tx, vm *world.VM) error {
	if tx.Crucible == nil {
		return nil
	}
	for _, v := range written(vm) {
		if err := tx.Crucible.Write(v.id, upstairs(tx, vm)); err != nil {
			return err
		}
	}
	return nil
}

// disk answers what asks a Crucible backend: nothing is known of what one does
// here.
//
// Guess words-for-an-unknown-disk: the words for a disk that is not known: for vcr the answer comes
// from the machine's own queue.
// Check: `curl` with such requests
func (c *call) disk() (answer, error) {
	snapshot, has := c.params["snapshot_id"]
	if _, err := uuid.Parse(snapshot); has && err != nil {
		return answer{}, badRequest("bad parameter in URL path: UUID parsing failed: %s", snapshot)
	}
	return c.live(func(_ *world.Tx, p *world.Process) (answer, error) {
		var spec instanceSpec
		_ = json.Unmarshal(p.VM.Spec, &spec) // our own
		id := canonicalKey(c.params["id"])
		code := "No crucible backend for id " + id
		switch {
		case spec.Components[id].Type == "crucible_storage_backend":
			return answer{}, notSimulated("what a Crucible volume tells of itself")
		case has:
			code = "no disk with id " + id + "!"
		}
		return answer{}, &fault{status: http.StatusNotFound, message: "Not Found", code: code}
	})
}
