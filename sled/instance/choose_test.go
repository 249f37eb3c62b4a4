package instance

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/operation/operationtest"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/vnic"
	"github.com/sledctl/sledctl/zfs"
	"github.com/sledctl/sledctl/zone"
)

func text(s string) json.RawMessage { return json.RawMessage(fmt.Sprintf("%q", s)) }

func TestTheLowestFreeNumberIsTaken(t *testing.T) {
	c := settings()
	web2, other := c.ID("web2"), record.Subject(otherID)
	for name, s := range map[string]struct {
		facts []ledger.Fact
		links []string
		want  string
	}{
		"on an empty sled":          {nil, nil, "vnic_propolis0"},
		"behind links":              {nil, []string{"vnic_propolis0", "vnic_propolis1"}, "vnic_propolis2"},
		"in a gap":                  {nil, []string{"vnic_propolis0", "vnic_propolis2"}, "vnic_propolis1"},
		"after another run":         {[]ledger.Fact{{Key: naming.KeyVNIC + "vnic_propolis0", Value: text(web2)}}, nil, "vnic_propolis1"},
		"its own of an earlier run": {[]ledger.Fact{{Key: naming.KeyVNIC + "vnic_propolis0", Value: text(c.ID("web1"))}}, nil, "vnic_propolis0"},
		"behind one that is held":   {[]ledger.Fact{{Key: naming.KeyHeldVNIC + "vnic_propolis0", Value: json.RawMessage(`{}`)}}, nil, "vnic_propolis1"},
		"behind what is being made": {[]ledger.Fact{intent(t, "i", operation.Intent{Subject: other, Makes: []operation.Object{{Kind: "vnic", Name: "vnic_propolis0"}}})}, nil, "vnic_propolis1"},
		"what its own dead run had": {[]ledger.Fact{intent(t, "i", operation.Intent{Subject: record.Subject(c.ID("web1")), Makes: []operation.Object{{Kind: "vnic", Name: "vnic_propolis0"}}})}, nil, "vnic_propolis0"},
		"whatever zones are called": {[]ledger.Fact{intent(t, "i", operation.Intent{Subject: other, Makes: []operation.Object{{Kind: "zone", Name: "vnic_propolis0"}}})}, nil, "vnic_propolis0"},
	} {
		t.Run(name, func(t *testing.T) {
			here := prepared()
			for _, l := range s.links {
				here.Links = append(here.Links, vnic.Link{Name: l, Class: "vnic", Over: "net0", MAC: "02:08:20:00:00:01"})
			}
			_, r, err := here.decide(t, c, operationtest.Book(t, s.facts...), EnsureRequest{Wanted: Wanted{Ref: "web1"}})
			if err != nil || r.Incarnation.Control.Name != s.want {
				t.Errorf("%v, %v", r.Incarnation, err)
			}
		})
	}
}

func TestTheNICsOfAnInstanceAreNumberedInARow(t *testing.T) {
	c := settings()
	here := prepared()
	here.Links = append(here.Links, vnic.Link{Name: "vnic_propolis_guest1", Class: "vnic"})
	_, r, err := here.decide(t, c, operationtest.Book(t), EnsureRequest{Wanted: Wanted{Ref: "web1", NICs: []record.NIC{{}, {}}}})
	if err != nil || r.Incarnation.Guests[0].Name != "vnic_propolis_guest2" || r.Incarnation.Guests[1].Name != "vnic_propolis_guest3" {
		t.Errorf("%+v, %v", r.Incarnation, err)
	}
}

func TestTheLowestFreeAddressIsTaken(t *testing.T) {
	for name, s := range map[string]struct {
		change func(*Settings)
		taken  []string
		want   string // empty: refused
	}{
		"behind the sled's own":     {nil, nil, "10.77.0.2/24"},
		"behind others'":            {nil, []string{"10.77.0.2", "10.77.0.3"}, "10.77.0.4/24"},
		"in a gap":                  {nil, []string{"10.77.0.2", "10.77.0.4"}, "10.77.0.3/24"},
		"not the gateway":           {func(s *Settings) { s.Gateway = netip.MustParseAddr("10.77.0.2") }, nil, "10.77.0.3/24"},
		"of IPv6":                   {func(s *Settings) { s.Underlay = netip.MustParsePrefix("fd00::/64") }, []string{"fd00::1"}, "fd00::2/64"},
		"with bits behind the mask": {func(s *Settings) { s.Underlay = netip.MustParsePrefix("10.77.0.9/24") }, nil, "10.77.0.2/24"},
		"the last":                  {func(s *Settings) { s.Underlay = netip.MustParsePrefix("10.77.0.0/30") }, nil, "10.77.0.2/30"},
		"none, not the broadcast":   {func(s *Settings) { s.Underlay = netip.MustParsePrefix("10.77.0.0/30") }, []string{"10.77.0.2"}, ""},
		"none in a network of one":  {func(s *Settings) { s.Underlay = netip.MustParsePrefix("10.77.0.0/32") }, nil, ""},
		"dhcp where there is none":  {func(s *Settings) { s.Underlay = netip.Prefix{} }, nil, "dhcp"},
	} {
		t.Run(name, func(t *testing.T) {
			c := settings()
			if s.change != nil {
				s.change(&c)
			}
			var facts []ledger.Fact
			for _, a := range s.taken {
				facts = append(facts, ledger.Fact{Key: naming.KeyAddress + a, Value: text(otherID)})
			}
			_, r, err := prepared().decide(t, c, operationtest.Book(t, facts...), EnsureRequest{Wanted: Wanted{Ref: "web1"}})
			if (err != nil) != (s.want == "") || err == nil && r.Spec.Address.String() != s.want {
				t.Errorf("%s, %v", r.Spec.Address, err)
			}
		})
	}
}

