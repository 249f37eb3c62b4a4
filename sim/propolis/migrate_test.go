package propolis

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/network"
	"github.com/sledctl/sledctl/sim/world/smf"
)

const migrationID = "66666666-6666-4666-8666-666666666666"

// pair are two sleds, each with a server: a machine runs on one of them.
type pair struct {
	t              *testing.T
	source, target *rig
}

func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{t, newRig(t, "none"), newRig(t, "none")}
	if err := world.Connect(t.Context(), p.source.world, p.target.world); err != nil {
		t.Fatal(err)
	}
	p.target.change(func(tx *world.Tx) {
		if err := network.CreateVNIC(tx, network.VNIC{Name: "vnic7", Over: "net0", Temporary: true}); err != nil {
			t.Fatal(err)
		}
	})
	return p
}

// runs makes the machine and lets it run.
func (p *pair) runs() {
	p.t.Helper()
	if got := p.source.v5("PUT", "/instance", movable(p.t)); got.status != 201 {
		p.t.Fatalf("ensure: %+v", got)
	}
	if got := p.source.v5("PUT", "/instance/state", `"Run"`); got.status != 204 {
		p.t.Fatalf("run: %+v", got)
	}
}

// movable is a machine with a disk and a NIC.
func movable(t *testing.T, more ...string) string {
	t.Helper()
	parts := append([]string{
		`"com1":{"type":"serial_port","component":{"num":"com1"}}`,
		`"disk0":{"type":"nvme_disk","component":{"backend_id":"disk0-backend","pci_path":{"bus":0,"device":16,"function":0},"serial_number":[` + strings.Repeat("32,", 19) + `32]}}`,
		`"disk0-backend":{"type":"file_storage_backend","component":{"path":"/vms/disk.img","readonly":false,"block_size":512,"workers":null}}`,
		`"net0":{"type":"virtio_nic","component":{"backend_id":"net0-backend","interface_id":"44444444-4444-4444-8444-444444444444","pci_path":{"bus":0,"device":8,"function":0}}}`,
		`"net0-backend":{"type":"virtio_network_backend","component":{"vnic_name":"vnic0"}}`,
	}, more...)
	return `{"properties":` + propertiesOf() + `,"init":{"method":"Spec","value":{"spec":{"board":{"cpus":2,"memory_mb":512,"chipset":{"type":"i440_fx","value":{"enable_pcie":false}}},` +
		`"components":{` + strings.Join(parts, ",") + `}}}}}`
}

func propertiesOf() string {
	const nil4 = "00000000-0000-0000-0000-000000000000"
	return `{"id":"7b1c2f3e-0d4a-4a55-9b0e-5f3d2c1b0a99","name":"web1","description":"","metadata":{"silo_id":"` + nil4 + `","project_id":"` + nil4 + `","sled_id":"` + nil4 +
		`","sled_serial":"","sled_revision":0,"sled_model":""}}`
}

func migrationBody(from, replacements string) string {
	return `{"properties":` + propertiesOf() + `,"init":{"method":"MigrationTarget","value":{"migration_id":"` + migrationID + `","src_addr":"` + from +
		`","replace_components":{` + replacements + `}}}}`
}

const (
	address  = "192.168.77.10:12400"
	otherNIC = `"net0-backend":{"component":"VirtioNetworkBackend","spec":{"vnic_name":"vnic7"}}`
)

func (p *pair) migrate() response {
	p.t.Helper()
	return p.target.v5("PUT", "/instance", migrationBody(address, otherNIC))
}

// slow lets every stage take a second.
func (p *pair) slow() {
	p.target.change(func(tx *world.Tx) {
		tx.Arm(world.Fault{Name: world.FaultSlowMigrate, Match: "propolis * migrate", Delay: time.Second})
	})
}

