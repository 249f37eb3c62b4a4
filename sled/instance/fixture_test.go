package instance

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/operation/operationtest"
	"github.com/sledctl/sledctl/illumos/ipadm"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/illumos/smf"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/propolis/packaging"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/migration"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/vnic"
	"github.com/sledctl/sledctl/zfs"
	"github.com/sledctl/sledctl/zone"
)

const thisBoot, earlierBoot = "this boot", "an earlier boot"

func baseZone() Base {
	return Base{Zone: "propolis_base_rpool_1", UUID: "b-uuid", Dataset: "rpool/zone/propolis_base_rpool_1", Mark: "1:mark", Brand: "sparse"}
}

func settings() Settings {
	return Settings{
		Names: naming.DefaultPrefixes(), Namespace: uuid.MustParse("8c4a2b1e-6a57-4a5c-9d3e-0a1b2c3d4e5f"),
		ControlLink: "stub0", GuestLink: "net0", MTU: 9000,
		Underlay: netip.MustParsePrefix("10.77.0.0/24"), Reserved: []netip.Addr{netip.MustParseAddr("10.77.0.1")},
		CPUs: 2, Memory: 1 << 30,
		Propolis: layout.Propolis{
			Packaging: packaging.Settings{Kind: packaging.Lofs, Directory: "/opt/p", Images: []string{"/opt/image.tar.gz", "/opt/overlay.tar.gz"}},
			Binary:    "/opt/p/bin", Bootrom: "/opt/p/rom", Port: 12400, FMRI: "svc:/site/sledctl/propolis-server:default",
		},
		Base: func(_ ledger.View, pool string) (Base, bool) {
			b := baseZone()
			return b, b.Dataset == pool+"/zone/"+b.Zone
		},
	}
}

// imaged are the settings of a sled where zones are installed from images.
func imaged() Settings {
	c := settings()
	c.Propolis.Packaging.Kind = packaging.Image
	c.MTU, c.Underlay, c.Gateway, c.Reserved = 0, prefix("fd00:1::/64"), netip.MustParseAddr("fd00:1::1"), nil
	return c
}

// scene is a sled as it would be seen, to be changed by a test.
type scene struct {
	inventory.Listings
	seen Observed
}

// prepared is a sled after bootstrap.
func prepared() *scene {
	b := baseZone()
	return &scene{
		Listings: inventory.Listings{
			Zones: []zone.Zone{
				{Name: zone.Global, State: zone.Running, Path: "/"},
				{Name: b.Zone, State: zone.Installed, UUID: b.UUID, Brand: "sparse", Path: "/zone/" + b.Zone},
			},
			Configs: map[string]zone.Config{},
			Links:   []vnic.Link{{Name: "net0", Class: "phys"}, {Name: "stub0", Class: "etherstub"}},
			Pools:   []zfs.Pool{{Name: "rpool", Health: "ONLINE", Size: 1000, Free: 900}},
			Datasets: []zfs.Dataset{
				{Name: "rpool", Type: "filesystem", Mounted: true},
				{Name: "rpool/zone", Type: "filesystem", Mounted: true, Mountpoint: "/zone"},
				{Name: b.Dataset, Type: "filesystem", Mountpoint: "/zone/" + b.Zone, User: map[string]zfs.Value{naming.PropertyBase: {Value: b.Mark, Source: "local"}}},
			},
		},
		seen: Observed{Boot: thisBoot, Disks: map[string]error{}, Inside: Inside{Services: map[string]string{}}},
	}
}

func (s *scene) look() Observed {
	seen := s.seen
	seen.Inv = inventory.Of(s.Listings)
	return seen
}

func (s *scene) zone(name string) *zone.Zone {
	i := slices.IndexFunc(s.Zones, func(z zone.Zone) bool { return z.Name == name })
	return &s.Zones[i]
}

func (s *scene) dropLink(name string) {
	s.Links = slices.DeleteFunc(s.Links, func(l vnic.Link) bool { return l.Name == name })
}

func (s *scene) dropZone(name string) {
	s.Zones = slices.DeleteFunc(s.Zones, func(z zone.Zone) bool { return z.Name == name })
	delete(s.Configs, name)
}

// The points to which a run can have come.
const (
	atNothing = iota
	atVNICs
	atDataset
	atConfigured
	atInstalled
	atProfiled
	atBooted
	atSettled
	atAddress
	atOnline
	atEnsured
	atRunning
)

