package storage

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/illumos/disk"
	"github.com/sledctl/sledctl/zfs"
)

// Each difference has a command of its own, and says what hands must do before.
func TestEachDifferenceHasARemedy(t *testing.T) {
	crypt := pool1 + "/crypt"
	for name, c := range map[string]struct {
		change func(*scene)
		want   []string
	}{
		"bootstrap repairs it": {func(s *scene) { s.pools[0].Failmode = "wait" }, []string{"sledctl bootstrap"}},
		"a disk was pulled, and its pool is suspended": {
			func(s *scene) { s.disks, s.datasets, s.pools[0].Health = nil, nil, "UNAVAIL" },
			[]string{
				"put it back, then: zpool clear POOL1", "if it is lost: sledctl storage forget c1t0d0",
				"put it back, then: zpool clear POOL1", "if it is lost: sledctl storage forget c1t0d0",
			},
		},
		"a disk was pulled before a boot": {
			func(s *scene) {
				s.disks, s.datasets, s.pools = []Found{{Disk: u2(2), Pool: &zfs.Pool{Name: pool2, Health: "ONLINE"}}}, whole(pool2), nil
			},
			[]string{"put it back, then: sledctl bootstrap", "if it is lost: sledctl storage forget c1t0d0"},
		},
		"a pool does not answer": {
			func(s *scene) { s.datasets, s.pools[0].Health = nil, "SUSPENDED" }, []string{"check its disk, then: zpool clear POOL1"},
		},
		"a disk cannot be read": {
			func(s *scene) {
				s.disks[0], s.pools, s.datasets = Found{Disk: u2(1), Err: errors.New("I/O error")}, nil, nil
			},
			[]string{"make it readable, or take it out, then: sledctl bootstrap"},
		},
		"a disk is blank": {
			func(s *scene) {
				s.disks[0], s.pools, s.datasets, s.known = Found{Disk: u2(1), Content: disk.Content{State: disk.Blank}}, nil, nil, nil
			},
			[]string{"sledctl storage format c1t0d0"},
		},
		"another pool is on the disk": {
			func(s *scene) {
				s.pools, s.datasets = nil, nil
				s.disks[0] = Found{Disk: u2(1), Importable: &zfs.Importable{Name: pool2, GUID: "7", State: "ONLINE"}}
			},
			[]string{"put the right disk in its slot, then: sledctl bootstrap", "if it is lost: sledctl storage forget c1t0d0"},
		},
		"a mountpoint": {
			func(s *scene) { s.change(crypt+"/zone", func(d *zfs.Dataset) { d.Mountpoint = "/elsewhere" }) },
			[]string{"zfs set mountpoint=/pool/ext/11111111-1111-4111-8111-111111111111/crypt/zone POOL1/crypt/zone"},
		},
		"a volume under the name": {
			func(s *scene) { s.change(crypt+"/zone", func(d *zfs.Dataset) { d.Type = zfs.TypeVolume }) },
			[]string{"rename it, and keep its data, then: sledctl bootstrap"},
		},
		"no source of keys": {
			func(s *scene) {
				s.locked = true
				s.change(crypt, func(d *zfs.Dataset) { d.Mounted, d.Keystatus = false, zfs.KeyUnavailable })
			},
			[]string{"set storage.key, then: sledctl bootstrap"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := ready()
			c.change(s)
			var got []string
			for _, d := range s.compare(t).drifts() {
				if d.Name != Fallback().Dataset {
					got = append(got, d.Said()...)
				}
			}
			for i := range got {
				got[i] = strings.ReplaceAll(got[i], pool1, "POOL1")
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What an operator must do comes before what bootstrap repairs.
func TestTheRemedyOfAnItem(t *testing.T) {
	repaired, clear := Remedy{Next: []string{bootstrap}}, Remedy{Next: []string{"zpool clear x"}}
	if got := worst([]Remedy{repaired, clear}); !slices.Equal(got.Next, clear.Next) {
		t.Errorf("%v", got.Next)
	}
	if got := worst([]Remedy{repaired}); !slices.Equal(got.Next, repaired.Next) || worst(nil) != nil {
		t.Errorf("%v", got)
	}
}
