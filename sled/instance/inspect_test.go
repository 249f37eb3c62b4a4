package instance

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation/operationtest"
	"github.com/sledctl/sledctl/illumos/ipadm"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/illumos/smf"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/propolis/packaging"
	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/sled/instance/adoption"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/zfs"
	"github.com/sledctl/sledctl/zone"
)

// sighted is what is seen of a record's instance while it runs, by a sledctl
// whose ledger does not know it.
func sighted(t operationtest.T, c Settings, r record.Record) (*scene, adoption.Inspection) {
	here := prepared().bring(c, r, atRunning)
	for i := range here.Datasets {
		if here.Datasets[i].Name == r.Incarnation.Dataset {
			here.Datasets[i].Mounted = true
		}
	}
	asked, err := layout.RequestOf(c.Underlay, r)
	if err != nil {
		t.Fatal(err)
	}
	config := here.Configs[r.Incarnation.Zone]
	return here, adoption.Inspection{
		Unrecorded: adoption.Unrecorded{Zone: *here.zone(r.Incarnation.Zone), Config: config, ID: layout.AttrOf(config, naming.AttrInstance), Name: layout.AttrOf(config, layout.NameAttr)},
		Inv:        here.look().Inv, Boot: thisBoot, Services: map[string]string{layout.ServiceFMRI(c.Blueprint(), r): smf.Online},
		Control: ipadm.Address{Object: layout.AddressObject(c.Blueprint(), r), Type: r.Spec.Address.Mode, State: ipadm.OK, Address: r.Spec.Address.Prefix},
		Machine: propolis.Description{
			Instance: propolis.Instance{Properties: asked.Properties, State: "Running"}, Spec: asked.Init.Spec,
		},
	}
}

func drawWanted(t *rapid.T, c Settings) Wanted {
	w := web(rapid.IntRange(1, 9).Draw(t, "name"))
	cpus, memory := rapid.IntRange(1, spec.MaxCPUs).Draw(t, "cpus"), rapid.Uint64Range(1, 1<<20).Draw(t, "MiB")<<20
	w.CPUs, w.Memory = &cpus, &memory
	for i := range rapid.IntRange(0, 8).Draw(t, "disks") {
		path := fmt.Sprintf("/data/%d", i)
		if rapid.Bool().Draw(t, "volume") {
			path = fmt.Sprintf("/dev/zvol/rdsk/rpool/v%d", i)
		}
		w.Disks = append(w.Disks, record.Disk{Path: path, ReadOnly: rapid.Bool().Draw(t, "read-only")})
	}
	for range rapid.IntRange(0, 8).Draw(t, "nics") {
		w.NICs = append(w.NICs, record.NIC{VLAN: rapid.IntRange(0, 4094).Draw(t, "vlan")})
	}
	if rapid.Bool().Draw(t, "address") {
		network := c.Underlay.Masked()
		a := record.Address{Mode: record.Static, Prefix: netip.PrefixFrom(network.Addr().Next().Next().Next(), network.Bits())}
		if rapid.Bool().Draw(t, "gateway") {
			a.Gateway = a.Prefix.Addr().Next()
		}
		w.Address = &a
	}
	return w
}

// drawMade draws settings, and a record as an ensure of something drawn has made it.
func drawMade(t *rapid.T) (Settings, record.Record) {
	c := rapid.SampledFrom([]func() Settings{settings, imaged}).Draw(t, "settings")()
	w := drawWanted(t, c)
	here := prepared()
	for _, d := range w.Disks {
		if volume, ok := d.Volume(); ok {
			here.Datasets = append(here.Datasets, zfs.Dataset{Name: volume, Type: zfs.TypeVolume})
		}
	}
	_, made, err := decide(c, operationtest.Book(t), here.look(), moment("made"), c.ID(w.Ref), EnsureRequest{Verb: "instance ensure", Wanted: w})
	if err != nil {
		t.Fatal(err)
	}
	return c, made
}

