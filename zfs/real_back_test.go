package zfs_test

import (
	"crypto/sha256"
	"fmt"
	"os/exec"
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
	stream := fmt.Sprintf("zfs send %s@one | zfs receive %s/received", disks, pool)
	if out, err := exec.Command("sh", "-c", stream).CombinedOutput(); err != nil {
		r.t.Fatalf("%s: %v: %s", stream, err, out)
	}
	r.same(want, "/"+pool+"/received/web1.raw", "received")

	r.do(
		zfs.Destroy{Dataset: pool + "/clone", GUID: r.get(pool + "/clone").GUID},
		zfs.DestroyAll{Names: []string{disks + "@two", disks + "@one", pool + "/received@one"}},
		zfs.Destroy{Dataset: pool + "/received"}, zfs.Destroy{Dataset: disks},
	)
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
