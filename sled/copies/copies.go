// Package copies makes an instance that begins as another one is: with its sizes, and with clones of
// its disks of one moment. It has an id, MACs and addresses of its own.
package copies

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/snapshot"
)

// Settings are those of what a copy is made by.
type Settings struct {
	Instances instance.Settings
	Snapshots snapshot.Settings
	// Planned lets volumes begin as a snapshot that a dry run would have taken.
	Planned func(instance.Settings, snapshot.Record) instance.Settings
}

// Request asks for a copy.
type Request struct {
	From     string          // the instance, by name or id
	Snapshot string          // one of its snapshots; empty: one is taken now
	Wanted   instance.Wanted // what the copy is; what it leaves open is as of From
	DryRun   bool
	Keep     bool
}

// FixedError is an instance that cannot be copied as it is. Do, if any, is what to do instead.
type FixedError struct{ Name, Why, Do string }

// Error says why.
func (e *FixedError) Error() string { return fmt.Sprintf("instance %q %s", e.Name, e.Why) }

func (*FixedError) Kind() fault.Kind { return fault.Refused }

// Hint says what can be done instead.
func (e *FixedError) Hint() string {
	if e.Do != "" {
		return e.Do
	}
	return "to make another one by hand, run: sledctl instance ensure, with --disk image=" + e.Name + "@SNAPSHOT"
}

// Copy makes the copy and starts it. One that is as it is wanted needs nothing. Errors: *FixedError; those
// of snapshot.Settings.Create and of instance.Settings.Ensure.
func (s Settings) Copy(ctx context.Context, env operation.Env, c Request) (instance.Result, error) {
	view, err := operation.Decided(ctx, env, c.DryRun)
	if err != nil {
		return instance.Result{}, err
	}
	from, err := s.Instances.Find(view, c.From)
	if err != nil {
		return instance.Result{}, view.Absent(err)
	}
	if err := fits(from, c); err != nil {
		return instance.Result{}, err
	}
	has, err := s.Snapshots.Instance(view, from.ID)
	if err != nil {
		return instance.Result{}, err
	}
	var taken taken
	if c.Wanted.Disks == nil && len(has.Volumes)+len(has.Foreign) > 0 {
		if taken, err = s.take(ctx, env, view, from, c); err != nil {
			return instance.Result{Report: taken.report}, err
		}
		if c.DryRun && taken.now {
			s.Instances = s.Planned(s.Instances, taken.record)
		}
	}
	wanted := s.describe(view, from, taken.record, c)
	result, err := s.Instances.Ensure(ctx, env, instance.EnsureRequest{Verb: "instance copy", Wanted: wanted, DryRun: c.DryRun, Keep: c.Keep})
	if err != nil && taken.now && !c.DryRun && !c.Keep {
		result.Report.Outcome.Leftovers = append(result.Report.Outcome.Leftovers, s.giveBack(ctx, env, taken.record)...)
	}
	if c.DryRun {
		result.Report.Plan.Actions = append(taken.actions(), result.Report.Plan.Actions...)
	}
	return result, err
}

// fits refuses what cannot be copied as it is.
func fits(from record.Record, c Request) error {
	inVPC := slices.ContainsFunc(from.Spec.NICs, func(n record.NIC) bool { return n.OPTE })
	switch {
	case from.Spec.Machine != nil && c.Wanted.Machine == nil:
		return &FixedError{Name: from.Name, Why: "has a spec that was written down whole"}
	case len(from.Spec.Crucible) > 0 && c.Wanted.Crucible == nil:
		return &FixedError{Name: from.Name, Why: "has a volume in a Crucible, which is its own"}
	case c.Wanted.Ref == from.Name || c.Wanted.Ref == from.ID:
		return &FixedError{Name: from.Name, Why: "cannot be a copy of itself", Do: "give the copy a name of its own"}
	case inVPC && c.Wanted.NICs == nil:
		return &FixedError{Name: from.Name, Why: "has a NIC in a VPC, whose address is its own: say with --nic which the copy has"}
	}
	return nil
}

