package sledtest

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/sledctl/sledctl/commands"
	"github.com/sledctl/sledctl/sim/simtest"
)

// Crowd runs a command line for each of n names, all at once.
func (s *Operator) Crowd(n int, line func(name string) string) {
	s.T.Helper()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if a := s.Try(line(fmt.Sprint("web", i))); a.Exit != 0 {
				s.T.Errorf("sledctl %s: exit %d: %s", line(fmt.Sprint("web", i)), a.Exit, a.Errs)
			}
		})
	}
	all.Wait()
}

// Programs runs sledctl in processes, each of them this test binary, on a
// simulated sled in a directory.
type Programs struct {
	T   *testing.T
	Dir string
}

func (p Programs) try(args ...string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(p.T.Context(), self, args...)
	cmd.Args[0] = "sledctl"
	cmd.Env = append(os.Environ(), "SLEDCTL_HOST=sim:"+p.Dir, "SLEDCTL_CONFIG=")
	out, err := cmd.Output()
	if failed, ok := err.(*exec.ExitError); ok {
		err = fmt.Errorf("sledctl %q: %w: %s", args, err, failed.Stderr)
	}
	return string(out), err
}

func (p Programs) Run(args ...string) string {
	p.T.Helper()
	out, err := p.try(args...)
	if err != nil {
		p.T.Fatal(err)
	}
	return out
}

// Crowd runs a command for each of n names, all at once.
func (p Programs) Crowd(n int, args ...string) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			words := append(append([]string{}, args...), fmt.Sprint("web", i))
			if _, err := p.try(words...); err != nil {
				p.T.Error(err)
			}
		})
	}
	all.Wait()
}

// Method runs a method as svc.startd does: exec_method of
// usr/src/cmd/svc/startd/method.c puts "exec" before it and gives it to a shell.
func (p Programs) Method(exec string) (exit int, log string) {
	p.T.Helper()
	return p.Shell("exec " + exec)
}

func (p Programs) Shell(script string) (exit int, log string) {
	p.T.Helper()
	cmd := exec.CommandContext(p.T.Context(), "/bin/sh", "-c", script)
	cmd.Env = append(os.Environ(), "SLEDCTL_HOST=sim:"+p.Dir, "SLEDCTL_CONFIG=")
	out, err := cmd.CombinedOutput()
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed {
		p.T.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// DiskOf is the disk that a pool is on.
func (p Programs) DiskOf(pool string) string {
	p.T.Helper()
	for line := range strings.Lines(p.Run("storage", "list", "-H", "--columns", "pool,name")) {
		if disk, ok := strings.CutPrefix(strings.TrimSpace(line), pool+"\t"); ok {
			return disk
		}
	}
	p.T.Fatalf("pool %s is on no disk", pool)
	return ""
}

// LedgerNames are the names of the ledger's copies.
func (s *Operator) LedgerNames() (names []string) {
	s.T.Helper()
	const pools = "/pool/int"
	below, err := s.Host().Files().ReadDir(pools)
	if err != nil {
		s.T.Fatal(err)
	}
	for _, pool := range below {
		names = append(names, pools+"/"+pool.Name+"/config/sledctl/ledger.jsonl")
	}
	return names
}

// RemoveSled removes the directory of a sled whose processes may still write.
func RemoveSled(t *testing.T, dir string) {
	for try := 0; os.RemoveAll(dir) != nil; try++ {
		if try == 1000 {
			t.Error(os.RemoveAll(dir))
			return
		}
	}
}

// OwnNetworkOf also tells the network.
func OwnNetworkOf(t *testing.T) (string, netip.Prefix) {
	t.Helper()
	network, release, err := simtest.Underlay()
	if errors.Is(err, syscall.EADDRNOTAVAIL) {
		t.Skip("this system has no further loopback addresses: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	config := commands.SimulatedConfig()
	own := strings.NewReplacer("127.77.0.1/16", network.Addr().Next().String()+"/24", "127.77.0.0/16", network.String()).Replace(config)
	if strings.Contains(own, "127.77.0.") || own == config {
		t.Fatalf("the configuration names other addresses:\n%s", config)
	}
	return own, network
}
