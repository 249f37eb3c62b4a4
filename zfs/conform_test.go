package zfs_test

import (
	"slices"
	"testing"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/steptest"
	"github.com/sledctl/sledctl/zfs"
)

func TestSteps(t *testing.T) {
	on := func(steps ...steptest.Step) func(*testing.T) steptest.Sled {
		return func(t *testing.T) steptest.Sled {
			r := simulated(t)
			if err := r.host.Files().Mkdir("/mnt", 0o755); err != nil {
				t.Fatal(err)
			}
			r.do(zfs.Create{Dataset: "rpool/a"}, zfs.Set{Dataset: "rpool/a", Name: "x:y", Value: "old"}, zfs.Create{Dataset: "rpool/a/b"})
			r.do(steps...)
			return steptest.Sled{Host: r.host, State: func() any { return r.look() }}
		}
	}
	legacy := zfs.Create{Dataset: "rpool/l", Properties: []zfs.Property{{Name: "mountpoint", Value: "legacy"}}}
	tree := zfs.SnapshotTree{Dataset: "rpool/a", Snapshot: "t"}
	all := new([]zfs.Dataset)
	on(zfs.SnapshotTree{Dataset: "rpool/a", Snapshot: "t", Found: all})(t) // each sled of these draws the same GUIDs
	found := (*all)[slices.IndexFunc(*all, func(d zfs.Dataset) bool { return d.Name == "rpool/a/b@t" })]
	unmount, snapshot := zfs.Unmount{Dataset: "rpool/a/b"}, zfs.Snapshot{Name: "rpool/a/b@s"}
	volume := zfs.CreateVolume{Dataset: "rpool/v", Size: 1 << 20, Block: zfs.DefaultBlock}
	steptest.Conform(t,
		steptest.Case{Step: zfs.Create{Dataset: "rpool/c", Properties: []zfs.Property{{Name: "x:y", Value: "1"}}}, Sled: on(), Again: host.ErrExists},
		steptest.Case{
			Name: "with a place", Sled: on(), Again: host.ErrExists,
			Step: zfs.Create{Dataset: "rpool/a/c", Mountpoint: "/rpool/a/c", Mode: 0o700},
		},
		steptest.Case{Step: zfs.Set{Dataset: "rpool/a", Name: "x:y", Value: "new", Old: "old", OldSource: zfs.Local}, Sled: on()},
		steptest.Case{Name: "of what is not set", Step: zfs.Set{Dataset: "rpool/a", Name: "x:z", Value: "new"}, Sled: on()},
		steptest.Case{
			Name: "of a default", Sled: on(),
			Step: zfs.Set{Dataset: "rpool/a", Name: "compression", Value: "gzip", Old: "off", OldSource: "default"},
		},
		steptest.Case{Step: zfs.Inherit{Dataset: "rpool/a", Name: "x:y", Old: "old"}, Sled: on()},
		steptest.Case{Step: snapshot, Sled: on(), Again: host.ErrExists},
		steptest.Case{Step: tree, Sled: on(), Again: host.ErrExists},
		steptest.Case{Step: zfs.Rollback{Name: "rpool/a/b@t", GUID: found.GUID}, Sled: on(tree)},
		steptest.Case{Step: unmount, Sled: on(), Again: host.ErrState},
		steptest.Case{Step: zfs.Mount{Dataset: "rpool/a/b"}, Sled: on(unmount), Again: host.ErrState},
		steptest.Case{Step: zfs.DestroySnapshot{Name: snapshot.Name}, Sled: on(snapshot), Again: host.ErrNotFound},
		steptest.Case{Step: zfs.Destroy{Dataset: "rpool/a/b"}, Sled: on(), Again: host.ErrNotFound},
		steptest.Case{Step: zfs.SetMode{Dataset: "rpool/a/b", Mountpoint: "/rpool/a/b", Mode: 0o700}, Sled: on()},
		steptest.Case{Step: zfs.DestroySnapshots{Dataset: "rpool/a", Snapshot: "s"}, Sled: on(snapshot), Again: host.ErrNotFound},
		steptest.Case{Step: zfs.MountLegacy{Dataset: "rpool/l", Directory: "/mnt"}, Sled: on(legacy), Again: steptest.ErrUnnamed},
		steptest.Case{Step: zfs.UnmountLegacy{Dataset: "rpool/l", Directory: "/mnt"}, Sled: on(legacy, zfs.MountLegacy{Dataset: "rpool/l", Directory: "/mnt"}), Again: steptest.ErrUnnamed},
		steptest.Case{Step: volume, Sled: on(), Again: host.ErrExists},
		steptest.Case{
			Name: "that is thin", Sled: on(), Again: host.ErrExists,
			Step: zfs.CreateVolume{Dataset: "rpool/v", Size: 1 << 40, Block: 16 << 10, Thin: true, Properties: []zfs.Property{{Name: "x:y", Value: "1"}}},
		},
		steptest.Case{Step: zfs.CloneVolume{Snapshot: "rpool/v@s", Dataset: "rpool/w"}, Sled: on(volume, zfs.Snapshot{Name: "rpool/v@s"}), Again: host.ErrExists},
		steptest.Case{
			Step: zfs.ReceiveVolume{
				Dataset: "rpool/a/w", Snapshot: "r", Properties: []zfs.Property{{Name: "x:y", Value: "1"}}, From: zfs.Sent{Snapshot: "rpool/v@s"}.Source(),
			},
			Sled: on(volume, zfs.Snapshot{Name: "rpool/v@s"}), Again: host.ErrExists,
		},
		steptest.Case{
			Step: zfs.ReceiveChanges{
				Dataset: "rpool/a/w", Since: "s", Snapshot: "t", From: zfs.Sent{Snapshot: "rpool/v@t", Since: "rpool/v@s"}.Source(),
			},
			Sled: on(
				volume, zfs.Snapshot{Name: "rpool/v@s"}, zfs.Snapshot{Name: "rpool/v@t"},
				zfs.ReceiveVolume{Dataset: "rpool/a/w", Snapshot: "s", Keep: true, From: zfs.Sent{Snapshot: "rpool/v@s"}.Source()},
			), Again: host.ErrNotFound,
		},
		steptest.Case{Step: zfs.GrowVolume{Dataset: "rpool/v", Size: 2 << 20}, Sled: on(volume)},
		steptest.Case{Step: zfs.RenameVolume{Dataset: "rpool/v", To: "rpool/w"}, Sled: on(volume), Again: host.ErrNotFound},
		steptest.Case{
			Step: zfs.SnapshotAll{Names: []string{"rpool/v@s", "rpool/a@s"}, Properties: []zfs.Property{{Name: "x:y", Value: "1"}}}, Sled: on(volume), Again: host.ErrExists,
		},
		steptest.Case{Step: zfs.DestroyAll{Names: []string{snapshot.Name}}, Sled: on(snapshot)},
		steptest.Case{Step: zfs.Protect{Directory: "/new", Make: true}, Sled: on()},
	)
}

