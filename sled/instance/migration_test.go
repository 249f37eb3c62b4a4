package instance

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/engine/operation/operationtest"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/migration"
	"github.com/sledctl/sledctl/sled/instance/record"
)

const (
	thisOne  = "11111111-1111-4111-8111-111111111111"
	otherOne = "22222222-2222-4222-8222-222222222222"
)

func phase(id, state string) *propolis.Migration { return &propolis.Migration{ID: id, State: state} }

// While a machine may be on either of two sleds, no verb goes by what one side
// knows.
func TestVerbsOnAnArrival(t *testing.T) {
	c := settings()
	r := half(made(t, c, web(1)))
	r.Migration = &record.Migration{ID: thisOne, Source: "10.78.0.2:12400"}
	at := func(state string, in *propolis.Migration, source migration.VM) Observed {
		s := prepared().bring(c, r, atOnline)
		if state != "" {
			s.seen.Inside.VM = migration.VM{State: state, ID: r.ID, Generation: 3, Migration: propolis.Migrations{In: in}}
		}
		source.ID = r.ID
		s.seen.Source = migration.Peer{VM: source}
		return s.look()
	}
	running, gone, silent := migration.VM{State: "Running"}, migration.VM{State: "Destroyed", Migration: propolis.Migrations{Out: phase(thisOne, "Finish")}}, migration.VM{Err: errors.New("silent")}
	again, another := &record.Migration{ID: thisOne, Source: "10.78.0.2:12400"}, &record.Migration{ID: otherOne, Source: "10.78.0.2:12400"}
	for name, w := range map[string]struct {
		seen                            Observed
		ensure, same, other, stop, drop string // what each verb says; empty: it goes on
	}{
		"it has not come":             {at("", nil, running), "has not arrived", "", "", "is being migrated", ""},
		"it comes":                    {at("Migrating", phase(thisOne, "RamPush"), running), "", "", "is being migrated", "is being migrated", "is being migrated"},
		"it is here":                  {at("Running", phase(thisOne, "Finish"), gone), "", "", "is being migrated", "", ""},
		"it was here, and is lost":    {at("", nil, gone), "", "", "is being migrated", "", ""},
		"it broke off":                {at("Failed", phase(thisOne, "Error"), running), "has not arrived", "", "", "is being migrated", ""},
		"the source does not answer":  {at("", nil, silent), "is being migrated", "", "", "is being migrated", ""},
		"it is here, whatever source": {at("Running", phase(thisOne, "Finish"), silent), "", "", "is being migrated", "", ""},
	} {
		stopped := r
		for verb, said := range map[string]struct {
			want string
			err  error
		}{
			"ensure":            {w.ensure, checkMigration(r, true, w.seen, EnsureRequest{})},
			"the same again":    {w.same, checkMigration(r, true, w.seen, EnsureRequest{From: again})},
			"another migration": {w.other, checkMigration(r, true, w.seen, EnsureRequest{From: another})},
			"a single step":     {"is being migrated", checkMigration(r, true, w.seen, EnsureRequest{Only: StageRun})},
			"stop":              {w.stop, second(spared(r, stopped, w.seen, removal{}))},
			"delete":            {w.drop, second(spared(r, record.Record{}, w.seen, removal{}))},
		} {
			if (said.err == nil) != (said.want == "") || said.err != nil && !strings.Contains(said.err.Error(), said.want) {
				t.Errorf("%s: %s: %v, want %q", name, verb, said.err, said.want)
			}
		}
		if spared, err := spared(r, record.Record{}, w.seen, removal{arrival: otherOne}); !spared || err != nil {
			t.Errorf("%s: giving up another migration: %v, %v", name, spared, err)
		}
	}
	departs := r
	departs.Migration = &record.Migration{ID: thisOne, Target: []string{"ssh", "sled2", "sledctl"}}
	for verb, err := range map[string]error{
		"ensure": checkMigration(departs, true, at("Running", nil, silent), EnsureRequest{}), "migrate-from": checkMigration(departs, true, at("Running", nil, silent), EnsureRequest{From: again}),
		"stop": second(spared(departs, departs, at("Running", nil, silent), removal{})), "delete": second(spared(departs, record.Record{}, at("Running", nil, silent), removal{})),
	} {
		if moving, ok := errors.AsType[*migration.MigratingError](err); !ok || !strings.Contains(moving.Hint(), "sledctl instance migrate web1") {
			t.Errorf("%s of one that departs: %v", verb, err)
		}
	}
}

