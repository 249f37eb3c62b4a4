package instance

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sledctl/sledctl/engine/operation/operationtest"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/instance/adoption"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/zfs"
	"github.com/sledctl/sledctl/zone"
)

// rested is what is seen of a record's instance after a boot, by a sledctl whose
// ledger does not know it: no VNIC is there, and with its zone gone, its dataset
// alone. Change is done to it first.
func rested(t operationtest.T, c Settings, r record.Record, change func(*scene)) (*scene, []adoption.Unrecorded, adoption.Inspection) {
	x := prepared().bring(c, r, atProfiled)
	for _, v := range r.Incarnation.VNICs() {
		x.dropLink(v.Name)
	}
	change(x)
	inv := x.look().Inv
	all, err := adoption.UnrecordedZones(c.Names, operationtest.Book(t), inv)
	if err != nil || len(all) != 1 {
		t.Fatal(err, all)
	}
	return x, all, adoption.Inspection{Unrecorded: all[0], Inv: inv, Boot: thisBoot}
}

func home(x *scene, r record.Record) *zfs.Dataset {
	for i := range x.Datasets {
		if x.Datasets[i].Name == r.Incarnation.Dataset {
			return &x.Datasets[i]
		}
	}
	return nil
}

// Whatever was made is told by its marks alone as the ledger had it, once it does
// stopped, and where its zone is gone.
func TestARecordIsRecalledFromItsMarks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, want := drawMade(t)
		gone := rapid.Bool().Draw(t, "zone gone")
		_, _, seen := rested(t, c, want, func(x *scene) {
			if gone {
				x.dropZone(want.Incarnation.Zone)
			}
		})
		d, got, err := adoptedRecord(c, operationtest.Book(t), seen, moment("adopted"), "")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.Spec, got.Spec, equalAddresses); diff != "" {
			t.Errorf("(-made +adopted):\n%s", diff)
		}
		if got.ID != want.ID || got.Name != want.Name || got.Wanted != record.WantedRunning || got.Control != want.Control {
			t.Errorf("%+v", got)
		}
		if got.Incarnation.Boot == thisBoot || got.Incarnation.Dataset != want.Incarnation.Dataset || got.Incarnation.Zone != want.Incarnation.Zone || len(got.Incarnation.Guests) != len(want.Spec.NICs) {
			t.Errorf("%+v", got.Incarnation)
		}
		if !gone && cmp.Diff(want.Incarnation.VNICs(), got.Incarnation.VNICs()) != "" {
			t.Errorf("%+v, want %+v", got.Incarnation.VNICs(), want.Incarnation.VNICs())
		}
		if !d.Plan.Empty() || len(d.OnSuccess) == 0 {
			t.Errorf("decided: %+v", d)
		}
	})
}