// after is a sled on which steps have been done, with what look does not show of it.
func after(more func(*rig) any, steps ...steptest.Step) func(*testing.T) steptest.Sled {
	return func(t *testing.T) steptest.Sled {
		r := simulated(t)
		r.do(steps...)
		return steptest.Sled{Host: r.host, State: func() any { return []any{r.look(), more(r)} }}
	}
}

func TestStepsOfKeys(t *testing.T) {
	create := zfs.Create{Dataset: "rpool/c", Key: lent("a"), Properties: []zfs.Property{{Name: "x:epoch", Value: "1"}}}
	unmount, unload := zfs.Unmount{Dataset: "rpool/c"}, zfs.UnloadKey{Dataset: "rpool/c", Key: lent("a")}
	on := func(steps ...steptest.Step) func(*testing.T) steptest.Sled {
		return after(func(r *rig) any {
			all, err := zfs.List(t.Context(), r.host, []string{"rpool"}, zfs.Extended())
			return []any{all, err}
		}, steps...)
	}
	epoch := func(n string) []zfs.Property { return []zfs.Property{{Name: "x:epoch", Value: n}} }
	for _, c := range []steptest.Case{
		{Step: create, Sled: on(), Again: host.ErrExists},
		{Step: unload, Sled: on(create, unmount), Again: host.ErrState},
		{Step: zfs.LoadKey{Dataset: "rpool/c", Key: lent("a")}, Sled: on(create, unmount, unload), Again: host.ErrState},
		{Step: zfs.FindKey{Dataset: "rpool/c", Keys: []zfs.Candidate{{Key: lent("a")}}}, Sled: on(create, unmount, unload), Again: host.ErrState},
		{Step: zfs.ChangeKey{Dataset: "rpool/c", Key: lent("b"), Properties: epoch("2"), Old: lent("a"), OldProperties: epoch("1")}, Sled: on(create)},
	} {
		c.Kinds = []error{zfs.ErrWrongKey, zfs.ErrKeyNotLoaded}
		steptest.Conform(t, c)
	}
}

func TestStepsOfPools(t *testing.T) {
	pool := simulated(t).pool()
	on := func(steps ...steptest.Step) func(*testing.T) steptest.Sled {
		return after(func(r *rig) any {
			all, err := zfs.Pools(t.Context(), r.host)
			return []any{all, err}
		}, steps...)
	}
	export := zfs.ExportPool{Name: pool.Name, GUID: pool.GUID}
	for _, c := range []steptest.Case{
		{Step: zfs.SetPool{Pool: pool.Name, Name: "failmode", Value: "panic", Old: pool.Failmode}, Sled: on()},
		{Step: export, Sled: on(), Again: host.ErrNotFound},
		{Step: zfs.ImportPool{Name: pool.Name, GUID: pool.GUID}, Sled: on(export), Again: host.ErrExists},
	} {
		c.Kinds = []error{zfs.ErrInUse}
		steptest.Conform(t, c)
	}
	_, disk := blank(t)
	steptest.Conform(t, steptest.Case{
		Step: zfs.CreatePool{Name: "oxp_1", Device: disk}, Again: steptest.ErrUnnamed, Kinds: []error{zfs.ErrInUse},
		Sled: func(t *testing.T) steptest.Sled {
			r, _ := blank(t)
			return steptest.Sled{Host: r.host, State: func() any { return r.look() }}
		},
	})
}
