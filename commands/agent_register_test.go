package commands_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/sledtest"
)

// A VM is registered in each version that differs, and then run, reset and
// stopped as the control plane does it; nothing is left of it then but what is to
// be read.
func TestTheControlPlaneHasAVM(t *testing.T) {
	s := sledtest.New(t, sledtest.Small(), sledtest.Flat)
	s.Run("bootstrap")
	a := s.StartAgent(t, s.Host())
	for i, version := range []int{1, 7, 9, 10, 11, 18, 29, 32, 41, 44, 48} {
		t.Run(fmt.Sprint("version ", version), func(t *testing.T) {
			sledtest.Sample(t, t.Name())
			vm, instance := uuid.NewString(), uuid.NewString()
			body := sledtest.VMBody(t, version, instance, i+10).Text(t)
			header := fmt.Sprintf("%d.0.0", version)
			for range 2 { // it is told twice, and registered once
				status, answer := a.Send("PUT", "/vmms/"+vm, header, body)
				if status != 200 || !strings.Contains(answer, `"state":"starting"`) {
					t.Fatalf("register: %d %s", status, answer)
				}
			}
			if status, now := a.Want(vm, "running"); status != 200 || now != "" {
				t.Fatalf("run: %d %q", status, now)
			}
			a.Eventually(vm, "running")
			if got := s.Value("instance get " + instance + " -H --columns propolis_id,address,state"); got != vm+"\t"+fmt.Sprintf("10.77.3.%d/16", i+10)+"\trunning" {
				t.Errorf("the instance is %q", got)
			}
			if status, now := a.Want(vm, "stopped"); status != 200 || now != "stopping" {
				t.Errorf("stop: %d %q", status, now)
			}
			a.Eventually(vm, "destroyed")
			if answer := s.Try("instance get " + instance); answer.Exit != 4 {
				t.Errorf("the instance stays: exit %d %s", answer.Exit, answer.Out)
			}
		})
	}
	noVMs(s)
}

// noVMs fails the test if there are zones of instances.
func noVMs(s *sledtest.Operator) {
	s.T.Helper()
	for _, zone := range s.Zones() {
		if strings.HasPrefix(zone, "propolis_instance_") {
			s.T.Errorf("zone %s is left", zone)
		}
	}
}

// The spec that Propolis is asked for is the one that was registered, and labels
// are those of the control plane.
func TestTheWholeSpecIsSent(t *testing.T) {
	s := sledtest.New(t, sledtest.Small(), sledtest.Flat)
	s.Run("bootstrap")
	a := s.StartAgent(t, s.Host())
	vm, instance := uuid.NewString(), uuid.NewString()
	body := sledtest.VMBody(t, 48, instance, 5)
	machine := body["vmm_spec"].(*spec.InstanceSpec)
	machine.SMBIOS = &spec.SMBIOS{Manufacturer: "Example", Product: "Rack", Serial: "7", Version: 3}
	if status, answer := a.Send("PUT", "/vmms/"+vm, sledtest.LatestAPI, body.Text(t)); status != 200 {
		t.Fatalf("register: %d %s", status, answer)
	}
	a.Want(vm, "running")
	a.Eventually(vm, "running")
	shown := s.Run("propolis spec show " + instance + " -o json")
	for _, want := range []string{`"22c9e9d9-1a5f-4c77-9c2e-6a4b1f0f3a10"`, `"product_name":"Rack"`} {
		if !strings.Contains(shown, want) {
			t.Errorf("%s is not in %s", want, shown)
		}
	}
	if status, now := a.Remove(vm); status != 200 || now != "failed" {
		t.Errorf("unregister: %d %q", status, now)
	}
	noVMs(s)
}