// state is "Running" or "Migrating In:RamPush", with its generation before it.
func state(t *testing.T, got response) string {
	t.Helper()
	if got.status != 200 {
		return fmt.Sprint(got.status)
	}
	text := fmt.Sprint(got.body["gen"], " ", got.body["state"])
	of, _ := got.body["migration"].(map[string]any)
	for _, way := range []string{"in", "out"} {
		if m, ok := of["migration_"+way].(map[string]any); ok {
			if m["id"] != migrationID {
				t.Errorf("migration %v", m["id"])
			}
			text += fmt.Sprint(" ", way, ":", m["state"])
		}
	}
	return text
}

func (r *rig) now() string {
	r.t.Helper()
	return state(r.t, r.v5("GET", "/instance/state-monitor", `{"gen":0}`))
}

// published is all that a machine has in its future and past.
func (r *rig) published() []string {
	r.t.Helper()
	var all []string
	r.change(func(tx *world.Tx) {
		vm := tx.State.Processes[0].VM
		for _, point := range vm.Timeline {
			text := fmt.Sprint(point.Generation, " ", point.State)
			for _, m := range []*world.Migration{vm.In, vm.Out} {
				if m == nil {
					continue
				}
				for _, phase := range m.Phases {
					if phase.Generation == point.Generation {
						text += "/" + phase.State
					}
				}
			}
			all = append(all, text)
		}
	})
	return all
}

func TestAMachineMovesToAnotherSled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		p.runs()
		got := p.migrate()
		if got.status != 201 || got.text != `{"migrate":{"migration_id":"`+migrationID+`"}}` {
			t.Fatalf("%+v", got)
		}
		in := []string{"1 Migrating/Sync", "2 Migrating/Sync", "3 Migrating/RamPush", "4 Migrating/Pause", "5 Migrating/RamPushDirty", "6 Migrating/Pause",
			"7 Migrating/Device", "8 Migrating/RamPull", "9 Migrating/Server", "10 Migrating/Finish", "11 Running"}
		if diff := cmp.Diff(in, p.target.published()); diff != "" {
			t.Errorf("target: %s", diff)
		}
		out := []string{"1 Creating", "2 Starting", "3 Running", "4 Migrating/Sync", "5 Migrating/Sync", "6 Migrating/RamPush", "7 Migrating/Pause", "8 Migrating/Pause",
			"9 Migrating/RamPushDirty", "10 Migrating/Pause", "11 Migrating/Device", "12 Migrating/RamPush", "13 Migrating/Pause", "14 Migrating/RamPushDirty",
			"15 Migrating/Server", "16 Migrating/Finish", "17 Stopping", "18 Destroyed"}
		if diff := cmp.Diff(out, p.source.published()); diff != "" {
			t.Errorf("source: %s", diff)
		}
		if p.target.now() != "11 Running in:Finish" || p.source.now() != "18 Destroyed out:Finish" {
			t.Errorf("target %s, source %s", p.target.now(), p.source.now())
		}
		status := p.target.v5("GET", "/instance/migration-status", "")
		if want := `{"migration_in":{"id":"` + migrationID + `","state":"Finish"},"migration_out":null}`; status.text != want {
			t.Errorf("%s", status.text)
		}
		p.console()
		spec := p.target.v5("GET", "/instance/spec", "")
		if !strings.Contains(spec.text, `"vnic_name":"vnic7"`) || !strings.Contains(spec.text, `"path":"/vms/disk.img"`) || !strings.Contains(spec.text, `"state":"Running"`) {
			t.Errorf("%s", spec.text)
		}
		if got := p.target.v5("PUT", "/instance/state", `"Reboot"`); got.status != 204 {
			t.Errorf("the machine is not used as any other: %+v", got)
		}
	})
}

// console sees that what the guest wrote came with it.
func (p *pair) console() {
	p.t.Helper()
	history := p.target.v5("GET", "/instance/serial/history?from_start=0", "")
	if history.status != 200 || fmt.Sprint(history.body["last_byte_offset"]) == "0" {
		p.t.Errorf("history: %+v", history)
	}
	p.source.change(func(tx *world.Tx) {
		moved := tx.State.Processes[0].VM.Moved
		if moved == nil || moved.Destination != address || fmt.Sprint(history.body["last_byte_offset"]) != fmt.Sprint(moved.From) {
			p.t.Errorf("moved: %+v", moved)
		}
	})
}

