package commands_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/commands"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/test/sledtest"
)

// In a pipe a watch prints the line for monitoring whenever it changes, and only then.
func TestAWatchPrintsWhatChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sledtest.New(t, sledtest.Small(), "")
		s.Run("bootstrap")
		s.Run("instance ensure web1")
		change := func(do func(tx *world.Tx)) {
			if err := s.World().Update(t.Context(), func(tx *world.Tx) error { do(tx); return nil }); err != nil {
				t.Error(err)
			}
		}
		go func() {
			time.Sleep(4500 * time.Millisecond)
			change(func(tx *world.Tx) { zfs.LoseDisk(tx, "c11t0d0") })
			time.Sleep(4 * time.Second)
			change(func(tx *world.Tx) { zfs.InsertDisk(tx, "c11t0d0") })
		}()
		a := s.Try("status --watch --timeout 15s")
		var verdicts []string
		for line := range strings.Lines(a.Out) {
			verdicts = append(verdicts, strings.Join(strings.Fields(line)[1:3], " "))
		}
		if b := s.Try("status -o json --watch=1s --timeout 3s"); strings.Count(b.Out, "\n") != 1 || !strings.Contains(b.Out, `"verdict":"TROUBLE","problems":[{"code":"pool-unavail"`) {
			t.Errorf("as JSON: %s", b.Out)
		}
		want := "ATTENTION key-development, TROUBLE disk-absent, TROUBLE pool-unavail"
		if got := strings.Join(verdicts, ", "); got != want || a.Exit != 7 {
			t.Errorf("exit %d, %s: %s%s", a.Exit, got, a.Out, a.Errs)
		}
		// The command that it names, as it stands.
		_, next, _ := strings.Cut(s.Run("status -H --columns code,next"), "pool-unavail\t")
		typed, _, _ := strings.Cut(next, "\n")
		words := strings.Fields(typed)
		if r, err := s.Host().Run(t.Context(), host.Command{Program: words[0], Args: words[1:]}); err != nil || r.Exit != 0 {
			t.Fatalf("%s: %s, %v", typed, r.Stderr, err)
		}
		if a := s.Try("status --check"); a.Exit != 10 || !strings.HasPrefix(a.Out, "sled ATTENTION key-development |") {
			t.Errorf("behind %s: exit %d: %s", typed, a.Exit, a.Out)
		}
	})
}

// On a terminal q and ^C leave a watch, and the terminal is as it was.
func TestAWatchIsLeftByAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sledtest.New(t, sledtest.Small(), "")
		s.Run("bootstrap")
		for _, key := range []string{"xq", "\x03"} {
			env, _, _ := commands.On(s.Host(), nil)
			streams, out, errs := terminal.Buffers(terminal.Pretended{Terminal: true, Width: 80, In: key, Environ: []string{"TERM=xterm", "NO_COLOR=1"}})
			*env.Streams = *streams
			exit := commands.Run(t.Context(), env, []string{"status", "--watch", "--timeout", "10s"})
			text := out.String()
			if exit != 0 || !strings.HasPrefix(text, "\x1b[?1049h\x1b[?25l\x1b[H") || !strings.HasSuffix(text, "\x1b[?25h\x1b[?1049l") || strings.Count(text, "LEDGER") != 1 {
				t.Errorf("%q: exit %d, %q %s", key, exit, text, errs)
			}
		}
		if a := s.Try("status --watch=-1s"); a.Exit != 2 {
			t.Errorf("exit %d: %s", a.Exit, a.Errs)
		}
	})
}

// A host command that does not answer makes a part of the sled unknown, after 5 s; the
// rest is shown. Who is at work is shown, and not waited for.
func TestAStatusDoesNotWaitForWhatIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sledtest.New(t, sledtest.Small(), "")
		s.Run("bootstrap")
		s.Run("instance ensure web1")
		release, err := operation.Hold(t.Context(), operation.Env{Host: s.Host(), RunDir: "/var/run/sledctl", PID: 4711}, "instance stop", record.Subject(strings.TrimSpace(s.Run("instance get web1 -H --columns id"))))
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		for command, shown := range map[string][]string{
			"zpool list":      {"UNKNOWN  look at pools: list pools: zpool did not answer within 5 s", "1 of 1 wanted are up", "1 of 1 copies", "s (pid 4711)"},
			"zoneadm list":    {"UNKNOWN  look at zones: list zones: zoneadm did not answer within 5 s", "0 of 1 wanted are up: 1 unknown", "u2 1 of 1", "POOLS  3 of 3 online"},
			"dladm show-link": {"UNKNOWN  look at links: ", "1 of 1 wanted are up", "POOLS  3 of 3 online"},
			"rsrvrctl":        {"1 of 1 wanted are up", "POOLS  3 of 3 online"},
		} {
			f := world.Fault{Name: world.FaultHang, Match: command}
			s.Arm(f)
			start := time.Now()
			a := s.Try("status -o table")
			for _, want := range shown {
				if !strings.Contains(a.Out, want) {
					t.Errorf("%s hangs: %q is not shown:\n%s", command, want, a.Out)
				}
			}
			if took := time.Since(start); took > 11*time.Second || a.Exit != 0 {
				t.Errorf("%s hangs: exit %d after %v: %s", command, a.Exit, took, a.Errs)
			}
			if err := s.World().Update(t.Context(), func(tx *world.Tx) error { tx.Disarm(f.Name, f.Match); return nil }); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Behind a new ledger the VMs of the old one run on, and status leads to their adoption.
// The zone of one that does not run is for reap, or is adopted as well.
func TestAStatusNamesWhatNoRecordHas(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := sledtest.New(t, sledtest.Small(), "")
		s.Run("bootstrap")
		s.Run("instance ensure web1")
		s.Run("instance ensure web2")
		zone := strings.TrimSpace(s.Run("instance get web2 -H --columns zone"))
		s.LoseLedger()
		if r, err := s.Host().Run(t.Context(), host.Command{Program: "zoneadm", Args: []string{"-z", zone, "halt"}}); err != nil || r.Exit != 0 {
			t.Fatalf("%s: %s, %v", zone, r.Stderr, err)
		}
		s.Run("bootstrap --new-ledger")
		line := func() string {
			line, _, _ := strings.Cut(s.Try("status --check").Out, " |")
			return line
		}
		if got := line(); got != "sled ATTENTION vm-unrecorded reap key-development" {
			t.Errorf("behind the loss: %s", got)
		}
		s.Run("instance adopt --all --dry-run")
		s.Run("instance adopt --all")
		if got := line(); got != "sled TROUBLE vm-absent key-development" {
			t.Errorf("adopted: %s", got)
		}
		s.Run("instance ensure web2")
		if got := line(); got != "sled ATTENTION key-development" {
			t.Errorf("ensured: %s", got)
		}
	})
}
