package zfs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/zfs"
)

// TestRealZFS is the driver against a real ZFS, on a pool in a file that it makes
// and destroys: `make test-zfs`. It needs root, and zfs and zpool on the PATH:
// zfs-fuse of Debian will do.
//
// Guess run-on-zfs-fuse-only: datasets, snapshots, clones and pools have run on zfs-fuse (`make test-zfs`), and with volumes,
// streams that were resumed and encryption on OpenZFS 2.1.11 on Linux (`.ci/openzfs`); on illumos' ZFS nothing has.
// Check: `make test-zfs` as root on an illumos: it makes a pool in a file
func TestRealZFS(t *testing.T) {
	r, dir := realZFS(t)
	pool := fmt.Sprintf("sledctltest%d", os.Getpid())
	vdev := path.Join(dir, "m2_0.vdev")
	if err := os.WriteFile(vdev, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(vdev, 256<<20); err != nil {
		t.Fatal(err)
	}
	if found, err := zfs.FindImportable(t.Context(), r.host, dir); len(found) > 0 || err != nil {
		t.Fatalf("on a blank file: %v, %v", found, err)
	}
	r.do(zfs.CreatePool{Name: pool, Device: vdev, Properties: []zfs.Property{{Name: "ashift", Value: "12"}}})
	t.Cleanup(func() { r.in(t).byHandOn("zpool", "destroy", "-f", pool) })
	r.do(zfs.SetPool{Pool: pool, Name: "failmode", Value: "continue", Old: "wait"})

	p := r.realPool(pool)
	if len(p.Devices) != 1 || p.Devices[0].Name != vdev || p.Health != "ONLINE" || p.Failmode != "continue" {
		t.Errorf("%+v", p)
	}
	r.refuses(zfs.CreatePool{Name: pool, Device: vdev}, host.ErrExists, zfs.ErrInUse) // whichever is seen first
	r.refuses(zfs.CreatePool{Name: "other", Device: vdev}, zfs.ErrInUse)
	r.refuses(zfs.CreatePool{Name: "other", Device: path.Join(dir, "none")}, host.ErrNotFound)

	rows := internal(pool, path.Join(dir, "int"))
	t.Run("the datasets of an M.2 are made", func(t *testing.T) {
		r := r.in(t)
		if n := len(r.repair(pool, rows)); n != len(rows) {
			t.Errorf("%d steps for %d datasets", n, len(rows))
		}
		r.agrees(pool, rows)
	})
	t.Run("what someone changed is found and repaired", func(t *testing.T) { r.in(t).drift(pool, rows) })
	t.Run("clones and snapshots leave nothing", func(t *testing.T) { r.in(t).clones(pool) })
	t.Run("a disk goes back to a snapshot", func(t *testing.T) { r.in(t).back(pool) })
	t.Run("a dataset's life", func(t *testing.T) { lifecycle(r.in(t), pool, path.Join(dir, "zone")) })
	t.Run("the pool goes and comes back", func(t *testing.T) { r.in(t).goAndReturn(p, dir, rows) })
	t.Run("the life of volumes", func(t *testing.T) { r.in(t).volumes(pool) })
	t.Run("an encryption root", func(t *testing.T) { r.in(t).encryption(pool) })
	t.Run("and all is as it was", func(t *testing.T) { r.in(t).agrees(pool, rows) })
}

// realZFS is a rig on this machine, and a directory for pools and mountpoints.
func realZFS(t *testing.T) (*rig, string) {
	t.Helper()
	if os.Getenv("SLEDCTL_REAL_ZFS") == "" {
		t.Skip("SLEDCTL_REAL_ZFS is not set: make test-zfs sets it")
	}
	for _, program := range []string{"zfs", "zpool"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("there is no " + program + " here")
		}
	}
	if out, err := exec.Command("zpool", "list").CombinedOutput(); err != nil {
		t.Skipf("no ZFS answers: %s", out)
	}
	dir, err := os.MkdirTemp("", "sledctl-zfs-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	r := &rig{t: t, patient: true}
	machine := host.NewIllumos(host.IllumosOptions{CommandPath: filepath.SplitList(os.Getenv("PATH")), RunDir: t.TempDir()})
	r.host = host.Trace(machine, func(e host.Event) { r.events = append(r.events, e) })
	return r, dir
}

// in is the rig for a subtest. The host stays the same, and what it remembers.
func (r *rig) in(t *testing.T) *rig {
	s := &rig{t: t, patient: true}
	s.host = host.Trace(r.host, func(e host.Event) { s.events = append(s.events, e) })
	return s
}

// byHand is what somebody does with the zfs command, again and again if they
// are told that something is busy.
func (r *rig) byHand(args ...string) {
	r.t.Helper()
	r.byHandOn("zfs", args...)
}

func (r *rig) byHandOn(program string, args ...string) {
	r.t.Helper()
	var got host.Result
	for range 100 {
		var err error
		got, err = r.host.Run(context.WithoutCancel(r.t.Context()), host.Command{Program: program, Args: args})
		if err != nil {
			r.t.Fatal(err)
		}
		if got.Exit == 0 {
			return
		}
		if !strings.Contains(string(got.Stderr), "busy") {
			break
		}
	}
	r.t.Fatalf("%s %q: exit %d: %s", program, args, got.Exit, got.Stderr)
}

func (r *rig) realPool(name string) zfs.Pool {
	r.t.Helper()
	pools, err := zfs.Pools(r.t.Context(), r.host)
	if err != nil {
		r.t.Fatal(err)
	}
	i := slices.IndexFunc(pools, func(p zfs.Pool) bool { return p.Name == name })
	if i < 0 {
		r.t.Fatalf("there is no %s in %+v", name, pools)
	}
	return pools[i]
}

// refuses does a step that must fail in one of these ways.
func (r *rig) refuses(s step, kinds ...error) {
	r.t.Helper()
	err := s.Do(r.t.Context(), r.host)
	if !slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) }) {
		r.t.Errorf("%s of %+v: %v, want %v", s.Verb(), s, err, kinds)
	}
}

