package zfs_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/hosttest"
	"github.com/sledctl/sledctl/zfs"
)

// lent is a key of 32 equal letters, in a file of its own.
type lent string

func (k lent) file() string     { return "/var/run/" + string(k) + ".key" }
func (k lent) Location() string { return "file://" + k.file() }

func (k lent) Around() (before, after []host.Line) {
	return []host.Line{host.SecretLine(k.file(), "a key")}, host.WipeLines(k.file())
}

func (k lent) Lend(_ context.Context, files host.Files, use func() error) error {
	if err := host.WriteSecret(files, k.file(), []byte(strings.Repeat(string(k), 32)), "a key"); err != nil {
		return err
	}
	return errors.Join(use(), host.WipeSecret(files, k.file()))
}

// pool is some pool of U.2 disks of the simulated sled.
func (r *rig) pool() zfs.Pool {
	r.t.Helper()
	pools, err := zfs.Pools(r.t.Context(), r.host)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, p := range pools {
		if strings.HasPrefix(p.Name, "oxp_") {
			return p
		}
	}
	r.t.Fatal("no such pool")
	return zfs.Pool{}
}

func TestLifeOfAnEncryptedDataset(t *testing.T) {
	r := simulated(t)
	pool := r.pool().Name
	crypt, below := pool+"/sledctl-test", pool+"/sledctl-test/zone"
	before := r.look()
	r.do(
		zfs.Create{
			Dataset: crypt, Key: lent("a"), Mountpoint: "/pool/test", Mode: 0o700,
			Properties: []zfs.Property{{Name: "mountpoint", Value: "/pool/test"}, {Name: "sledctl:epoch", Value: "1"}},
		},
		zfs.Create{Dataset: below, Mountpoint: "/pool/test/zone"},
	)
	more := append(zfs.Extended(), "sledctl:epoch")
	look := func(status, epoch string) {
		t.Helper()
		for _, name := range []string{crypt, below} {
			d := r.get(name, more...)
			format := "raw"
			if name == below {
				format = "none"
			}
			got := []string{d.Encryption, d.EncryptionRoot, d.Keystatus, d.User["sledctl:epoch"].Value}
			if diff := cmp.Diff([]string{"aes-256-gcm", crypt, status, epoch}, got); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
			if name == crypt && d.Keyformat != format {
				t.Errorf("%s: key format %s", name, d.Keyformat)
			}
		}
	}
	look(zfs.KeyAvailable, "1")
	if err := (zfs.UnloadKey{Dataset: crypt}).Do(t.Context(), r.host); !errors.Is(err, host.ErrBusy) {
		t.Errorf("while it is mounted: %v", err)
	}
	r.do(
		zfs.ChangeKey{Dataset: crypt, Key: lent("b"), Properties: []zfs.Property{{Name: "sledctl:epoch", Value: "2"}}},
		zfs.Unmount{Dataset: below}, zfs.Unmount{Dataset: crypt}, zfs.UnloadKey{Dataset: crypt},
	)
	look(zfs.KeyUnavailable, "2")
	locked := r.look()
	for _, c := range []struct {
		step step
		want error
	}{
		{zfs.Mount{Dataset: crypt}, zfs.ErrKeyNotLoaded},
		{zfs.Create{Dataset: crypt + "/new"}, zfs.ErrKeyNotLoaded},
		{zfs.LoadKey{Dataset: crypt, Key: lent("a")}, zfs.ErrWrongKey},
		{zfs.LoadKey{Dataset: crypt, Key: lent("ab")}, zfs.ErrWrongKey}, // 64 bytes
		{zfs.LoadKey{Dataset: below, Key: lent("b")}, host.ErrRefused},
		{zfs.LoadKey{Dataset: pool, Key: lent("b")}, host.ErrRefused},
		{zfs.ChangeKey{Dataset: crypt, Key: lent("c")}, zfs.ErrKeyNotLoaded},
		{zfs.UnloadKey{Dataset: crypt}, host.ErrState},
	} {
		if err := c.step.Do(t.Context(), r.host); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.step.Verb(), err, c.want)
		}
	}
	if diff := cmp.Diff(locked, r.look()); diff != "" {
		t.Errorf("the refusals changed something: %s", diff)
	}
	r.do(zfs.LoadKey{Dataset: crypt, Key: lent("b")}, zfs.Mount{Dataset: crypt}, zfs.Mount{Dataset: below})
	look(zfs.KeyAvailable, "2")
	if err := (zfs.LoadKey{Dataset: crypt, Key: lent("b")}).Do(t.Context(), r.host); !errors.Is(err, host.ErrState) {
		t.Errorf("loaded already: %v", err)
	}
	r.do(zfs.Destroy{Dataset: below}, zfs.Destroy{Dataset: crypt})
	if diff := cmp.Diff(before, r.look()); diff != "" {
		t.Errorf("left behind: %s", diff)
	}
}

