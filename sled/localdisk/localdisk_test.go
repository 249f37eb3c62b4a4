package localdisk_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/operation/operationtest"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sled/localdisk"
	"github.com/sledctl/sledctl/test/hosttest"
	"github.com/sledctl/sledctl/zfs"
)

var id = uuid.MustParse("3d3e6b10-7f0a-4c61-9a5e-0d9a0b7c5a11")

// rig is a sled with a pool on each of its U.2s, all of which can hold volumes.
type rig struct {
	*testing.T
	env   operation.Env
	pools []string
	user  string
}

func newRig(t *testing.T, disks int) *rig {
	t.Helper()
	s := sim.New(sim.Options{Seed: 1, U2: disks}, hosttest.Files)
	t.Cleanup(s.Close)
	r := &rig{T: t, env: operationtest.New(t, s.Host())}
	for name := range strings.FieldsSeq(r.command("zpool list -Ho name")) {
		if pool, ok := strings.CutPrefix(name, "oxp_"); ok {
			r.pools = append(r.pools, name)
			for _, dataset := range []string{"local_storage_unencrypted", "crypt", "crypt/local_storage"} {
				r.command(fmt.Sprintf("zfs create -o mountpoint=/pool/ext/%s/%s %s/%s", pool, dataset, name, dataset))
			}
		}
	}
	if len(r.pools) != disks {
		t.Fatalf("pools: %q", r.pools)
	}
	return r
}

func (r *rig) command(line string) string {
	r.Helper()
	words := strings.Fields(line)
	got, err := r.env.Host.Run(r.Context(), host.Command{Program: words[0], Args: words[1:]})
	if err != nil || got.Exit != 0 {
		r.Fatalf("%s: %v, exit %d: %s", line, err, got.Exit, got.Stderr)
	}
	return string(got.Stdout)
}

func (r *rig) settings() localdisk.Settings {
	return localdisk.Settings{User: func(ledger.View, string) (string, error) { return r.user, nil }}
}

func (r *rig) ensure(want localdisk.Wanted) (localdisk.Record, error) {
	got, _, err := r.settings().Ensure(r.Context(), r.env, want, false, false)
	return got, err
}

func (r *rig) remove(p localdisk.Place) (bool, error) {
	gone, _, err := r.settings().Delete(r.Context(), r.env, p, false)
	return gone, err
}

// datasets lists what there is of the volume, one dataset a line.
func (r *rig) datasets() string {
	r.Helper()
	var lines []string
	for line := range strings.Lines(r.command("zfs list -Hp -t all -o name,type,quota,reservation,volsize,canmount,mountpoint")) {
		if strings.Contains(line, "/"+id.String()) {
			lines = append(lines, strings.ReplaceAll(strings.TrimSpace(line), "\t", " "))
		}
	}
	return strings.Join(lines, "\n")
}

func (r *rig) recorded() []localdisk.Record {
	r.Helper()
	all, err := localdisk.All(operationtest.View(r, r.env))
	if err != nil {
		r.Fatal(err)
	}
	return all
}

// A volume is made as the sled agent lays it out, once, and goes with all that lies in it.
func TestAVolume(t *testing.T) {
	for _, encrypted := range []bool{false, true} {
		r := newRig(t, 1)
		at := r.pools[0] + map[bool]string{false: "/local_storage_unencrypted/", true: "/crypt/local_storage/"}[encrypted] + id.String()
		want := localdisk.Wanted{Place: localdisk.Place{ID: id, Pool: r.pools[0], Encrypted: encrypted}, Size: 1 << 30, Quota: 2 << 30}
		for range 2 {
			made, err := r.ensure(want)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]localdisk.Record{made}, r.recorded()); diff != "" || made.Device() != "/dev/zvol/rdsk/"+at+"/vol" {
				t.Errorf("%s %s", made.Device(), diff)
			}
			is := fmt.Sprintf("%s filesystem %d %d - off /%s\n%[1]s/vol volume - 0 %[5]d - -", at, 2<<30, 2<<30, id, 1<<30)
			if diff := cmp.Diff(is, r.datasets()); diff != "" {
				t.Error(diff)
			}
		}
		r.command("zfs snapshot " + at + "/vol@mine")
		if gone, err := r.remove(want.Place); !gone || err != nil {
			t.Errorf("%v, %v", gone, err)
		}
		if left := r.datasets(); left != "" || len(r.recorded()) != 0 {
			t.Errorf("left: %s %v", left, r.recorded())
		}
		if gone, err := r.remove(want.Place); gone || err != nil {
			t.Errorf("again: %v, %v", gone, err)
		}
	}
}

// Another quota is given to it, larger or smaller; another size is refused, for a volume keeps
// its own, and the guest's data with it.
func TestAVolumeOfAnotherSize(t *testing.T) {
	r := newRig(t, 1)
	want := localdisk.Wanted{Place: localdisk.Place{ID: id}, Size: 1 << 30}
	for _, quota := range []uint64{0, 4 << 30, 2 << 30, 0} {
		want.Quota = quota
		made, err := r.ensure(want)
		if err != nil {
			t.Fatal(err)
		}
		if quota == 0 && len(r.recorded()) == 1 {
			quota = made.Quota
		}
		if is := fmt.Sprintf("filesystem %d %d", quota, quota); !strings.Contains(r.datasets(), is) {
			t.Errorf("%s, want %s", r.datasets(), is)
		}
	}
	before := r.datasets()
	want.Size = 2 << 30
	_, err := r.ensure(want)
	if e, ok := errors.AsType[*localdisk.MismatchError](err); !ok || e.Property != "volsize" {
		t.Error(err)
	}
	if after := r.datasets(); after != before || r.recorded()[0].Size != 1<<30 {
		t.Errorf("%s\n%s", before, after)
	}
}

