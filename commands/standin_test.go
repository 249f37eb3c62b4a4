package commands_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/sledtest"
)

// standIn is a sled behind the host of illumos: each of its commands is a
// process, and its Propolis servers listen really. A host lasts until the sled
// is rebooted.
func standIn(t *testing.T, o sim.Options, config string) (s *sledtest.Operator, newHost func() host.Host) {
	t.Helper()
	if testing.Short() {
		t.Skip("programs that run one after another")
	}
	dir := t.TempDir()
	inner, err := sim.Init(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { inner.Close(); sledtest.RemoveSled(t, dir) })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin, err := sim.LinkTools(dir, self)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(sim.DirVariable, dir)
	t.Setenv("GORACE", "atexit_sleep_ms=0") // a binary with the race detector otherwise sleeps a second when it ends
	s = &sledtest.Operator{Sled: inner, T: t}
	s.WriteFile("/etc/sledctl/config.toml", config)
	return s, func() host.Host {
		return host.NewIllumos(host.IllumosOptions{
			CommandPath: []string{bin, filepath.Join(bin, sim.CommonDir)}, Root: sim.Root(dir), Files: inner.Host().Files(), Environment: []string{sim.DirVariable, "GORACE"},
		})
	}
}

// ownNetwork is the configuration of a sled that shares its addresses with no
// other test.
func ownNetwork(t *testing.T) string {
	t.Helper()
	config, _ := sledtest.OwnNetworkOf(t)
	return config
}

