package commands_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/sledtest"
)

// The exit codes are a contract with scripts.

// ending is a way for a command line to end.
type ending struct {
	name  string
	exit  int
	bare  bool                       // on a sled that is not prepared
	ready func(s *sledtest.Operator) // else what leads to it, on a sled on which web1 runs
	line  string
	says  string // a part of standard error
}

func endings() []ending {
	fault := func(match string, times int) func(*sledtest.Operator) {
		return func(s *sledtest.Operator) {
			s.Arm(world.Fault{Name: world.FaultFail, Match: match, Times: times, Exit: 1, Text: "the injected failure"})
		}
	}
	return []ending{
		{name: "done", line: "instance get web1"},
		{name: "nothing to do", line: "instance ensure web1"},
		{name: "deleted already", line: "instance delete web9"},
		{name: "undone", exit: 1, ready: fault("zoneadm clone", 1), line: "instance ensure web2", says: "left on the host: nothing"},
		{name: "usage", exit: 2, line: "instance ensure web2 --cpus many", says: "--cpus"},
		{name: "no such word", exit: 2, line: "instance ensrue web2", says: "did you mean: sledctl instance ensure"},
		{name: "half way", exit: 3, ready: fault("zoneadm halt", 0), line: "instance delete web1", says: "left on the host: zone propolis_instance_"},
		{name: "not undone", exit: 3, ready: func(s *sledtest.Operator) { fault("zoneadm clone", 0)(s); fault("zfs destroy", 0)(s) }, line: "instance ensure web2", says: "left on the host: dataset "},
		{name: "not found", exit: 4, line: "instance get web9", says: `no instance "web9"`},
		{name: "must exist", exit: 4, line: "instance delete web9 --must-exist"},
		{name: "no such link", exit: 4, line: "instance ensure web2 --nic over=net9", says: "want a link of this sled"},
		{name: "exists and differs", exit: 5, line: "instance ensure web1 --cpus 8", says: "--recreate"},
		{name: "MAC in use", exit: 5, line: "instance ensure web2 --nic over=net0,mac=02:08:20:11:22:33", says: "in use by instance"},
		{name: "locked", exit: 6, ready: lockWeb1, line: "instance stop web1", says: "web1 is being worked on by another process (pid 4711, instance migrate) for 0s"},
		{name: "deadline", exit: 7, line: "instance ensure web2 --address dhcp --timeout 30s", says: "deadline of 30s passed"},
		{name: "addrconf without a router", exit: 7, line: "instance ensure web2 --address addrconf", says: "no router has told a prefix"},
		{name: "needs bootstrap", exit: 8, bare: true, line: "instance ensure web2", says: "to prepare the sled, run: sledctl bootstrap"},
		{name: "foreign", exit: 8, ready: func(s *sledtest.Operator) { s.Command("dladm create-vnic -l net0 db0") }, line: "vnic delete db0", says: "not sledctl's own"},
		{name: "a bootrom that ends Propolis", exit: 8, ready: func(s *sledtest.Operator) { s.WriteFile("/opt/oxide/propolis-server/blob/OVMF_CODE.fd", "x") }, line: "instance ensure web2", says: "is 1 bytes"},
		{name: "a copy is missing", exit: 9, ready: func(s *sledtest.Operator) { s.RemoveLedger(1) }, line: "instance stop web1", says: "--degraded"},
		{name: "all copies are missing", exit: 9, ready: func(s *sledtest.Operator) { s.RemoveLedger(0); s.RemoveLedger(1) }, line: "instance list", says: "no copy of the ledger"},
		{name: "the copies are broken", exit: 9, ready: spoilLedger, line: "instance list"},
		{name: "differences", exit: 10, line: "instance stop web1 --dry-run --detailed-exitcode"},
		{name: "no differences", exit: 0, line: "instance ensure web1 --dry-run --detailed-exitcode"},
	}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for at, e := range endings() {
		t.Run(e.name, func(t *testing.T) {
			if testing.Short() && at%4 != 0 {
				t.Skip(unraced)
			}
			synctest.Test(t, func(t *testing.T) {
				s := sledtest.New(t, sim.Options{}, "")
				if !e.bare {
					s = running(t)
				}
				if e.ready != nil {
					e.ready(s)
				}
				a := s.Try(e.line)
				if a.Exit != e.exit || !strings.Contains(a.Errs, e.says) {
					t.Errorf("sledctl %s: exit %d, want %d and %q: %s", e.line, a.Exit, e.exit, e.says, a.Errs)
				}
				if hinted := strings.Contains(a.Errs, "sledctl: hint: "); hinted != (a.Exit != 0 && a.Exit != 10) {
					t.Errorf("sledctl %s: exit %d, with a hint: %v: %s", e.line, a.Exit, hinted, a.Errs)
				}
			})
		})
	}
}

// running is a sled with two copies of the ledger, on which web1 runs.
func running(t *testing.T) *sledtest.Operator {
	s := sledtest.New(t, sim.Options{Seed: 1, M2: 2, U2: 1}, "")
	s.Run("bootstrap")
	s.Run("instance ensure web1 --nic over=net0,mac=02:08:20:11:22:33")
	return s
}

// lockWeb1 lets another process work on web1.
func lockWeb1(s *sledtest.Operator) {
	name := operation.LockName(sledtest.RunDir, "instance/"+s.Value("instance get web1 -H --columns id"))
	l, err := s.Host().Files().Lock(s.T.Context(), name, host.TryExclusive)
	if err == nil {
		err = l.Write([]byte(`{"pid":4711,"verb":"instance migrate","since":"2026-01-01T00:00:00Z"}`))
	}
	if err != nil {
		s.T.Fatal(err)
	}
}

// spoilLedger changes what was decided, in all copies.
func spoilLedger(s *sledtest.Operator) {
	for _, name := range s.LedgerNames() {
		data, err := host.ReadFile(s.Host().Files(), name)
		if err != nil {
			s.T.Fatal(err)
		}
		s.WriteFile(name, strings.Replace(string(data), `"cpus":2`, `"cpus":3`, 1))
	}
}

// interrupting is a host on which the operator presses ^C when the first
// command of a kind runs.
type interrupting struct {
	host.Host
	program   string
	interrupt context.CancelFunc
}

func (i interrupting) Run(ctx context.Context, c host.Command) (host.Result, error) {
	if c.Program == i.program && !c.ReadOnly {
		i.interrupt()
	}
	return i.Host.Run(ctx, c)
}

// What is interrupted ends at the next step: undone it is 130; half way it is
// 3, which says that running it again is worth it.
func TestInterruptedIs130UnlessSomethingIsLeft(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]int{"instance ensure web2": 130, "instance delete web1": 3} {
		synctest.Test(t, func(t *testing.T) {
			s := running(t)
			before := s.Comparable()
			ctx, interrupt := context.WithCancel(t.Context())
			a := s.On(ctx, interrupting{s.Host(), "zoneadm", interrupt}, line)
			if a.Exit != want {
				t.Errorf("sledctl %s: exit %d, want %d: %s", line, a.Exit, want, a.Errs)
			}
			if want == 130 {
				s.Same(before, "after "+line+" was interrupted")
			}
			s.Run(line)
		})
	}
}