// Whatever was made is read back as the ledger had it.
func TestARecordIsReadBackFromTheSled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, want := drawMade(t)
		_, seen := sighted(t, c, want)
		d, got, err := adoptedRecord(c, operationtest.Book(t), seen, moment("adopted"), "")
		if err != nil {
			t.Fatal(err)
		}
		if adoption.SpecDifferences(c.Underlay, seen, got) != "" {
			t.Errorf("another machine: %s", adoption.SpecDifferences(c.Underlay, seen, got))
		}
		if len(differences(want.Spec, got.Spec)) > 0 {
			t.Errorf("%+v", differences(want.Spec, got.Spec))
		}
		got.Spec, want.Spec = record.Spec{}, record.Spec{}
		want.Began = time.Time{} // nothing on the sled tells
		if diff := cmp.Diff(want, got, equalAddresses); diff != "" {
			t.Errorf("(-made +adopted):\n%s", diff)
		}
		if !d.Plan.Empty() || len(d.OnSuccess) == 0 {
			t.Errorf("decided: %+v", d)
		}
	})
}

// What another tool has made is read from what is there alone.
func TestAnUnrecordedZoneIsReadFromWhatIsThere(t *testing.T) {
	c := settings()
	r := made(t, c, oneNIC())
	plain := func(s *adoption.Inspection) {
		s.ID, s.Name, s.Config.Attrs = "", "", nil
	}
	for name, s := range map[string]struct {
		change func(*adoption.Inspection)
		want   func(*record.Record)
	}{
		"the same":                     {func(*adoption.Inspection) {}, func(*record.Record) {}},
		"without attributes":           {plain, func(r *record.Record) { r.Incarnation.Foreign = true }},
		"called as no instance can be": {func(s *adoption.Inspection) { s.Name, s.Machine.Properties.Name = "", "My VM" }, func(r *record.Record) { r.Name, r.Incarnation.Foreign = "vm-"+r.ID, true }},
		"called by its Propolis alone": {func(s *adoption.Inspection) { s.Name = "" }, func(*record.Record) {}},
		"with a route of its own": {func(s *adoption.Inspection) {
			plain(s)
			s.Routes = []ipadm.Route{{Destination: "default", Gateway: "10.77.0.9"}}
		}, func(r *record.Record) {
			r.Incarnation.Foreign = true
			r.Spec.Address.Gateway = netip.MustParseAddr("10.77.0.9")
		}},
		"with a route to elsewhere": {func(s *adoption.Inspection) {
			plain(s)
			s.Routes = []ipadm.Route{{Destination: "default", Gateway: "10.99.0.9"}}
		}, func(r *record.Record) { r.Incarnation.Foreign = true }},
		"by dhcp, on an object of its own": {func(s *adoption.Inspection) {
			s.Control.Type, s.Control.Object = ipadm.DHCP, r.Incarnation.Control.Name+"/omicron"
		}, func(r *record.Record) {
			r.Spec.Address, r.Incarnation.Object, r.Incarnation.Foreign = record.Address{Mode: record.DHCP}, r.Incarnation.Control.Name+"/omicron", true
		}},
		"of the sled agent, in ours": {func(s *adoption.Inspection) { s.Services = map[string]string{packaging.Service: "online"} }, func(r *record.Record) { r.Incarnation.Service = packaging.Service }},
		"started by hand":            {func(s *adoption.Inspection) { s.Services = nil }, func(r *record.Record) { r.Incarnation.Service = record.ByHand }},
		"installed and not cloned": {func(s *adoption.Inspection) {
			s.Inv = here(t, c, r, func(x *scene) { x.Datasets[len(x.Datasets)-1].Origin = "" })
		}, func(r *record.Record) { r.Incarnation.Base, r.Incarnation.BaseDataset = "", "" }},
	} {
		t.Run(name, func(t *testing.T) {
			_, seen := sighted(t, c, r)
			s.change(&seen)
			want := r
			incarnation := *r.Incarnation
			want.Incarnation, want.Began = &incarnation, time.Time{} // nothing on the sled tells when
			s.want(&want)
			_, got, err := adoptedRecord(c, operationtest.Book(t), seen, moment("adopted"), "")
			if err != nil {
				t.Fatal(err)
			}
			if len(differences(want.Spec, got.Spec)) > 0 {
				t.Errorf("%+v", differences(want.Spec, got.Spec))
			}
			got.Spec, want.Spec = record.Spec{}, record.Spec{}
			if diff := cmp.Diff(want, got, equalAddresses); diff != "" {
				t.Errorf("(-want +adopted):\n%s", diff)
			}
		})
	}
}

