package zfs_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/zfs"
)

// back is the way of a disk, in a file, through snapshots, back from one, into a clone, and into another
// dataset by a stream. Its digest is the same at every stage, and logged.
func (r *rig) back(pool string) {
	disks, root := pool+"/disks", "/"+pool+"/disks/web1.raw"
	first, later := strings.Repeat("what a guest has written\n", 40000), "what it wrote over that"
	r.do(zfs.Create{Dataset: disks})
	r.write(root, first)
	want := r.digest(root, "written")
	r.do(zfs.SnapshotAll{Names: []string{disks + "@one"}, Properties: []zfs.Property{{Name: "sledctl:snapshot", Value: "one"}}})
	r.refuses(zfs.SnapshotAll{Names: []string{disks + "@one"}}, host.ErrExists)
	one := r.get(disks + "@one")

	r.write(root, later)
	if r.digest(root, "written over") == want {
		r.t.Error("nothing was written")
	}
	r.refuses(zfs.Rollback{Name: disks + "@one", GUID: "1"}, host.ErrRefused)
	r.do(zfs.Rollback{Name: disks + "@one", GUID: one.GUID})
	r.same(want, root, "after zfs rollback")

	r.do(zfs.Snapshot{Name: disks + "@two"})
	r.refuses(zfs.Rollback{Name: disks + "@one", GUID: one.GUID}, host.ErrRefused) // no snapshot is destroyed for it
	r.byHand("clone", disks+"@one", pool+"/clone")
	r.same(want, "/"+pool+"/clone/web1.raw", "in a clone")
	r.receive(disks+"@one", pool+"/received", 0)
	r.receive(disks+"@one", pool+"/torn", 100_000)
	r.same(want, "/"+pool+"/received/web1.raw", "received")

	r.do(
		zfs.Destroy{Dataset: pool + "/clone", GUID: r.get(pool + "/clone").GUID},
		zfs.DestroyAll{Names: []string{disks + "@two", disks + "@one", pool + "/received@one"}},
		zfs.Destroy{Dataset: pool + "/received"}, zfs.Destroy{Dataset: disks},
	)
}

// receive has what one zfs prints be what another one reads: all of it, or so many bytes, which leave nothing.
func (r *rig) receive(snapshot, dataset string, most int64) {
	r.t.Helper()
	source := zfs.Sent{Snapshot: snapshot}.Source()
	in, err := source.Open(r.t.Context(), r.host)
	if err != nil {
		r.t.Fatal(err)
	}
	c := host.Command{Program: "zfs", Args: []string{"receive", dataset}, From: source.Line, Input: in}
	if most > 0 {
		c.Input = io.LimitReader(in, most)
	}
	got, err := r.host.Run(r.t.Context(), c)
	if err != nil || got.Exit != 0 && most == 0 || got.Exit == 0 && most > 0 {
		r.t.Fatalf("%d of %s: %v, exit %d: %s", most, source.Line, err, got.Exit, got.Stderr)
	}
	if err := in.Close(); err != nil {
		r.t.Error(err)
	}
	if most > 0 {
		r.t.Logf("of %d bytes: %s", most, got.Stderr)
		r.refuses(zfs.Destroy{Dataset: dataset}, host.ErrNotFound)
	}
}

func (r *rig) same(want, file, stage string) {
	r.t.Helper()
	if is := r.digest(file, stage); is != want {
		r.t.Errorf("%s: %s, want %s", stage, is, want)
	}
}

// digest is that of a file, and logged.
func (r *rig) digest(file, stage string) string {
	r.t.Helper()
	data, err := host.ReadFile(r.host.Files(), file)
	if err != nil {
		r.t.Fatal(err)
	}
	is := fmt.Sprintf("%x", sha256.Sum256(data))
	r.t.Logf("%-18s %s", stage, is)
	return is
}
