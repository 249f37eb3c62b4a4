package boot_test

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/boot"
	"github.com/sledctl/sledctl/sim/world/zfs"
	"github.com/sledctl/sledctl/sim/world/zones"
	"github.com/sledctl/sledctl/test/hosttest"
)

// busySled has a running zone, temporary and persistent things of each kind,
// and a file on a pool.
func busySled(t *testing.T, o boot.Options) *world.Tx {
	t.Helper()
	var tx *world.Tx
	must(t, boot.Memory(o, hosttest.Files).Repair(func(own *world.Tx) error { tx = own; return nil }))
	c := world.Config{Brand: "sparse", Zonepath: "/zones/z1", IPType: "exclusive"}
	z, err := zones.AddZone(tx, "z1", c)
	must(t, err)
	must(t, zones.SetZoneState(tx, z, world.ZoneInstalled))
	zones.StartKernelZone(tx, z).State = "running"
	tx.State.Services["z1"] = &world.Repository{}
	tx.State.Processes = append(tx.State.Processes, &world.Process{PID: 7, Zone: "z1"})
	tx.State.Due = append(tx.State.Due, &world.Event{At: tx.Now.Add(time.Hour), Kind: "x"})
	tx.State.Links = append(tx.State.Links,
		&world.Link{Name: "vnic1", Class: "vnic", Over: "net0", MAC: "02:08:20:00:00:01", Zone: "z1"},
		&world.Link{Name: "vnic2", Class: "vnic", Over: "net0", MAC: "02:08:20:00:00:02", Temporary: true})
	global := tx.State.Stacks[world.GlobalZone]
	global.Addresses = append(global.Addresses, &world.Address{Object: "net0/t", Type: "static", Address: "192.168.77.99/24", Temporary: true})
	global.Routes = append(global.Routes, &world.Route{Destination: "10.0.0.0/8", Gateway: "192.168.77.1"})
	pool := tx.State.Pools[1].Name
	must(t, world.Put(tx.Files, "/"+pool+"/kept", []byte("x"), 0o644))
	must(t, world.Put(tx.Files, "/etc/kept", []byte("x"), 0o644))
	must(t, world.Put(tx.Files, "/var/run/lost", []byte("x"), 0o644))
	must(t, world.Put(tx.Files, "/var/run/deep/lost", []byte("x"), 0o644))
	return tx
}

// Sources: zones(7), dladm(8) and ipadm(8) on -t, route(8) on -p, smf(7); for
// the RAM disk omicron issue 2888.
func TestWhatSurvivesAReboot(t *testing.T) {
	type sled struct {
		zones, links, addresses, routes []string
		imported                        int
		files                           map[string]bool
	}
	for mode, want := range map[world.Mode]sled{
		world.OmniOS: {
			zones: []string{"z1 installed"}, links: []string{"net0", "net1", "vnic1"},
			addresses: []string{"lo0/v4 ok", "lo0/v6 ok", "net0/v4 ok"}, routes: []string{"default"}, imported: 7,
			files: map[string]bool{"/etc/kept": true, "/var/run/lost": false, "/var/run/deep": false, "/var/run/zones": true, "POOL/kept": true},
		},
		world.SmartOS: {
			zones: []string{"z1 installed"}, links: []string{"net0", "net1"},
			addresses: []string{"lo0/v4 ok", "lo0/v6 ok", "net0/v4 ok"}, routes: []string{"default"}, imported: 2,
			files: map[string]bool{"/etc/kept": false, "/var/run/lost": false, "/var/run/deep": false, "/var/run/zones": true, "POOL/kept": true},
		},
		world.Helios: {
			links: []string{"net0", "net1"}, addresses: []string{"lo0/v4 ok", "lo0/v6 ok", "net0/v4 ok"}, routes: []string{"default"}, imported: 1,
			files: map[string]bool{"/etc/kept": false, "/var/run/lost": false, "/var/run/deep": false, "/var/run/zones": true, "POOL/kept": false},
		},
	} {
		t.Run(string(mode), func(t *testing.T) {
			tx := busySled(t, boot.Options{Mode: mode})
			pool := tx.State.Pools[1]
			must(t, boot.Reboot(tx))
			// Duplicate address detection of what came back takes its time.
			tx.Now = tx.Now.Add(time.Minute)
			got := sled{files: map[string]bool{}}
			for _, z := range tx.State.Zones {
				got.zones = append(got.zones, z.Name+" "+z.Current())
			}
			for _, l := range tx.State.Links {
				got.links = append(got.links, l.Name)
				if l.Zone != "" {
					t.Errorf("link %s is still on loan to %s", l.Name, l.Zone)
				}
			}
			for _, a := range tx.State.Stacks[world.GlobalZone].Addresses {
				got.addresses = append(got.addresses, a.Object+" "+world.At(a.Timeline, tx.Now).State)
			}
			slices.Sort(got.addresses)
			for _, r := range tx.State.Stacks[world.GlobalZone].Routes {
				got.routes = append(got.routes, r.Destination)
			}
			for _, p := range tx.State.Pools {
				if p.Imported {
					got.imported++
				}
			}
			for name := range want.files {
				_, err := tx.Files.Stat(strings.Replace(name, "POOL", "/"+pool.Name, 1))
				got.files[name] = err == nil
				if err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Error(err)
				}
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(sled{})); diff != "" {
				t.Error(diff)
			}
			before := slices.ContainsFunc(tx.State.Due, func(e *world.Event) bool { return e.Kind == "x" })
			if len(tx.State.Processes) != 0 || before || tx.State.Boots != 2 || tx.State.Services["z1"] != nil {
				t.Errorf("processes %v, still due: %t, boots %d", tx.State.Processes, before, tx.State.Boots)
			}
			if tx.State.Services[world.GlobalZone] == nil {
				t.Error("the global zone has no services")
			}
		})
	}
}