// expected is a dataset as it should be.
type expected struct {
	name, mountpoint, compression string
	quota                         uint64
}

// internal are the datasets of an M.2 (oxidecomputer/omicron sled-storage).
func internal(pool, root string) []expected {
	var rows []expected
	for _, name := range []string{"install", "crash", "backing", "cluster", "config", "debug", "update"} {
		row := expected{name: pool + "/" + name, mountpoint: path.Join(root, name), compression: "off"}
		row.quota = map[string]uint64{"debug": 100 << 30, "update": 40 << 30}[name]
		rows = append(rows, row)
	}
	return rows
}

// differences are the steps that make the pool's datasets what they should be.
func (r *rig) differences(pool string, rows []expected) []step {
	r.t.Helper()
	all, err := zfs.List(r.t.Context(), r.host, []string{pool}, append(zfs.Extended(), "sledctl:test"))
	if err != nil {
		r.t.Fatal(err)
	}
	var steps []step
	for _, row := range rows {
		i := slices.IndexFunc(all, func(d zfs.Dataset) bool { return d.Name == row.name })
		if i < 0 {
			properties := []zfs.Property{{Name: "mountpoint", Value: row.mountpoint}, {Name: "compression", Value: row.compression}}
			if row.quota > 0 {
				properties = append(properties, zfs.Property{Name: "quota", Value: bytes(row.quota)})
			}
			steps = append(steps, zfs.Create{Dataset: row.name, Mountpoint: row.mountpoint, Mode: 0o755, Properties: properties})
			continue
		}
		d := all[i]
		set := func(name, is, want string) {
			if is != want {
				steps = append(steps, zfs.Set{Dataset: d.Name, Name: name, Value: want, Old: is, OldSource: zfs.Local})
			}
		}
		set("compression", d.Compression, row.compression)
		set("quota", bytes(d.Quota), bytes(row.quota))
		set("refquota", bytes(d.Refquota), "none")
		if v, marked := d.User["sledctl:test"]; marked && v.Source == zfs.Local {
			steps = append(steps, zfs.Inherit{Dataset: d.Name, Name: "sledctl:test", Old: v.Value})
		}
		if !d.Mounted {
			steps = append(steps, zfs.Mount{Dataset: d.Name})
		}
	}
	return steps
}

