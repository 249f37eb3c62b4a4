package commands_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/sledtest"
)

// registration is the body by which a fleet registers a VM.
type registration map[string]any

func (r registration) text(t *testing.T) string {
	t.Helper()
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// with is the registration with others of its keys.
func (r registration) with(more registration) registration {
	all := maps.Clone(r)
	maps.Copy(all, more)
	return all
}

// ofFleet is one of a VM that fits everywhere.
func ofFleet(vm string, generation int) registration {
	return registration{"propolis_id": vm, "generation": generation, "document": map[string]any{"name": "web1", "memory": 1 << 30}}
}

// refused wants an answer of a status with a code.
func refused(t *testing.T, a *sledtest.Agent, method, path, body string, status int, code string) {
	t.Helper()
	got, answer := a.Send(method, path, sledtest.LatestAPI, body)
	var said struct {
		Code string `json:"error_code"`
	}
	if err := json.Unmarshal([]byte(answer), &said); err != nil || got != status || said.Code != code {
		t.Errorf("%s %s: %d %s, want %d %s", method, path, got, answer, status, code)
	}
}

// handedOver is a small sled of a fleet, with its agent.
func handedOver(t *testing.T, config string) (*sledtest.Operator, *sledtest.Agent) {
	t.Helper()
	s := sledtest.New(t, sledtest.Small(), config)
	s.Lobby = &sledtest.Lobby{}
	s.Run("bootstrap")
	s.Run("sled keeper fleet --from operator")
	a := s.StartAgent(t, s.Host())
	a.Keeper = "fleet"
	return s, a
}

// A fleet registers a VM under the ids that it chooses, and has it run; nobody else changes it,
// and a generation that has passed makes no VM, also when the instance is gone.
func TestAFleetHasAVM(t *testing.T) {
	s, a := handedOver(t, sledtest.Flat)
	id, vm := uuid.NewString(), uuid.NewString()
	path := "/instances/" + id + "/registration"
	for range 2 { // it is told twice, and registered once
		if answer := a.Puts(200, path, ofFleet(vm, 3).text(t)); !strings.Contains(answer, `"propolis_id":"`+vm+`"`) || !strings.Contains(answer, `"state":"starting"`) {
			t.Fatal(answer)
		}
	}
	refused(t, a, "PUT", path, ofFleet(vm, 2).text(t), 409, "GENERATION_PASSED")
	refused(t, a, "PUT", path, ofFleet(uuid.NewString(), 3).text(t), 409, "GENERATION_PASSED")
	refused(t, a, "PUT", path, ofFleet(uuid.NewString(), 4).text(t), 409, "conflict") // its VM has not ended
	refused(t, a, "PUT", "/instances/"+uuid.NewString()+"/registration", ofFleet(vm, 1).with(registration{"document": map[string]any{"name": "web2"}}).text(t), 409, "conflict")
	refused(t, a, "PUT", path, ofFleet(vm, 3).with(registration{"document": map[string]any{"id": uuid.NewString()}}).text(t), 400, "usage")
	refused(t, a, "PUT", path, ofFleet(vm, 3).with(registration{"document": map[string]any{"propolis_id": uuid.NewString()}}).text(t), 400, "usage")
	a.Puts(200, "/vmms/"+vm+"/state", wantedState("running"))
	a.Eventually(vm, "running")
	if got := s.Value("instance get web1 -H --columns id,propolis_id,keeper"); got != id+"\t"+vm+"\tfleet" {
		t.Errorf("the instance is %q", got)
	}

	for _, other := range []string{"", "nexus", "operator"} {
		a.Keeper = other
		refused(t, a, "PUT", "/vmms/"+vm+"/state", wantedState("stopped"), 409, "KEPT_BY_ANOTHER")
		refused(t, a, "DELETE", "/vmms/"+vm, "", 409, "KEPT_BY_ANOTHER")
		refused(t, a, "DELETE", "/instances/web1", "", 409, "KEPT_BY_ANOTHER")
		refused(t, a, "PUT", "/instances/web1/state", `{"state":"stopped"}`, 409, "KEPT_BY_ANOTHER")
		refused(t, a, "PUT", "/instances/web1", `{"cpus":3}`, 409, "KEPT_BY_ANOTHER")
		refused(t, a, "PUT", "/instances/web7", `{}`, 409, "KEPT_BY_ANOTHER")
		if other != "operator" && other != "" {
			refused(t, a, "PUT", "/instances/web1/keeper", `{"keeper":"operator"}`, 409, "KEPT_BY_ANOTHER")
		}
	}
	a.Keeper = ""
	if status, answer := a.Send("PUT", "/vmms/"+uuid.NewString(), sledtest.LatestAPI, sledtest.VMBody(t, 48, uuid.NewString(), 5).Text(t)); status != 409 {
		t.Errorf("a control plane registers a VM: %d %s", status, answer)
	}
	for _, line := range []string{"instance delete web1", "instance stop web1", "instance reboot web1", "instance start web1", "instance ensure web1 --cpus 3", "instance ensure web2", "instance migrate web1 --to b"} {
		if said := s.Try(line); said.Exit != 8 || !strings.Contains(said.Errs, "is kept by the fleet") || !strings.Contains(said.Errs, "keeper") {
			t.Errorf("%s: exit %d %s", line, said.Exit, said.Errs)
		}
	}
	a.Keeper = "fleet"
	if status, now := a.Want(vm, "reboot"); status != 200 || now != "rebooting" && now != "running" {
		t.Errorf("reboot: %d %q", status, now)
	}
	a.Eventually(vm, "running")
	if status, now := a.Want(vm, "stopped"); status != 200 || now != "stopping" {
		t.Errorf("stop: %d %q", status, now)
	}
	a.Eventually(vm, "destroyed")
	noVMs(s)
	if said := s.Try("instance get " + id); said.Exit != 4 {
		t.Errorf("the instance stays: exit %d %s", said.Exit, said.Out)
	}
	refused(t, a, "PUT", path, ofFleet(uuid.NewString(), 3).text(t), 409, "GENERATION_PASSED")
	next := uuid.NewString()
	a.Puts(200, path, ofFleet(next, 4).text(t))
	if status, now := a.Remove(next); status != 200 || now != "failed" {
		t.Errorf("unregister what never ran: %d %q", status, now)
	}
}

func wantedState(state string) string { return fmt.Sprintf(`{"state":{"type":%q}}`, state) }

// A VM of a fleet is not started by a reboot of the sled, nor by what an operator starts with it.
func TestARebootStartsNoVMOfAFleet(t *testing.T) {
	s, a := handedOver(t, "")
	id, vm := uuid.NewString(), uuid.NewString()
	a.Puts(200, "/instances/"+id+"/registration", ofFleet(vm, 1).text(t))
	a.Puts(200, "/vmms/"+vm+"/state", wantedState("running"))
	a.Eventually(vm, "running")
	a.Stop()
	if err := s.Reboot(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Run("bootstrap")
	s.Run("instance ensure --all")
	if n := s.RunningMachines(); n != 0 {
		t.Errorf("%d machines run", n)
	}
	a = s.StartAgent(t, s.Host())
	a.Eventually(vm, "failed")
	if said := s.Try("instance get " + id); said.Exit != 4 {
		t.Errorf("the instance stays: exit %d %s", said.Exit, said.Out)
	}
}

// At the sled's shutdown a VM of a fleet ends as it does in any other way.
func TestAShutdownEndsAVMOfAFleet(t *testing.T) {
	s, a := handedOver(t, "")
	id, vm := uuid.NewString(), uuid.NewString()
	a.Puts(200, "/instances/"+id+"/registration", ofFleet(vm, 1).text(t))
	a.Puts(200, "/vmms/"+vm+"/state", wantedState("running"))
	a.Eventually(vm, "running")
	s.Run("instance stop --all")
	a.Eventually(vm, "destroyed")
	if said := s.Try("instance get " + id); said.Exit != 4 {
		t.Errorf("the instance stays: exit %d %s", said.Exit, said.Out)
	}
}

// A fleet hands a VM over to the operator and takes it back, while it runs.
func TestAVMIsHandedOverWhileItRuns(t *testing.T) {
	s, a := handedOver(t, "")
	id, vm := uuid.NewString(), uuid.NewString()
	a.Puts(200, "/instances/"+id+"/registration", ofFleet(vm, 5).text(t))
	a.Puts(200, "/vmms/"+vm+"/state", wantedState("running"))
	a.Eventually(vm, "running")
	s.Run("instance keeper web1 operator")
	refused(t, a, "DELETE", "/vmms/"+vm, "", 409, "KEPT_BY_ANOTHER")
	s.Run("instance ensure web1 --protect")
	if said := s.Try("instance keeper web1 fleet --generation 5"); said.Exit != 5 {
		t.Errorf("with a generation that has passed: %+v", said)
	}
	s.Run("instance keeper web1 fleet --generation 6")
	if status, now := a.Want(vm, "stopped"); status != 200 || now != "stopping" {
		t.Errorf("stop: %d %q", status, now)
	}
	a.Eventually(vm, "destroyed")
}

// What a sled can hold counts what is recorded, by keeper.
func TestAnAgentTellsTheCapacityOfItsSled(t *testing.T) {
	s := sledtest.New(t, sledtest.Small(), "")
	s.Lobby = &sledtest.Lobby{}
	s.Run("bootstrap")
	s.Run("instance ensure db1 --cpus 3 --memory 1G")
	s.Run("instance ensure db2 --memory 1G")
	s.Run("instance stop db2")
	s.Run("sled keeper fleet")
	a := s.StartAgent(t, s.Host())
	a.Keeper = "fleet"
	a.Puts(200, "/instances/"+uuid.NewString()+"/registration", ofFleet(uuid.NewString(), 1).text(t))
	status, body := a.Ask("GET", "/capacity", sledtest.LatestAPI)
	var c struct {
		Keeper string
		CPUs   int
		Memory struct {
			Reservoir   bool
			Total, Free uint64
		}
		Pools []struct {
			Name, State string
			Size, Free  uint64
			Zones       bool
		}
		Instances []map[string]any
		Unknown   []string
	}
	if err := json.Unmarshal([]byte(body), &c); err != nil || status != 200 {
		t.Fatalf("%d %s: %v", status, body, err)
	}
	if c.Keeper != "fleet" || c.CPUs == 0 || c.Memory.Total == 0 || c.Memory.Free == 0 || len(c.Unknown) != 0 {
		t.Errorf("%s", body)
	}
	zones := 0
	for _, p := range c.Pools {
		if p.Zones && p.State != "" && p.Size > p.Free && p.Free > 0 {
			zones++
		}
	}
	if zones == 0 {
		t.Errorf("no pool for zones: %s", body)
	}
	if got, want := fmt.Sprint(c.Instances), "[map[cpus:3 instances:2 keeper:operator memory:1.073741824e+09 up:1] map[cpus:2 instances:1 keeper:fleet memory:1.073741824e+09 up:1]]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// fleetMove are two sleds of a fleet with a VM on the first.
type fleetMove struct {
	source, target *sledtest.Operator
	from, to       *sledtest.Agent
	id, vm, next   string
	migration      string
}

func newFleetMove(t *testing.T) *fleetMove {
	t.Helper()
	m := &fleetMove{id: uuid.NewString(), vm: uuid.NewString(), next: uuid.NewString(), migration: uuid.NewString()}
	m.source, m.from = handedOver(t, sledtest.Flat)
	m.target, m.to = handedOver(t, strings.ReplaceAll(sledtest.Flat, "10.77.", "10.78."))
	m.source.Meet(m.target)
	m.from.Puts(200, "/instances/"+m.id+"/registration", ofFleet(m.vm, 1).text(t))
	m.from.Puts(200, "/vmms/"+m.vm+"/state", wantedState("running"))
	m.from.Eventually(m.vm, "running")
	return m
}

// begin registers the VM at the target, and has it come.
func (m *fleetMove) begin(t *testing.T) {
	t.Helper()
	_, body := m.from.Ask("GET", "/instances/"+m.id, sledtest.LatestAPI)
	var at struct {
		Instance struct {
			Address string `json:"propolis_addr"`
			VNICs   []struct{ MAC string }
		}
	}
	if err := json.Unmarshal([]byte(body), &at); err != nil || at.Instance.Address == "" {
		t.Fatalf("%s: %v", body, err)
	}
	m.to.Puts(200, "/instances/"+m.id+"/registration", ofFleet(m.next, 2).with(registration{"migration_id": m.migration}).text(t))
	m.to.Puts(400, "/vmms/"+m.next+"/state", wantedState("running")) // it would be there twice
	m.to.Puts(200, "/vmms/"+m.next+"/state", `{"state":{"type":"migration_target","value":{"src_propolis_addr":"`+at.Instance.Address+`"}}}`)
}

// A fleet moves a VM: it runs on the target, and the source removes it by itself.
func TestAFleetMovesAVM(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newFleetMove(t)
		m.begin(t)
		m.to.ComesTo(m.next, "running, in completed at 3")
		m.from.ComesTo(m.vm, "destroyed, out completed at 3")
		if a, b := m.source.RunningMachines(), m.target.RunningMachines(); a != 0 || b != 1 {
			t.Errorf("%d machines run on the source, %d on the target", a, b)
		}
		if said := m.source.Try("instance get " + m.id); said.Exit != 4 {
			t.Errorf("on the source: %+v", said)
		}
		// The engine was restored from before it: neither generation makes a second VM.
		refused(t, m.from, "PUT", "/instances/"+m.id+"/registration", ofFleet(uuid.NewString(), 1).text(t), 409, "GENERATION_PASSED")
		refused(t, m.to, "PUT", "/instances/"+m.id+"/registration", ofFleet(uuid.NewString(), 2).text(t), 409, "GENERATION_PASSED")
	})
}

// A migration that fails leaves the VM at its source, and nothing at the target.
func TestAFailedMigrationOfAFleetLeavesTheVM(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newFleetMove(t)
		m.target.Arm(world.Fault{Name: world.FaultFail, Match: "propolis * migrate Device", Times: 1})
		m.begin(t)
		m.to.Eventually(m.next, "failed")
		time.Sleep(time.Second)
		if a, b := m.source.RunningMachines(), m.target.RunningMachines(); a != 1 || b != 0 {
			t.Errorf("%d machines run on the source, %d on the target", a, b)
		}
		m.from.Eventually(m.vm, "running")
		if said := m.target.Try("instance get " + m.id); said.Exit != 4 {
			t.Errorf("on the target: %+v", said)
		}
	})
}

// A volume does not move with its VM: an arrival that has one is refused before anything is made.
func TestAFleetMovesNoVolume(t *testing.T) {
	s, a := handedOver(t, "")
	s.Run("volume create data --size 1G")
	disks := registration{"migration_id": uuid.NewString(), "document": map[string]any{"name": "web1", "memory": 1 << 30, "disks": []map[string]any{{"path": "data"}}}}
	id := uuid.NewString()
	refused(t, a, "PUT", "/instances/"+id+"/registration", ofFleet(uuid.NewString(), 1).with(disks).text(t), 403, "refused")
	delete(disks, "migration_id")
	a.Puts(200, "/instances/"+id+"/registration", ofFleet(uuid.NewString(), 1).with(disks).text(t))
}