// drawn is what a given intent would draw first.
func drawn(purpose string, try int) string {
	return operation.DeriveMAC("decided", fmt.Sprintf("%s %d", purpose, try))
}

func TestAMACThatIsTakenIsDrawnAgain(t *testing.T) {
	c := settings()
	first := drawn("control", 0)
	for name, s := range map[string]struct {
		facts  []ledger.Fact
		change func(*scene)
	}{
		"by an instance":  {facts: []ledger.Fact{{Key: naming.KeyNIC + first, Value: text(otherID)}}},
		"by a link":       {change: func(s *scene) { s.Links[0].MAC = first }},
		"by what is made": {facts: []ledger.Fact{intent(t, "i", operation.Intent{Subject: "vnic", Makes: []operation.Object{{Kind: "vnic", Name: "x", Identity: first}}})}},
	} {
		here := prepared()
		if s.change != nil {
			s.change(here)
		}
		_, r, err := here.decide(t, c, operationtest.Book(t, s.facts...), EnsureRequest{Wanted: Wanted{Ref: "web1"}})
		if err != nil || r.Control != drawn("control", 1) {
			t.Errorf("%s: %s, %v", name, r.Control, err)
		}
	}
	if _, r, err := prepared().decide(t, c, operationtest.Book(t), EnsureRequest{Wanted: Wanted{Ref: "web1"}}); err != nil || r.Control != first {
		t.Errorf("by nobody: %s, %v", r.Control, err)
	}
	given := Wanted{Ref: "web1", NICs: []record.NIC{{}, {MAC: drawn("guest 0", 0)}}}
	if _, r, err := prepared().decide(t, c, operationtest.Book(t), EnsureRequest{Wanted: given}); err != nil || r.Spec.NICs[0].MAC != drawn("guest 0", 1) {
		t.Errorf("by another NIC of the instance: %v, %v", r.Spec.NICs, err)
	}
}

func TestAnInstanceKeepsTheMACsThatItHas(t *testing.T) {
	c := settings()
	r := made(t, c, Wanted{Ref: "web1", NICs: []record.NIC{{MAC: "02:08:20:00:00:07"}}})
	here := prepared().bring(c, r, atRunning)
	d, _, err := here.decide(t, c, operationtest.Book(t, kept(t, r)...), EnsureRequest{Wanted: Wanted{Ref: "web1", NICs: []record.NIC{{MAC: "2:8:20:0:0:7"}}}})
	if err != nil || !d.Plan.Empty() {
		t.Errorf("%q, %v", told(t, d, r.Incarnation), err)
	}
}

// pools is a sled with more places for zones; each has so many zones.
func pools(zones map[string]int) *scene {
	s := prepared()
	for name, n := range zones {
		at, _ := naming.ZoneParent(name)
		if name != "rpool" {
			s.Pools = append(s.Pools, zfs.Pool{Name: name, Health: "ONLINE", Size: 1000, Free: 900})
			s.Datasets = append(s.Datasets, zfs.Dataset{Name: at.Dataset, Type: "filesystem", Mounted: true, Mountpoint: at.Mountpoint})
		}
		for i := range n {
			s.Zones = append(s.Zones, zone.Zone{Name: fmt.Sprint(name, i), State: zone.Running, Path: fmt.Sprint(at.Mountpoint, "/z", i)})
		}
	}
	return s
}

