package network_test

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/operation/operationtest"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/ipadm"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sled/network"
	"github.com/sledctl/sledctl/test/hosttest"
	"github.com/sledctl/sledctl/vnic"
)

func newEnv(t *testing.T) operation.Env {
	t.Helper()
	s := sim.New(sim.Options{}, hosttest.Files)
	t.Cleanup(s.Close)
	return operationtest.New(t, s.Host())
}

func settings() network.Settings {
	return network.Settings{
		Names: naming.DefaultPrefixes(), Etherstub: "stub0", GZVNIC: "gz0", GZAddress: netip.MustParsePrefix("10.77.0.1/16"),
	}
}

func link(t *testing.T, h host.Host, name string) (vnic.Link, bool) {
	t.Helper()
	links, _, err := vnic.List(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		if l.Name == name {
			return l, true
		}
	}
	return vnic.Link{}, false
}

func record(t *testing.T, env operation.Env) network.Record {
	t.Helper()
	r, ok, err := network.Load(operationtest.View(t, env))
	if err != nil || !ok {
		t.Fatalf("no record: %v", err)
	}
	return r
}

func TestEtherstubVNICAndAddressAreMadeOnce(t *testing.T) {
	env := newEnv(t)
	report, err := settings().Ensure(t.Context(), env, false)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Outcome.Done) != 4 {
		t.Errorf("done: %v", report.Outcome.Done)
	}
	gz, ok := link(t, env.Host, "gz0")
	if r := record(t, env); !ok || gz.Over != "stub0" || gz.MAC != r.GZMAC || r.ControlLink != "stub0" {
		t.Errorf("link %+v, record %+v", gz, r)
	}
	if again, err := settings().Ensure(t.Context(), env, false); err != nil || !again.Plan.Empty() {
		t.Errorf("the second time: %v, %v", again.Plan.Actions, err)
	}
}

func TestAnIPv6AddressGetsALinkLocalOneFirst(t *testing.T) {
	env := newEnv(t)
	s := settings()
	s.GZAddress = netip.MustParsePrefix("fd00:1122:3344:101::1/64")
	report, err := s.Ensure(t.Context(), env, false)
	if err != nil || len(report.Outcome.Done) != 5 {
		t.Fatalf("%v, done: %v", err, report.Outcome.Done)
	}
	if again, err := s.Ensure(t.Context(), env, false); err != nil || !again.Plan.Empty() {
		t.Errorf("the second time: %v, %v", again.Plan.Actions, err)
	}
}

func TestWhatIsThereAndOtherwiseIsAConflict(t *testing.T) {
	env := newEnv(t)
	if _, err := settings().Ensure(t.Context(), env, false); err != nil {
		t.Fatal(err)
	}
	s := settings()
	s.GZAddress = netip.MustParsePrefix("10.78.0.1/16")
	_, err := s.Ensure(t.Context(), env, false)
	if conflict, ok := errors.AsType[*network.ConflictError](err); !ok || conflict.Object != "address gz0/control" {
		t.Errorf("error: %v", err)
	}
}

// The global zone's own VNIC over another link is a conflict, also if its name is
// right; and an address is ready only once no other host has it.
func TestWhatOthersMadeInItsPlaceIsNotTakenForReady(t *testing.T) {
	env := newEnv(t)
	s := settings()
	s.GZAddress = netip.Prefix{}
	if err := (vnic.Create{Name: "gz0", Over: "net1", MAC: "02:08:20:00:00:07"}).Do(t.Context(), env.Host); err != nil {
		t.Fatal(err)
	}
	_, err := s.Ensure(t.Context(), env, false)
	if conflict, ok := errors.AsType[*network.ConflictError](err); !ok || conflict.Object != "vnic gz0" || conflict.Is != "over net1" {
		t.Errorf("error: %v", err)
	}

	env = newEnv(t)
	if _, err := settings().Ensure(t.Context(), env, false); err != nil {
		t.Fatal(err)
	}
	env.Host = answering{env.Host, func(c host.Command, r host.Result) host.Result {
		if c.Program == "ipadm" && slices.Contains(c.Args, "show-addr") {
			r.Stdout = bytes.ReplaceAll(r.Stdout, []byte(":ok:"), []byte(":duplicate:"))
		}
		return r
	}}
	report, err := settings().Ensure(t.Context(), env, true)
	if err != nil || len(report.Plan.Actions) != 1 || report.Plan.Actions[0].ID != "ipadm.await-address gz0/control" {
		t.Errorf("%v, %v", report.Plan.Actions, err)
	}
}

// answering is a host whose answers are changed.
type answering struct {
	host.Host
	change func(host.Command, host.Result) host.Result
}

func (a answering) Run(ctx context.Context, c host.Command) (host.Result, error) {
	r, err := a.Host.Run(ctx, c)
	return a.change(c, r), err
}

func TestWithoutAControlLinkTheCandidatesAreListed(t *testing.T) {
	env := newEnv(t)
	routes, err := ipadm.Routes(t.Context(), env.Host, "")
	if err != nil || len(routes) == 0 || routes[0].Destination != "default" {
		t.Fatalf("routes %v, %v", routes, err)
	}
	gone := ipadm.DeleteRoute{Destination: routes[0].Destination, Gateway: routes[0].Gateway}
	if err := gone.Do(t.Context(), env.Host); err != nil {
		t.Fatal(err)
	}
	_, err = network.Settings{Names: naming.DefaultPrefixes()}.Ensure(t.Context(), env, false)
	none, ok := errors.AsType[*network.NoLinkError](err)
	if !ok || len(none.Candidates) != 2 {
		t.Errorf("error: %v", err)
	}
}

func TestVNICsMadeAtOnceGetDifferentNames(t *testing.T) {
	env := newEnv(t)
	var wg sync.WaitGroup
	names := make([]string, 8)
	for i := range names {
		wg.Go(func() {
			held, _, err := settings().CreateVNIC(t.Context(), env, network.VNIC{Over: "net0", Hold: time.Hour}, false, false)
			if err != nil {
				t.Error(err)
			}
			names[i] = held.Name
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	for _, n := range names {
		if seen[n] {
			t.Errorf("%s was given twice", n)
		}
		seen[n] = true
	}
}

func TestOnlyOursAreDeleted(t *testing.T) {
	env := newEnv(t)
	free := func(ledger.View, string) error { return nil }
	if _, err := env.Host.Run(t.Context(), host.Command{Program: "dladm", Args: []string{"create-vnic", "-t", "-l", "net0", "other0"}}); err != nil {
		t.Fatal(err)
	}
	_, _, err := settings().DeleteVNIC(t.Context(), env, "other0", free, false)
	if _, ok := errors.AsType[*network.ForeignError](err); !ok {
		t.Errorf("a foreign VNIC: %v", err)
	}
	held, _, err := settings().CreateVNIC(t.Context(), env, network.VNIC{Over: "net0", Hold: time.Hour}, false, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []bool{true, false} { // the second time it is gone
		if there, _, err := settings().DeleteVNIC(t.Context(), env, held.Name, free, false); err != nil || there != want {
			t.Errorf("there %v, error %v", there, err)
		}
	}
}
