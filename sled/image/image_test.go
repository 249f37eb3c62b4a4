package image

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/zfs"
)

// source is a file with a disk of so many bytes that are not zero.
func source(t *testing.T, size int) Source {
	t.Helper()
	raw := bytes.Repeat([]byte{1}, size)
	s, err := Open(t.Context(), "disk.raw", bytes.NewReader(raw), int64(size), "")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The pool is the one with the most room, unless one is named; one without room for all that may be
// other than zero is refused, and so is one that holds no images.
func TestWhereAnImageIsKept(t *testing.T) {
	inv := inventory.Of(inventory.Listings{Datasets: []zfs.Dataset{{Name: "tank", Available: 1 << 20}, {Name: "big", Available: 4 << 20}, {Name: "oxi_11111111-1111-4111-8111-111111111111", Available: 1 << 40}}})
	pools := []string{"tank", "big", "gone", "oxi_11111111-1111-4111-8111-111111111111"}
	at := operation.Stamp{ID: "22222222-2222-4222-8222-222222222222", Now: time.Unix(0, 0)}
	r, err := Want{Name: "x", Source: source(t, 2<<20)}.record(pools, inv, nil, at)
	if err != nil || r.Dataset != "big/sledctl_image_"+at.ID || r.Size != 2<<20 {
		t.Errorf("%+v, %v", r, err)
	}
	_, err = Want{Name: "x", Pool: "tank", Source: source(t, 2<<20)}.record(pools, inv, nil, at)
	if e, ok := errors.AsType[*NoRoomError](err); !ok || e.Needs != 2<<20 || e.Has != 1<<20 {
		t.Errorf("%v", err)
	}
	for _, pool := range []string{"gone", "other", "oxi_11111111-1111-4111-8111-111111111111"} {
		_, err := Want{Name: "x", Pool: pool, Source: source(t, 512)}.record(pools, inv, nil, at)
		if e, ok := errors.AsType[*NoPoolError](err); !ok || strings.Join(e.Pools, " ") != "tank big" {
			t.Errorf("%s: %v", pool, err)
		}
	}
}

// An image is ready if its volume is the one that was made, and its snapshot is there; what was cloned
// from it, and snapshots that somebody else has taken, need it.
func TestStatus(t *testing.T) {
	r := Record{ID: "i", Name: "x", Pool: "tank", Dataset: "tank/v", GUID: "7"}
	pool, volume, kept := zfs.Dataset{Name: "tank"}, zfs.Dataset{Name: "tank/v", GUID: "7", Type: zfs.TypeVolume, Used: 9}, zfs.Dataset{Name: "tank/v@image", Type: zfs.TypeSnapshot}
	other := volume
	other.GUID = "8"
	for want, datasets := range map[string][]zfs.Dataset{
		"ready 9 ":           {volume, kept},
		"missing 0 ":         {volume},
		"missing 0  ":        {other, kept},
		"ready 9 tank/clone": {volume, kept, {Name: "tank/clone", Origin: "tank/v@image"}},
		"ready 9 tank/v@own": {volume, kept, {Name: "tank/v@own", Type: zfs.TypeSnapshot}},
	} {
		s := StatusOf(r, inventory.Of(inventory.Listings{Datasets: append(datasets, pool)}))
		if got := strings.Join([]string{s.State, map[bool]string{true: "9", false: "0"}[s.Used == 9], strings.Join(s.Clones, ",")}, " "); got != strings.TrimRight(want, " ")+map[bool]string{true: " ", false: ""}[len(s.Clones) == 0] {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if s := StatusOf(r, inventory.Of(inventory.Listings{Pools: []zfs.Pool{{Name: "tank", Health: "UNAVAIL"}}})); s.State != Unseen || s.Reason != "pool tank is UNAVAIL" {
		t.Errorf("%+v", s)
	}
	d := removal(r, inventory.Of(inventory.Listings{Datasets: []zfs.Dataset{other, kept}}))
	if len(d.Plan.Actions) > 0 || len(d.OnSuccess) != 1 {
		t.Errorf("another volume of the name would be removed: %+v", d.Plan)
	}
}

func TestNames(t *testing.T) {
	for name, good := range map[string]bool{
		"debian-13.1_amd64": true, "a": true, "9": true, strings.Repeat("a", 63): true,
		"": false, "A": false, "-a": false, "a b": false, "a/b": false, strings.Repeat("a", 64): false, "11111111-1111-4111-8111-111111111111": false,
	} {
		if err := ValidateName(name); (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// A file that is not the one that was meant is refused before anything is read of its disk.
func TestAnotherFile(t *testing.T) {
	_, err := Open(t.Context(), "disk.raw", bytes.NewReader(make([]byte, 512)), 512, strings.Repeat("0", 64))
	if e, ok := errors.AsType[*DigestError](err); !ok || !strings.HasPrefix(e.Is, "076a27c79e5ace2a3d47f9dd2e83e4ff6ea8872b3c2218f66c92b89b55f36560") {
		t.Errorf("%v", err)
	}
}

// A copy takes the place of what a pool has lost, and those that cannot be seen stay known; an image whose pools have all lost it is missing.
func TestACopyTakesThePlaceOfWhatIsLost(t *testing.T) {
	r := Record{ID: "i", Name: "x", Pool: "tank", Dataset: "tank/v", GUID: "7"}
	r = r.with(Place{Pool: "big", Dataset: "big/v", GUID: "8"}).with(Place{Pool: "new", Dataset: "new/v", GUID: "1"}).with(Place{Pool: "new", Dataset: "new/v", GUID: "9"})
	if on, there := r.On("new"); !there || on.GUID != "9" || len(r.Places()) != 3 {
		t.Fatalf("%+v", r.Places())
	}
	pools := []zfs.Dataset{{Name: "tank"}, {Name: "big"}, {Name: "new"}}
	whole := append(pools, zfs.Dataset{Name: "new/v", GUID: "9", Type: zfs.TypeVolume, Used: 5}, zfs.Dataset{Name: "new/v@image", Type: zfs.TypeSnapshot})
	inv := inventory.Of(inventory.Listings{Datasets: whole})
	d, now, err := kept(r, inv)
	if s := StatusOf(now, inv); err != nil || len(d.OnSuccess) != 1 || now.Pool != "new" || len(now.Copies) != 1 || now.Copies[0].Pool != "big" || s.State != Ready || s.Used != 5 {
		t.Errorf("%+v, %+v, %v", now, s, err)
	}
	if s := StatusOf(r, inventory.Of(inventory.Listings{Datasets: pools})); s.State != Missing {
		t.Errorf("%+v", s)
	}
}
