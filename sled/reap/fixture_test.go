package reap

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/operation/operationtest"
	"github.com/sledctl/sledctl/illumos/ipadm"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/base"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/network"
	"github.com/sledctl/sledctl/vnic"
	"github.com/sledctl/sledctl/zfs"
	"github.com/sledctl/sledctl/zone"
)

const (
	thisBoot, earlierBoot = "this boot", "an earlier boot"

	zone1 = "propolis_instance_8c4a2b1e-6a57-4a5c-9d3e-000000000001"
	zone2 = "propolis_instance_8c4a2b1e-6a57-4a5c-9d3e-000000000002"
	base1 = "propolis_base_rpool_1"
	base2 = "propolis_base_rpool_2"
)

func now() time.Time { return time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC) }

// scene is a ledger and a sled as they would be seen.
type scene struct {
	inventory.Listings
	facts []ledger.Fact
	alive map[string]bool // subjects of which a run is alive
	lone  map[string]zone.Config
}

func empty() *scene {
	return &scene{
		Listings: inventory.Listings{
			Zones: []zone.Zone{{Name: zone.Global, State: zone.Running, Path: "/"}}, Configs: map[string]zone.Config{},
			Links: []vnic.Link{{Name: "net0", Class: "phys"}, {Name: "stub0", Class: "etherstub"}}, Pools: []zfs.Pool{{Name: "rpool", Health: "ONLINE"}},
			Datasets: []zfs.Dataset{
				{Name: "rpool", Type: zfs.TypeFilesystem, Mountpoint: "/rpool"},
				{Name: "rpool/zone", Type: zfs.TypeFilesystem, Mountpoint: "/zone"},
			},
			Addresses: []ipadm.Address{}, Homes: []inventory.Home{}, Entries: []inventory.Entry{},
		},
		alive: map[string]bool{}, lone: map[string]zone.Config{},
	}
}

func (s *scene) fact(t operationtest.T, key string, value any) {
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	s.facts = append(s.facts, ledger.Fact{Key: key, Value: data})
}

// String is what a failing property prints.
func (s *scene) String() string {
	var b strings.Builder
	for _, z := range s.Zones {
		fmt.Fprintln(&b, "zone", z.Name, z.State, z.Brand)
	}
	for _, l := range s.Links {
		fmt.Fprintln(&b, "link", l.Name, l.MAC, l.Zone)
	}
	for _, d := range s.Datasets {
		fmt.Fprintln(&b, "dataset", d.Name, d.Origin, d.User)
	}
	for _, f := range s.facts {
		fmt.Fprintln(&b, f.Key, string(f.Value))
	}
	return b.String() + fmt.Sprint(s.alive)
}

// GoString is String.
func (s *scene) GoString() string { return "\n" + s.String() }

// zone puts a zone with its marked dataset on the sled.
func (s *scene) zone(name string, state zone.State) {
	z := zone.Zone{Name: name, State: state, Path: "/zone/" + name, Brand: "sparse"}
	if state != zone.Configured {
		z.UUID = "uuid of " + name
	}
	s.Zones = append(s.Zones, z)
	s.home(name, naming.PropertyInstance)
}

func (s *scene) home(name, mark string) {
	s.Datasets = append(s.Datasets, zfs.Dataset{
		Name: "rpool/zone/" + name, Type: zfs.TypeFilesystem, Mountpoint: "/zone/" + name, GUID: "guid of " + name,
		User: map[string]zfs.Value{mark: {Value: "x", Source: zfs.Local}},
	})
}

// unknownID is that of an instance that no record has.
const unknownID = "8c4a2b1e-6a57-4a5c-9d3e-000000000001"

// noted puts the dataset of a zone of that instance on the sled, with all its marks.
func (s *scene) noted(name string) {
	s.home(name, naming.PropertyInstance)
	s.Datasets[len(s.Datasets)-1].User = map[string]zfs.Value{
		naming.PropertyInstance: {Value: unknownID, Source: zfs.Local},
		naming.PropertySpec:     {Value: `{"name":"web1","cpus":1,"memory":1048576,"address":"dhcp"}`, Source: zfs.Local},
	}
}