// here is the sled of a record, with a change.
func here(t operationtest.T, c Settings, r record.Record, change func(*scene)) *inventory.Inventory {
	x, _ := sighted(t, c, r)
	change(x)
	return x.look().Inv
}

func TestWhatIsNoInstanceIsNotMadeOne(t *testing.T) {
	c := settings()
	w := oneNIC()
	w.Disks = []record.Disk{{Path: "/data/a"}}
	r := made(t, c, w)
	other := made(t, c, Wanted{Ref: "web2", NICs: []record.NIC{{}}, Disks: []record.Disk{{Path: "/data/b"}}}, kept(t, r)...)
	component := func(key string, value spec.Component) func(*adoption.Inspection) {
		return func(s *adoption.Inspection) {
			s.Machine.Spec.Components[key] = value
		}
	}
	with := func(change func(*scene)) func(*adoption.Inspection) {
		return func(s *adoption.Inspection) { s.Inv = here(t, c, r, change) }
	}
	taken := func(change func(*record.Record)) []ledger.Fact {
		o := other
		incarnation := *o.Incarnation
		o.Incarnation = &incarnation
		change(&o)
		return kept(t, o)
	}
	for name, s := range map[string]struct {
		change func(*adoption.Inspection)
		facts  []ledger.Fact
		says   string
	}{
		"a disk of Crucible":    {component("disk0-backend", spec.CrucibleStorage{}), nil, "is a crucible_storage_backend"},
		"a disk in the spec":    {component("disk0-backend", spec.BlobStorage{}), nil, "is a blob_storage_backend"},
		"a disk of nothing":     {func(s *adoption.Inspection) { delete(s.Machine.Spec.Components, "disk0-backend") }, nil, "no component disk0-backend"},
		"a NIC of nothing":      {with(func(x *scene) { x.dropLink(r.Incarnation.Guests[0].Name) }), nil, "no VNIC of the sled"},
		"a port of a switch":    {with(func(x *scene) { x.Links[len(x.Links)-2].Class = "misc" }), nil, "no VNIC of the sled"},
		"an address of no VNIC": {func(s *adoption.Inspection) { s.Control.Object = "net0/v4" }, nil, "which is no VNIC"},
		"a zonepath of nothing": {func(s *adoption.Inspection) { s.Zone.Path = "/elsewhere" }, nil, "no dataset is mounted"},
		"marked as another":     {func(s *adoption.Inspection) { s.ID = otherID }, nil, "marked as instance " + otherID},
		"in a dataset of another": {with(func(x *scene) {
			x.Datasets[3].User[naming.PropertyInstance] = zfs.Value{Value: otherID, Source: zfs.Local}
		}), nil, "marked as instance " + otherID},
		"more CPUs than there can be": {func(s *adoption.Inspection) { s.Machine.Spec.Board.CPUs = 255 }, nil, "cpus"},
		"a taken name":                {func(*adoption.Inspection) {}, taken(func(o *record.Record) { o.Name = "web1" }), "the name"},
		"a taken address":             {func(*adoption.Inspection) {}, taken(func(o *record.Record) { o.Spec.Address = r.Spec.Address }), "is taken by"},
		"a taken MAC":                 {func(*adoption.Inspection) {}, taken(func(o *record.Record) { o.Control = r.Control }), "MAC"},
		"a taken disk":                {func(*adoption.Inspection) {}, taken(func(o *record.Record) { o.Spec.Disks = r.Spec.Disks }), "disk"},
		"a taken VNIC":                {func(*adoption.Inspection) {}, taken(func(o *record.Record) { o.Incarnation.Control.Name = r.Incarnation.Control.Name }), "vnic/"},
	} {
		t.Run(name, func(t *testing.T) {
			_, seen := sighted(t, c, r)
			s.change(&seen)
			d, got, err := adoptedRecord(c, operationtest.Book(t, s.facts...), seen, moment("adopted"), "")
			if err == nil || !strings.Contains(err.Error(), s.says) || len(d.OnSuccess) > 0 {
				t.Errorf("%v; adopted: %+v", err, got)
			}
			if unfit, ok := errors.AsType[*adoption.NotAdoptableError](err); ok != (s.facts == nil) {
				t.Errorf("%v: %v", unfit, err)
			}
		})
	}
}

