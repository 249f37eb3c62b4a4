package transfer

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/migration"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/snapshot"
	"github.com/sledctl/sledctl/sled/volume"
	"github.com/sledctl/sledctl/zfs"
)

// Settings are those of what instances and their disks are read and made by.
type Settings struct {
	Instances instance.Settings
	Snapshots snapshot.Settings
	Volumes   volume.Settings
}

// ExportRequest asks for an instance.
type ExportRequest struct {
	Ref      string // name or id
	Snapshot string // one of its snapshots; empty: one is taken, and deleted again
	Out      io.Writer
	Progress func(done, of int64)
	DryRun   bool
}

// FixedError is an instance that cannot be exported as it is.
type FixedError struct{ Name, Why string }

// Error says why.
func (e *FixedError) Error() string { return fmt.Sprintf("instance %q %s", e.Name, e.Why) }

func (*FixedError) Kind() fault.Kind { return fault.Refused }

// Hint says what can be done instead.
func (e *FixedError) Hint() string {
	return "to write down what it is, without its disks, run: sledctl ledger export"
}

// Passing is the snapshot that an export takes, and deletes when it has ended. One that was killed
// leaves it to the next, which takes another.
const Passing = "for-export"

// Export writes an instance with what its disks hold. Of one that runs they are as after a power failure. The reports are
// of the snapshot: its taking and its deletion. Errors: *FixedError; those of snapshot.Settings.Create; those of sending
// and of Out.
func (s Settings) Export(ctx context.Context, env operation.Env, c ExportRequest) (reports []operation.Report, err error) {
	view, err := operation.Decided(ctx, env, c.DryRun)
	if err != nil {
		return nil, err
	}
	r, err := s.Instances.Find(view, c.Ref)
	if err != nil {
		return nil, view.Absent(err)
	}
	if err := exportable(r); err != nil {
		return nil, err
	}
	taken := snapshot.Record{Created: r.Updated}
	if has, err := s.Snapshots.Instance(view, r.ID); err != nil {
		return nil, err
	} else if len(has.Volumes)+len(has.Foreign) > 0 {
		var report operation.Report
		if taken, report, err = s.taken(ctx, env, view, r, c); err != nil || c.DryRun {
			return []operation.Report{report}, err
		}
		reports = append(reports, report)
		if c.Snapshot == "" {
			defer func() {
				ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropTime)
				defer cancel()
				_, gone, failed := s.Snapshots.Delete(ctx, env, snapshot.Request{Ref: r.ID, Name: Passing})
				reports = append(reports, gone)
				if err == nil {
					err = failed
				}
			}()
		}
		if view, err = operation.Decided(ctx, env, false); err != nil {
			return reports, err
		}
	}
	if c.DryRun {
		return nil, nil
	}
	return reports, s.write(ctx, env.Host, view, r, taken, c)
}

// exportable refuses what a document with volumes does not describe.
func exportable(r record.Record) error {
	switch {
	case r.Spec.Machine != nil:
		return &FixedError{Name: r.Name, Why: "has a spec that was written down whole, whose disks may be any"}
	case len(r.Spec.Crucible) > 0:
		return &FixedError{Name: r.Name, Why: "has a volume in a Crucible, which is not on this sled"}
	case r.Migration != nil:
		return &migration.MigratingError{Name: r.Name, Migration: *r.Migration}
	}
	if i := slices.IndexFunc(r.NextDisks(), func(d record.Disk) bool { return d.ReadOnly }); i >= 0 {
		return &FixedError{Name: r.Name, Why: "has the disk " + r.NextDisks()[i].Path + " to read only, which may be that of others, too"}
	}
	return nil
}

// taken is the snapshot that is written: one of the instance's, or one of now.
func (s Settings) taken(ctx context.Context, env operation.Env, view ledger.View, r record.Record, c ExportRequest) (snapshot.Record, operation.Report, error) {
	if c.Snapshot != "" {
		is, err := snapshot.Find(view, r.ID, c.Snapshot)
		if err == nil && is.Unfinished() {
			err = &FixedError{Name: r.Name, Why: "has a snapshot " + c.Snapshot + " that is not finished"}
		}
		return is, operation.Report{View: view}, err
	}
	if _, err := snapshot.Find(view, r.ID, Passing); err == nil && !c.DryRun {
		if _, report, err := s.Snapshots.Delete(ctx, env, snapshot.Request{Ref: r.ID, Name: Passing}); err != nil {
			return snapshot.Record{}, report, err
		}
	}
	is, report, err := s.Snapshots.Create(ctx, env, snapshot.Request{Ref: r.ID, Name: Passing, DryRun: c.DryRun, Reuse: c.DryRun})
	return is.Record, report, err
}

// write writes the stream.
func (s Settings) write(ctx context.Context, h host.Host, view ledger.View, r record.Record, taken snapshot.Record, c ExportRequest) error {
	m := Manifest{Version: version, Disks: []Disk{}, Running: taken.Running, Created: taken.Created}
	bare := r
	bare.Spec.Disks = nil
	var err error
	if m.Instance, err = migration.CompleteDocument(s.Instances.GuestLink, s.Instances.Underlay, h.Files(), bare); err != nil {
		return err
	}
	volumes, used, err := diskVolumes(ctx, h, view, taken)
	if err != nil {
		return err
	}
	var sources []zfs.Source
	var done, of int64
	for i, d := range taken.Disks {
		v := volumes[i]
		takes := min(used[v.Dataset], d.Size)
		m.Disks = append(m.Disks, Disk{Volume: v.Name, Size: d.Size, Block: v.Block, Thin: v.Thin, GUID: d.GUID, Used: takes})
		sources = append(sources, zfs.Sent{Snapshot: naming.Snapshot(v.Dataset, taken.Name)}.Source())
		of += int64(takes)
	}
	w := &writer{tar: tar.NewWriter(c.Out), time: m.Created}
	if err := w.manifest(m); err != nil {
		return err
	}
	tell := func(bytes int) {
		if done += int64(bytes); c.Progress != nil {
			c.Progress(done, max(done, of))
		}
	}
	for n, source := range sources {
		if err := send(ctx, h, w, n, source, tell); err != nil {
			return fmt.Errorf("export disk %d of instance %q: %w", n, r.Name, err)
		}
	}
	return w.tar.Close()
}

// diskVolumes are the volumes of a snapshot's disks, and what each dataset of them takes of its pool, by name.
func diskVolumes(ctx context.Context, h host.Host, view ledger.View, taken snapshot.Record) (volumes []volume.Record, used map[string]uint64, err error) {
	var names []string
	for _, d := range taken.Disks {
		v, err := volume.Find(view, d.Volume)
		if err != nil {
			return nil, nil, err
		}
		volumes, names = append(volumes, v), append(names, v.Dataset)
	}
	used = map[string]uint64{}
	if len(names) == 0 {
		return nil, used, nil
	}
	seen, err := zfs.List(ctx, h, names, nil)
	for _, d := range seen {
		used[d.Name] = d.Used
	}
	return volumes, used, err
}

func send(ctx context.Context, h host.Host, w *writer, n int, source zfs.Source, tell func(int)) error {
	in, err := source.Open(ctx, h)
	if err != nil {
		return err
	}
	err = w.disk(n, in, tell)
	if cerr := in.Close(); err == nil {
		err = cerr
	}
	return err
}