// What the marks do not tell is not guessed into a machine that starts by itself.
func TestWhatMarksDoNotTellIsSaid(t *testing.T) {
	c := settings()
	w := oneNIC()
	w.Disks = []record.Disk{{Path: "/data/a", ReadOnly: true}, {Path: "/data/b"}}
	r := made(t, c, w)
	mark := func(value string) func(*scene) {
		return func(x *scene) { home(x, r).User[naming.PropertySpec] = zfs.Value{Value: value, Source: zfs.Local} }
	}
	written := func() string {
		m := record.Memo{Name: r.Name, Control: r.Control, Spec: r.Spec, Written: true}
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for name, s := range map[string]struct {
		change func(*scene)
		wanted string
		mac    bool // that of its NIC is known
		says   string
	}{
		"all marks":    {func(*scene) {}, record.WantedRunning, true, ""},
		"made earlier": {func(x *scene) { delete(home(x, r).User, naming.PropertySpec) }, record.WantedStopped, false, "ensure web1 --nic over=LINK,mac=MAC --cpus N --memory SIZE`"},
		"halted in this boot": {func(x *scene) {
			delete(home(x, r).User, naming.PropertySpec)
			x.bring(c, r, atVNICs)
		}, record.WantedStopped, true, "--cpus N"},
		"without an address": {mark(`{"name":"web1","cpus":1,"memory":1048576}`), record.WantedStopped, false, "--cpus N"},
		"a mark of nonsense": {mark("{"), record.WantedStopped, false, "--cpus N"},
		"a mark of too much": {mark(`{"name":"web1","cpus":9999,"memory":1048576}`), record.WantedStopped, false, "--cpus N"},
		"inherited": {func(x *scene) {
			v := home(x, r).User[naming.PropertySpec]
			v.Source = "inherited from rpool"
			home(x, r).User[naming.PropertySpec] = v
		}, record.WantedStopped, false, "--cpus N"},
		"a written machine": {mark(written()), record.WantedStopped, true, "ensure web1 --spec FILE`"},
	} {
		_, all, seen := rested(t, c, r, s.change)
		_, got, err := adoptedRecord(c, operationtest.Book(t), seen, moment("adopted"), "")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		said := ""
		if got.Wanted == record.WantedStopped {
			said = adoption.Unsure(all[0], got).Error()
		}
		known := len(got.Spec.NICs) == 1 && got.Spec.NICs[0].MAC == r.Spec.NICs[0].MAC && got.Control == r.Control
		if got.Wanted != s.wanted || known != s.mac || !strings.Contains(said, s.says) || got.Name != "web1" {
			t.Errorf("%s: %+v; %s", name, got, said)
		}
		if got.Spec.Address != r.Spec.Address || cmp.Diff(disksByPath(got), disksByPath(r)) != "" {
			t.Errorf("%s: %+v", name, got.Spec)
		}
	}
}

func disksByPath(r record.Record) map[string]bool {
	all := map[string]bool{}
	for _, d := range r.Spec.Disks {
		all[d.Path] = d.ReadOnly
	}
	return all
}

// What does not run is an unrecorded zone by its mark, as long as its instance is not
// recorded: what else carries the mark is a remnant.
func TestWhatIsNoUnrecordedZoneAtRest(t *testing.T) {
	c := settings()
	r := made(t, c, oneNIC())
	x, _, seen := rested(t, c, r, func(*scene) {})
	stopped := r
	stopped.Incarnation, stopped.Wanted = nil, record.WantedStopped
	if all, err := adoption.UnrecordedZones(c.Names, operationtest.Book(t, kept(t, stopped)...), x.look().Inv); err != nil || len(all) > 0 {
		t.Errorf("of a stopped one: %v %v", err, all)
	}
	x.Configs[r.Incarnation.Zone] = zone.Config{}
	if all, err := adoption.UnrecordedZones(c.Names, operationtest.Book(t), x.look().Inv); err != nil || len(all) > 0 {
		t.Errorf("by its name: %v %v", err, all)
	}
	home(x, r).User[naming.PropertyInstance] = zfs.Value{Value: otherID, Source: zfs.Local}
	seen.Inv = x.look().Inv
	if _, _, err := adoptedRecord(c, operationtest.Book(t), seen, moment("adopted"), ""); !is[*adoption.NotAdoptableError](err) {
		t.Errorf("in a foreign dataset: %v", err)
	}
	home(x, r).Mountpoint = "/elsewhere"
	seen.Inv = x.look().Inv
	if _, _, err := adoptedRecord(c, operationtest.Book(t), seen, moment("adopted"), ""); !is[*adoption.NotAdoptableError](err) {
		t.Errorf("without a dataset: %v", err)
	}
}

// A memo holds no machine that was written down, and so none of its secrets, and
// never more than a property can.
func TestAMemoIsShortAndTellsNoSecret(t *testing.T) {
	c := settings()
	r := made(t, c, oneNIC())
	r.VMM = &record.VMM{}
	m, ok := record.ReadMemo(zfs.Dataset{User: map[string]zfs.Value{naming.PropertySpec: {Value: record.MemoOf(r), Source: zfs.Local}}})
	if !ok || !m.Written || m.Machine != nil || strings.Contains(record.MemoOf(r), "machine") {
		t.Errorf("%v %+v", ok, m)
	}
	r.Spec.Disks = []record.Disk{{Path: "/" + strings.Repeat("x", record.MemoLimit)}}
	if said := record.MemoOf(r); said != "" {
		t.Errorf("%d bytes", len(said))
	}
	if props := record.Marks(r); len(props) != 1 || props[0].Name != naming.PropertyInstance {
		t.Errorf("%+v", props)
	}
}

// Until it is adopted, nobody is given what its marks say that it has.
func TestNobodyIsGivenWhatRests(t *testing.T) {
	c := settings()
	w := oneNIC()
	w.Disks = []record.Disk{{Path: "/data/a"}, {Path: "/data/b", ReadOnly: true}}
	r := made(t, c, w)
	for name, change := range map[string]func(*scene){"at rest": func(*scene) {}, "zone gone": func(x *scene) { x.dropZone(r.Incarnation.Zone) }} {
		x, _, _ := rested(t, c, r, change)
		ensure := func(w Wanted) (record.Record, error) {
			_, got, err := decide(c, operationtest.Book(t), x.look(), moment("other"), c.ID(w.Ref), EnsureRequest{Verb: "instance ensure", Wanted: w})
			return got, err
		}
		got, err := ensure(web(2))
		if err != nil || got.Spec.Address == r.Spec.Address || name == "at rest" && got.Incarnation.Control.Name == r.Incarnation.Control.Name {
			t.Errorf("%s: %v, %+v", name, err, got)
		}
		address := r.Spec.Address
		if _, err := ensure(Wanted{Ref: "web2", Address: &address}); !is[*AddressTakenError](err) {
			t.Errorf("%s: its address: %v", name, err)
		}
		for _, mac := range []string{r.Control, r.Spec.NICs[0].MAC} {
			if _, err := ensure(Wanted{Ref: "web2", NICs: []record.NIC{{MAC: mac}}}); !is[*MACTakenError](err) {
				t.Errorf("%s: its MAC %s: %v", name, mac, err)
			}
		}
		for path, want := range map[string]bool{"/data/a": true, "/data/b": false} {
			if _, err := ensure(Wanted{Ref: "web2", Disks: []record.Disk{{Path: path}}}); is[*DiskTakenError](err) != want {
				t.Errorf("%s: its disk %s: %v", name, path, err)
			}
		}
		for _, w := range []Wanted{oneNIC(), {Ref: otherID, Name: "web1"}} {
			if _, err := ensure(w); !is[*adoption.UnadoptedError](err) {
				t.Errorf("%s: once more: %v", name, err)
			}
		}
	}
}