// TestACrashWithAKeyLeavesAtMostItsFile kills the driver at each point of the
// creation of an encryption root: nothing that was told shows the key.
func TestACrashWithAKeyLeavesAtMostItsFile(t *testing.T) {
	create := func(pool string) zfs.Create {
		return zfs.Create{Dataset: pool + "/sledctl-test", Key: lent("k")}
	}
	for _, mode := range []host.CrashMode{host.CrashBefore, host.CrashAfter, host.CrashDuring} {
		for point := 1; ; point++ {
			r := simulated(t)
			c := create(r.pool().Name)
			crashing := host.Crash(r.host, point, mode)
			err := c.Do(t.Context(), crashing)
			crashing.Wait()
			told, _ := json.Marshal(r.events)
			if strings.Contains(string(told), "kkkk") || err != nil && strings.Contains(err.Error(), "kkkk") {
				t.Errorf("crash %d at %d tells the key: %s %v", mode, point, told, err)
			}
			if !crashing.Crashed() {
				if err != nil || point != 6 { // open, write, create, zeros, remove
					t.Errorf("%d points, %v", point-1, err)
				}
				break
			}
		}
	}
}

func TestPoolsComeAndGo(t *testing.T) {
	r := simulated(t)
	p := r.pool()
	if len(p.Devices) != 1 || p.Devices[0].State != "ONLINE" || p.GUID == "" {
		t.Fatalf("%+v", p)
	}
	r.do(zfs.SetPool{Pool: p.Name, Name: "failmode", Value: "continue"}, zfs.ExportPool{Name: p.Name, GUID: p.GUID})
	found, err := zfs.FindImportable(t.Context(), r.host, "")
	if err != nil || len(found) != 1 {
		t.Fatalf("%+v, %v", found, err)
	}
	want := zfs.Importable{
		Name: p.Name, GUID: p.GUID, State: "ONLINE", Devices: []zfs.Device{{Name: zfs.ShortDevice(p.Devices[0].Name), State: "ONLINE"}},
	}
	if diff := cmp.Diff(want, found[0]); diff != "" {
		t.Error(diff)
	}
	for _, c := range []struct {
		step step
		want error
	}{
		{zfs.ExportPool{Name: p.Name}, host.ErrNotFound},
		{zfs.SetPool{Pool: p.Name, Name: "failmode", Value: "wait"}, host.ErrNotFound},
		{zfs.ImportPool{Name: p.Name, GUID: "1"}, host.ErrNotFound},
		{zfs.CreatePool{Name: "other", Device: found[0].Devices[0].Name}, zfs.ErrInUse},
		{zfs.CreatePool{Name: "other", Device: "c99t0d0"}, host.ErrNotFound},
		{zfs.CreatePool{Name: "rpool", Device: found[0].Devices[0].Name}, zfs.ErrInUse},
	} {
		if err := c.step.Do(t.Context(), r.host); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.step.Verb(), err, c.want)
		}
	}
	r.do(zfs.ImportPool{Name: p.Name, GUID: p.GUID})
	if err := (zfs.ImportPool{Name: p.Name, GUID: p.GUID}).Do(t.Context(), r.host); !errors.Is(err, host.ErrExists) {
		t.Errorf("imported already: %v", err)
	}
	if found, err := zfs.FindImportable(t.Context(), r.host, ""); len(found) > 0 || err != nil {
		t.Errorf("%+v, %v", found, err)
	}
	if diff := cmp.Diff(p, r.pool()); diff != "" {
		t.Errorf("it came back another one: %s", diff)
	}
}

func TestAPoolIsMadeOfABlankDisk(t *testing.T) {
	r, disk := blank(t)
	create := zfs.CreatePool{Name: "oxp_1", Device: disk, Properties: []zfs.Property{{Name: "ashift", Value: "12"}}}
	r.do(create)
	if p := r.pool(); p.Name != "oxp_1" || len(p.Devices) != 1 || zfs.ShortDevice(p.Devices[0].Name) != disk {
		t.Errorf("%+v", p)
	}
	if err := create.Do(t.Context(), r.host); !errors.Is(err, host.ErrRefused) && !errors.Is(err, host.ErrExists) {
		t.Errorf("it is there: %v", err)
	}
}

// blank is a sled without pools, and one of its disks.
func blank(t *testing.T) (*rig, string) {
	t.Helper()
	r := &rig{t: t, sled: sim.New(sim.Options{Blank: true}, hosttest.Files)}
	t.Cleanup(r.sled.Close)
	r.host = host.Trace(r.sled.Host(), func(e host.Event) { r.events = append(r.events, e) })
	disk := ""
	err := r.sled.World().View(t.Context(), func(tx *world.Tx) error {
		for _, d := range tx.State.Disks {
			if d.Pool == "" && d.Kind == "u2" {
				disk = d.Name
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return r, disk
}