// A VM that is registered and never run is destroyed at once, and one that cannot
// be brought up has failed, with the reason; nothing of either stays.
func TestAVMThatNeverRan(t *testing.T) {
	s := sledtest.New(t, sledtest.Small(), sledtest.Flat)
	s.Run("bootstrap")
	a := s.StartAgent(t, s.Host())
	register := func(n int, change func(sledtest.Registration)) (vm string) {
		vm = uuid.NewString()
		body := sledtest.VMBody(t, 48, uuid.NewString(), n)
		change(body)
		if status, answer := a.Send("PUT", "/vmms/"+vm, sledtest.LatestAPI, body.Text(t)); status != 200 {
			t.Fatalf("register: %d %s", status, answer)
		}
		return vm
	}
	idle := register(1, func(sledtest.Registration) {})
	if status, now := a.Want(idle, "reboot"); status != 500 || now != "Internal" {
		t.Errorf("reboot of what never ran: %d %q", status, now)
	}
	if status, now := a.Want(idle, "stopped"); status != 200 || now != "destroyed" {
		t.Errorf("stop of what never ran: %d %q", status, now)
	}
	broken := register(2, func(sledtest.Registration) {})
	s.Arm(world.Fault{Name: world.FaultFail, Match: "clone", Times: 1, Exit: 1, Text: "the injected failure"})
	if status, _ := a.Want(broken, "running"); status != 200 {
		t.Errorf("run: %d", status)
	}
	a.Eventually(broken, "failed")
	noVMs(s)
	if list := s.Run("instance list -o name"); list != "" {
		t.Errorf("there are still %q", list)
	}
}

// What an agent was killed over, the next one does.
func TestWhatAnAgentOwesTheNextOneDoes(t *testing.T) {
	s := sledtest.New(t, sledtest.Small(), sledtest.Flat)
	s.Run("bootstrap")
	a := s.StartAgent(t, s.Host())
	vm, instance := uuid.NewString(), uuid.NewString()
	if status, answer := a.Send("PUT", "/vmms/"+vm, sledtest.LatestAPI, sledtest.VMBody(t, 48, instance, 3).Text(t)); status != 200 {
		t.Fatalf("register: %d %s", status, answer)
	}
	if status, _ := a.Want(vm, "running"); status != 200 {
		t.Fatalf("run: %d", status)
	}
	a.Stop()
	b := s.StartAgent(t, s.Host())
	b.Eventually(vm, "running")
	if status, now := b.Want(vm, "stopped"); status != 200 || now != "stopping" {
		t.Fatalf("stop: %d %q", status, now)
	}
	b.Stop()
	c := s.StartAgent(t, s.Host())
	c.Eventually(vm, "destroyed")
	noVMs(s)
}