// TestMigrationMatrix: whatever ends a migration in whatever stage, one machine
// runs afterwards, and each server that is left reports the result.
func TestMigrationMatrix(t *testing.T) {
	ends := map[string]func(p *pair, stage string){
		"the source dies": func(p *pair, _ string) { p.source.change(func(tx *world.Tx) { smf.Exit(tx, pid) }) },
		"the target dies": func(p *pair, _ string) { p.target.change(func(tx *world.Tx) { smf.Exit(tx, pid) }) },
		"the source's sled": func(p *pair, _ string) {
			p.source.change(func(tx *world.Tx) { tx.State.Processes = nil })
		},
	}
	faults := map[string]func(p *pair, stage string){
		"the connection is cut": func(p *pair, stage string) {
			p.source.change(func(tx *world.Tx) { tx.Arm(world.Fault{Name: world.FaultDrop, Match: "propolis * migrate " + stage}) })
		},
		"the target fails": func(p *pair, stage string) {
			p.target.change(func(tx *world.Tx) { tx.Arm(world.Fault{Name: world.FaultFail, Match: "propolis * migrate " + stage}) })
		},
	}
	for i, stage := range stages()[1:] {
		for name, end := range ends {
			t.Run(stage.name+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { cut(t, stage.name, i, nil, end, strings.Contains(name, "source")) })
			})
		}
		for name, fault := range faults {
			t.Run(stage.name+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { cut(t, stage.name, i, fault, nil, false) })
			})
		}
	}
}

// cut lets a migration end in a stage, the i-th behind Sync.
func cut(t *testing.T, stage string, i int, before, during func(*pair, string), sourceDies bool) {
	p := newPair(t)
	p.runs()
	p.slow()
	if before != nil {
		before(p, stage)
	}
	if got := p.migrate(); got.status != 201 {
		t.Fatalf("%+v", got)
	}
	time.Sleep(time.Duration(i)*time.Second + time.Second/2)
	last := stages()[i+1]
	for side, want := range map[*rig]string{p.source: "out:" + last.out[len(last.out)-1], p.target: "in:" + last.in[len(last.in)-1]} {
		if got := side.now(); !strings.Contains(got, "Migrating ") || !strings.HasSuffix(got, want) {
			t.Fatalf("in %s: %s, want %s", stage, got, want)
		}
	}
	told := make(chan string, 1)
	waiter := p.source
	if sourceDies {
		waiter = p.target
	}
	go func() { told <- waiter.follow() }()
	synctest.Wait()
	moment := time.Now()
	if during != nil {
		during(p, stage)
	}
	want := "Running out:Error"
	if sourceDies {
		want = "Failed in:Error"
	}
	if got := <-told; got != want {
		t.Errorf("who waited was told %q, not %q", got, want)
	}
	if took := time.Since(moment); during != nil && took != 0 || took > time.Second {
		t.Errorf("after %s", took)
	}
	// All that is left knows, also long afterwards.
	time.Sleep(time.Hour)
	for _, r := range []*rig{p.source, p.target} {
		switch got := r.now(); {
		case r == waiter && !strings.HasSuffix(got, want):
			t.Errorf("later: %s", got)
		case r != waiter && during == nil && !strings.HasSuffix(got, "Failed in:Error"):
			t.Errorf("the target: %s", got)
		case r != waiter && during != nil && got != "0":
			t.Errorf("who died: %s", got)
		}
	}
	if !sourceDies { // and it can be tried again
		p.source.change(func(tx *world.Tx) { tx.State.Faults = nil })
		p.target.change(func(tx *world.Tx) {
			tx.State.Faults = nil
			if len(tx.State.Processes) == 0 {
				tx.State.Processes = []*world.Process{{PID: pid, Zone: world.GlobalZone, Listen: address, Argv: []string{"/bin/propolis-server", "run", bootrom, address}}}
			}
		})
		if got := p.migrate(); got.status != 201 || !strings.Contains(p.target.now(), "Running") || !strings.Contains(p.source.now(), "Destroyed") {
			t.Errorf("again: %+v; %s, %s", got, p.target.now(), p.source.now())
		}
	}
}

