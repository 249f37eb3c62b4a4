package host_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/hosttest/expect"
)

// sled is a directory whose bin holds stand-in commands.
type sled struct {
	dir  string
	host *host.Illumos
}

func newSled(t *testing.T) sled {
	s := sled{dir: t.TempDir()}
	expect.OK(t, os.MkdirAll(filepath.Join(s.dir, "bin"), 0o755))
	s.host = host.NewIllumos(s.options())
	return s
}

func (s sled) options() host.IllumosOptions {
	return host.IllumosOptions{
		CommandPath: []string{filepath.Join(s.dir, "nothing"), filepath.Join(s.dir, "bin")},
		Root:        s.dir,
		RunDir:      "/run",
		Environment: []string{"SLEDCTL_PASSED", "SLEDCTL_UNSET", "_ZONEADM_LOCK_HELD"},
		Privileged:  func() error { return nil },
	}
}

// command makes a stand-in of a shell script.
func (s sled) command(t *testing.T, name, script string) {
	t.Helper()
	expect.OK(t, os.WriteFile(filepath.Join(s.dir, "bin", name), []byte("#!/bin/sh\n"+script), 0o755))
}

// pipe makes a named pipe in the sled's directory: the way to keep a command
// waiting without a clock.
func (s sled) pipe(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(s.dir, name)
	if out, err := exec.Command("mkfifo", path).CombinedOutput(); err != nil {
		t.Fatalf("mkfifo: %v: %s", err, out)
	}
	return path
}