// bring adds what a run that has come to a point has on the sled.
func (s *scene) bring(c Settings, r record.Record, point int) *scene {
	incarnation := *r.Incarnation
	if point >= atVNICs {
		for _, v := range incarnation.VNICs() {
			l := vnic.Link{Name: v.Name, Class: "vnic", Over: v.Over, MAC: v.MAC, VLAN: v.VLAN, MTU: 1500}
			if v == incarnation.Control {
				l.MTU = layout.PackagingOf(c.Blueprint(), incarnation).MTU
			}
			s.Links = append(s.Links, l)
		}
	}
	if point >= atDataset {
		s.seen.Mode = layout.ZonepathMode
		s.Datasets = append(s.Datasets, zfs.Dataset{
			Name: incarnation.Dataset, Type: "filesystem", Mountpoint: incarnation.Zonepath, Mounted: true, GUID: "42",
			User: map[string]zfs.Value{naming.PropertyInstance: {Value: r.ID, Source: "local"}, naming.PropertySpec: {Value: record.MemoOf(r), Source: "local"}},
		})
	}
	if point < atConfigured {
		return s
	}
	s.Configs[incarnation.Zone] = layout.ZoneConfig(c.Blueprint(), r)
	z := zone.Zone{Name: incarnation.Zone, State: zone.Configured, Path: incarnation.Zonepath, Brand: incarnation.Brand}
	if point >= atInstalled {
		z.State, z.UUID = zone.Installed, "z-uuid"
	}
	if point >= atInstalled && incarnation.Base != "" {
		s.Datasets = append(s.Datasets,
			zfs.Dataset{Name: incarnation.BaseDataset + "@" + cloneSnapshot(incarnation), Type: "snapshot", GUID: "43"},
			zfs.Dataset{Name: incarnation.Dataset + "/zbe", Type: "filesystem", GUID: "44", Origin: incarnation.BaseDataset + "@" + cloneSnapshot(incarnation)})
	}
	if point >= atProfiled {
		s.seen.Profile = smf.RenderProfile(layout.ProfileOf(c.Blueprint(), r))
	}
	if point >= atBooted {
		z.State = zone.Running
		for _, v := range incarnation.VNICs() {
			s.lend(v.Name, incarnation.Zone)
		}
	}
	s.Zones = append(s.Zones, z)
	s.inside(c, r, point)
	return s
}

func (s *scene) lend(link, zone string) {
	i := slices.IndexFunc(s.Links, func(l vnic.Link) bool { return l.Name == link })
	s.Links[i].Zone = zone
}

func (s *scene) inside(c Settings, r record.Record, point int) {
	if point >= atBooted && !layout.PackagingOf(c.Blueprint(), *r.Incarnation).ByItself {
		s.seen.Inside.Services[layout.ServiceFMRI(c.Blueprint(), r)] = "disabled"
	}
	if point >= atSettled {
		s.seen.Inside.Limits = map[string]vnic.Limits{}
		for _, v := range r.Incarnation.Guests {
			s.seen.Inside.Limits[v.Name] = layout.LimitsOf(r, v)
		}
		s.seen.Inside.Services[layout.Milestone] = "online"
	}
	if point >= atAddress {
		s.seen.Inside.Addresses = []ipadm.Address{{Object: layout.AddressObject(c.Blueprint(), r), State: "ok", Address: r.Spec.Address.Prefix}}
	}
	if point >= atOnline {
		s.seen.Inside.Services[layout.ServiceFMRI(c.Blueprint(), r)] = "online"
		s.seen.Inside.VM = migration.VM{Err: propolis.ErrNoInstance}
	}
	if point >= atEnsured {
		s.seen.Inside.VM = migration.VM{State: "Creating", ID: r.ID, Generation: 1}
	}
	if point >= atRunning {
		s.seen.Inside.VM.State = "Running"
	}
}

func kept(t testing.TB, records ...record.Record) []ledger.Fact {
	t.Helper()
	var all []ledger.Fact
	for _, r := range records {
		facts, err := r.Replaces(record.Record{})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, facts...)
	}
	return all
}

func intent(t testing.TB, id string, in operation.Intent) ledger.Fact {
	t.Helper()
	value, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	return ledger.Fact{Key: "intent/" + id, Value: value}
}

func moment(id string) operation.Stamp {
	return operation.Stamp{ID: id, Now: time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)}
}

// made is an instance as an ensure on a prepared sled leaves its record.
func made(t testing.TB, c Settings, w Wanted, others ...ledger.Fact) record.Record {
	t.Helper()
	_, r, err := decide(c, operationtest.Book(t, others...), prepared().look(), moment("made "+w.Ref), c.ID(w.Ref), EnsureRequest{Verb: "instance ensure", Wanted: w})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// half is a record whose machine was never given to Propolis.
func half(r record.Record) record.Record {
	incarnation := *r.Incarnation
	incarnation.Ensured = false
	r.Incarnation = &incarnation
	return r
}

func web(n int) Wanted { return Wanted{Ref: fmt.Sprintf("web%d", n)} }

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }
