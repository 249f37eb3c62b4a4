package storage

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/illumos/disk"
	"github.com/sledctl/sledctl/illumos/key"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/zfs"
)

const (
	pool1 = "oxp_11111111-1111-4111-8111-111111111111"
	pool2 = "oxp_22222222-2222-4222-8222-222222222222"
	inner = "oxi_33333333-3333-4333-8333-333333333333"
)

func u2(n int) disk.Disk {
	name := fmt.Sprintf("c%dt0d0", n)
	return disk.Disk{Name: name, Kind: disk.U2, Slot: n, Identity: disk.Identity{Vendor: "1b96", Model: "WUS4", Serial: fmt.Sprint("A", n)},
		Device: "/dev/dsk/" + name, PoolDevice: "/dev/dsk/" + name + "s0"}
}

// scene is a sled: what was seen of it, and what is recorded.
type scene struct {
	Settings
	disks    []Found
	pools    []zfs.Pool
	datasets []zfs.Dataset
	known    []Record
	locked   bool // the key source does not answer
}

func online(name string) zfs.Pool {
	return zfs.Pool{Name: name, GUID: "1", Health: "ONLINE", Size: 1000, Free: 900, Failmode: "continue"}
}

// whole are the datasets that a pool must have, as they must be.
func whole(pool string) []zfs.Dataset {
	var all []zfs.Dataset
	for _, e := range Of(pool, nil) {
		d := zfs.Dataset{Name: e.Dataset, Type: zfs.TypeFilesystem, Mountpoint: e.Mountpoint, Mounted: true, Canmount: "on", Compression: "on", User: map[string]zfs.Value{}}
		for _, p := range e.Properties {
			switch p.Name {
			case "compression":
				d.Compression = p.Value
			case "quota":
				_, _ = fmt.Sscan(p.Value, &d.Quota)
			}
		}
		if e.inside() {
			d.Encryption, d.Keyformat, d.Keystatus, d.EncryptionRoot = zfs.Cipher, "raw", zfs.KeyAvailable, pool+"/"+encrypted
		}
		if e.Root {
			d.User[PropertyKeyID], d.User[PropertyEpoch] = zfs.Value{Value: "was", Source: zfs.Local}, zfs.Value{Value: "0", Source: zfs.Local}
		}
		all = append(all, d)
	}
	return all
}

// ready is a sled with one U.2 on which all is as it must be.
func ready() *scene {
	s := &scene{pools: []zfs.Pool{online(pool1)}, datasets: whole(pool1)}
	s.disks = []Found{{Disk: u2(1), Pool: &s.pools[0]}}
	s.known = []Record{recordOf(u2(1), pool1, time.Time{})}
	return s
}

func (s *scene) change(name string, how func(*zfs.Dataset)) {
	for i := range s.datasets {
		if s.datasets[i].Name == name {
			how(&s.datasets[i])
		}
	}
}

func (s *scene) compare(t *testing.T) *comparison {
	t.Helper()
	seen := Seen{Inv: inventory.Of(inventory.Listings{Pools: slices.Concat([]zfs.Pool{}, s.pools), Datasets: slices.Concat([]zfs.Dataset{}, s.datasets)}), Disks: s.disks}
	s.Keys = key.NewRing(key.Development{}, "/k")
	if s.locked {
		s.Keys = nil
	}
	seen.Keys = s.ask(t.Context(), nil, s.needs(seen))
	known := map[disk.Identity]Record{}
	for _, r := range s.known {
		known[r.Identity()] = r
	}
	return s.Settings.compare(seen, known, operation.Stamp{ID: "44444444-4444-4444-8444-444444444444"}, everyKind())
}

// told is what differs, and what would be done about it.
func told(c *comparison) []string {
	all := []string{}
	for _, d := range c.found {
		line := d.Object + ": " + d.Property + " is " + d.Is + ", wanted " + d.Wanted
		for _, a := range d.Repair {
			line += "; " + a.ID
		}
		if d.Err != nil {
			line += "; refused: " + d.Err.Error()
		}
		line = strings.NewReplacer(pool1, "POOL1", pool2, "POOL2", inner, "INNER").Replace(line)
		all = append(all, line)
	}
	return all
}