// What cannot be is refused, and nothing of it stays.
func TestAVolumeThatIsRefused(t *testing.T) {
	r := newRig(t, 2)
	place := localdisk.Place{ID: id, Pool: r.pools[0]}
	for name, c := range map[string]struct {
		do   func() error
		want any
	}{
		"no size":      {func() error { _, err := r.ensure(localdisk.Wanted{Place: place}); return err }, new(*localdisk.SizeError)},
		"half a block": {func() error { _, err := r.ensure(localdisk.Wanted{Place: place, Size: 2048}); return err }, new(*localdisk.SizeError)},
		"which pool": {func() error {
			_, err := r.ensure(localdisk.Wanted{Place: localdisk.Place{ID: id}, Size: 4096})
			return err
		}, new(*localdisk.PoolError)},
		"no such pool": {func() error {
			_, err := r.ensure(localdisk.Wanted{Place: localdisk.Place{ID: id, Pool: "oxp_" + id.String()}, Size: 4096})
			return err
		}, new(*localdisk.UnavailableError)},
		"no room for itself": {func() error {
			_, err := r.ensure(localdisk.Wanted{Place: place, Size: 1 << 30, Quota: 1 << 30})
			return err
		}, new(*host.CommandError)},
		"not recorded": {func() error {
			r.command("zfs create -o canmount=off " + r.pools[0] + "/local_storage_unencrypted/" + id.String())
			_, err := r.remove(place)
			return err
		}, new(*localdisk.ForeignError)},
	} {
		err := c.do()
		if !errors.As(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if left := r.datasets(); left != "" && name != "not recorded" {
			t.Errorf("%s: left %s", name, left)
		}
		if name == "not recorded" {
			r.command("zfs destroy " + r.pools[0] + "/local_storage_unencrypted/" + id.String())
		}
		if open := operation.Open(operationtest.View(t, r.env)); len(open) > 0 || len(r.recorded()) > 0 {
			t.Errorf("%s: %v %v", name, open, r.recorded())
		}
	}
}

// A volume that a VM has stays, and so does one that is named in another place.
func TestAVolumeThatStays(t *testing.T) {
	r := newRig(t, 2)
	place := localdisk.Place{ID: id, Pool: r.pools[0]}
	if _, err := r.ensure(localdisk.Wanted{Place: place, Size: 1 << 30}); err != nil {
		t.Fatal(err)
	}
	before := r.datasets()
	r.user = "web1"
	if _, err := r.remove(place); !errors.As(err, new(*localdisk.BusyError)) {
		t.Error(err)
	}
	r.user = ""
	for _, other := range []localdisk.Place{{ID: id, Pool: r.pools[1]}, {ID: id, Pool: r.pools[0], Encrypted: true}} {
		if _, err := r.remove(other); !errors.As(err, new(*localdisk.ElsewhereError)) {
			t.Error(err)
		}
		if _, err := r.ensure(localdisk.Wanted{Place: other, Size: 1 << 30}); !errors.As(err, new(*localdisk.ElsewhereError)) {
			t.Error(err)
		}
	}
	if after := r.datasets(); after != before {
		t.Errorf("%s\n%s", before, after)
	}
	if gone, err := r.remove(localdisk.Place{ID: id}); !gone || err != nil {
		t.Errorf("%v, %v", gone, err)
	}
}

// One that the ledger has lost is known by its mark: it is removed if that is asked for, and
// recorded again otherwise, with what it holds.
func TestAVolumeTheLedgerHasLost(t *testing.T) {
	for _, again := range []bool{false, true} {
		r := newRig(t, 1)
		place := localdisk.Place{ID: id, Pool: r.pools[0]}
		want := localdisk.Wanted{Place: place, Size: 1 << 30}
		made, err := r.ensure(want)
		if err != nil {
			t.Fatal(err)
		}
		before := r.datasets()
		book, err := r.env.Ledger(t.Context())
		if err == nil {
			_, err = book.Update(t.Context(), func(ledger.View) ([]ledger.Fact, error) { return []ledger.Fact{{Key: localdisk.Subject(id)}}, nil })
		}
		if err != nil {
			t.Fatal(err)
		}
		if again {
			if got, err := r.ensure(want); err != nil || got != made || r.datasets() != before {
				t.Errorf("%v, %v, %s", got, err, r.datasets())
			}
		}
		if gone, err := r.remove(place); !gone || err != nil || r.datasets() != "" {
			t.Errorf("%v, %v, %s", gone, err, r.datasets())
		}
	}
}

// A mark counts where it was set, and for its own name alone.
func TestTheMarkOfAVolume(t *testing.T) {
	pool := "oxp_" + id.String()
	name := pool + "/crypt/local_storage/" + id.String()
	marked := func(name, value, source string) zfs.Dataset {
		return zfs.Dataset{Name: name, Quota: 7, User: map[string]zfs.Value{"sledctl:local-disk": {Value: value, Source: source}}}
	}
	if r, ok := localdisk.Of(marked(name, id.String(), zfs.Local)); !ok || r != (localdisk.Record{ID: id, Pool: pool, Encrypted: true, Quota: 7}) {
		t.Errorf("%+v, %v", r, ok)
	}
	for _, d := range []zfs.Dataset{
		marked(name, id.String(), "inherited from "+pool), marked(name, uuid.NewString(), zfs.Local), marked(name+"/vol", id.String(), zfs.Local),
		marked(pool+"/"+id.String(), id.String(), zfs.Local), {Name: name},
	} {
		if r, ok := localdisk.Of(d); ok {
			t.Errorf("%s: %+v", d.Name, r)
		}
	}
}