func (s *scene) dataset(name string) *zfs.Dataset {
	s.Datasets = append(s.Datasets, zfs.Dataset{Name: name, Type: zfs.TypeFilesystem, GUID: "guid of " + name})
	return &s.Datasets[len(s.Datasets)-1]
}

func (s *scene) snapshot(name string) {
	s.Datasets = append(s.Datasets, zfs.Dataset{Name: name, Type: zfs.TypeSnapshot, GUID: "guid of " + name})
}

func (s *scene) clone(name, origin string) {
	s.snapshot(origin)
	s.dataset(name).Origin = origin
}

// base puts a base zone on the sled and on record; generation 0 is unfinished.
func (s *scene) base(t operationtest.T, name string, generation int, finished bool) {
	s.Zones = append(s.Zones, zone.Zone{Name: name, State: zone.Installed, Path: "/zone/" + name, Brand: "sparse", UUID: "uuid of " + name})
	s.home(name, naming.PropertyBase)
	s.dataset("rpool/zone/" + name + "/zbe")
	r := base.Record{Pool: "rpool", Generation: generation, Zone: name, Dataset: "rpool/zone/" + name}
	if finished {
		r.UUID = "uuid of " + name
	}
	s.fact(t, "base/rpool/"+name, r)
}

func (s *scene) link(name, mac, lent string) {
	s.Links = append(s.Links, vnic.Link{Name: name, Class: "vnic", Over: "stub0", MAC: mac, Zone: lent})
}

// run is a run with one VNIC.
func run(zoneName, link string) *record.Incarnation {
	return &record.Incarnation{
		Zone: zoneName, Zonepath: "/zone/" + zoneName, Dataset: "rpool/zone/" + zoneName, Base: base1, BaseDataset: "rpool/zone/" + base1,
		Control: record.VNIC{Name: link, Over: "stub0", MAC: "02:08:20:00:00:01"}, Guests: []record.VNIC{}, Boot: thisBoot, Ensured: true,
	}
}

func (s *scene) record(t operationtest.T, name string, incarnations ...*record.Incarnation) {
	r := record.Record{ID: "id of " + name, Name: name, Spec: record.Spec{Address: record.Address{Mode: record.DHCP}}}
	if len(incarnations) > 0 {
		r.Incarnation = incarnations[0]
		for _, old := range incarnations[1:] {
			r.Leaving = append(r.Leaving, *old)
		}
	}
	s.fact(t, "instance/"+r.ID, r)
}

// protectedFact is a record of an instance that is protected.
func protectedFact(t operationtest.T, name string, r *record.Incarnation) ledger.Fact {
	record := record.Record{ID: "id of " + name, Name: name, Incarnation: r, Protected: true, Spec: record.Spec{Address: record.Address{Mode: record.DHCP}}}
	data, err := json.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	return ledger.Fact{Key: "instance/" + record.ID, Value: data}
}

func (s *scene) hold(t operationtest.T, name string, until time.Time) {
	s.fact(t, "hold/vnic/"+name, network.Hold{Kind: "vnic", Name: name, Until: until})
}

func (s *scene) intent(t operationtest.T, subject string, living bool, in operation.Intent) {
	in.Subject, in.Verb = subject, "instance ensure"
	s.fact(t, "intent/of "+subject, in)
	s.alive[subject] = living
}

func (s *scene) judge(t operationtest.T) Findings { return s.judgeAs(t, Choice{}) }

func (s *scene) judgeAs(t operationtest.T, choice Choice) Findings {
	k, err := know(naming.DefaultPrefixes(), operationtest.Book(t, s.facts...), thisBoot, now(), func(subject string) (operation.Holder, bool) {
		return operation.Holder{PID: 7, Verb: "instance ensure"}, s.alive[subject]
	})
	if err != nil {
		t.Fatal(err)
	}
	k.learnLinks([]string{"stub0"})
	k.lone = s.lone
	f, err := judge(k, inventory.Of(s.Listings), choice)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// verdicts are those of a kind of object, by name.
func verdicts(f Findings) map[string]Verdict {
	all := map[string]Verdict{}
	for _, o := range f.Objects {
		all[o.Kind+" "+o.Name] = o.Verdict
	}
	return all
}