func TestWhatDiffersIsToldAndMended(t *testing.T) {
	crypt := pool1 + "/crypt"
	for name, c := range map[string]struct {
		change func(*scene)
		want   []string
	}{
		"nothing": {func(*scene) {}, []string{}},
		"a disk that is not known, with the pool of another": {
			func(s *scene) { s.disks = append(s.disks, Found{Disk: u2(2), Pool: &s.pools[0]}) },
			[]string{"disk c2t0d0: pool is POOL1, wanted oxp_<uuid>; refused: disk c2t0d0: pool is POOL1, which belongs to disk c1t0d0, wanted oxp_<uuid>"},
		},
		"a quota": {
			func(s *scene) { s.change(crypt+"/debug", func(d *zfs.Dataset) { d.Quota = 5 }) },
			[]string{"dataset POOL1/crypt/debug: quota is 5, wanted 107374182400; zfs.set POOL1/crypt/debug quota"},
		},
		"not mounted": {
			func(s *scene) { s.change(crypt+"/zone", func(d *zfs.Dataset) { d.Mounted = false }) },
			[]string{"dataset POOL1/crypt/zone: mounted is no, wanted yes; zfs.mount POOL1/crypt/zone"},
		},
		"a dataset that does not exist": {
			func(s *scene) {
				s.datasets = slices.DeleteFunc(s.datasets, func(d zfs.Dataset) bool { return d.Name == crypt+"/zone" })
			},
			[]string{"dataset POOL1/crypt/zone: presence is absent, wanted present; zfs.create POOL1/crypt/zone"},
		},
		"locked, as after a boot": {
			func(s *scene) {
				for _, name := range []string{"", "/zone", "/debug"} {
					s.change(crypt+name, func(d *zfs.Dataset) { d.Mounted, d.Keystatus = false, zfs.KeyUnavailable })
				}
			},
			[]string{
				"dataset POOL1/crypt: key is not loaded, wanted loaded; zfs.load-key POOL1/crypt",
				"dataset POOL1/crypt: mounted is no, wanted yes; zfs.mount POOL1/crypt",
				"dataset POOL1/crypt/zone: mounted is no, wanted yes; zfs.mount POOL1/crypt/zone",
				"dataset POOL1/crypt/debug: mounted is no, wanted yes; zfs.mount POOL1/crypt/debug",
			},
		},
		"locked, and no key": {
			func(s *scene) {
				s.locked = true
				s.change(crypt, func(d *zfs.Dataset) { d.Mounted, d.Keystatus = false, zfs.KeyUnavailable })
			},
			[]string{"dataset POOL1/crypt: key is not loaded, wanted loaded; refused: stays locked: no source of keys is configured"},
		},
		"a foreign mountpoint": {
			func(s *scene) { s.change(crypt+"/zone", func(d *zfs.Dataset) { d.Mountpoint = "/elsewhere" }) },
			[]string{"dataset POOL1/crypt/zone: mountpoint is /elsewhere, wanted /pool/ext/11111111-1111-4111-8111-111111111111/crypt/zone; refused: dataset POOL1/crypt/zone: mountpoint is /elsewhere, wanted /pool/ext/11111111-1111-4111-8111-111111111111/crypt/zone"},
		},
		"a volume under the name": {
			func(s *scene) { s.change(crypt+"/zone", func(d *zfs.Dataset) { d.Type = zfs.TypeVolume }) },
			[]string{"dataset POOL1/crypt/zone: type is volume, wanted filesystem; refused: dataset POOL1/crypt/zone: type is volume, wanted filesystem"},
		},
		"not encrypted": {
			func(s *scene) {
				s.change(crypt, func(d *zfs.Dataset) { d.Encryption, d.EncryptionRoot = "off", "" })
			},
			[]string{"dataset POOL1/crypt: encryption is off, wanted aes-256-gcm; refused: dataset POOL1/crypt: encryption is off, wanted aes-256-gcm"},
		},
		"encrypted with a key of its own": {
			func(s *scene) {
				s.change(crypt+"/zone", func(d *zfs.Dataset) { d.EncryptionRoot = crypt + "/zone" })
			},
			[]string{"dataset POOL1/crypt/zone: encryptionroot is POOL1/crypt/zone, wanted POOL1/crypt; refused: dataset POOL1/crypt/zone: encryptionroot is POOL1/crypt/zone, wanted POOL1/crypt"},
		},
		"failmode": {
			func(s *scene) { s.pools[0].Failmode = "wait" },
			[]string{"pool POOL1: failmode is wait, wanted continue; zpool.set POOL1 failmode"},
		},
		"suspended": {
			func(s *scene) { s.pools[0].Health = "SUSPENDED"; s.datasets = nil },
			[]string{"pool POOL1: health is SUSPENDED, wanted ONLINE; refused: pool is SUSPENDED: its disk does not answer as it should"},
		},
		"not imported": {
			func(s *scene) {
				s.pools, s.datasets = nil, nil
				s.disks[0] = Found{Disk: u2(1), Importable: &zfs.Importable{Name: pool1, GUID: "7", State: "ONLINE", Foreign: true}}
			},
			[]string{"pool POOL1: imported is no, wanted yes; zpool.import POOL1"},
		},
		"a pool that is not this disk's": {
			func(s *scene) {
				s.pools, s.datasets = nil, nil
				s.disks[0] = Found{Disk: u2(1), Importable: &zfs.Importable{Name: pool2, GUID: "7", State: "ONLINE"}}
			},
			[]string{"disk c1t0d0: pool is POOL2, wanted POOL1; refused: disk c1t0d0: pool is POOL2, wanted POOL1"},
		},
		"an M.2's pool on a U.2": {
			func(s *scene) {
				s.pools, s.datasets, s.known = nil, nil, nil
				s.disks[0] = Found{Disk: u2(1), Importable: &zfs.Importable{Name: inner, GUID: "7", State: "ONLINE"}}
			},
			[]string{"disk c1t0d0: pool is INNER, wanted oxp_<uuid>; refused: disk c1t0d0: pool is INNER, wanted oxp_<uuid>"},
		},
		"a disk that was taken out": {
			func(s *scene) { s.pools, s.datasets, s.disks = nil, nil, nil },
			[]string{
				"disk c1t0d0: presence is absent, wanted present; refused: absent: serial number A1 in slot 1, with pool POOL1",
				"dataset rpool/zone: presence is absent, wanted present; zfs.create rpool/zone",
			},
		},
		"a disk that cannot be read": {
			func(s *scene) {
				s.pools, s.datasets = nil, nil
				s.disks[0] = Found{Disk: u2(1), Err: errors.New("I/O error")}
			},
			[]string{"disk c1t0d0: contents is unknown, wanted a pool; refused: I/O error"},
		},
		"configured, with another uuid on it": {
			func(s *scene) {
				s.Custom = []CustomDataset{{On: naming.ExternalPool, Name: "mine", Properties: props(PropertyUUID, "1")}}
				s.datasets = append(s.datasets, zfs.Dataset{Name: pool1 + "/mine", Type: "filesystem", Mounted: true,
					Mountpoint: naming.PoolRoot(pool1).Join("mine").Mountpoint, User: map[string]zfs.Value{PropertyUUID: {Value: "2", Source: zfs.Local}}})
			},
			[]string{"dataset POOL1/mine: oxide:uuid is 2, wanted 1; refused: dataset POOL1/mine: oxide:uuid is 2, wanted 1"},
		},
		"configured, and not to be mounted": {
			func(s *scene) {
				s.Custom = []CustomDataset{{On: naming.ExternalPool, Name: "crypt/x", Properties: props("canmount", "noauto", "reservation", "7")}}
				s.datasets = append(s.datasets, zfs.Dataset{Name: crypt + "/x", Type: "filesystem", Canmount: "on", Reservation: 0,
					Mountpoint: naming.PoolRoot(pool1).Join("crypt/x").Mountpoint, Encryption: zfs.Cipher, EncryptionRoot: crypt})
			},
			[]string{
				"dataset POOL1/crypt/x: canmount is on, wanted noauto; zfs.set POOL1/crypt/x canmount",
				"dataset POOL1/crypt/x: reservation is none, wanted 7; zfs.set POOL1/crypt/x reservation",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := ready()
			c.change(s)
			if diff := cmp.Diff(c.want, told(s.compare(t))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A blank disk is formatted if the operator has said so, and in no other case.
func TestABlankDiskWaitsToBeNamed(t *testing.T) {
	for name, c := range map[string]struct {
		settings Settings
		known    []Record
		formats  bool
		refused  bool
	}{
		"nobody named it":                   {},
		"another one is named":              {settings: Settings{Format: []string{"c2t0d0"}}},
		"named":                             {settings: Settings{Format: []string{"c1t0d0"}}, formats: true},
		"named by its slot":                 {settings: Settings{Format: []string{"u2:1"}}, formats: true},
		"named by its serial number":        {settings: Settings{Format: []string{"A1"}}, formats: true},
		"all blank ones":                    {settings: Settings{FormatBlank: true}, formats: true},
		"it held a pool once":               {known: []Record{recordOf(u2(1), pool1, time.Time{})}, refused: true},
		"it held a pool once, all of them":  {settings: Settings{FormatBlank: true}, known: []Record{recordOf(u2(1), pool1, time.Time{})}, refused: true},
		"it held a pool once, and is named": {settings: Settings{Format: []string{"A1"}}, known: []Record{recordOf(u2(1), pool1, time.Time{})}, formats: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scene{Settings: c.settings, known: c.known, disks: []Found{{Disk: u2(1), Content: disk.Content{State: disk.Blank, Device: "/dev/dsk/c1t0d0"}}}}
			got := s.compare(t)
			d, err := got.decision()
			if err != nil {
				t.Fatal(err)
			}
			formats := slices.ContainsFunc(d.Plan.Actions, func(a plan.Action) bool { _, ok := a.Step.(zfs.CreatePool); return ok })
			refused := slices.ContainsFunc(got.found, func(d Difference) bool { return d.Err != nil })
			if formats != c.formats || refused != c.refused {
				t.Errorf("formats %v, refused %v: %q", formats, refused, told(got))
			}
			if formats && len(d.Plan.Actions) != 2+3*2 {
				t.Errorf("%d actions for a pool, its failmode, and three datasets with their mountpoints", len(d.Plan.Actions))
			}
		})
	}
}
