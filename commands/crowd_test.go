package commands_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// Bring-up scripts use xargs -P.

// distinct sees that instances run, and that no two of them share a VNIC,
// a MAC or an address.
func distinct(t *testing.T, n int, list string) {
	t.Helper()
	var instances struct{ Items []shown }
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
	s := newSled(t, small(), "")
	s.run("bootstrap")
	before := s.world()
	n := 64
	if raced {
		n = 24 // which are as much at once, for two cores
	}
	s.crowd(n, func(name string) string { return "instance ensure " + name + " --nic over=net0" })
	distinct(t, n, s.run("instance list -o json"))
	s.crowd(n, func(name string) string { return "instance delete " + name })
	s.same(before, "after all were deleted")
}

// crowd runs a command line for each of n names, all at once.
func (s *sled) crowd(n int, line func(name string) string) {
	s.t.Helper()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if a := s.try(line(fmt.Sprint("web", i))); a.exit != 0 {
				s.t.Errorf("sledctl %s: exit %d: %s", line(fmt.Sprint("web", i)), a.exit, a.errs)
			}
		})
	}
	all.Wait()
}

// A dozen: what each of 64 reads of the simulated sled grows with all of them.
// make bench starts 64.
func TestADozenAtOnceInProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector sees each process by itself, and takes minutes for them")
	}
	const n = 12
	p := programs{t, filepath.Join(t.TempDir(), "sled")}
	p.run("sim", "init", "--u2", "1", "--m2", "1")
	p.run("bootstrap")
	before := p.run("sim", "show", "-o", "json")
	p.crowd(n, "instance", "ensure", "--nic", "over=net0")
	distinct(t, n, p.run("instance", "list", "-o", "json"))
	p.crowd(n, "instance", "delete")
	if after := p.run("sim", "show", "-o", "json"); after != before {
		t.Error("the sled is not as it was")
	}
}

// programs runs sledctl in processes, each of them this test binary, on a
// simulated sled in a directory.
type programs struct {
	t   *testing.T
	dir string
}

func (p programs) try(args ...string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(p.t.Context(), self, args...)
	cmd.Args[0] = "sledctl"
	cmd.Env = append(os.Environ(), "SLEDCTL_HOST=sim:"+p.dir, "SLEDCTL_CONFIG=")
	out, err := cmd.Output()
	if failed, ok := err.(*exec.ExitError); ok {
		err = fmt.Errorf("sledctl %q: %w: %s", args, err, failed.Stderr)
	}
	return string(out), err
}

func (p programs) run(args ...string) string {
	p.t.Helper()
	out, err := p.try(args...)
	if err != nil {
		p.t.Fatal(err)
	}
	return out
}

// crowd runs a command for each of n names, all at once.
func (p programs) crowd(n int, args ...string) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			words := append(append([]string{}, args...), fmt.Sprint("web", i))
			if _, err := p.try(words...); err != nil {
				p.t.Error(err)
			}
		})
	}
	all.Wait()
}