func TestZonesAreSpreadOverThePools(t *testing.T) {
	dataset := func(pool, name string) ledger.Fact {
		at, _ := naming.ZoneParent(pool)
		return intent(t, name, operation.Intent{Subject: record.Subject(otherID), Makes: []operation.Object{{Kind: "dataset", Name: at.Dataset + "/" + name}}})
	}
	for name, s := range map[string]struct {
		zones   map[string]int // rpool has its base besides
		allowed []string
		facts   []ledger.Fact
		change  zfs.Pool // tank is otherwise
		want    string
	}{
		"to the one with the fewest":      {zones: map[string]int{"rpool": 0, "tank": 0}, want: "tank"},
		"whichever that is":               {zones: map[string]int{"rpool": 0, "tank": 2}, want: "rpool"},
		"the first by name of the same":   {zones: map[string]int{"rpool": 0, "tank": 1, "a": 1}, want: "a"},
		"those that are coming count":     {zones: map[string]int{"rpool": 0, "tank": 0}, facts: []ledger.Fact{dataset("tank", "x"), dataset("tank", "y")}, want: "rpool"},
		"only to those that are allowed":  {zones: map[string]int{"rpool": 5, "tank": 0}, allowed: []string{"rpool"}, want: "rpool"},
		"in the order that is configured": {zones: map[string]int{"rpool": 0, "tank": 1, "a": 1}, allowed: []string{"tank", "a"}, want: "tank"},
		"to the one with the most room":   {zones: map[string]int{"rpool": 0, "tank": 0, "a": 0}, change: zfs.Pool{Health: "ONLINE", Size: 1000, Free: 950}, want: "tank"},
		"a clone's size makes no room":    {zones: map[string]int{"rpool": 0, "tank": 0, "a": 0}, change: zfs.Pool{Health: "ONLINE", Size: 1000, Free: 909}, want: "a"},
		"not to one that is as good as full": {
			zones: map[string]int{"rpool": 9, "tank": 0, "a": 8}, change: zfs.Pool{Health: "ONLINE", Size: 1000, Free: 99}, want: "a",
		},
		"rather full than faulted": {
			zones: map[string]int{"rpool": 9, "tank": 0, "a": 8}, change: zfs.Pool{Health: "SUSPENDED", Size: 1000, Free: 900}, want: "a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := settings()
			c.Pools = s.allowed
			here := pools(s.zones)
			for i := range here.Pools {
				if here.Pools[i].Name == "tank" && s.change.Size > 0 {
					s.change.Name = "tank"
					here.Pools[i] = s.change
				}
			}
			choose := newChooser(c, operationtest.Book(t, s.facts...), here.look().Inv, "i", someID)
			if got, err := choose.pool(); err != nil || got != s.want {
				t.Errorf("%s, %v", got, err)
			}
		})
	}
	c := settings()
	c.Pools = []string{"tank"}
	if _, err := newChooser(c, operationtest.Book(t), prepared().look().Inv, "i", someID).pool(); !errors.Is(err, ErrNoPool) {
		t.Errorf("without any: %v", err)
	}
}

// The same intent chooses the same, another intent other random numbers.
func TestTheSameIntentChoosesTheSame(t *testing.T) {
	c := settings()
	choose := func(id string) record.Record {
		_, r, err := decide(c, operationtest.Book(t), prepared().look(), moment(id), c.ID("web1"), EnsureRequest{Wanted: Wanted{Ref: "web1", NICs: []record.NIC{{}, {}}}})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	same := cmp.Options{cmp.Comparer(func(a, b record.Address) bool { return a == b })}
	if d := cmp.Diff(choose("a"), choose("a"), same); d != "" {
		t.Error(d)
	}
	a, b := choose("a"), choose("b")
	if a.Control == b.Control || a.Incarnation.PropolisID == b.Incarnation.PropolisID || a.Spec.NICs[0].MAC == b.Spec.NICs[0].MAC || a.Spec.NICs[0].MAC == a.Spec.NICs[1].MAC {
		t.Errorf("%+v\n%+v", a.Incarnation, b.Incarnation)
	}
}

// Instances that are made one after the other on one ledger have nothing in
// common, whatever of the host each of them saw: their looks may be old.
func TestNoTwoInstancesGetTheSame(t *testing.T) {
	c := settings()
	rapid.Check(t, func(t *rapid.T) {
		var facts []ledger.Fact
		here := prepared()
		owners := map[string]string{}
		for i := range rapid.IntRange(2, 8).Draw(t, "instances") {
			w := web(i)
			w.NICs = make([]record.NIC, rapid.IntRange(0, 2).Draw(t, "nics"))
			d, r, err := decide(c, operationtest.Book(t, facts...), here.look(), moment(fmt.Sprint(i)), c.ID(w.Ref), EnsureRequest{Verb: "instance ensure", Wanted: w})
			if err != nil {
				t.Fatal(err)
			}
			for _, key := range append(r.Reserves(), r.Incarnation.Zone, r.Incarnation.Dataset) {
				if owners[key] != "" {
					t.Errorf("%s and %s both have %s", owners[key], r.Name, key)
				}
				owners[key] = r.Name
			}
			facts = append(facts, d.OnStart...)
			if rapid.Bool().Draw(t, "seen by the next") {
				here.bring(c, r, atRunning)
			}
		}
	})
}
