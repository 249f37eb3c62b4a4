package opte

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/hosttest"
	"github.com/sledctl/sledctl/test/steptest"
)

const mac = "02:08:20:a1:00:0f"

func four() Create {
	return Create{
		Name: "opte0", MAC: mac, IP: netip.MustParseAddr("172.30.0.5"), Subnet: netip.MustParsePrefix("172.30.0.0/24"), Gateway: netip.MustParseAddr("172.30.0.1"),
		VNI: 100, Physical: netip.MustParseAddr("fd00:1122:3344:101::1"),
	}
}

func six() Create {
	c := four()
	c.Name, c.MAC = "opte1", "02:08:20:a1:00:10"
	c.IP, c.Subnet, c.Gateway = netip.MustParseAddr("fd77::5"), netip.MustParsePrefix("fd77::/64"), netip.MustParseAddr("fd77::1")
	return c
}

// outside has an address of each kind outside its VPC.
func outside() Create {
	c := four()
	c.SNAT, c.Ephemeral, c.Floating = "203.0.113.1/0-16383", "203.0.113.2", []string{"203.0.113.3", "203.0.113.4"}
	return c
}

// state is all that can be seen of OPTE and of links.
func state(t *testing.T, s *sim.Sled) any {
	t.Helper()
	var seen struct {
		Ports []*world.OPTEPort
		V2P   []world.OPTEMapping
		V2B   []world.OPTEBoundary
		Links []*world.Link
	}
	if err := s.World().View(t.Context(), func(tx *world.Tx) error {
		seen.Ports, seen.V2P, seen.Links = append(seen.Ports, tx.OPTE().Ports...), append(seen.V2P, tx.OPTE().V2P...), append(seen.Links, tx.State.Links...)
		seen.V2B = append(seen.V2B, tx.OPTE().V2B...)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(seen.V2P, func(a, b world.OPTEMapping) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	var text strings.Builder // what is kept changes in its place
	for _, p := range seen.Ports {
		own := *p
		own.Rules = nil
		fmt.Fprintf(&text, "%+v\n", own)
		for _, table := range slices.Sorted(maps.Keys(p.Rules)) {
			for _, r := range p.Rules[table].Rules {
				fmt.Fprintf(&text, "%s %s %d %q %s\n", p.Name, table, r.Priority, r.Predicates, r.Action)
			}
		}
	}
	for _, l := range seen.Links {
		fmt.Fprintf(&text, "%+v\n", *l)
	}
	return text.String() + fmt.Sprint(seen.V2P, seen.V2B)
}

func newSled(t *testing.T, mode world.Mode) *sim.Sled {
	t.Helper()
	s := sim.New(sim.Options{Mode: mode}, hosttest.Files)
	t.Cleanup(s.Close)
	return s
}

var underlay = SetUnderlay{"net0", "net1"}

// Where an address is, and where it has gone.
var (
	far     = Mapping{VNI: 100, IP: netip.MustParseAddr("172.30.0.77"), MAC: "a8:40:25:ff:00:77", Physical: netip.MustParseAddr("fd00:1122:3344:102::1")}
	farther = Mapping{VNI: 100, IP: far.IP, MAC: far.MAC, Physical: netip.MustParseAddr("fd00:1122:3344:103::1")}
)

func rules(t *testing.T, texts ...string) (all []Rule) {
	t.Helper()
	for _, text := range texts {
		r, err := ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

func route(t *testing.T, text string) Route {
	t.Helper()
	r, err := ParseRoute(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestSteps(t *testing.T) {
	on := func(steps ...steptest.Step) func(*testing.T) steptest.Sled {
		return func(t *testing.T) steptest.Sled {
			s := newSled(t, world.Helios)
			steptest.Does(t, s.Host(), steps...)
			return steptest.Sled{Host: s.Host(), State: func() any { return state(t, s) }}
		}
	}
	kinds := []error{ErrMACInUse, ErrNoDriver, ErrNoUnderlay}
	steptest.Conform(t,
		steptest.Case{Step: underlay, Sled: on(), Kinds: kinds},
		steptest.Case{Step: four(), Sled: on(underlay), Again: host.ErrExists, Kinds: kinds},
		steptest.Case{Name: "with addresses outside", Step: outside(), Sled: on(underlay), Again: host.ErrExists, Kinds: kinds},
		steptest.Case{Name: "of IPv6", Step: six(), Sled: on(underlay), Again: host.ErrExists, Kinds: kinds},
		steptest.Case{Step: SetRules{Port: "opte0", MAC: mac, Rules: rules(t, "dir=in action=allow priority=10 protocol=tcp port=22,23,80 hosts=ip=172.30.0.7", "dir=out action=deny priority=5")}, Sled: on(underlay, four()), Kinds: kinds},
		steptest.Case{Name: "none", Step: SetRules{Port: "opte0", MAC: mac}, Sled: on(underlay, four()), Kinds: kinds},
		steptest.Case{Name: "in the place of others", Step: SetRules{"opte0", mac, rules(t, "dir=out action=deny priority=5"), true, rules(t, "dir=in action=allow priority=1")}, Sled: on(underlay, four(), SetRules{Port: "opte0", MAC: mac, Rules: rules(t, "dir=in action=allow priority=1")}), Kinds: kinds},
		steptest.Case{Step: AddRoute{"opte0", mac, route(t, "0.0.0.0/0 ig"), false}, Sled: on(underlay, four()), Again: host.ErrExists, Kinds: kinds},
		steptest.Case{Name: "of a port that stays", Step: AddRoute{"opte0", mac, route(t, "0.0.0.0/0 ig"), true}, Sled: on(underlay, four()), Again: host.ErrExists, Kinds: kinds},
		steptest.Case{Step: RemoveRoute{"opte0", mac, route(t, "0.0.0.0/0 ig")}, Sled: on(underlay, four(), AddRoute{"opte0", mac, route(t, "0.0.0.0/0 ig"), false}), Again: host.ErrNotFound, Kinds: kinds},
		steptest.Case{Step: SetMapping{Mapping: far}, Sled: on(), Again: host.ErrExists, Kinds: kinds},
		steptest.Case{Name: "in the place of another", Step: SetMapping{Mapping: farther, Before: &far}, Sled: on(SetMapping{Mapping: far}), Again: host.ErrState, Kinds: kinds},
		steptest.Case{Step: SetBoundary{Prefix: "0.0.0.0/0", Switches: []string{"fd00:99::1", "fd00:99::2"}}, Sled: on(), Kinds: kinds},
		steptest.Case{Step: ClearMapping{far}, Sled: on(SetMapping{Mapping: far}), Again: host.ErrNotFound, Kinds: kinds},
		steptest.Case{Step: Delete{"opte0", mac}, Sled: on(underlay, four()), Again: host.ErrNotFound, Kinds: kinds},
	)
}

// What a port was told is read back as it was told, and nothing else is taken for it.
func TestWhatAPortWasTold(t *testing.T) {
	s := newSled(t, world.Helios)
	all := rules(t,
		"dir=in action=allow priority=65534 protocol=tcp port=443,22,23,24", "dir=in action=deny priority=100 hosts=subnet=fd00:0::/64", "dir=in action=allow priority=7 hosts=vni=100 protocol=icmp:8,0",
		"dir=in action=allow priority=7 protocol=icmp6:128,0-3", "dir=out action=deny priority=1 hosts=ip=fd00::1", "dir=out action=allow priority=0 protocol=arp", "dir=in action=allow priority=9 protocol=icmp6:1", "dir=out action=allow priority=3",
	)
	routes := []Route{route(t, "172.30.0.9/24 sub4=172.30.0.0/24"), route(t, "0.0.0.0/0 ig"), route(t, "10.0.0.0/8 ip4=172.30.0.9 custom"), route(t, "10.1.0.0/16 drop"), route(t, "10.2.0.0/16 ig=6c8b3f8a-1111-4222-8333-444455556666")}
	steps := []steptest.Step{underlay, four(), six(), SetRules{Port: "opte0", MAC: mac, Rules: all}, AddRoute{"opte1", six().MAC, route(t, "::/0 ip6=fd77::9"), false}, AddRoute{"opte1", six().MAC, route(t, "fd77::/64 sub6=fd77::/64"), false}}
	for _, r := range routes {
		steps = append(steps, AddRoute{"opte0", mac, r, false})
	}
	steptest.Does(t, s.Host(), steps...)
	in, err := Look(t.Context(), s.Host(), "opte0")
	if err != nil {
		t.Fatal(err)
	}
	if !in.HasRules(all) {
		t.Errorf("%+v are not %v", in.Firewall, all)
	}
	for i := range all {
		other := append([]Rule{}, all...)
		other[i].Priority++
		if in.HasRules(other) || in.HasRules(append(other[:i], other[i+1:]...)) {
			t.Errorf("without %s it is the same firewall", all[i])
		}
	}
	for _, r := range routes {
		other := r
		other.Custom = !r.Custom
		if !in.HasRoute(r) || in.HasRoute(other) {
			t.Errorf("%s is not among %+v, or as another class", r, in.Router)
		}
	}
	if in.HasRoute(route(t, "0.0.0.0/0 drop")) {
		t.Error("a route with another target is taken for it")
	}
	if in, err = Look(t.Context(), s.Host(), "opte1"); err != nil || !in.HasRules(nil) || !in.HasRoute(route(t, "::/0 ip6=fd77::9")) || !in.HasRoute(route(t, "fd77::/64 sub6=fd77::/64")) {
		t.Errorf("%+v, %v", in, err)
	}
	ports, err := List(t.Context(), s.Host())
	want := []Listed{{"opte0", mac, []netip.Addr{four().IP}}, {"opte1", six().MAC, []netip.Addr{six().IP}}}
	if diff := cmp.Diff(want, ports, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

func TestAPortIsRefused(t *testing.T) {
	another := four()
	another.Name = "opte7"
	elsewhere, own, physical := four(), four(), four()
	elsewhere.Gateway, own.Gateway, physical.Physical = netip.MustParseAddr("10.0.0.1"), own.IP, netip.MustParseAddr("10.0.0.1")
	for name, c := range map[string]struct {
		mode world.Mode
		made []steptest.Step
		step steptest.Step
		want error
	}{
		"no driver":              {world.OmniOS, nil, four(), ErrNoDriver},
		"no underlay":            {world.Helios, nil, four(), ErrNoUnderlay},
		"its MAC is in use":      {world.Helios, []steptest.Step{underlay, four()}, another, ErrMACInUse},
		"another one's deletion": {world.Helios, []steptest.Step{underlay, four()}, Delete{"opte0", six().MAC}, host.ErrRefused},
		"another one's rules":    {world.Helios, []steptest.Step{underlay, four()}, SetRules{Port: "opte0", MAC: six().MAC}, host.ErrRefused},
		"another one's route":    {world.Helios, []steptest.Step{underlay, four()}, AddRoute{"opte0", six().MAC, route(t, "0.0.0.0/0 ig"), false}, host.ErrRefused},
		"a missing port":         {world.Helios, []steptest.Step{underlay}, SetRules{Port: "opte0", MAC: mac}, host.ErrNotFound},
		"a gateway outside":      {world.Helios, []steptest.Step{underlay}, elsewhere, nil},
		"its own gateway":        {world.Helios, []steptest.Step{underlay}, own, nil},
		"an underlay of IPv4":    {world.Helios, []steptest.Step{underlay}, physical, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSled(t, c.mode)
			steptest.Does(t, s.Host(), c.made...)
			before := state(t, s)
			err := c.step.Do(t.Context(), s.Host())
			if invalid, _ := errors.AsType[*InvalidError](err); c.want == nil && invalid == nil || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
			if diff := cmp.Diff(before, state(t, s)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// An opteadm of another version is asked for nothing.
func TestAnotherVersionIsRefused(t *testing.T) {
	s := newSled(t, world.Helios)
	steptest.Does(t, s.Host(), underlay)
	arm(t, s, world.Fault{Name: world.FaultAnswer, Match: "opteadm --version", Text: "opteadm 0.42.511\n"})
	err := four().Do(t.Context(), s.Host())
	if e, ok := errors.AsType[*VersionError](err); !ok || e.Version != "0.42.511" {
		t.Errorf("%v, want a *VersionError", err)
	}
	if ports, err := List(t.Context(), s.Host()); err != nil || len(ports) > 0 {
		t.Errorf("%v, %v", ports, err)
	}
}

func arm(t *testing.T, s *sim.Sled, f world.Fault) {
	t.Helper()
	if err := s.World().Update(t.Context(), func(tx *world.Tx) error { tx.Arm(f); return nil }); err != nil {
		t.Fatal(err)
	}
}

// A port that is made and whose command failed all the same is removed again.
func TestAHalfMadePortGoes(t *testing.T) {
	s := newSled(t, world.Helios)
	steptest.Does(t, s.Host(), underlay)
	before := state(t, s)
	arm(t, s, world.Fault{Name: world.FaultHalf, Match: "opteadm create-xde", Text: "what now", Exit: 1, Times: 1})
	if err := four().Do(t.Context(), s.Host()); err == nil || !strings.Contains(err.Error(), "what now") {
		t.Error(err)
	}
	if diff := cmp.Diff(before, state(t, s)); diff != "" {
		t.Error(diff)
	}
}

// A busy port is deleted once it is free.
func TestABusyPortIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSled(t, world.Helios)
		steptest.Does(t, s.Host(), underlay, four())
		arm(t, s, world.Fault{Name: world.FaultFail, Match: "opteadm delete-xde", Times: 3, Exit: 1, Text: `Error: command DeleteXde failed: System { errno: 16, msg: "failed to destroy DLS devnet: 16" }` + "\n"})
		began := time.Now()
		steptest.Does(t, s.Host())
		if err := (Delete{"opte0", mac}).Do(t.Context(), s.Host()); err != nil || time.Since(began) < 60*time.Millisecond {
			t.Error(err, time.Since(began))
		}
	})
}

// A port is given exactly its routes. Of those to one destination, only the first can be removed.
func TestReroute(t *testing.T) {
	for why, c := range map[string]struct{ has, wanted, remove, add string }{
		"as it is":                          {"10.0.0.0/8 ig", "10.0.0.0/8 ig", "", ""},
		"others":                            {"10.0.0.0/8 ig;10.1.0.0/16 drop", "10.2.0.0/16 drop", "10.1.0.0/16 drop;10.0.0.0/8 ig", "10.2.0.0/16 drop"},
		"the first goes":                    {"10.0.0.0/8 ig;10.0.0.0/8 drop custom", "10.0.0.0/8 ig", "10.0.0.0/8 drop custom", ""},
		"one behind it goes":                {"10.0.0.0/8 ig;10.0.0.0/8 drop custom", "10.0.0.0/8 drop custom", "10.0.0.0/8 drop custom;10.0.0.0/8 ig", "10.0.0.0/8 drop custom"},
		"it is there twice":                 {"10.0.0.0/8 ig;10.0.0.0/8 ig", "10.0.0.0/8 ig", "10.0.0.0/8 ig", ""},
		"another target":                    {"10.0.0.0/8 ig", "10.0.0.0/8 ip4=172.30.0.9", "10.0.0.0/8 ig", "10.0.0.0/8 ip4=172.30.0.9"},
		"the one that counts is added last": {"", "10.0.0.0/8 drop custom;10.0.0.0/8 ig", "", "10.0.0.0/8 ig;10.0.0.0/8 drop custom"},
	} {
		t.Run(why, func(t *testing.T) {
			each := func(texts string) (all []Route) {
				for text := range strings.SplitSeq(texts, ";") {
					if text != "" {
						all = append(all, route(t, text))
					}
				}
				return all
			}
			s := newSled(t, world.Helios)
			steptest.Does(t, s.Host(), underlay, four())
			for _, r := range each(c.has) {
				if _, err := s.Host().Run(t.Context(), addRouteCommand(AddRoute{Port: "opte0", Route: r})); err != nil {
					t.Fatal(err)
				}
			}
			in, err := Look(t.Context(), s.Host(), "opte0")
			if err != nil {
				t.Fatal(err)
			}
			remove, add := in.Reroute(each(c.wanted))
			if d := cmp.Diff([][]Route{each(c.remove), each(c.add)}, [][]Route{remove, add}, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); d != "" {
				t.Error(d)
			}
			for _, r := range remove {
				steptest.Does(t, s.Host(), RemoveRoute{"opte0", mac, r})
			}
			for _, r := range add {
				steptest.Does(t, s.Host(), AddRoute{"opte0", mac, r, true})
			}
			if in, err = Look(t.Context(), s.Host(), "opte0"); err != nil {
				t.Fatal(err)
			}
			if remove, add := in.Reroute(each(c.wanted)); len(remove)+len(add) != 0 {
				t.Errorf("still %v and %v", remove, add)
			}
			if len(add) > 0 { // taken back newest first
				for _, r := range slices.Backward(add) {
					steptest.Does(t, s.Host(), RemoveRoute{"opte0", mac, r})
				}
			}
		})
	}
}