// TestTheExecPath runs the same command lines on the simulated sled in this
// process and on the host of illumos with stand-in commands. They end alike,
// print the same, and leave the same sled.
func TestTheExecPath(t *testing.T) {
	config := ownNetwork(t)
	direct := sledtest.New(t, sledtest.Small(), config)
	real, newHost := standIn(t, sledtest.Small(), config)
	h := newHost()
	both := func(do func(*sledtest.Operator)) { do(direct); do(real) }

	for _, line := range []string{
		"instance ensure web1", // not prepared yet
		"bootstrap -o json",
		"bootstrap -H",
		"base list -o json",
		"instance ensure web1 --cpus 4 --memory 8G --nic over=net0 --dry-run --explain -o json",
		"instance ensure web1 --cpus 4 --memory 8G --nic over=net0 -o json",
		"instance ensure web1 -o json", // nothing to do
		"instance ensure db1 -o json",
		"instance list -o json",
		"instance get web1 -o json",
		"vnic list -o json",
		"zone list -o json",
		"propolis get --instance web1 -o json",
		"reap --dry-run -o json",
		"instance reboot web1 -o json",
		"instance stop web1 -o json",
		"instance list -o json",
		"vnic list -o json",
		"instance start web1 -o json",
		"vnic create --over net0 -o json",
		"FAULT zoneadm boot",
		"instance ensure web2 -o json", // taken back
		"instance list -o json",
		"FAULT svcadm enable",
		"instance ensure web2 --keep -o json", // left
		"instance list -o json",
		"reap --dry-run -o json",
		"instance ensure web2 -o json", // goes on
		"instance ensure web3 --pool tank -o json",
		"instance start nobody -o json",
		"instance ensure web1 --cpus 8 -o json",
		"history -o json",
		"REBOOT",
		"instance list -o json",
		"reap --dry-run -o json",
		"bootstrap -o json",
		"instance ensure web1 -o json",
		"instance delete web1 db1 web2",
		"reap -o json",
		"instance list -o json",
		"zone list -o json",
	} {
		switch word, rest, _ := strings.Cut(line, " "); word {
		case "FAULT":
			both(func(s *sledtest.Operator) {
				err := s.World().Update(t.Context(), func(tx *world.Tx) error {
					tx.Arm(world.Fault{Name: world.FaultFail, Match: rest, Times: 1, Text: "no"})
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
			})
			continue
		case "REBOOT":
			both(func(s *sledtest.Operator) {
				if err := s.Reboot(t.Context()); err != nil {
					t.Fatal(err)
				}
			})
			h = newHost()
			continue
		}
		both(func(s *sledtest.Operator) { s.Draws = repeatable(line) })
		want := direct.On(t.Context(), direct.Host(), line)
		got := real.On(t.Context(), h, line)
		if diff := cmp.Diff(timeless(want), timeless(got), cmp.AllowUnexported(sledtest.Answer{})); diff != "" {
			t.Errorf("sledctl %s (-simulated +stand-ins):\n%s", line, diff)
		}
		if diff := cmp.Diff(strings.Split(direct.Comparable(), "\n"), strings.Split(real.Comparable(), "\n")); diff != "" {
			t.Fatalf("the sled after sledctl %s (-simulated +stand-ins):\n%s", line, diff)
		}
	}
}

// timeless is an answer without what differs from run to run.
func timeless(a sledtest.Answer) sledtest.Answer {
	for _, r := range []struct{ pattern, with string }{
		{`\d{4}-?\d\d-?\d\dT[0-9:.]+Z`, "TIME"},
		{`"([0-9a-f]{16}|[0-9a-f]{32})"`, `"RANDOM"`}, // of the ledger, and of its last line
		{`("[a-z_]*(elapsed|duration)[a-z_]*":) ?[0-9.]+`, "$1 ELAPSED"},
	} {
		re := regexp.MustCompile(r.pattern)
		a.Out, a.Errs = re.ReplaceAllString(a.Out, r.with), re.ReplaceAllString(a.Errs, r.with)
	}
	return a
}

// TestNoServerIsLeft: a server ends with the instance, and with the sled. Its
// lock is free when its process has ended.
func TestNoServerIsLeft(t *testing.T) {
	s, newHost := standIn(t, sledtest.Small(), ownNetwork(t))
	run := func(line string) {
		t.Helper()
		if a := s.On(t.Context(), newHost(), line); a.Exit != 0 {
			t.Fatalf("sledctl %s: exit %d: %s", line, a.Exit, a.Errs)
		}
	}
	run("bootstrap")
	run("instance ensure web1")
	web1 := servers(s)
	run("instance ensure web2")
	run("instance ensure web3")
	all := servers(s)
	if len(web1) != 1 || len(all) != 3 {
		t.Fatalf("%d servers, then %d", len(web1), len(all))
	}
	run("instance delete web1")
	for name, l := range all {
		if web1[name] != nil {
			ended(t, name, l)
		} else if !held(t, l) {
			t.Errorf("%s has ended with another", name)
		}
	}
	run("instance stop web2")
	if left := servers(s); len(left) != 1 {
		t.Errorf("%d servers are left of one", len(left))
	}
	sledtest.RemoveSled(t, s.World().Dir())
	for name, l := range all {
		ended(t, name, l)
	}
}

// servers opens the locks of all servers.
func servers(s *sledtest.Operator) map[string]*os.File {
	s.T.Helper()
	names, err := filepath.Glob(filepath.Join(s.World().Dir(), world.LocksDir, ".server-*"))
	if err != nil {
		s.T.Fatal(err)
	}
	all := map[string]*os.File{}
	for _, name := range names {
		l, err := os.Open(name)
		if err != nil {
			s.T.Fatal(err)
		}
		s.T.Cleanup(func() { _ = l.Close() })
		if !held(s.T, l) {
			s.T.Errorf("%s: nobody is there", name)
		}
		all[filepath.Base(name)] = l
	}
	return all
}

func held(t testing.TB, l *os.File) bool {
	t.Helper()
	err := syscall.Flock(int(l.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		err = syscall.Flock(int(l.Fd()), syscall.LOCK_UN)
	}
	if err != nil && !errors.Is(err, syscall.EWOULDBLOCK) {
		t.Fatal(err)
	}
	return err != nil
}

// ended waits for the end of a server.
func ended(t *testing.T, name string, l *os.File) {
	t.Helper()
	free := make(chan error, 1)
	go func() { free <- syscall.Flock(int(l.Fd()), syscall.LOCK_EX) }()
	select {
	case err := <-free:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Errorf("%s is still there", name)
	}
}
