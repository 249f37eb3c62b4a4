package zfs_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/zfs"
)

// whole says that the ZFS is a whole one, as OpenZFS is: what zfs-fuse lacks must work, too.
func whole() bool { return os.Getenv("SLEDCTL_REAL_ZFS") == "openzfs" }

// volumes is the life of volumes: made, written, grown, cloned, sent, received, also after it broke off, renamed, and taken back
// to a snapshot; and the same below an encryption root. The digest of what was written is the same at every stage, and logged.
func (r *rig) volumes(pool string) {
	before := r.datasets(pool)
	one := pool + "/disk"
	err := zfs.CreateVolume{Dataset: one, Size: 8 << 20, Block: 8 << 10, Properties: []zfs.Property{{Name: "sledctl:volume", Value: "one"}}}.Do(r.t.Context(), r.host)
	if err != nil && !whole() {
		r.t.Logf("no volumes: %v", err)
		return
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.life(pool, one)
	r.do(zfs.Create{Dataset: pool + "/locked", Key: lent("a")}, zfs.CreateVolume{Dataset: pool + "/locked/disk", Size: 8 << 20, Block: 16 << 10, Thin: true})
	r.life(pool+"/locked", pool+"/locked/disk")
	r.do(zfs.Destroy{Dataset: pool + "/locked"})
	if now := r.datasets(pool); len(now) != len(before) {
		r.t.Errorf("left behind: %v", now)
	}
}

func (r *rig) life(parent, one string) {
	is := r.get(one, "volsize", "refreservation")
	want := uint64(0)
	if !strings.HasSuffix(parent, "locked") {
		want = zfs.Reservation(8<<20, 8<<10)
	}
	if is.Volsize != 8<<20 || is.Refreservation != want {
		r.t.Errorf("it has %d bytes, and %d are kept back, want %d", is.Volsize, is.Refreservation, want)
	}
	data := []byte(strings.Repeat("what a guest has written, in lines of forty...\n", 64<<10))
	r.onDevice(one, func(f *os.File) error { _, err := f.Write(data); return err })
	digest := r.digestOf(one, len(data), "written")
	r.do(zfs.Snapshot{Name: one + "@one"})
	guid := r.get(one + "@one").GUID
	r.do(zfs.GrowVolume{Dataset: one, GUID: is.GUID, Size: 16 << 20})
	r.digestIs(digest, one, len(data), "grown")
	r.onDevice(one, func(f *os.File) error {
		if size, err := f.Seek(0, io.SeekEnd); err != nil || size != 16<<20 {
			return fmt.Errorf("the device has %d bytes: %w", size, err)
		}
		_, err := f.WriteAt([]byte("what came later"), 0)
		return err
	})
	if r.digestOf(one, len(data), "written over") == digest {
		r.t.Error("nothing was written")
	}

	r.do(zfs.CloneVolume{Snapshot: one + "@one", Dataset: parent + "/clone", Properties: []zfs.Property{{Name: "sledctl:volume", Value: "two"}}})
	r.digestIs(digest, parent+"/clone", len(data), "in a clone")
	r.do(zfs.ReceiveVolume{Dataset: parent + "/received", From: zfs.Sent{Snapshot: one + "@one"}.Source(), Snapshot: "one", GUID: guid, Keep: true, Properties: []zfs.Property{{Name: "sledctl:volume", Value: "three"}}})
	r.digestIs(digest, parent+"/received", len(data), "received")
	r.do(zfs.Snapshot{Name: one + "@two"})
	r.do(zfs.ReceiveChanges{
		Dataset: parent + "/received", From: zfs.Sent{Snapshot: one + "@two", Since: one + "@one"}.Source(), Since: "one", SinceGUID: guid, Snapshot: "two", GUID: r.get(one + "@two").GUID,
	})
	r.digestIs(r.digestOf(one, len(data), "changed"), parent+"/received", len(data), "the changes")
	if got := r.get(parent+"/received", "volsize", "refreservation"); got.Volsize != 16<<20 || got.Refreservation != 0 {
		r.t.Errorf("a stream of changes leaves the volume at %d bytes, and %d are kept back", got.Volsize, got.Refreservation)
	}
	r.resumed(one+"@one", parent+"/torn")
	r.digestIs(digest, parent+"/torn", len(data), "resumed")

	r.do(zfs.DestroyAll{Names: []string{one + "@two"}}, zfs.Destroy{Dataset: parent + "/clone", Type: zfs.TypeVolume})
	r.do(zfs.Rollback{Name: one + "@one", GUID: guid}, zfs.RenameVolume{Dataset: one, GUID: is.GUID, To: one + "2"})
	r.digestIs(digest, one+"2", len(data), "taken back, renamed")
	r.do(
		zfs.DestroyAll{Names: []string{one + "2@one", parent + "/received@two", parent + "/torn@one"}},
		zfs.Destroy{Dataset: one + "2", Type: zfs.TypeVolume}, zfs.Destroy{Dataset: parent + "/received", Type: zfs.TypeVolume}, zfs.Destroy{Dataset: parent + "/torn", Type: zfs.TypeVolume},
	)
}

// resumed receives a snapshot in two parts: the first breaks off, and the second is what its token says.
func (r *rig) resumed(snapshot, dataset string) {
	r.t.Helper()
	receive := func(source zfs.Source, most int64, more ...string) host.Result {
		in, err := source.Open(r.t.Context(), r.host)
		if err != nil {
			r.t.Fatal(err)
		}
		defer in.Close()
		got, err := r.host.Run(r.t.Context(), host.Command{Program: "zfs", Args: slices.Concat([]string{"receive", "-s"}, more, []string{dataset}), From: source.Line, Input: io.LimitReader(in, most)})
		if err != nil {
			r.t.Fatal(err)
		}
		return got
	}
	if got := receive(zfs.Sent{Snapshot: snapshot}.Source(), 500_000, "-o", "sledctl:volume=torn"); got.Exit == 0 {
		r.t.Fatalf("a stream that broke off was received")
	}
	if mark := r.get(dataset, "sledctl:volume").User["sledctl:volume"]; mark.Value != "torn" || mark.Source != zfs.Local {
		r.t.Errorf("what broke off is marked %+v", mark)
	}
	token, err := r.host.Run(r.t.Context(), host.Command{Program: "zfs", Args: []string{"get", "-Hpo", "value", "receive_resume_token", dataset}})
	if err != nil || token.Exit != 0 {
		r.t.Fatalf("%v: %s", err, token.Stderr)
	}
	if got := receive(zfs.Sent{Token: strings.TrimSpace(string(token.Stdout))}.Source(), 1<<40); got.Exit != 0 {
		r.t.Fatalf("the rest: exit %d: %s", got.Exit, got.Stderr)
	}
}

// onDevice opens the device of a volume.
func (r *rig) onDevice(volume string, do func(*os.File) error) {
	r.t.Helper()
	for range 100 {
		if device, there := deviceOf(volume); there {
			f, err := os.OpenFile(device, os.O_RDWR|os.O_SYNC, 0)
			if err != nil {
				r.t.Fatal(err)
			}
			if err := errors.Join(do(f), f.Close()); err != nil {
				r.t.Error(err)
			}
			return
		}
		time.Sleep(50 * time.Millisecond) // it comes soon after the volume
	}
	r.t.Fatalf("volume %s has no device", volume)
}

func (r *rig) digestOf(volume string, size int, stage string) (digest string) {
	r.t.Helper()
	r.onDevice(volume, func(f *os.File) error {
		sum := sha256.New()
		_, err := io.CopyN(sum, f, int64(size))
		digest = fmt.Sprintf("%x", sum.Sum(nil))
		return err
	})
	r.t.Logf("%-20s %s", stage, digest)
	return digest
}

func (r *rig) digestIs(want, volume string, size int, stage string) {
	r.t.Helper()
	if is := r.digestOf(volume, size, stage); is != want {
		r.t.Errorf("%s: %s, want %s", stage, is, want)
	}
}