// bytes is a size as it is set.
func bytes(n uint64) string {
	if n == 0 {
		return "none"
	}
	return strconv.FormatUint(n, 10)
}

func (r *rig) repair(pool string, rows []expected) []step {
	r.t.Helper()
	steps := r.differences(pool, rows)
	r.do(steps...)
	return steps
}

func (r *rig) agrees(pool string, rows []expected) {
	r.t.Helper()
	if left := r.differences(pool, rows); len(left) > 0 {
		r.t.Errorf("still to do: %+v", left)
	}
}

func (r *rig) drift(pool string, rows []expected) {
	for _, c := range []struct {
		by   []string
		want []string // the steps that repair it
	}{
		{[]string{"set", "quota=1073741824", pool + "/debug"}, []string{"zfs.set"}},
		{[]string{"set", "quota=none", pool + "/update"}, []string{"zfs.set"}},
		{[]string{"set", "quota=10M", pool + "/config"}, []string{"zfs.set"}},
		{[]string{"set", "refquota=10M", pool + "/config"}, []string{"zfs.set"}},
		{[]string{"set", "compression=gzip", pool + "/crash"}, []string{"zfs.set"}},
		{[]string{"set", "sledctl:test=a mark of 1", pool + "/crash"}, []string{"zfs.inherit"}},
		{[]string{"unmount", pool + "/cluster"}, []string{"zfs.mount"}},
		{[]string{"rename", pool + "/install", pool + "/moved"}, []string{"zfs.create"}},
	} {
		if c.by[0] == "rename" { // zfs-fuse lets go of it some time after the unmount, and rename itself does not wait
			r.byHand("unmount", c.by[1])
		}
		r.byHand(c.by...)
		if c.by[0] == "rename" { // what was moved keeps its mountpoint, which must be free
			r.do(zfs.Destroy{Dataset: pool + "/moved"})
		}
		var verbs []string
		for _, s := range r.repair(pool, rows) {
			verbs = append(verbs, s.Verb())
		}
		if diff := cmp.Diff(c.want, verbs); diff != "" {
			r.t.Errorf("after zfs %q: %s", c.by, diff)
		}
		r.agrees(pool, rows)
	}
}

// datasets are those of the pool, without what changes by itself.
func (r *rig) datasets(pool string) []zfs.Dataset {
	r.t.Helper()
	all, err := zfs.List(r.t.Context(), r.host, []string{pool}, zfs.Extended())
	if err != nil {
		r.t.Fatal(err)
	}
	for i := range all {
		all[i].Used, all[i].Available = 0, 0
	}
	return all
}

// clones is what instances do to a base: 20 times a snapshot, a clone of it, and
// both go again.
func (r *rig) clones(pool string) {
	base := pool + "/base"
	r.do(zfs.Create{Dataset: base})
	r.write("/"+base+"/file", "of the base")
	before := r.datasets(pool)
	for range 20 {
		snapshot, clone := base+"@web1", pool+"/web1"
		r.do(zfs.Snapshot{Name: snapshot, Properties: []zfs.Property{{Name: "sledctl:instance", Value: "web1"}}})
		r.byHand("clone", "-o", "sledctl:instance=web1", snapshot, clone)
		d := r.get(clone, "sledctl:instance")
		if d.Origin != snapshot || !d.Mounted || d.User["sledctl:instance"] != (zfs.Value{Value: "web1", Source: zfs.Local}) {
			r.t.Fatalf("%+v", d)
		}
		if data, err := host.ReadFile(r.host.Files(), "/"+clone+"/file"); err != nil || string(data) != "of the base" {
			r.t.Errorf("%q, %v", data, err)
		}
		r.refuses(zfs.DestroySnapshot{Name: snapshot}, host.ErrRefused)
		r.refuses(zfs.DestroySnapshots{Dataset: base, Snapshot: "web1"}, host.ErrRefused)
		r.refuses(zfs.Destroy{Dataset: base}, host.ErrRefused)
		r.refuses(zfs.Destroy{Dataset: clone, GUID: "1"}, host.ErrRefused)
		r.do(zfs.Destroy{Dataset: clone, GUID: d.GUID}, zfs.DestroySnapshot{Name: snapshot, GUID: r.get(snapshot).GUID})
		r.refuses(zfs.Destroy{Dataset: clone}, host.ErrNotFound)
		r.refuses(zfs.DestroySnapshot{Name: snapshot}, host.ErrNotFound)
	}
	if diff := cmp.Diff(before, r.datasets(pool)); diff != "" {
		r.t.Errorf("left behind: %s", diff)
	}
	r.do(zfs.Destroy{Dataset: base})
}