func second(_ bool, err error) error { return err }

// A machine that somebody else has migrated away is not made twice.
func TestWhatHasLeftIsNotMadeAgain(t *testing.T) {
	c := settings()
	r := made(t, c, web(1))
	s := prepared().bring(c, r, atRunning)
	s.seen.Inside.VM = migration.VM{State: "Destroyed", ID: r.ID, Generation: 18, Migration: propolis.Migrations{Out: phase(thisOne, "Finish")}}
	err := checkMigration(r, true, s.look(), EnsureRequest{})
	if _, ok := errors.AsType[*migration.MovedError](err); !ok {
		t.Errorf("ensure: %v", err)
	}
	if err := checkMigration(r, true, s.look(), EnsureRequest{Recreate: true}); err != nil {
		t.Errorf("--recreate: %v", err)
	}
}

// Another sled is told what the instance is, and nothing of this sled's own.
func TestDocumentForAnotherSled(t *testing.T) {
	c := settings()
	w := web(1)
	w.NICs = []record.NIC{{Over: "net0", VLAN: 7}, {Over: "stub0"}}
	r := made(t, c, w)
	text, err := migration.Document(c.GuestLink, c.Underlay, r)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		ID, Name      string
		CPUs          int
		Memory        uint64
		NICs          []record.NIC
		Address, Pool *string
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if got.ID != r.ID || got.Name != r.Name || got.CPUs != r.Spec.CPUs || got.Memory != r.Spec.Memory || got.Address != nil || got.Pool != nil {
		t.Errorf("%+v", got)
	}
	if len(got.NICs) != 2 || got.NICs[0].Over != "" || got.NICs[1].Over != "stub0" || got.NICs[0].MAC != r.Spec.NICs[0].MAC || got.NICs[0].VLAN != 7 {
		t.Errorf("NICs: %+v", got.NICs)
	}
}

// The target asks for a machine that is there, runs, and would be the same: all
// else is told before anything is made.
func TestIncomingIsHeldAgainstTheSource(t *testing.T) {
	c := settings()
	w := web(1)
	w.NICs = []record.NIC{{Over: "net0"}}
	r := made(t, c, w)
	r.Migration = &record.Migration{ID: thisOne, Source: "10.78.0.2:12400"}
	own, err := layout.RequestOf(c.Underlay, r)
	if err != nil {
		t.Fatal(err)
	}
	theirs := own.Init.Spec.Clone()
	theirs.Components["net0-backend"] = spec.VirtioNetwork{VNIC: "vnic_propolis_guest7"}
	source := func(change func(*migration.Peer)) migration.Peer {
		m := theirs.Clone()
		p := migration.Peer{VM: migration.VM{ID: r.ID, State: propolis.StateRunning}, Spec: &m}
		change(&p)
		return p
	}
	for name, f := range map[string]struct {
		from migration.Peer
		want string
	}{
		"the same machine":     {source(func(*migration.Peer) {}), ""},
		"more memory":          {source(func(p *migration.Peer) { p.Spec.Board.MemoryMiB++ }), "board.memory_mb: is 1025 at the source, and would be 1024"},
		"a bridge":             {source(func(p *migration.Peer) { p.Spec.Components["b"] = spec.PCIBridge{} }), "components.b: a pci_pci_bridge cannot be migrated"},
		"another machine":      {source(func(p *migration.Peer) { p.ID = "db1" }), "it has another machine, db1"},
		"one that has stopped": {source(func(p *migration.Peer) { p.State = "Destroyed" }), "its machine is Destroyed, and must be Running"},
		"one that is made":     {source(func(p *migration.Peer) { p.Spec = nil }), "it does not say what its machine is"},
		"nobody":               {migration.Peer{VM: migration.VM{Err: errors.New("no route to host")}}, "the migration's source, 10.78.0.2:12400: no route to host"},
	} {
		var step propolis.Arrive
		err := incoming(c.Underlay, r, Observed{Source: f.from}, &step)
		if (err == nil) != (f.want == "") || err != nil && !strings.Contains(err.Error(), f.want) {
			t.Errorf("%s: %v, want %q", name, err, f.want)
		}
		if err != nil {
			continue
		}
		to := step.Request.Init.Migration
		if to.ID != thisOne || to.Source != "10.78.0.2:12400" || len(to.Replace) != 1 || to.Replace["net0-backend"].Component != (spec.VirtioNetwork{VNIC: r.Incarnation.Guests[0].Name}) {
			t.Errorf("%s: %+v", name, to)
		}
	}
}

