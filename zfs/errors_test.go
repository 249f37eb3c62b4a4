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
		{"cannot mount 'tank/a': encryption key not loaded\n", ErrKeyNotLoaded},
		{"cannot create 'tank/a': encryption root's key is not loaded or provided\n", ErrKeyNotLoaded},

		{"cannot create 'tank/a': Raw key too short (expected 32).\n", ErrWrongKey},
		{"cannot create 'tank/a': Encryption feature not enabled.\n", host.ErrRefused},

		{"cannot open 'tank': no such pool\n", nil}, // of another pool
		{"cannot open 'p': no such pool\n", host.ErrNotFound},
		{"cannot open '/d': No such file or directory\n", host.ErrNotFound},
		{"cannot resolve path '/d'\n", host.ErrNotFound},
		{"cannot resolve path '/e'\n", nil}, // of another device
		{"cannot create 'p': pool already exists\n", host.ErrExists},
		{"cannot import 'p': no such pool available\n", host.ErrNotFound},
		{"cannot import 'p': a pool with that name is already created/imported,\nand no additional pools with that name were found\n", host.ErrExists},
		{"cannot import 'p': a pool with that name already exists\nuse the form 'zpool import [-t] <pool | id> <newpool>' …\n", host.ErrExists},
		{"cannot import 'p': pool was previously in use from another system.\nLast accessed by unknown (hostid=0) at Thu Jan  1\n" +
			"The pool can be imported, use 'zpool import -f' to import the pool.\n", ErrInUse},
		{"cannot import 'p': pool may be in use from other system, it was last accessed by a (hostid: 0x1) on Thu\nuse '-f' to import anyway\n", ErrInUse},
		{"cannot import 'p': pool is imported on b (hostid: 0x1)\nExport the pool on the other system, then run 'zpool import'.\n", ErrInUse},
		{"cannot import 'p': one or more devices is currently unavailable\n", ErrIO},
		{"cannot export 'p': pool is busy\n", host.ErrBusy},
		{"cannot discover pools: permission denied\n", host.ErrPrivileges},
		{"invalid vdev specification\nuse '-f' to override the following errors:\n" +
			"/dev/dsk/c1t0d0s0 is part of exported or potentially active ZFS pool x. Please see zpool(8).\n", ErrInUse},
		{"invalid vdev specification\nuse '-f' to override the following errors:\n/d is part of active pool 'x'\n", ErrInUse},
		{"invalid vdev specification\nuse '-f' to override the following errors:\n/d is part of exported pool 'x'\n", ErrInUse},
		{"invalid vdev specification\nuse '-f' to override the following errors:\n/dev/dsk/c1t0d0s0 contains a ufs filesystem.\n", host.ErrRefused},

		{"cannot create 'tank/a': out of space\n", ErrSpace},
		{"cannot set property for 'tank/a': out of space\n", ErrSpace},
		{"cannot create 'tank/a': pool is read-only\n", ErrReadOnlyPool},
		{"cannot set property for 'tank/a': dataset is read-only\n", ErrReadOnlyPool},
		{"cannot open 'tank/a': pool I/O is currently suspended\n", ErrSuspended},
		{"cannot open 'tank/a': I/O error\n", ErrIO},

		{"Key load error: Key already loaded for 'tank/a'.\n", host.ErrState},
		{"Key load error: Incorrect key provided for 'tank/a'.\n", ErrWrongKey},
		{"Key load error: Raw key too short (expected 32).\n", ErrWrongKey},
		{"Key load error: 'tank/a' is not encrypted.\n", host.ErrRefused},
		{"Key load error: Keys must be loaded for encryption root of 'tank/a/b' (tank/a).\n", host.ErrRefused},
		{"Key unload error: 'tank/a' is busy.\n", host.ErrBusy},
		{"Key unload error: Key already unloaded for 'tank/a'.\n", host.ErrState},
		{"Key change error: Key must be loaded.\n", ErrKeyNotLoaded},
		{"Key change error: Permission denied.\n", host.ErrPrivileges},
		{"Key load error: Failed to open key material file\n", nil},

		{"cannot create 'tank/a': parent does not exist\n", host.ErrRefused},
		{"cannot create 'tank/a': no such pool 'tank'\n", host.ErrRefused},
		{"cannot create 'tank/a': 'compression' must be one of 'on | off | lzjb'\n", host.ErrRefused},
		{"cannot set property for 'tank/a': size is greater than available space\n", ErrSpace},
		{"cannot set property for 'tank/a': 'guid' is readonly\n", host.ErrRefused},
		{"cannot destroy 'tank/a': filesystem has children\nuse '-r' to destroy the following datasets:\ntank/a/b\n", host.ErrRefused},
		{"cannot destroy 'tank/a': snapshot is cloned\nno snapshots destroyed\n", host.ErrRefused},
		{"cannot destroy 'tank/a': snapshot has dependent clones\nuse '-R' to destroy the following datasets:\ntank/b\n", host.ErrRefused},
		{"cannot destroy 'tank/a': operation does not apply to pools\nuse 'zfs destroy -r tank/a' to destroy all datasets in the pool\n", host.ErrRefused},

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
		{"internal error: failed to initialize ZFS library\n", nil},
		{"", nil},
	} {
		err := failure(host.Command{Program: "zfs", Args: []string{"x"}}, host.Result{Exit: 1, Stderr: []byte(c.stderr)}, "tank/a", "/m", "p", "/d")
		e, ok := errors.AsType[*host.CommandError](err)
		if !ok {
			t.Fatalf("%q: %T", c.stderr, err)
		}
		if e.Means != c.kind {
			t.Errorf("%q: kind %v, want %v", c.stderr, e.Means, c.kind)
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
		{&OtherError{Name: "tank/a", Is: "1", Want: "2"}, "tank/a has the guid 1, not 2: it is another one", host.ErrRefused},
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

func TestWhatAnImplementationLacksIsToldWithoutItsUsage(t *testing.T) {
	c := host.Command{Program: "zpool", Args: []string{"list", "-p"}}
	for stderr, want := range map[string]string{
		"bad property list: invalid property 'guid'\nusage:\n\tget [-rHp] …\n": "the zpool of this host has no property 'guid' (zpool list -p)",
		"invalid option 'p'\nusage:\n\tlist [-H] …\n":                          "the zpool of this host has no option 'p' (zpool list -p)",
		"unrecognized command 'load-key'\nusage: …\n":                          "the zpool of this host has no subcommand 'load-key' (zpool list -p)",
		"cannot create 'tank/a': invalid property 'encryption'\n":              "the zpool of this host has no property 'encryption' (zpool list -p)",
		"Key change error: Only keyformat, keylocation and pbkdf2iters may be set with this command.\n": "the zpool of this host has no " +
			"user properties to set with a key: \"Only keyformat, keylocation and pbkdf2iters\" (zpool list -p)",
	} {
		err := failure(c, host.Result{Exit: 2, Stderr: []byte(stderr)}, "tank/a")
		if !isLacking(err) || err.Error() != want || !errors.Is(err, host.ErrRefused) || !isCommandError(err) {
			t.Errorf("%q: %v", stderr, err)
		}
	}
}