// What the agent refuses of a registration, and how.
func TestARegistrationThatIsRefused(t *testing.T) {
	s := sledtest.New(t, sledtest.Small(), sledtest.Flat)
	s.Run("bootstrap")
	a := s.StartAgent(t, s.Host())
	taken := uuid.NewString()
	if status, answer := a.Send("PUT", "/vmms/"+taken, sledtest.LatestAPI, sledtest.VMBody(t, 48, uuid.NewString(), 1).Text(t)); status != 200 {
		t.Fatalf("register: %d %s", status, answer)
	}
	local := func(b sledtest.Registration) map[string]any { return b["local_config"].(map[string]any) }
	for name, c := range map[string]struct {
		version int
		change  func(sledtest.Registration)
		status  int
		says    string
	}{
		"no local config":          {48, func(b sledtest.Registration) { delete(b, "local_config") }, 400, "missing field `local_config`"},
		"no groups in version 7":   {7, func(b sledtest.Registration) { delete(local(b), "multicast_groups") }, 400, "missing field `multicast_groups`"},
		"no NAT in version 1":      {1, func(b sledtest.Registration) { delete(local(b), "source_nat") }, 400, "missing field `source_nat`"},
		"an old NIC in version 10": {10, func(b sledtest.Registration) { delete(local(b)["nics"].([]any)[0].(map[string]any), "ip_config") }, 400, "missing field `ip_config`"},
		"SMBIOS in version 28":     {28, func(b sledtest.Registration) { b["vmm_spec"].(*spec.InstanceSpec).SMBIOS = &spec.SMBIOS{} }, 400, "version 28.0.0 has not all of it"},
		"no cache in version 43":   {43, func(b sledtest.Registration) { nvme(b, new(false)) }, 400, "has_write_cache: an NVMe disk without a write cache needs 6.0.0"},
		"no word in version 44":    {44, func(b sledtest.Registration) { nvme(b, nil) }, 400, "missing field `has_write_cache`"},
		"a migration":              {48, func(b sledtest.Registration) { b["migration_id"] = uuid.NewString() }, 400, "is registered as migrating"},
		"a migration without id":   {48, func(b sledtest.Registration) { b["vmm_runtime"].(map[string]any)["state"] = "migrating" }, 400, "migration_id"},
		"a state of its own":       {48, func(b sledtest.Registration) { b["vmm_runtime"].(map[string]any)["state"] = "running" }, 400, "is registered as starting"},
		"a generation above ours":  {48, func(b sledtest.Registration) { b["vmm_runtime"].(map[string]any)["gen"] = 1 << 40 }, 400, "gen"},
		"another port":             {48, func(b sledtest.Registration) { b["propolis_addr"] = "10.77.3.9:1" }, 400, "port 12400"},
		"an address that is taken": {48, func(b sledtest.Registration) { b["propolis_addr"] = "10.77.3.1:12400" }, 409, "is taken by"},
		"an address of elsewhere":  {48, func(b sledtest.Registration) { b["propolis_addr"] = "192.0.2.1:12400" }, 400, "underlay"},
		"no address":               {48, func(b sledtest.Registration) { b["propolis_addr"] = "here" }, 400, "invalid socket address"},
		"a MAC that is taken": {48, func(b sledtest.Registration) {
			local(b)["nics"].([]any)[0].(map[string]any)["mac"] = "a8:40:25:ff:00:01"
		}, 409, "MAC"},
		"a NIC that is missing":     {48, func(b sledtest.Registration) { local(b)["nics"] = []any{} }, 400, "the spec has 1"},
		"a hostname that is none":   {48, func(b sledtest.Registration) { local(b)["hostname"] = "-" }, 500, `"error_code":"Internal"`},
		"a volume that is no disk":  {48, func(b sledtest.Registration) { local(b)["delegated_zvols"] = []any{zvol("local_storage_unencrypted")} }, 400, "is no disk of the spec"},
		"an encrypted one too soon": {16, func(b sledtest.Registration) { local(b)["delegated_zvols"] = []any{zvol("local_storage_encrypted")} }, 400, "unknown variant"},
		"a spec that is none":       {48, func(b sledtest.Registration) { b["vmm_spec"] = map[string]any{} }, 400, "vmm_spec"},
	} {
		t.Run(name, func(t *testing.T) {
			body := sledtest.VMBody(t, c.version, uuid.NewString(), 99)
			c.change(body)
			vm := uuid.NewString()
			status, answer := a.Send("PUT", "/vmms/"+vm, fmt.Sprintf("%d.0.0", c.version), body.Text(t))
			if status != c.status || !strings.Contains(answer, c.says) {
				t.Errorf("%d %s, want %d and %q", status, answer, c.status, c.says)
			}
			if state, _ := a.State(vm); state != "404" {
				t.Errorf("the VM is %s", state)
			}
		})
	}
	if status, answer := a.Send("PUT", "/vmms/"+taken, sledtest.LatestAPI, sledtest.VMBody(t, 48, uuid.NewString(), 9).Text(t)); status != http.StatusInternalServerError {
		t.Errorf("an id of another instance: %d %s", status, answer)
	}
}

func zvol(kind string) map[string]any {
	return map[string]any{"type": kind, "zpool_id": uuid.NewString(), "dataset_id": uuid.NewString()}
}

// Without agent.flat_network no VM gets NICs that would lie about their VPC.
func TestNICsInVPCsAreRefusedUnlessToldOtherwise(t *testing.T) {
	s := sledtest.New(t, sledtest.Small(), "")
	s.Run("bootstrap")
	a := s.StartAgent(t, s.Host())
	if status, answer := a.Send("PUT", "/vmms/"+uuid.NewString(), sledtest.LatestAPI, sledtest.VMBody(t, 48, uuid.NewString(), 1).Text(t)); status != 400 || !strings.Contains(answer, "agent.flat_network") {
		t.Errorf("%d %s", status, answer)
	}
}

// nvme adds an NVMe disk that says this of its write cache.
func nvme(b sledtest.Registration, cache *bool) {
	b["vmm_spec"].(*spec.InstanceSpec).Components["d"] = spec.NVMeDisk{Backend: "b", PCI: spec.PCIPath{Device: 30}, WriteCache: cache}
}