// A volume in a Crucible is that of the source, and opened with a generation above, or nothing is asked
// for: once the source has let the VM go, it would be too late.
func TestAnIncomingVolumeIsHeldAgainstTheSource(t *testing.T) {
	c, key := settings(), []byte("of digests")
	r := made(t, c, web(1))
	r.Migration = &record.Migration{ID: thisOne, Source: "10.78.0.2:12400"}
	d := record.CrucibleDisk{ID: "7c1e6dd0-2a5f-4f4c-9f0b-0d8a8a3a1f01", Targets: []string{"10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"}, BlockSize: 4096, ExtentBlocks: 1, Extents: 1, Generation: 2}
	d.Request = spec.Digest(key, d.RequestAt(2))
	r.Spec.Crucible = []record.CrucibleDisk{d}
	own, err := layout.RequestOf(c.Underlay, r)
	if err != nil {
		t.Fatal(err)
	}
	other := d
	other.Extents++
	for request, want := range map[string]string{
		d.RequestAt(1):     "",
		d.RequestAt(2):     "with generation 2 at the source, and would be opened with 2",
		other.RequestAt(1): "extents=2 at the source",
	} {
		theirs := own.Init.Spec.Clone()
		theirs.Components["disk0-backend"] = spec.CrucibleStorage{Request: request}
		var step propolis.Arrive
		seen := Observed{Source: migration.Peer{VM: migration.VM{ID: r.ID, State: propolis.StateRunning}, Spec: &theirs}}
		seen.Vault.Key = key
		err := incoming(c.Underlay, r, seen, &step)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if err == nil && step.Request.Init.Migration.Replace["disk0-backend"].Component != (spec.CrucibleStorage{Request: d.Request}) {
			t.Errorf("it is replaced by %+v", step.Request.Init.Migration.Replace)
		}
	}
}

// A migration moves no disks: each that would stay behind is named.
func TestWhatOfAMachineStays(t *testing.T) {
	c := settings()
	_, r, err := withDisks().decide(t, c, operationtest.Book(t), EnsureRequest{Wanted: Wanted{
		Ref: "web1", Machine: machineOf(t, machineConfig), NICs: []record.NIC{{VLAN: 1}, {VLAN: 2}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	r.Spec.Machine.Components["third"], r.Spec.Machine.Components["far"] = spec.VirtioDisk{Backend: "far", PCI: spec.PCIPath{Device: 22}}, spec.CrucibleStorage{Request: "{}"}
	bridge, crucible, file, volume := `components."pci-bridge-0.20.0"`, "components.far.component.request_json", "components.image.component.path", "components.volume.component.path"
	for shared, want := range map[bool][]string{false: {bridge, crucible, file, volume}, true: {bridge, crucible, volume}} {
		problems, err := migration.Obstacles(c.Underlay, r, shared)
		if err != nil {
			t.Fatal(err)
		}
		var paths []string
		for _, p := range problems {
			paths = append(paths, p.Path)
		}
		slices.Sort(paths)
		slices.Sort(want)
		if diff := cmp.Diff(want, paths); diff != "" {
			t.Errorf("shared %v: %s", shared, diff)
		}
	}
}