// What lies on a pool outlives the RAM disk: it is there when the pool has been
// imported again.
func TestAPoolOutlivesTheRAMDisk(t *testing.T) {
	tx := busySled(t, boot.Options{Mode: world.Helios})
	pool := tx.State.Pools[1]
	must(t, boot.Reboot(tx))
	if !zfs.OtherHost(tx, pool) {
		t.Error("the system is the one that it was before the boot")
	}
	found, err := zfs.Importable(tx, "/dev/dsk")
	must(t, err)
	at := slices.IndexFunc(found, func(c zfs.Candidate) bool { return c.Pool == pool })
	if at < 0 {
		t.Fatalf("%d pools to import, and %s is none of them", len(found), pool.Name)
	}
	must(t, zfs.ImportPool(tx, found[at]))
	must(t, zfs.MountPool(tx, pool.Name))
	data, err := host.ReadFile(tx.Files, "/"+pool.Name+"/kept")
	if err != nil || string(data) != "x" {
		t.Errorf("read %q: %v", data, err)
	}
}

// A file of the image is there again after a reboot, as it was; others of a RAM
// disk's root are not.
func TestFilesOfTheImageOutliveTheRAMDisk(t *testing.T) {
	const kept, lost = "/etc/sledctl/config.toml", "/etc/other"
	for mode, want := range map[world.Mode]bool{world.Helios: false, world.OmniOS: true} {
		tx := busySled(t, boot.Options{Mode: mode, Image: []string{kept, "/etc/never"}})
		for _, name := range []string{kept, lost} {
			must(t, world.Put(tx.Files, name, []byte("x"), 0o644))
		}
		must(t, boot.Reboot(tx))
		if data, err := host.ReadFile(tx.Files, kept); err != nil || string(data) != "x" {
			t.Errorf("%s: %q, %v", mode, data, err)
		}
		if tx.Exists(lost) != want {
			t.Errorf("%s: %s is there: %t", mode, lost, !want)
		}
	}
}

// A pool whose disk is missing when the system boots is known from
// /etc/zfs/zpool.cache, and opened when zpool clear finds the disk, or by a boot
// that does (zfs_ioc_clear in usr/src/uts/common/fs/zfs/zfs_ioctl.c).
func TestAPoolThatABootCannotOpen(t *testing.T) {
	for how, open := range map[string]func(*world.Tx, string) error{
		"clear":  func(tx *world.Tx, pool string) error { return zfs.ClearPool(tx, pool) },
		"reboot": func(tx *world.Tx, _ string) error { return boot.Reboot(tx) },
	} {
		tx := busySled(t, boot.Options{})
		d := tx.State.Disks[2]
		must(t, zfs.CreateFilesystem(tx, d.Pool+"/a", nil))
		zfs.LoseDisk(tx, d.Name)
		must(t, boot.Reboot(tx))
		if value := zfs.NewSurvey(tx).PoolValue(zfs.FindPool(tx, d.Pool), "health", true); value != "FAULTED" {
			t.Errorf("%s: the pool is %s", how, value)
		}
		_, err := zfs.OpenDataset(tx, d.Pool+"/a", zfs.TypeDataset)
		refused(t, err, "cannot open '"+d.Pool+"/a': No such device or address")
		_, err = zfs.OpenPool(tx, d.Pool)
		refused(t, err, "cannot open '"+d.Pool+"': pool is currently unavailable")
		refused(t, zfs.ClearPool(tx, d.Pool), "cannot clear errors for '"+d.Pool+"': I/O error")
		zfs.InsertDisk(tx, d.Name)
		must(t, open(tx, d.Pool))
		_, err = zfs.OpenDataset(tx, d.Pool+"/a", zfs.TypeDataset)
		must(t, err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// refused checks that err is a refusal with this text.
func refused(t *testing.T, err error, want string) {
	t.Helper()
	r, ok := errors.AsType[*world.Refusal](err)
	if !ok {
		t.Fatalf("got %v, want the refusal %q", err, want)
	}
	if diff := cmp.Diff(want, r.Text); diff != "" {
		t.Errorf("refusal (-want +got):\n%s", diff)
	}
}
