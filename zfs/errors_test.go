package zfs

import (
	"errors"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/host"
)

// The texts are those of usr/src/cmd/zfs/zfs_main.c and libzfs.
func TestKindsOfFailures(t *testing.T) {
	for _, c := range []struct {
		stderr string
		kind   error
	}{
		{"cannot open 'tank/a': dataset does not exist\n", host.ErrNotFound},
		{"could not find any snapshots to destroy; check snapshot names.\n", host.ErrNotFound},
		{"cannot create snapshot 'tank/a': dataset does not exist\nno snapshots were created\n", host.ErrNotFound},

		{"cannot create 'tank/a': dataset already exists\n", host.ErrExists},
		{"cannot create snapshot 'tank/a': dataset already exists\nno snapshots were created\n", host.ErrExists},

		{"cannot unmount '/m': Device busy\n", host.ErrBusy},
		{"cannot unmount '/m': pool or dataset is busy\n", host.ErrBusy},
		{"cannot destroy 'tank/a': dataset is busy\n", host.ErrBusy},
		{"cannot mount 'tank/a': mountpoint or dataset is busy\n", host.ErrBusy},

		{"cannot mount 'tank/a': filesystem already mounted\n", host.ErrState},
		{"cannot unmount 'tank/a': not currently mounted\n", host.ErrState},
		{"cannot unmount 'tank/a': legacy mountpoint\nuse umount(8) to unmount this filesystem\n", host.ErrState},
		{"cannot mount '/m': directory is not empty\nfilesystem successfully created, but not mounted\n", host.ErrState},
		{"cannot mount 'tank/a': encryption key not loaded\n", host.ErrState},

		{"cannot create 'tank/a': parent does not exist\n", host.ErrRefused},
		{"cannot create 'tank/a': no such pool 'tank'\n", host.ErrRefused},
		{"cannot create 'tank/a': 'compression' must be one of 'on | off | lzjb'\n", host.ErrRefused},
		{"cannot set property for 'tank/a': size is greater than available space\n", host.ErrRefused},
		{"cannot set property for 'tank/a': 'guid' is readonly\n", host.ErrRefused},
		{"cannot destroy 'tank/a': filesystem has children\nuse '-r' to destroy the following datasets:\ntank/a/b\n", host.ErrRefused},
		{"cannot destroy 'tank/a': snapshot has dependent clones\nuse '-R' to destroy the following datasets:\ntank/b\n", host.ErrRefused},
		{"cannot destroy 'tank/a': operation does not apply to pools\nuse 'zfs destroy -r tank/a' to destroy all datasets in the pool\n", host.ErrRefused},
		{"bad property list: invalid property 'guid'\nusage:\n\tget [-rHp] …\n", host.ErrRefused},

		{"cannot create 'tank/a': permission denied\n", host.ErrPrivileges},

		// Not about what was asked.
		{"cannot open 'tank/a/b': dataset does not exist\n", nil},
		{"cannot destroy 'tank/b': dataset is busy\n", nil},
		{"cannot unmount '/m/below': Device busy\n", nil},
		// Not the whole line.
		{"warning: cannot open 'tank/a': dataset does not exist\n", nil},
		{"cannot open 'tank/a': dataset does not exist yet\n", nil},
		// The words of another action.
		{"cannot create 'tank/a': dataset does not exist\n", nil},
		{"cannot unmount 'tank/a': filesystem already mounted\n", nil},
		// Unknown.
		{"cannot open 'tank/a': I/O error\n", nil},
		{"internal error: failed to initialize ZFS library\n", nil},
		{"", nil},
	} {
		err := failure(host.Command{Program: "zfs", Args: []string{"x"}}, host.Result{Exit: 1, Stderr: []byte(c.stderr)}, "tank/a", "/m")
		e, ok := errors.AsType[*host.CommandError](err)
		if !ok {
			t.Fatalf("%q: %T", c.stderr, err)
		}
		if e.Kind != c.kind {
			t.Errorf("%q: kind %v, want %v", c.stderr, e.Kind, c.kind)
		}
		first, _, _ := strings.Cut(c.stderr, "\n")
		if !strings.Contains(err.Error(), first) {
			t.Errorf("%q is not in %q", first, err)
		}
	}
}

func TestErrorsNameWhatWasFound(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
		kind error
	}{
		{&OtherError{Name: "tank/a", Is: "1", Want: "2"}, "dataset tank/a has the guid 1, not 2: it is another one", host.ErrRefused},
		{&ChildrenError{Name: "tank/a", Children: []string{"tank/a/b"}}, "dataset tank/a is not empty: tank/a/b", host.ErrRefused},
		{&ChildrenError{Name: "a", Children: []string{"a/b", "a/c", "a/d", "a@e", "a@f"}}, "dataset a is not empty: a/b, a/c, a/d and 2 more", host.ErrRefused},
		{&MountError{Name: "a", Mountpoint: "none", Want: "/a"}, "dataset a is not mounted, its mountpoint is none, not on /a", host.ErrState},
		{&MountError{Name: "a", Mountpoint: "/b", Mounted: true, Want: "/a"}, "dataset a is mounted on /b, not on /a", host.ErrState},
		{&NameError{What: "dataset", Name: "/a", Reason: "no"}, `dataset name "/a": no`, nil},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
		if c.kind != nil && !errors.Is(c.err, c.kind) {
			t.Errorf("%v is no %v", c.err, c.kind)
		}
	}
}