// An instance that is recorded with another zone runs twice, or did: nobody can
// tell which is meant. One that is recorded as stopped runs.
func TestWhatIsRecordedIsNotAdoptedTwice(t *testing.T) {
	c := settings()
	r := made(t, c, oneNIC())
	_, seen := sighted(t, c, r)
	if d, got, err := adoptedRecord(c, operationtest.Book(t, kept(t, r)...), seen, moment("adopted"), ""); err != nil || len(d.OnSuccess) > 0 || got.Generation != r.Generation {
		t.Errorf("recorded: %v, %+v", err, d)
	}
	elsewhere := r
	incarnation := *r.Incarnation
	incarnation.Zone = "propolis_instance_" + otherID
	elsewhere.Incarnation = &incarnation
	_, _, err := adoptedRecord(c, operationtest.Book(t, kept(t, elsewhere)...), seen, moment("adopted"), "")
	if _, ok := errors.AsType[*ConflictError](err); !ok {
		t.Errorf("with another zone: %v", err)
	}
	stopped := r
	stopped.Incarnation, stopped.Wanted, stopped.Protected = nil, record.WantedStopped, true
	_, got, err := adoptedRecord(c, operationtest.Book(t, kept(t, stopped)...), seen, moment("adopted"), "")
	if err != nil || got.Wanted != record.WantedRunning || !got.Protected || got.Generation != r.Generation+1 {
		t.Errorf("as stopped: %v, %+v", err, got)
	}
}

