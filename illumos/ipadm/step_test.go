package ipadm

import (
	"context"
	"errors"
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
	"github.com/sledctl/sledctl/sim/world/network"
	"github.com/sledctl/sledctl/test/hosttest"
	"github.com/sledctl/sledctl/test/steptest"
)

// sled is a simulated sled with the zones z1 and z2, each with a VNIC (v1, v2)
// over one etherstub, and v0 over net0 in the global zone.
type sled struct {
	t *testing.T
	*sim.Sled
	steptest.Noted
}

func newSled(t *testing.T, latency string) *sled {
	t.Helper()
	s := &sled{t: t, Sled: sim.New(sim.Options{Latency: latency}, hosttest.Files)}
	t.Cleanup(s.Close)
	s.Noted.Host = s.Sled.Host()
	s.change(func(tx *world.Tx) {
		must := func(err error) {
			if err != nil {
				t.Error(err)
			}
		}
		must(network.CreateEtherstub(tx, "stub0", true))
		must(network.CreateVNIC(tx, network.VNIC{Name: "v0", Over: "net0", Temporary: true}))
		for i, zone := range []string{"z1", "z2"} {
			link := []string{"v1", "v2"}[i]
			must(network.CreateVNIC(tx, network.VNIC{Name: link, Over: "stub0", Temporary: true}))
			c := world.Config{Brand: "sparse", Zonepath: "/zone/" + zone, IPType: "exclusive"}
			tx.State.Zones = append(tx.State.Zones, &world.Zone{Name: zone, State: "installed", Config: c,
				Kernel: &world.Kernel{ID: i + 1, State: "running", Config: c, Booted: tx.Now}})
			must(host.MkdirAll(tx.Files, "/zone/"+zone+"/root/etc", 0o755))
			must(network.LendLink(tx, zone, link))
			network.StartStack(tx, zone)
			tx.State.Services[zone] = &world.Repository{Door: tx.Now, Instances: map[string]*world.Service{ipmgmtd: {
				FMRI: ipmgmtd, Enabled: true, Timeline: []world.Timepoint{{State: "online", From: tx.Now}}}}}
		}
	})
	return s
}

const ipmgmtd = "svc:/network/ip-interface-management:default"

type step = steptest.Step

// do does steps, which must succeed and do what they explain.
func (s *sled) do(steps ...step) {
	s.t.Helper()
	s.Does(s.t, steps...)
}

func (s *sled) change(fn func(*world.Tx)) {
	s.t.Helper()
	if err := s.World().Update(s.t.Context(), func(tx *world.Tx) error { fn(tx); return nil }); err != nil {
		s.t.Fatal(err)
	}
}

func (s *sled) address(zone, object string) Address {
	s.t.Helper()
	all, err := Addresses(s.t.Context(), s, zone)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, a := range all {
		if a.Object == object {
			return a
		}
	}
	return Address{}
}

func TestStaticAddresses(t *testing.T) {
	for _, zone := range []string{"", "z1"} {
		s := newSled(t, "none")
		link := map[string]string{"": "v0", "z1": "v1"}[zone]
		four := CreateAddress{Zone: zone, Object: link + "/control", Type: Static, Address: "10.0.0.5/24"}
		ll := CreateAddress{Zone: zone, Object: link + "/ll", Type: Addrconf}
		six := CreateAddress{Zone: zone, Object: link + "/six", Type: Static, Address: "fd00::5/64"}
		s.do(four, AwaitAddress{Zone: zone, Object: four.Object}, ll, AwaitAddress{Zone: zone, Object: ll.Object}, six, AwaitAddress{Zone: zone, Object: six.Object})
		want := Address{four.Object, Static, OK, netip.MustParsePrefix("10.0.0.5/24")}
		if diff := cmp.Diff(want, s.address(zone, four.Object), prefixes); diff != "" {
			t.Error(diff)
		}
		if a := s.address(zone, ll.Object); !a.Address.Addr().IsLinkLocalUnicast() || a.Type != Addrconf {
			t.Errorf("link-local: %+v", a)
		}
		if err := four.Do(t.Context(), s); !errors.Is(err, host.ErrExists) {
			t.Errorf("made again: %v", err)
		}
		again := four
		again.Object = link + "/again"
		if err := again.Do(t.Context(), s); !errors.Is(err, ErrAddressInUse) {
			t.Errorf("the same address: %v", err)
		}
		s.do(DeleteAddress{Zone: zone, Object: six.Object})
		if err := (DeleteAddress{Zone: zone, Object: six.Object}).Do(t.Context(), s); !errors.Is(err, host.ErrNotFound) {
			t.Errorf("deleted again: %v", err)
		}
	}
}