// follow waits until the machine is at rest, as a monitor does.
func (r *rig) follow() string {
	gen := 0
	for {
		request := httptest.NewRequestWithContext(context.Background(), "GET", "/instance/state-monitor", strings.NewReader(fmt.Sprintf(`{"gen":%d}`, gen)))
		request.Header.Set("api-version", "5.0.0")
		recorder := httptest.NewRecorder()
		Handler(r.world, pid).ServeHTTP(recorder, request)
		got := response{status: recorder.Code, text: recorder.Body.String()}
		_ = json.Unmarshal(recorder.Body.Bytes(), &got.body)
		text := state(r.t, got)
		if strings.Contains(text, "Running") || strings.Contains(text, "Failed") || got.status != 200 {
			_, text, _ = strings.Cut(text, " ")
			return text
		}
		gen = int(got.body["gen"].(float64)) + 1
	}
}

// A source that is told to stop does so if it goes on, and not before.
func TestAStopWaitsForTheEndOfAMigration(t *testing.T) {
	for name, fails := range map[string]bool{"that succeeds": false, "that fails": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t)
				p.runs()
				p.slow()
				p.migrate()
				time.Sleep(time.Second)
				for want, status := range map[string]int{"Run": 204, "Stop": 204, "Reboot": 403} {
					if got := p.source.v5("PUT", "/instance/state", `"`+want+`"`); got.status != status {
						t.Errorf("%s: %+v", want, got)
					}
				}
				if !strings.HasPrefix(p.source.now(), "6 Migrating") && !strings.Contains(p.source.now(), "Migrating") {
					t.Errorf("at once: %s", p.source.now())
				}
				if fails {
					p.target.change(func(tx *world.Tx) { smf.Exit(tx, pid) })
					if !strings.Contains(p.source.now(), "Destroyed out:Error") {
						t.Errorf("the target died: %s", p.source.now())
					}
					return
				}
				time.Sleep(time.Minute)
				if !strings.Contains(p.source.now(), "Destroyed out:Finish") || !strings.Contains(p.target.now(), "Running") {
					t.Errorf("source %s, target %s", p.source.now(), p.target.now())
				}
			})
		})
	}
}

// The process that answers for a target may die before it has reported the end of the
// migration: the source waits a while, and continues.
func TestASourceIsNotKeptWaitingByATargetThatSaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		p.runs()
		p.target.change(func(tx *world.Tx) {
			vm := &world.VM{Properties: []byte(`{}`), In: &world.Migration{ID: migrationID, Peer: "0"}}
			publish(vm, vm.In, "Migrating", "Sync", tx.Now)
			tx.State.Processes[0].VM = vm
		})
		target := &call{server: &server{world: p.target.world, pid: pid}, r: httptest.NewRequestWithContext(t.Context(), "PUT", "/instance", nil)}
		if _, err := (&server{world: p.source.world, pid: pid}).takeOn(target, migrationID); err != nil {
			t.Fatal(err)
		}
		for side, want := range map[*rig]string{p.source: "5 Migrating out:Sync", p.target: "1 Migrating in:Sync"} {
			if got := side.now(); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
		if got := p.target.v5("PUT", "/instance/state", `"Stop"`); got.status != 424 {
			t.Errorf("a machine that is not made yet: %+v", got)
		}
		time.Sleep(patience + time.Second)
		for side, want := range map[*rig]string{p.source: "7 Running out:Error", p.target: "4 Failed in:Error"} {
			if got := side.now(); got != want {
				t.Errorf("later: %s, want %s", got, want)
			}
		}
	})
}