// outputs lists the files of running commands.
func (s sled) outputs(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(s.dir, "run", "output"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	expect.OK(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// both runs a test for a query and for a command that changes something.
func both(t *testing.T, test func(t *testing.T, s sled, readOnly bool)) {
	for name, readOnly := range map[string]bool{"query": true, "change": false} {
		t.Run(name, func(t *testing.T) { test(t, newSled(t), readOnly) })
	}
}

func TestRunGivesExitAndStreams(t *testing.T) {
	both(t, func(t *testing.T, s sled, readOnly bool) {
		s.command(t, "talk", `echo "out $*"; echo "err" >&2; /bin/cat; exit 3`)
		got, err := s.host.Run(t.Context(), host.Command{
			Program: "talk", Args: []string{"a b", "$HOME", "*"}, Stdin: []byte("in"), ReadOnly: readOnly,
		})
		expect.OK(t, err)
		want := host.Result{Exit: 3, Stdout: []byte("out a b $HOME *\nin"), Stderr: []byte("err\n")}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if left := s.outputs(t); len(left) > 0 {
			t.Errorf("output files left: %v", left)
		}
	})
}

func TestRunWithoutStdinReadsNothing(t *testing.T) {
	both(t, func(t *testing.T, s sled, readOnly bool) {
		s.command(t, "read", "/bin/cat")
		got, err := s.host.Run(t.Context(), host.Command{Program: "read", ReadOnly: readOnly})
		expect.OK(t, err)
		if len(got.Stdout) != 0 || got.Exit != 0 {
			t.Errorf("got %+v", got)
		}
	})
}

func TestRunEnvironmentIsClean(t *testing.T) {
	t.Setenv("SLEDCTL_PASSED", "passed")
	t.Setenv("SECRET", "x")
	t.Setenv("_ZONEADM_LOCK_HELD", "1")
	both(t, func(t *testing.T, s sled, readOnly bool) {
		s.command(t, "env", "/usr/bin/env")
		got, err := s.host.Run(t.Context(), host.Command{
			Program: "env", Env: []string{"OWN=1", "_ZONEADM_LOCK_HELD=1"}, ReadOnly: readOnly,
		})
		expect.OK(t, err)
		lines := strings.Fields(string(got.Stdout))
		lines = slices.DeleteFunc(lines, func(l string) bool { // the shell's own
			return strings.HasPrefix(l, "PWD=") || strings.HasPrefix(l, "_=") || strings.HasPrefix(l, "SHLVL=")
		})
		slices.Sort(lines)
		want := []string{
			"LC_ALL=C", "OWN=1", "PATH=" + strings.Join(s.options().CommandPath, ":"), "SLEDCTL_PASSED=passed",
		}
		if diff := cmp.Diff(want, lines); diff != "" {
			t.Error(diff)
		}
	})
}

func TestRunNamesAMissingCommand(t *testing.T) {
	s := newSled(t)
	_, err := s.host.Run(t.Context(), host.Command{Program: "zoneadm"})
	if !errors.Is(err, host.ErrNoCommand) || !strings.Contains(err.Error(), "zoneadm") || !strings.Contains(err.Error(), s.dir+"/bin") {
		t.Errorf("got %v", err)
	}
	expect.OK(t, os.WriteFile(filepath.Join(s.dir, "bin", "zoneadm"), nil, 0o644))
	if _, err := s.host.Run(t.Context(), host.Command{Program: "zoneadm"}); !errors.Is(err, host.ErrNoCommand) {
		t.Errorf("a file that cannot be executed: %v", err)
	}
	expect.OK(t, os.Remove(filepath.Join(s.dir, "bin", "zoneadm")))
	s.command(t, "zoneadm", "exit 0")
	if _, err := s.host.Run(t.Context(), host.Command{Program: "zoneadm"}); err != nil {
		t.Errorf("once it is there: %v", err)
	}
}

func TestRunRefusesWhatIsNoCommand(t *testing.T) {
	s := newSled(t)
	for name, c := range map[string]host.Command{
		"a path":               {Program: "/bin/sh"},
		"nothing":              {},
		"input in a zone":      {Program: "x", Zone: "z", Stdin: []byte{}},
		"a variable alone":     {Program: "x", Env: []string{"X"}},
		"a nameless variable":  {Program: "x", Env: []string{"=x"}},
		"a zero byte":          {Program: "x", Args: []string{"a\x00b"}},
		"a zero byte variable": {Program: "x", Env: []string{"A=\x00"}},
	} {
		if _, err := s.host.Run(t.Context(), c); err == nil || errors.Is(err, host.ErrNoCommand) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRunChecksPrivilegesForChangesOnly(t *testing.T) {
	s := newSled(t)
	s.command(t, "act", `echo did >> "$0.log"`)
	o := s.options()
	o.Privileged = func() error { return fmt.Errorf("user id 100: %w", host.ErrPrivileges) }
	h := host.NewIllumos(o)
	if _, err := h.Run(t.Context(), host.Command{Program: "act"}); !errors.Is(err, host.ErrPrivileges) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(s.dir, "bin", "act.log")); err == nil {
		t.Error("the command ran")
	}
	_, err := h.Run(t.Context(), host.Command{Program: "act", ReadOnly: true})
	expect.OK(t, err)
}

func TestRunDoesNotStartAfterItsContext(t *testing.T) {
	both(t, func(t *testing.T, s sled, readOnly bool) {
		s.command(t, "act", `echo did > "$0.log"`)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.host.Run(ctx, host.Command{Program: "act", ReadOnly: readOnly}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if _, err := os.Stat(filepath.Join(s.dir, "bin", "act.log")); err == nil {
			t.Error("the command ran")
		}
	})
}

func TestRunReportsASignalAsAShellDoes(t *testing.T) {
	both(t, func(t *testing.T, s sled, readOnly bool) {
		s.command(t, "die", "kill -TERM $$")
		got, err := s.host.Run(t.Context(), host.Command{Program: "die", ReadOnly: readOnly})
		expect.OK(t, err)
		if got.Exit != 128+int(syscall.SIGTERM) {
			t.Errorf("exit %d", got.Exit)
		}
	})
}

func TestRunRefusesEndlessOutput(t *testing.T) {
	s := newSled(t)
	s.command(t, "yes", "while :; do echo 0123456789012345678901234567890123456789012345678901234567890123456789 >&2; done")
	_, err := s.host.Run(t.Context(), host.Command{Program: "yes", ReadOnly: true})
	if err == nil || !strings.Contains(err.Error(), "more than 1 MiB on stderr") {
		t.Errorf("got %v", err)
	}
	s.command(t, "much", `/usr/bin/head -c 2000000 /dev/zero >&2`)
	_, err = s.host.Run(t.Context(), host.Command{Program: "much"})
	if err == nil || !strings.Contains(err.Error(), "more than 1 MiB on stderr") {
		t.Errorf("a change: %v", err)
	}
}

func TestQueryIsKilledAtItsDeadline(t *testing.T) {
	s := newSled(t)
	started, forever := s.pipe(t, "started"), s.pipe(t, "forever")
	// The child of its own must go too, or it would hold our pipes.
	s.command(t, "look", fmt.Sprintf("(echo child > %s; read x < %s); echo never", started, forever))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = os.ReadFile(started)
		cancel()
	}()
	_, err := s.host.Run(ctx, host.Command{Program: "look", ReadOnly: true})
	if !errors.Is(err, context.Canceled) || errors.Is(err, host.ErrStillRunning) {
		t.Errorf("got %v", err)
	}
	// No reader is left on the pipe: opening it to write does not succeed.
	if _, err := os.OpenFile(forever, os.O_WRONLY|syscall.O_NONBLOCK, 0); !errors.Is(err, syscall.ENXIO) {
		t.Errorf("a child lives on: %v", err)
	}
}

func TestChangeIsNeverKilled(t *testing.T) {
	s := newSled(t)
	started, proceed := s.pipe(t, "started"), s.pipe(t, "proceed")
	done := filepath.Join(s.dir, "done")
	s.command(t, "zoneadm", fmt.Sprintf("echo > %s; read x < %s; echo working; echo $x > %s", started, proceed, done))
	lock, err := s.host.Files().Lock(t.Context(), "/lock", host.LockExclusive)
	expect.OK(t, err)

	ctx, cancel := context.WithCancel(host.WithLock(t.Context(), lock))
	go func() {
		_, _ = os.ReadFile(started)
		cancel()
	}()
	_, err = s.host.Run(ctx, host.Command{Program: "zoneadm", Args: []string{"-z", "web1", "halt"}})
	if !errors.Is(err, host.ErrStillRunning) || !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	still, _ := errors.AsType[*host.StillRunningError](err)
	if still == nil || !strings.Contains(err.Error(), fmt.Sprint(still.PID)) || !strings.Contains(err.Error(), "zoneadm -z web1 halt") {
		t.Fatalf("%v does not say what runs", err)
	}
	if pgid, err := unix.Getpgid(still.PID); err != nil || pgid != still.PID {
		t.Errorf("process %d is in group %d (%v), want one of its own", still.PID, pgid, err)
	}

	expect.OK(t, lock.Unlock())
	_, err = s.host.Files().Lock(t.Context(), "/lock", host.TryExclusive)
	expect.Fails(t, err, host.ErrLocked)

	expect.OK(t, os.WriteFile(proceed, []byte("go\n"), 0))
	lock, err = s.host.Files().Lock(t.Context(), "/lock", host.LockExclusive)
	expect.OK(t, err)
	expect.OK(t, lock.Unlock())
	if data, err := os.ReadFile(done); err != nil || string(data) != "go\n" {
		t.Errorf("the command did not finish: %q, %v", data, err)
	}
}

// TestMain is also the sledctl that gets killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("SLEDCTL_TEST_VICTIM"); dir != "" {
		victim(dir)
		return
	}
	os.Exit(m.Run())
}

func victim(dir string) {
	s := sled{dir: dir}
	h := host.NewIllumos(s.options())
	lock, err := h.Files().Lock(context.Background(), "/lock", host.LockExclusive)
	if err != nil {
		panic(err)
	}
	_, err = h.Run(host.WithLock(context.Background(), lock), host.Command{Program: "zoneadm", Stdin: []byte("input\n")})
	panic(fmt.Sprint("not killed: ", err))
}

func TestChangeOutlivesItsKilledParentWithTheLock(t *testing.T) {
	s := newSled(t)
	started, proceed := s.pipe(t, "started"), s.pipe(t, "proceed")
	done := filepath.Join(s.dir, "done")
	s.command(t, "zoneadm", fmt.Sprintf(
		"echo > %s; read x < %s; echo out; echo err >&2; read in; echo $x $in > %s; trap '' PIPE", started, proceed, done))

	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), "SLEDCTL_TEST_VICTIM="+s.dir)
	expect.OK(t, parent.Start())
	_, err := os.ReadFile(started)
	expect.OK(t, err)
	expect.OK(t, parent.Process.Kill())
	_ = parent.Wait()

	_, err = s.host.Files().Lock(t.Context(), "/lock", host.TryExclusive)
	expect.Fails(t, err, host.ErrLocked)
	if n := len(s.outputs(t)); n != 3 {
		t.Errorf("%d output files, want 3", n)
	}
	s.command(t, "other", "")
	_, err = s.host.Run(t.Context(), host.Command{Program: "other"})
	expect.OK(t, err)
	if n := len(s.outputs(t)); n != 3 {
		t.Errorf("%d output files of the living command after a sweep, want 3", n)
	}

	expect.OK(t, os.WriteFile(proceed, []byte("go\n"), 0))
	lock, err := s.host.Files().Lock(t.Context(), "/lock", host.LockExclusive)
	expect.OK(t, err)
	expect.OK(t, lock.Unlock())
	if data, err := os.ReadFile(done); err != nil || string(data) != "go input\n" {
		t.Errorf("the command did not finish: %q, %v", data, err)
	}
	next := host.NewIllumos(s.options())
	_, err = next.Run(t.Context(), host.Command{Program: "other"})
	expect.OK(t, err)
	if left := s.outputs(t); len(left) != 0 {
		t.Errorf("the next run did not sweep %v", left)
	}
}