// describe is what the copy is, with disks that begin as a snapshot. Its addresses are its own, and so are
// its name and its id in the data for cloud-init.
func (s Settings) describe(view ledger.View, from record.Record, r snapshot.Record, c Request) instance.Wanted {
	spec := from.Spec
	below := instance.Wanted{CPUs: &spec.CPUs, CPUCap: &spec.CPUCap, Memory: &spec.Memory, Disks: s.disks(view, from, r), NICs: []record.NIC{}}
	for _, n := range spec.NICs {
		n.MAC, n.AllowIP = "", nil
		below.NICs = append(below.NICs, n)
	}
	if spec.CloudInit != nil { // a guest that has another id makes its own keys
		hostname := cmp.Or(c.Wanted.Name, c.Wanted.Ref)
		below.CloudInit = record.CloudInitParts{Hostname: &hostname, SSHKeys: spec.CloudInit.SSHKeys}
	}
	return c.Wanted.Over(below)
}

// disks are those of the copy, in the order of the other's; what only its snapshot has comes last.
func (s Settings) disks(view ledger.View, from record.Record, r snapshot.Record) []record.Disk {
	disks, done := []record.Disk{}, map[int]bool{}
	add := func(n int) {
		v, _ := s.Snapshots.Volume(view, r.Disks[n].Volume)
		done[n] = true
		disks = append(disks, record.Disk{New: &record.NewDisk{Image: fmt.Sprintf("%s@%s:%d", r.Of, r.Name, n), Thin: v.Thin}})
	}
	for _, d := range from.NextDisks() {
		dataset, _ := d.Volume()
		n := slices.IndexFunc(r.Disks, func(is snapshot.Disk) bool {
			v, known := s.Snapshots.Volume(view, is.Volume)
			return known && v.Dataset == dataset
		})
		switch {
		case d.ReadOnly:
			disks = append(disks, d)
		case n >= 0:
			add(n)
		}
	}
	for n := range r.Disks {
		if !done[n] {
			add(n)
		}
	}
	return disks
}

// taken is the snapshot of a copy.
type taken struct {
	record snapshot.Record
	report operation.Report
	now    bool // by this run
}

func (t taken) actions() []plan.Action { return t.report.Plan.Actions }

// take finds the snapshot that is asked for, or takes one, unless an earlier run of the same copy has.
func (s Settings) take(ctx context.Context, env operation.Env, view ledger.View, from record.Record, c Request) (taken, error) {
	if c.Snapshot != "" {
		r, err := snapshot.Find(view, from.ID, c.Snapshot)
		return taken{record: r}, err
	}
	is, report, err := s.Snapshots.Create(ctx, env, snapshot.Request{Ref: from.ID, Name: "for-" + c.Wanted.Ref, DryRun: c.DryRun, Reuse: true})
	return taken{record: is.Record, report: report, now: err == nil && !report.Plan.Empty()}, advised(err, view, from, c)
}

// EarlierError is an instance that no snapshot can be taken of now, and that has an earlier one.
type EarlierError struct {
	*snapshot.RunningError
	Copy, Snapshot string
}

// Hint names both ways.
func (e *EarlierError) Hint() string {
	return e.RunningError.Hint() + "; or, to copy what it held before, run: sledctl instance copy " + e.Instance + " " + e.Copy + " --snapshot " + e.Snapshot
}

// advised adds to an error that there is an earlier snapshot, the latest.
func advised(err error, view ledger.View, from record.Record, c Request) error {
	running, is := errors.AsType[*snapshot.RunningError](err)
	if !is {
		return err
	}
	all, ferr := snapshot.Of(view, from.ID)
	var latest snapshot.Record
	for _, r := range all {
		if !r.Unfinished() && r.Created.After(latest.Created) {
			latest = r
		}
	}
	if ferr != nil || latest.Name == "" {
		return err
	}
	return &EarlierError{RunningError: running, Copy: c.Wanted.Ref, Snapshot: latest.Name}
}

// giveBackTime bounds the removal of a snapshot that is of no more use, beyond the time of the copy.
const giveBackTime = time.Minute

// giveBack removes the snapshot of a copy that was not made, and names what is left.
func (s Settings) giveBack(ctx context.Context, env operation.Env, r snapshot.Record) []string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTime)
	defer cancel()
	_, report, err := s.Snapshots.Delete(ctx, env, snapshot.Request{Ref: r.Instance, Name: r.Name})
	if err == nil {
		return nil
	}
	if left := report.Outcome.Leftovers; len(left) > 0 {
		return left
	}
	view, err := operation.Decided(ctx, env, false)
	if err != nil {
		return []string{"snapshot " + r.Name + " of " + r.Of}
	}
	return s.Snapshots.Objects(view, r)
}
