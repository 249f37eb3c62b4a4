// Package copies makes an instance that begins as another one is: with its sizes, and with clones of
// its disks of one moment. It has an id, MACs and addresses of its own.
package copies

import (
	"context"
	"fmt"
	"time"

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

// FixedError is an instance that cannot be copied as it is.
type FixedError struct{ Name, Why string }

// Error says why.
func (e *FixedError) Error() string { return fmt.Sprintf("instance %q %s", e.Name, e.Why) }

func (*FixedError) Kind() fault.Kind { return fault.Refused }

// Hint says what can be done instead.
func (e *FixedError) Hint() string {
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
	has, err := s.Snapshots.Instance(view, from.ID)
	if err != nil {
		return instance.Result{}, err
	}
	wanted, err := describe(from, has.Volumes, c)
	if err != nil {
		return instance.Result{}, err
	}
	var taken taken
	if needsSnapshot(wanted.Disks) && c.Snapshot == "" {
		if taken, err = s.take(ctx, env, from, c); err != nil {
			return instance.Result{Report: taken.report}, err
		}
		if c.DryRun && taken.record.Name != "" {
			s.Instances = s.Planned(s.Instances, taken.record)
		}
	}
	result, err := s.Instances.Ensure(ctx, env, instance.EnsureRequest{Verb: "instance copy", Wanted: wanted, DryRun: c.DryRun, Keep: c.Keep})
	if err != nil && taken.now && !c.DryRun && !c.Keep {
		result.Report.Outcome.Leftovers = append(result.Report.Outcome.Leftovers, s.giveBack(ctx, env, taken.record)...)
	}
	if c.DryRun {
		result.Report.Plan.Actions = append(taken.actions(), result.Report.Plan.Actions...)
	}
	return result, err
}

// describe is what the copy is, of an instance that has these volumes. Its addresses are its own, and so are
// its name and its id in the data for cloud-init.
func describe(from record.Record, volumes []snapshot.Volume, c Request) (instance.Wanted, error) {
	spec := from.Spec
	switch {
	case spec.Machine != nil && c.Wanted.Machine == nil:
		return instance.Wanted{}, &FixedError{Name: from.Name, Why: "has a spec that was written down whole"}
	case c.Wanted.Ref == from.Name || c.Wanted.Ref == from.ID:
		return instance.Wanted{}, &FixedError{Name: from.Name, Why: "cannot be a copy of itself"}
	}
	below := instance.Wanted{CPUs: &spec.CPUs, CPUCap: &spec.CPUCap, Memory: &spec.Memory, Disks: []record.Disk{}, NICs: []record.NIC{}}
	for _, n := range spec.NICs {
		if n.OPTE && c.Wanted.NICs == nil {
			return instance.Wanted{}, &FixedError{Name: from.Name, Why: "has a NIC in a VPC, whose address is its own: say with --nic which the copy has"}
		}
		n.MAC, n.AllowIP = "", nil
		below.NICs = append(below.NICs, n)
	}
	if spec.CloudInit != nil { // a guest that is told another id makes its own keys
		hostname := ""
		below.CloudInit = record.CloudInitParts{Hostname: &hostname, SSHKeys: spec.CloudInit.SSHKeys}
		if hostname = c.Wanted.Ref; c.Wanted.Name != "" {
			hostname = c.Wanted.Name
		}
	}
	snapshot, n := name(c), 0
	for _, d := range spec.Disks {
		if d.ReadOnly {
			below.Disks = append(below.Disks, d)
			continue
		}
		disk := &record.NewDisk{Image: fmt.Sprintf("%s@%s:%d", from.Name, snapshot, n)}
		if n < len(volumes) {
			disk.Thin = volumes[n].Thin
		}
		below.Disks = append(below.Disks, record.Disk{New: disk})
		n++
	}
	return c.Wanted.Over(below), nil
}

// name is that of the snapshot.
func name(c Request) string {
	if c.Snapshot != "" {
		return c.Snapshot
	}
	return "for-" + c.Wanted.Ref
}

func needsSnapshot(disks []record.Disk) bool {
	for _, d := range disks {
		if d.New != nil && d.New.Image != "" {
			return true
		}
	}
	return false
}

// taken is the snapshot of a copy.
type taken struct {
	record snapshot.Record
	report operation.Report
	now    bool // by this run
}

func (t taken) actions() []plan.Action { return t.report.Plan.Actions }

// take takes the snapshot, unless an earlier run of the same copy has.
func (s Settings) take(ctx context.Context, env operation.Env, from record.Record, c Request) (taken, error) {
	is, report, err := s.Snapshots.Create(ctx, env, snapshot.Request{Ref: from.ID, Name: name(c), DryRun: c.DryRun, Reuse: true})
	return taken{record: is.Record, report: report, now: err == nil && !report.Plan.Empty()}, err
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