// The link can be deleted afterwards: the interface goes with its last
// address, not before.
func TestUndoUnplumbs(t *testing.T) {
	s := newSled(t, "none")
	first := CreateAddress{Object: "v0/one", Type: Static, Address: "10.0.0.5/24"}
	second := CreateAddress{Object: "v0/two", Type: Static, Address: "10.0.0.6/24"}
	s.do(first, second)
	for i, undo := range []any{second.Undo(), first.Undo()} {
		if err := undo.(step).Do(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		r, err := s.Run(t.Context(), host.Command{Program: "ipadm", Args: []string{"show-if", "-p", "-o", "ifname"}, ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		plumbed := slices.Contains(strings.Fields(string(r.Stdout)), "v0")
		if plumbed != (i == 0) {
			t.Errorf("after undo %d v0 is plumbed: %v", i+1, plumbed)
		}
	}
}

func TestDuplicateAddressesAreFinal(t *testing.T) {
	s := newSled(t, "none")
	s.do(CreateAddress{Zone: "z1", Object: "v1/control", Type: Static, Address: "10.0.0.5/24"}, CreateAddress{Zone: "z2", Object: "v2/control", Type: Static, Address: "10.0.0.5/24"})
	if err := (AwaitAddress{Zone: "z2", Object: "v2/control"}).Do(t.Context(), s); !errors.Is(err, ErrDuplicate) {
		t.Errorf("got %v, want ErrDuplicate", err)
	}
}

func TestAwaitingALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSled(t, "helios2021")
		defer s.Close()
		began := time.Now()
		s.do(CreateAddress{Object: "v0/dhcp", Type: DHCP})
		if took := time.Since(began); took > 50*time.Millisecond {
			t.Errorf("create-addr waited %v for the lease", took)
		}
		s.do(AwaitAddress{Object: "v0/dhcp"})
		lease := 4990 * time.Millisecond
		if took := time.Since(began); took < lease || took > lease+20*time.Millisecond {
			t.Errorf("noticed after %v, the lease came after %v", took, lease)
		}
		if a := s.address("", "v0/dhcp"); a.State != OK || !a.Address.IsValid() {
			t.Errorf("%+v", a)
		}
	})
}

func TestAwaitTellsWhatItSawWhenTimeIsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSled(t, "none")
		defer s.Close()
		s.change(func(tx *world.Tx) { tx.Arm(world.Fault{Name: world.FaultNoLease, Match: "ipadm create-addr"}) })
		s.do(CreateAddress{Object: "v0/dhcp", Type: DHCP})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := (AwaitAddress{Object: "v0/dhcp"}).Do(ctx, s)
		if !errors.Is(err, context.DeadlineExceeded) || err.Error() != "wait for address v0/dhcp: after 1s: context deadline exceeded: state \"down\"" {
			t.Errorf("%v", err)
		}
	})
}

