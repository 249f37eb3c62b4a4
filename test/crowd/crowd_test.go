package crowd

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/sledctl/sledctl/test/sledtest"
)

// Bring-up scripts use xargs -P.

// distinct sees that instances run, and that no two of them share a VNIC,
// a MAC or an address.
func distinct(t *testing.T, n int, list string) {
	t.Helper()
	var instances struct{ Items []sledtest.Instance }
	if err := json.Unmarshal([]byte(list), &instances); err != nil {
		t.Fatal(err)
	}
	if len(instances.Items) != n {
		t.Errorf("%d instances, want %d", len(instances.Items), n)
	}
	users := map[string]string{}
	for _, i := range instances.Items {
		if i.State != "running" || len(i.VNICs) != 2 {
			t.Errorf("%+v", i)
		}
		has := []string{i.Address, i.PropolisID}
		for _, v := range i.VNICs {
			has = append(has, v.Name, v.MAC)
		}
		for _, thing := range has {
			if other, used := users[thing]; used {
				t.Errorf("%s and %s both have %s", other, i.Name, thing)
			}
			users[thing] = i.Name
		}
	}
}

func TestSixtyFourAtOnceInOneProcess(t *testing.T) {
	s := sledtest.New(t, sledtest.Small(), "")
	s.Run("bootstrap")
	before := s.Comparable()
	n := 64
	if testing.Short() {
		n = 24 // which are as much at once, for two cores
	}
	s.Crowd(n, func(name string) string { return "instance ensure " + name + " --nic over=net0" })
	distinct(t, n, s.Run("instance list -o json"))
	s.Crowd(n, func(name string) string { return "instance delete " + name })
	s.Same(before, "after all were deleted")
}

// A dozen: what each of 64 reads of the simulated sled grows with all of them.
// make bench starts 64.
func TestADozenAtOnceInProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector sees each process by itself, and takes minutes for them")
	}
	const n = 12
	p := sledtest.Programs{T: t, Dir: filepath.Join(t.TempDir(), "sled")}
	p.Run("sim", "init", "--u2", "1", "--m2", "1")
	p.Run("bootstrap")
	before := p.Run("sim", "show", "-o", "json")
	p.Crowd(n, "instance", "ensure", "--nic", "over=net0")
	distinct(t, n, p.Run("instance", "list", "-o", "json"))
	p.Crowd(n, "instance", "delete")
	if after := p.Run("sim", "show", "-o", "json"); after != before {
		t.Error("the sled is not as it was")
	}
}