func TestRunInAZone(t *testing.T) {
	both(t, func(t *testing.T, s sled, readOnly bool) {
		// A zlogin that joins its arguments as the real one does.
		s.command(t, "zlogin", `test "$1" = -n || exit 9; test "$2" = web1 || { echo "no zone" >&2; exit 1; }; shift 2; PATH=/usr/bin:/bin /bin/sh -c "$*"`)
		run := func(zone string, c host.Command) host.Result {
			c.Zone, c.ReadOnly = zone, readOnly
			got, err := s.host.Run(t.Context(), c)
			expect.OK(t, err)
			return got
		}
		got := run("web1", host.Command{Program: "printf", Args: []string{"%s|", "it's", "$HOME", "a\nb", ""}})
		if diff := cmp.Diff(host.Result{Stdout: []byte("it's|$HOME|a\nb||")}, got); diff != "" {
			t.Error(diff)
		}
		got = run("web1", host.Command{Program: "sh", Args: []string{"-c", `echo "$X"; exit 7`}, Env: []string{"X=a'b"}})
		if got.Exit != 7 || string(got.Stdout) != "a'b\n" || got.Unknown {
			t.Errorf("got %+v", got)
		}
		got = run("web1", host.Command{Program: "kill", Args: []string{"-9", "$$"}})
		if got.Exit == 0 {
			t.Errorf("a failing kill: %+v", got)
		}
		got = run("web2", host.Command{Program: "true"})
		if !got.Unknown || string(got.Stderr) != "no zone\n" {
			t.Errorf("zlogin itself failed: %+v", got)
		}
	})
}

