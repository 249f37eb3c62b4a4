package zfs_test

import (
	"errors"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/zfs"
)

func (r *rig) mountpoint(dir string) zfs.Mountpoint {
	r.t.Helper()
	all, err := zfs.Mountpoints(r.t.Context(), r.host, dir)
	if err != nil || len(all) != 1 {
		r.t.Fatalf("%v, %v", all, err)
	}
	return all[0]
}

func TestAMountpointIsProtected(t *testing.T) {
	r := simulated(t)
	const dir = "/pool/test/zone"
	if diff := cmp.Diff(zfs.Mountpoint{Directory: dir}, r.mountpoint(dir)); diff != "" {
		t.Error(diff)
	}
	r.do(r.mountpoint(dir).Protect("1"))
	protected := zfs.Mountpoint{Directory: dir, Exists: true, Immutable: true, Fixable: true}
	if diff := cmp.Diff(protected, r.mountpoint(dir)); diff != "" || !protected.Protected() {
		t.Error(diff)
	}
	if err := r.host.Files().Mkdir(dir+"/stray", 0o755); !errors.Is(err, syscall.EPERM) {
		t.Errorf("something is made below it: %v", err)
	}

	r.do(zfs.Create{Dataset: "rpool/test", Mountpoint: dir, Properties: []zfs.Property{{Name: "mountpoint", Value: dir}}})
	r.write(dir+"/inside", "x")
	if m := r.mountpoint(dir); !m.Mounted || !m.Protected() {
		t.Errorf("mounted: %+v", m)
	}
	r.do(zfs.Unmount{Dataset: "rpool/test"})
	if diff := cmp.Diff(protected, r.mountpoint(dir)); diff != "" {
		t.Error(diff)
	}
}

func TestWhatLiesUnderAMountpointIsMovedAside(t *testing.T) {
	r := simulated(t)
	const dir = "/pool/test"
	if err := host.MkdirAll(r.host.Files(), dir+"/sub", 0o755); err != nil {
		t.Fatal(err)
	}
	r.write(dir+"/sub/file", "x")
	r.write(dir+"/.hidden", "y")
	m := r.mountpoint(dir)
	if diff := cmp.Diff([]string{".hidden", "sub"}, m.Entries); diff != "" || m.Protected() {
		t.Errorf("%+v: %s", m, diff)
	}
	r.do(m.Protect("1"))
	for _, name := range []string{"sub/file", ".hidden"} {
		if _, err := r.host.Files().Stat("/pool/old-under-mountpoint-test-1/" + name); err != nil {
			t.Error(err)
		}
	}
	if m := r.mountpoint(dir); !m.Protected() || !m.Immutable {
		t.Errorf("%+v", m)
	}

	// Someone removed the attribute, wrote, and set it again.
	r.run("chmod", "S-ci", dir)
	r.write(dir+"/late", "z")
	r.run("chmod", "S+ci", dir)
	m = r.mountpoint(dir)
	if m.Protected() || !m.Immutable {
		t.Errorf("%+v", m)
	}
	r.do(m.Protect("2"))
	if _, err := r.host.Files().Stat("/pool/old-under-mountpoint-test-2/late"); err != nil || !r.mountpoint(dir).Protected() {
		t.Errorf("%v, %+v", err, r.mountpoint(dir))
	}
}

func TestMountpointsAreSeenInOneLook(t *testing.T) {
	r := simulated(t)
	if err := host.MkdirAll(r.host.Files(), "/pool/b", 0o755); err != nil {
		t.Fatal(err)
	}
	r.events = nil
	got, err := zfs.Mountpoints(t.Context(), r.host, "/pool/a", "/pool/b", "/var/run")
	want := []zfs.Mountpoint{
		{Directory: "/pool/a"}, {Directory: "/pool/b", Exists: true, Fixable: true}, {Directory: "/var/run", Exists: true},
	}
	if len(got) == 3 {
		got[2].Entries = nil // whatever the sled keeps there
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil || len(r.events) != 1 {
		t.Errorf("%v, %d commands: %s", err, len(r.events), diff)
	}
	for _, dir := range []string{"", "/", "a", "/a/", "/a/.."} {
		if _, err := zfs.Mountpoints(t.Context(), r.host, dir); err == nil {
			t.Errorf("%q is taken", dir)
		}
	}
}