func (r *rig) goAndReturn(p zfs.Pool, dir string, rows []expected) {
	before := r.datasets(p.Name)
	for range 3 {
		r.do(zfs.ExportPool{Name: p.Name, GUID: p.GUID, Dir: dir})
		r.refuses(zfs.ExportPool{Name: p.Name}, host.ErrNotFound)
		found, err := zfs.FindImportable(r.t.Context(), r.host, dir)
		want := []zfs.Importable{{Name: p.Name, GUID: p.GUID, State: "ONLINE", Devices: []zfs.Device{{Name: p.Devices[0].Name, State: "ONLINE"}}}}
		if diff := cmp.Diff(want, found, cmpopts.IgnoreFields(zfs.Importable{}, "Status")); diff != "" || err != nil {
			r.t.Errorf("%v: %s", err, diff)
		}
		r.refuses(zfs.CreatePool{Name: "other", Device: p.Devices[0].Name}, zfs.ErrInUse)
		r.refuses(zfs.ImportPool{Name: p.Name, GUID: "1", Dir: dir}, host.ErrNotFound)
		r.do(zfs.ImportPool{Name: p.Name, GUID: p.GUID, Dir: dir})
		r.refuses(zfs.ImportPool{Name: p.Name, GUID: p.GUID, Dir: dir}, host.ErrExists)
		r.agrees(p.Name, rows)
	}
	if diff := cmp.Diff(before, r.datasets(p.Name)); diff != "" {
		r.t.Errorf("it came back another one: %s", diff)
	}
	if diff := cmp.Diff(p, r.realPool(p.Name), cmpopts.IgnoreFields(zfs.Pool{}, "Allocated", "Free")); diff != "" {
		r.t.Error(diff)
	}
}

// encryption is the life of one, or how a zfs without it says so.
func (r *rig) encryption(pool string) {
	crypt := pool + "/crypt"
	before := r.datasets(pool)
	create := zfs.Create{Dataset: crypt, Key: lent("a")}
	err := create.Do(r.t.Context(), r.host)
	if lacks, ok := errors.AsType[*zfs.LacksError](err); ok {
		r.t.Logf("no encryption: %v", lacks)
		r.refuses(zfs.LoadKey{Dataset: pool, Key: lent("a")}, host.ErrRefused)
		if diff := cmp.Diff(before, r.datasets(pool)); diff != "" {
			r.t.Errorf("left behind: %s", diff)
		}
		return
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.do(zfs.Unmount{Dataset: crypt}, zfs.UnloadKey{Dataset: crypt})
	if d := r.get(crypt, zfs.Extended()...); d.Keystatus != zfs.KeyUnavailable || d.EncryptionRoot != crypt || d.Encryption != "aes-256-gcm" {
		r.t.Errorf("%+v", d)
	}
	r.refuses(zfs.Mount{Dataset: crypt}, zfs.ErrKeyNotLoaded)
	r.refuses(zfs.LoadKey{Dataset: crypt, Key: lent("b")}, zfs.ErrWrongKey)
	r.do(zfs.LoadKey{Dataset: crypt, Key: lent("a")}, zfs.Mount{Dataset: crypt}, zfs.Destroy{Dataset: crypt})
	if diff := cmp.Diff(before, r.datasets(pool)); diff != "" {
		r.t.Errorf("left behind: %s", diff)
	}
}
