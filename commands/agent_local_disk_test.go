package commands_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/sledtest"
)

// withVolumes lets volumes lie on the U.2s.
const withVolumes = "datasets = [\"u2:local_storage_unencrypted compression=off\", \"u2:crypt/local_storage compression=off\"]\n"

func volumes(t *testing.T, config string) *sledtest.Operator {
	t.Helper()
	s := sledtest.New(t, sledtest.Small(), strings.Replace(config, "[network]", withVolumes+"[network]", 1))
	s.Run("bootstrap")
	return s
}

// local is the body of a request about a volume, and the device that it becomes.
func local(s *sledtest.Operator, id string, encrypted bool) (body, device string) {
	s.T.Helper()
	pool := pools(s, "oxp_")[0]
	text, err := json.Marshal(map[string]any{
		"zpool_id": strings.TrimPrefix(pool, "oxp_"), "dataset_id": id, "dataset_size": 2 << 30, "volume_size": 1 << 30, "encrypted_at_rest": encrypted,
	})
	if err != nil {
		s.T.Fatal(err)
	}
	return string(text), "/dev/zvol/rdsk/" + pool + map[bool]string{false: "/local_storage_unencrypted/", true: "/crypt/local_storage/"}[encrypted] + id + "/vol"
}

// withDisk gives a VM of the control plane a volume as its disk.
func withDisk(b sledtest.Registration, zpool, id, device string, encrypted bool) {
	const backend = "7a7ef0c4-6f0f-4d0e-9d5e-0f6c3a0c0001"
	machine := b["vmm_spec"].(*spec.InstanceSpec)
	machine.Components[backend] = spec.FileStorage{Path: device, BlockSize: 4096}
	machine.Components["disk-0"] = spec.NVMeDisk{Backend: backend, PCI: spec.PCIPath{Device: 16}, WriteCache: new(true)}
	b["local_config"].(map[string]any)["delegated_zvols"] = []any{map[string]any{
		"type": map[bool]string{false: "local_storage_unencrypted", true: "local_storage_encrypted"}[encrypted], "zpool_id": zpool, "dataset_id": id,
	}}
}

// A VM of the control plane gets a local disk, keeps it as long as it has it, and nothing is
// left when both are gone.
func TestAVMHasALocalDisk(t *testing.T) {
	for _, encrypted := range []bool{false, true} {
		t.Run(fmt.Sprint("encrypted is ", encrypted), func(t *testing.T) {
			s := volumes(t, sledtest.Flat)
			before := s.Comparable()
			a := s.StartAgent(t, s.Host())
			id, vm := uuid.NewString(), uuid.NewString()
			body, device := local(s, id, encrypted)
			for range 2 { // it is told twice, and made once
				if status, answer := a.Send("POST", "/local-storage", sledtest.LatestAPI, body); status != 204 {
					t.Fatalf("%d %s", status, answer)
				}
			}
			dataset := strings.TrimPrefix(device, "/dev/zvol/rdsk/")
			if is := raw(s, "zfs", "get", "-Hp", "-o", "value", "encryption", dataset); (is != "off\n") != encrypted {
				t.Errorf("encryption is %s", is)
			}
			machine := sledtest.VMBody(t, 48, uuid.NewString(), 3)
			withDisk(machine, strings.TrimPrefix(pools(s, "oxp_")[0], "oxp_"), id, device, encrypted)
			if status, answer := a.Send("PUT", "/vmms/"+vm, sledtest.LatestAPI, machine.Text(t)); status != 200 {
				t.Fatalf("register: %d %s", status, answer)
			}
			if status, now := a.Want(vm, "running"); status != 200 {
				t.Fatalf("run: %d %q", status, now)
			}
			a.Eventually(vm, "running")
			if zone := "propolis_instance_" + vm; !strings.Contains(raw(s, "zonecfg", "-z", zone, "info", "device"), "match: "+device) {
				t.Errorf("zone %s is not given %s", zone, device)
			}
			if status, answer := a.Send("DELETE", "/local-storage", sledtest.LatestAPI, body); status != 500 {
				t.Errorf("of a disk that a VM has: %d %s", status, answer)
			}
			if list := s.Run("storage local-disk list -H --columns id,instance"); !strings.HasPrefix(list, id+"\tvm-") {
				t.Errorf("the list is %q", list)
			}
			s.Run("reap")
			if status, _ := a.Want(vm, "stopped"); status != 200 {
				t.Errorf("stop: %d", status)
			}
			a.Eventually(vm, "destroyed")
			if list := s.Run("storage local-disk list -H --columns id,instance"); list != id+"\t-\n" {
				t.Errorf("the volume went with its VM: %q", list)
			}
			for range 2 {
				if status, answer := a.Send("DELETE", "/local-storage", sledtest.LatestAPI, body); status != 204 {
					t.Fatalf("%d %s", status, answer)
				}
			}
			s.Same(before, "when the VM and its disk are gone")
		})
	}
}

// What cannot be made or removed is refused as the sled agent refuses it.
func TestALocalDiskThatIsRefused(t *testing.T) {
	s := sledtest.New(t, sledtest.Small(), sledtest.TunedConfig)
	s.Run("bootstrap")
	a := s.StartAgent(t, s.Host())
	body, _ := local(s, uuid.NewString(), false)
	missing := "local storage unencrypted dataset for pool " + strings.TrimPrefix(pools(s, "oxp_")[0], "oxp_") + " missing!"
	for _, method := range []string{"POST", "DELETE"} {
		if status, answer := a.Send(method, "/local-storage", sledtest.LatestAPI, body); status != 503 || !strings.Contains(answer, missing) {
			t.Errorf("%s: %d %s", method, status, answer)
		}
		if status, answer := a.Send(method, "/local-storage", sledtest.LatestAPI, strings.Replace(body, `"encrypted_at_rest"`, `"x"`, 1)); status != 400 || !strings.Contains(answer, "missing field `encrypted_at_rest`") {
			t.Errorf("%s: %d %s", method, status, answer)
		}
		if status, answer := a.Send(method, "/local-storage", "16.0.0", body); status != 404 {
			t.Errorf("%s: %d %s", method, status, answer)
		}
	}
	raw(s, "zfs", "create", pools(s, "oxp_")[0]+"/local_storage_unencrypted")
	for old, new := range map[string]string{`"volume_size":1073741824`: `"volume_size":1000`, `"dataset_size":2147483648`: `"dataset_size":1073741824`} {
		if status, answer := a.Send("POST", "/local-storage", sledtest.LatestAPI, strings.Replace(body, old, new, 1)); status != 500 {
			t.Errorf("%s: %d %s", new, status, answer)
		}
	}
	if left := raw(s, "zfs", "list", "-Hr", "-o", "name", pools(s, "oxp_")[0]+"/local_storage_unencrypted"); strings.Count(left, "\n") != 1 {
		t.Errorf("left: %s", left)
	}
	s.Arm(world.Fault{Name: world.FaultFail, Match: "zfs create -V", Times: 1, Exit: 1, Text: "the injected failure"})
	if status, _ := a.Send("POST", "/local-storage", sledtest.LatestAPI, body); status != 500 {
		t.Errorf("%d", status)
	}
	if list := s.Run("storage local-disk list -H"); list != "" {
		t.Errorf("recorded: %s", list)
	}
}