func TestWhichZonesAreAdoptable(t *testing.T) {
	names, others := naming.DefaultPrefixes(), naming.DefaultPrefixes()
	others.OtherZone = "oxz_propolis-server_"
	attr := func(name, value string) zone.Config {
		return zone.Config{Attrs: []zone.Attr{{Name: name, Type: "string", Value: value}}}
	}
	id := uuid.NewString()
	for name, s := range map[string]struct {
		zone   zone.Zone
		config zone.Config
		want   bool
	}{
		"one of sledctl":            {zone.Zone{Name: "propolis_instance_" + id, State: zone.Running}, zone.Config{}, true},
		"one of the sled agent":     {zone.Zone{Name: "oxz_propolis-server_" + id, State: zone.Running}, zone.Config{}, false},
		"one elsewhere":             {zone.Zone{Name: "propolis_instance_" + id, State: zone.Running, Path: "/zones/z"}, zone.Config{}, false},
		"one that is marked":        {zone.Zone{Name: "web1", State: zone.Running}, attr(naming.AttrInstance, id), true},
		"one that does not run":     {zone.Zone{Name: "propolis_instance_" + id, State: zone.Installed}, zone.Config{}, false},
		"one that is going down":    {zone.Zone{Name: "propolis_instance_" + id, State: zone.ShuttingDown}, zone.Config{}, false},
		"a base":                    {zone.Zone{Name: "propolis_base_rpool_1", State: zone.Running}, zone.Config{}, false},
		"a base by its mark":        {zone.Zone{Name: "propolis_instance_" + id, State: zone.Running}, attr(naming.AttrBase, "1"), false},
		"somebody else's":           {zone.Zone{Name: "web1", State: zone.Running}, zone.Config{}, false},
		"the global zone":           {zone.Zone{Name: zone.Global, State: zone.Running}, zone.Config{}, false},
		"with a mark that is no id": {zone.Zone{Name: "web1", State: zone.Running}, attr(naming.AttrInstance, "x"), false},
	} {
		if s.zone.Path == "" {
			s.zone.Path = "/zone/" + s.zone.Name
		}
		inv := inventory.Of(inventory.Listings{Pools: []zfs.Pool{{Name: "rpool"}}, Configs: map[string]zone.Config{s.zone.Name: s.config}})
		if got := adoption.Adoptable(inv.Owner(names, s.zone), s.zone); got != s.want {
			t.Errorf("%s: %v", name, got)
		}
		if got := adoption.Adoptable(inv.Owner(others, s.zone), s.zone); got != (s.want || name == "one of the sled agent") {
			t.Errorf("%s, where the configuration names the sled agent's: %v", name, got)
		}
	}
}

// What an unrecorded zone has is as taken as what is recorded, and it is never made
// once more.
func TestNobodyIsGivenWhatAnUnrecordedZoneHas(t *testing.T) {
	c := settings()
	w := oneNIC()
	w.Disks = []record.Disk{{Path: "/data/a"}, {Path: "/data/b", ReadOnly: true}}
	r := made(t, c, w)
	x, _ := sighted(t, c, r)
	x.seen.Inside = Inside{}
	view := operationtest.Book(t)
	ensure := func(w Wanted) (record.Record, error) {
		_, got, err := decide(c, view, x.look(), moment("other"), c.ID(w.Ref), EnsureRequest{Verb: "instance ensure", Wanted: w})
		return got, err
	}
	if got, err := ensure(web(2)); err != nil || got.Spec.Address == r.Spec.Address || got.Incarnation.Control.Name == r.Incarnation.Control.Name {
		t.Errorf("%v, %+v", err, got)
	}
	address := r.Spec.Address
	if _, err := ensure(Wanted{Ref: "web2", Address: &address}); !is[*AddressTakenError](err) {
		t.Errorf("its address: %v", err)
	}
	for path, want := range map[string]bool{"/data/a": true, "/data/b": false} {
		if _, err := ensure(Wanted{Ref: "web2", Disks: []record.Disk{{Path: path}}}); is[*DiskTakenError](err) != want {
			t.Errorf("its disk %s: %v", path, err)
		}
	}
	if _, err := ensure(Wanted{Ref: "web2", NICs: []record.NIC{{MAC: r.Spec.NICs[0].MAC}}}); !is[*MACTakenError](err) {
		t.Errorf("its MAC: %v", err)
	}
	if _, err := ensure(Wanted{Ref: otherID, Name: "web1"}); !is[*adoption.UnadoptedError](err) {
		t.Errorf("its name: %v", err)
	}
	_, err := ensure(oneNIC())
	if again, ok := errors.AsType[*adoption.UnadoptedError](err); !ok || again.Zone != r.Incarnation.Zone {
		t.Errorf("once more: %v", err)
	}
	x.zone(r.Incarnation.Zone).State = zone.Installed
	_, err = ensure(oneNIC())
	if again, ok := errors.AsType[*adoption.UnadoptedError](err); !ok || !again.Rests {
		t.Errorf("once it has stopped: %v", err)
	}
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

var equalAddresses = cmp.Options{cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })}