// Before its daemon runs a zone has no addresses that could be seen; that is
// waited for, and told apart from absence.
func TestAZoneWhoseDaemonDoesNotRunYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSled(t, "none")
		defer s.Close()
		s.do(CreateAddress{Zone: "z1", Object: "v1/control", Type: Static, Address: "10.0.0.5/24"})
		s.change(func(tx *world.Tx) {
			tx.State.Services["z1"].Instances[ipmgmtd].Timeline = []world.Timepoint{{State: "offline", From: tx.Now}, {State: "online", From: tx.Now.Add(time.Second)}}
		})
		if _, err := Addresses(t.Context(), s, "z1"); !errors.Is(err, host.ErrTransient) {
			t.Errorf("list: %v", err)
		}
		began := time.Now()
		s.do(AwaitAddress{Zone: "z1", Object: "v1/control"})
		if took := time.Since(began); took < time.Second || took > 1020*time.Millisecond {
			t.Errorf("noticed after %v", took)
		}
		if err := (AwaitAddress{Zone: "z1", Object: "v1/nope"}).Do(t.Context(), s); !errors.Is(err, host.ErrNotFound) {
			t.Errorf("a missing object: %v", err)
		}
	})
}

func TestRoutes(t *testing.T) {
	s := newSled(t, "none")
	add := AddRoute{Zone: "z1", Destination: "default", Gateway: "10.0.0.1", Link: "v1"}
	if err := add.Do(t.Context(), s); err == nil {
		t.Error("a route through a missing interface was added")
	}
	s.do(CreateAddress{Zone: "z1", Object: "v1/control", Type: Static, Address: "10.0.0.5/24"}, add)
	if err := add.Do(t.Context(), s); !errors.Is(err, host.ErrExists) {
		t.Errorf("added again: %v", err)
	}
	far := AddRoute{Zone: "z1", Destination: "fd01::/48", Gateway: "fd00::1"}
	if err := far.Do(t.Context(), s); !errors.Is(err, host.ErrTransient) {
		t.Errorf("an unreachable gateway: %v", err)
	}
	routes, err := Routes(t.Context(), s, "z1")
	if err != nil || len(routes) == 0 || routes[0] != (Route{"default", "10.0.0.1", "UG", "v1"}) {
		t.Errorf("%v %v", routes, err)
	}
	s.do(add.Undo().(step))
	if err := (DeleteRoute(add)).Do(t.Context(), s); !errors.Is(err, host.ErrNotFound) {
		t.Errorf("deleted again: %v", err)
	}
}

func TestDefaultLink(t *testing.T) {
	s := newSled(t, "none")
	if link, err := DefaultLink(t.Context(), s); link != "net0" || err != nil {
		t.Errorf("%q, %v", link, err)
	}
	s.do(DeleteRoute{Destination: "default", Gateway: "192.168.77.1"})
	if link, err := DefaultLink(t.Context(), s); !errors.Is(err, host.ErrNotFound) {
		t.Errorf("without a default route: %q, %v", link, err)
	}
}

func TestStepsRefuseWhatWouldBeMisunderstood(t *testing.T) {
	s := newSled(t, "none")
	for _, d := range []step{
		CreateAddress{Object: "v0", Type: Static, Address: "10.0.0.5/24"}, CreateAddress{Object: "v0/x", Type: Static, Address: "10.0.0.5"},
		CreateAddress{Object: "v0/x", Type: Static, Address: "0.0.0.0/24"}, CreateAddress{Object: "v0/x", Type: Static, Address: "somehost/24"},
		CreateAddress{Object: "v0/x", Type: DHCP, Address: "10.0.0.5/24"}, CreateAddress{Object: "v0/x", Type: "vrrp"},
		AddRoute{Destination: "default", Gateway: "router"}, AddRoute{Destination: "10.0.0.0", Gateway: "10.0.0.1"},
		AddRoute{Destination: "fd00::/64", Gateway: "10.0.0.1"}, AddRoute{Destination: "default", Gateway: "10.0.0.1", Link: "-v"},
	} {
		s.Ran = nil
		if err := d.Do(t.Context(), s); err == nil || s.Ran != nil || d.Explain() != nil {
			t.Errorf("%#v: %v, ran %v, explains %v", d, err, s.Ran, d.Explain())
		}
	}
	for _, d := range []step{DeleteInterface{Link: "v0/x"}, DeleteAddress{Object: "v0"}} {
		s.Ran = nil
		if err := d.Do(t.Context(), s); err == nil || s.Ran != nil {
			t.Errorf("%#v: %v, ran %v", d, err, s.Ran)
		}
	}
}
