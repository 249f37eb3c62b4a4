package volume

import (
	"context"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/zfs"
)

// State is what a volume is on the host.
type State string

// The states.
const (
	Ready   State = "ready"
	Making  State = "unfinished" // an operation makes it, or died before it had
	Arrives State = "arriving"   // it moves here with an instance that has not arrived
	Missing State = "missing"    // its pool answers, and does not have it
	Differs State = "differs"    // something else has its name
	Locked  State = "locked"     // the key of its pool is not loaded
	Unseen  State = "unknown"    // its pool does not answer
)

// Status is a volume and what the host shows of it.
type Status struct {
	Record
	State     State    `json:"state"`
	Reason    string   `json:"reason"` // why it is not ready
	Device    string   `json:"path"`
	Used      uint64   `json:"used"`      // bytes of the pool, with what is kept back
	Instances []string `json:"instances"` // that have it as a disk, by name
}

// depth is how far below its pool a volume lies at most.
const depth = 2

// Wants is what volumes are judged by.
func Wants() inventory.Want {
	return inventory.Want{
		Parts: []inventory.Part{inventory.Pools, inventory.Datasets}, Roots: roots,
		User: []string{naming.PropertyVolume, naming.PropertyInstance, "volsize", "keystatus"}, Narrow: &inventory.Narrow{Depth: depth},
	}
}

// roots are the pools on which volumes may lie: all but those of M.2s.
func roots(pools []zfs.Pool) []string {
	var names []string
	for _, p := range pools {
		if _, ok := naming.VolumeParent(p.Name); ok {
			names = append(names, p.Name)
		}
	}
	return names
}

func look(ctx context.Context, h host.Host) (*inventory.Inventory, error) {
	inv := inventory.Look(ctx, h, Wants())
	return inv, inv.Know(inventory.Pools, inventory.Datasets)
}

// lookAlone is look for a change: it refuses next to another owner.
func lookAlone(ctx context.Context, h host.Host) (*inventory.Inventory, error) {
	return lookAloneFor(ctx, h, Wants())
}

// look is what a volume is made by. What is left of one that was received has a snapshot, which lies a level further down.
func (w Wanted) look(ctx context.Context, h host.Host) (*inventory.Inventory, error) {
	want := Wants()
	if w.Stream != nil {
		want.Narrow.Depth++
	}
	return lookAloneFor(ctx, h, want)
}

func lookAloneFor(ctx context.Context, h host.Host, want inventory.Want) (*inventory.Inventory, error) {
	want.Parts = append(want.Parts, inventory.Rival)
	inv := inventory.Look(ctx, h, want)
	return inv, inv.Know(want.Parts...)
}

// List tells the status of every recorded volume.
func (s Settings) List(ctx context.Context, h host.Host, view ledger.View) ([]Status, error) {
	records, err := All(view)
	if err != nil || len(records) == 0 {
		return nil, err
	}
	inv, err := look(ctx, h)
	if err != nil {
		return nil, err
	}
	var has map[string][]string
	if s.Attached != nil {
		if has, err = s.Attached(view); err != nil {
			return nil, err
		}
	}
	all := make([]Status, len(records))
	for i, r := range records {
		all[i] = Status{Record: r, Device: r.Path(), Instances: append([]string{}, has[r.Dataset]...)}
		all[i].State, all[i].Reason = r.state(inv)
		if d, there := inv.Dataset(r.Dataset); there {
			all[i].Used = d.Used
		}
	}
	return all, nil
}

// status is that of a volume which an operation has just seen, or made.
func (s Settings) status(view ledger.View, r Record, used uint64) Status {
	has, _ := s.attached(view, r) // an error is reported by what needs the records
	return Status{Record: r, State: Ready, Device: r.Path(), Used: used, Instances: append([]string{}, has...)}
}

// state compares the record with what is there.
func (r Record) state(inv *inventory.Inventory) (State, string) {
	d, there := inv.Dataset(r.Dataset)
	why := inv.Unseen(r.Pool)
	switch {
	case why != "":
		return Unseen, why
	case r.GUID == "":
		return Making, "volume create has not ended"
	case !there:
		return r.absent(inv)
	case !r.is(d):
		return Differs, "dataset " + r.Dataset + " is another one"
	case keyless(inv, r.Pool):
		return Locked, "the key of its pool is not loaded"
	case d.Volsize != r.Size:
		return Differs, "its size is " + sizeText(d.Volsize) + ", not " + sizeText(r.Size)
	case r.Arrives != "":
		return Arrives, "it moves here with instance " + r.Arrives
	}
	return Ready, ""
}

// absent is the state of a volume whose dataset is gone: a rename that was killed, or somebody else, has given it another name.
func (r Record) absent(inv *inventory.Inventory) (State, string) {
	all, _ := inv.Datasets()
	for _, d := range all {
		if r.is(d) {
			return Differs, "it has become dataset " + d.Name + ": to finish a rename, give it again"
		}
	}
	return Missing, "dataset " + r.Dataset + " is gone"
}

// is reports whether a dataset is the volume: the one that was made for it, or, where that did not
// end, one that carries its mark.
func (r Record) is(d zfs.Dataset) bool {
	if r.GUID == "" {
		return mark(d) == r.ID
	}
	return d.Type == zfs.TypeVolume && d.GUID == r.GUID
}

// mark is the id of the volume as which a dataset is marked; empty: as none.
func mark(d zfs.Dataset) string {
	if v := d.User[naming.PropertyVolume]; d.Type == zfs.TypeVolume && v.Source == zfs.Local {
		return v.Value
	}
	return ""
}

// keyless reports whether what is encrypted on a pool has no key.
func keyless(inv *inventory.Inventory, pool string) bool {
	parent, _ := naming.VolumeParent(pool)
	d, _ := inv.Dataset(parent)
	return d.Keystatus == zfs.KeyUnavailable
}
