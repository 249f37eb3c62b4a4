package zfs_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/zfs"
)

// treeOf makes rpool/a with rpool/a/b in it, a file in each, and a snapshot of both.
func treeOf(t *testing.T) (r *rig, found []zfs.Dataset) {
	t.Helper()
	r = simulated(t)
	r.do(zfs.Create{Dataset: "rpool/a"}, zfs.Create{Dataset: "rpool/a/b"})
	r.rewrite("/rpool/a/f", "as it was")
	r.rewrite("/rpool/a/b/f", "as it was")
	r.do(zfs.SnapshotTree{Dataset: "rpool/a", Snapshot: "then", Found: &found})
	return r, found
}

func (r *rig) rewrite(name, text string) {
	r.t.Helper()
	if err := host.WriteFile(r.host.Files(), name, []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) reads(name, text string) {
	r.t.Helper()
	if data, err := host.ReadFile(r.host.Files(), name); err != nil || string(data) != text {
		r.t.Errorf("%s: %q, %v; want %q", name, data, err, text)
	}
}

func guidOf(found []zfs.Dataset, name string) string {
	i := slices.IndexFunc(found, func(d zfs.Dataset) bool { return d.Name == name })
	return found[i].GUID
}

func TestASnapshotTreeTellsWhatItFound(t *testing.T) {
	r, found := treeOf(t)
	var names []string
	for _, d := range found {
		names = append(names, d.Name)
		if d.GUID == "" || d.GUID != r.get(d.Name).GUID {
			t.Errorf("%s has the guid %q", d.Name, d.GUID)
		}
	}
	if got, want := strings.Join(names, " "), "rpool/a rpool/a@then rpool/a/b rpool/a/b@then"; got != want {
		t.Errorf("found %s, want %s", got, want)
	}
}

func TestARollbackRestoresWhatWasThere(t *testing.T) {
	r, found := treeOf(t)
	r.rewrite("/rpool/a/f", "changed")
	r.rewrite("/rpool/a/more", "new")
	r.rewrite("/rpool/a/b/f", "changed")
	r.do(zfs.Rollback{Name: "rpool/a@then", GUID: guidOf(found, "rpool/a@then")})
	r.reads("/rpool/a/f", "as it was")
	r.reads("/rpool/a/b/f", "changed") // another file system, mounted as before
	if _, err := r.host.Files().Stat("/rpool/a/more"); err == nil {
		t.Error("a file that was made since is still there")
	}
	if d := r.get("rpool/a/b"); !d.Mounted {
		t.Error("what was mounted in it no longer is")
	}
	r.do(zfs.Unmount{Dataset: "rpool/a/b"})
	r.do(zfs.Rollback{Name: "rpool/a/b@then", GUID: guidOf(found, "rpool/a/b@then")})
	r.do(zfs.Mount{Dataset: "rpool/a/b"})
	r.reads("/rpool/a/b/f", "as it was")
}

func TestARollbackDestroysNobodysSnapshot(t *testing.T) {
	r, found := treeOf(t)
	r.rewrite("/rpool/a/f", "changed")
	r.do(zfs.Snapshot{Name: "rpool/a@mine"})
	back := zfs.Rollback{Name: "rpool/a@then", GUID: guidOf(found, "rpool/a@then")}
	if err := back.Do(t.Context(), r.host); !errors.Is(err, host.ErrRefused) {
		t.Errorf("with a later snapshot: %v", err)
	}
	r.reads("/rpool/a/f", "changed")
	r.get("rpool/a@mine")
}

func TestARollbackIsToThatVerySnapshot(t *testing.T) {
	r, found := treeOf(t)
	back := zfs.Rollback{Name: "rpool/a@then", GUID: guidOf(found, "rpool/a@then")}
	r.do(zfs.DestroySnapshots{Dataset: "rpool/a", Snapshot: "then"})
	if err := back.Do(t.Context(), r.host); !errors.Is(err, host.ErrNotFound) {
		t.Errorf("to one that is gone: %v", err)
	}
	r.rewrite("/rpool/a/f", "changed")
	r.do(zfs.SnapshotTree{Dataset: "rpool/a", Snapshot: "then"})
	err := back.Do(t.Context(), r.host)
	if _, other := errors.AsType[*zfs.OtherError](err); !other {
		t.Errorf("to another of that name: %v", err)
	}
	r.reads("/rpool/a/f", "changed")
}
