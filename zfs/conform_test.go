package zfs_test

import (
	"testing"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/steptest"
	"github.com/sledctl/sledctl/zfs"
)

func TestSteps(t *testing.T) {
	on := func(steps ...steptest.Step) func(*testing.T) steptest.Sled {
		return func(t *testing.T) steptest.Sled {
			r := simulated(t)
			r.do(zfs.Create{Dataset: "rpool/a"}, zfs.Set{Dataset: "rpool/a", Name: "x:y", Value: "old"}, zfs.Create{Dataset: "rpool/a/b"})
			r.do(steps...)
			return steptest.Sled{Host: r.host, State: func() any { return r.look() }}
		}
	}
	unmount, snapshot := zfs.Unmount{Dataset: "rpool/a/b"}, zfs.Snapshot{Name: "rpool/a/b@s"}
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
		steptest.Case{Step: unmount, Sled: on(), Again: host.ErrState},
		steptest.Case{Step: zfs.Mount{Dataset: "rpool/a/b"}, Sled: on(unmount), Again: host.ErrState},
		steptest.Case{Step: zfs.DestroySnapshot{Name: snapshot.Name}, Sled: on(snapshot), Again: host.ErrNotFound},
		steptest.Case{Step: zfs.Destroy{Dataset: "rpool/a/b"}, Sled: on(), Again: host.ErrNotFound},
	)
}