func TestDialReachesAServer(t *testing.T) {
	s := newSled(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	listener := listen(t)
	go func() {
		c, err := listener.Accept()
		if err == nil {
			_, _ = io.WriteString(c, "hello\n")
			c.Close()
		}
	}()
	c, err := s.host.Dial(ctx, "tcp", listener.Addr().String())
	expect.OK(t, err)
	defer c.Close()
	if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || line != "hello\n" {
		t.Errorf("got %q, %v", line, err)
	}
	address := listener.Addr().String()
	listener.Close()
	if _, err := s.host.Dial(ctx, "tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("nobody listens: %v", err)
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	expect.OK(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

func TestLookupNamesAllThatIsMissing(t *testing.T) {
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "zfs"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "notes"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	h := host.NewIllumos(host.IllumosOptions{CommandPath: []string{bin, "/nowhere"}})
	// Behind all decorators.
	for _, h := range []host.Host{h, host.ReadOnly(h), host.Trace(h, func(host.Event) {}), host.Crash(h, 1, host.CrashBefore)} {
		if err := host.Lookup(h, "zfs"); err != nil {
			t.Errorf("%T: zfs: %v", h, err)
		}
		err := host.Lookup(h, "zonecfg", "zfs", "notes")
		want := "zonecfg, notes: command not found on the command path (" + bin + ":/nowhere)"
		if !errors.Is(err, host.ErrNoCommand) || err.Error() != want {
			t.Errorf("%T: %v, want %s", h, err, want)
		}
	}
}
