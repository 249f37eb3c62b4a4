package sim

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world"
)

// standInSled is a sled with stand-in commands, for scripts of the real shell.
type standInSled struct {
	door
	dir string
	bin string
}

func newShell(t *testing.T) standInSled {
	t.Helper()
	d := doors(t, Options{})["stand-in"](t)
	dir := d.sled.World().Dir()
	return standInSled{d, dir, filepath.Join(dir, world.BinDir)}
}

// sh runs a script to its end.
func (s standInSled) sh(t *testing.T, script string) (stdout, stderr string, exit int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", script)
	cmd.Env = append(os.Environ(), "PATH="+s.bin+":"+os.Getenv("PATH"))
	var out, err bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &err
	if rerr := cmd.Run(); rerr != nil {
		if _, ended := errors.AsType[*exec.ExitError](rerr); !ended {
			t.Fatal(rerr)
		}
	}
	return out.String(), err.String(), cmd.ProcessState.ExitCode()
}

func (s standInSled) latency(t *testing.T, word string) {
	t.Helper()
	if err := s.sled.World().Update(t.Context(), func(tx *world.Tx) error { tx.State.Latency = word; return nil }); err != nil {
		t.Fatal(err)
	}
}

func TestAScriptUsesTheStandIns(t *testing.T) {
	s := newShell(t)
	out, errOut, exit := s.sh(t, `
		zfs create rpool/a && zfs list -H -o name rpool/a
		printf 'create -b\nset zonepath=/zone/x\nset brand=sparse\n' | while read line; do echo "$line"; zonename; done | tail -1
		zfs list rpool/none`)
	if out != "rpool/a\nglobal\n" || errOut != "cannot open 'rpool/none': dataset does not exist\n" || exit != 1 {
		t.Errorf("exit %d\n%s%s", exit, out, errOut)
	}
}

func TestAStandInWithoutASledSaysSo(t *testing.T) {
	var out, errOut bytes.Buffer
	for _, env := range [][]string{nil, {DirVariable + "=" + t.TempDir()}} {
		errOut.Reset()
		exit := StandIn(t.Context(), "zfs", []string{"list"}, nil, &out, &errOut, env)
		if exit != 1 || !strings.HasPrefix(errOut.String(), "zfs: ") {
			t.Errorf("%v: exit %d, %q", env, exit, errOut.String())
		}
	}
	if out.Len() != 0 {
		t.Errorf("printed %q", out.String())
	}
}

// In a script that only asks for the address, nobody else lets time pass.
func TestAServerComesUpWithoutFurtherCommands(t *testing.T) {
	s := newShell(t)
	s.up(t)
	s.latency(t, "helios2021")
	s.run(t, "svcadm", "-z", "vm1", "enable", "-t", vmService)
	s.await(t, "listens", s.dial)
	first := s.server(t)

	// What kills the process kills it on the sled too; svc.startd starts another.
	if err := syscall.Kill(first.OSPID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.await(t, "silent", s.dial)
	s.await(t, "another", func() string {
		s.run(t, "zonename") // the sled is only looked at by its commands
		if now := s.server(t); now != nil && now.PID != first.PID {
			return "another"
		}
		return ""
	})
	s.await(t, "listens", s.dial)

	remove(t, s.dir)
	s.await(t, "silent", s.dial)
}

func (s standInSled) dial() string {
	conn, err := net.Dial("tcp", s.address+":12400")
	if err != nil {
		return "silent"
	}
	_ = conn.Close()
	return "listens"
}

func (s standInSled) server(t *testing.T) (found *world.Process) {
	t.Helper()
	if err := s.sled.World().View(t.Context(), func(tx *world.Tx) error {
		if len(tx.State.Processes) > 0 {
			p := *tx.State.Processes[0]
			found = &p
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return found
}

// up has the zone's server come up.
func (s standInSled) up(t *testing.T) {
	t.Helper()
	s.makeBase(t)
	s.makeZone(t)
	s.in(t, "vm1", "ipadm", "create-addr", "-t", "-T", "static", "-a", s.address+"/24", "vnic0/v4")
	s.awaitService(t, vmService, "disabled")
}

const vmService = "svc:/site/vm:default"

// Somebody who is no part of the sled must not be taken for its server.
func TestAnAddressThatIsTakenIsTheServersError(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	s := newShell(t)
	s.up(t)
	other, err := net.Listen("tcp", s.address+":12400")
	if err != nil {
		t.Fatal(err)
	}
	s.run(t, "svcadm", "-z", "vm1", "enable", "-t", vmService)
	s.awaitService(t, vmService, "maintenance")
	if got := s.in(t, "vm1", "cat", "/var/svc/log/site-vm:default.log"); !strings.Contains(got, s.address+":12400: bind: address already in use") {
		t.Errorf("its log: %s", got)
	}
	_ = other.Close()
	s.run(t, "svcadm", "-z", "vm1", "clear", vmService)
	s.awaitService(t, vmService, "online")
	s.await(t, "listens", s.dial)
}

func TestWhoeverEndsAProcessEndsItsServer(t *testing.T) {
	s := newShell(t)
	s.up(t)
	s.run(t, "svcadm", "-z", "vm1", "enable", "-t", vmService)
	s.await(t, "listens", s.dial)
	first := s.server(t)
	s.run(t, "svcadm", "-z", "vm1", "restart", vmService)
	s.await(t, "listens", s.dial)
	if now := s.server(t); now == nil || now.OSPID == first.OSPID {
		t.Errorf("restarted: %+v, before %+v", now, first)
	}
	// Through another door, too.
	if err := s.sled.Reboot(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.await(t, "silent", s.dial)
	if left, err := filepath.Glob(filepath.Join(s.dir, world.LocksDir, ".server-*")); err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
}

// The lock of a process that boots a zone is not the zone's: zoneadmd closes all that
// it inherits.
func TestAServerKeepsNoLockOfItsCaller(t *testing.T) {
	s := newShell(t)
	s.up(t)
	files := s.host.Files()
	l, err := files.Lock(t.Context(), "/var/run/x", host.TryExclusive)
	if err != nil {
		t.Fatal(err)
	}
	enable := host.Command{Program: "svcadm", Args: []string{"-z", "vm1", "enable", "-t", vmService}}
	if _, err := s.host.Run(host.WithLock(t.Context(), l), enable); err != nil {
		t.Fatal(err)
	}
	s.await(t, "listens", s.dial)
	if err := l.Unlock(); err != nil {
		t.Fatal(err)
	}
	if l, err = files.Lock(t.Context(), "/var/run/x", host.TryExclusive); err != nil {
		t.Errorf("the server holds the lock: %v", err)
	} else {
		_ = l.Unlock()
	}
}

// A zoneadm that is killed leaves its zone incomplete and the lock free
// (install_func and clone_func in usr/src/cmd/zoneadm/zoneadm.c).
func TestAZoneadmThatIsKilledLeavesAnIncompleteZone(t *testing.T) {
	s := newShell(t)
	s.makeBase(t)
	s.run(t, "zonecfg", "-z", "vm1", "create -b; set brand=sparse; set zonepath=/zone/vm1; set ip-type=exclusive")
	s.latency(t, "helios2021")
	cmd := exec.Command(filepath.Join(s.bin, "zoneadm"), "-z", "vm1", "clone", "base")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.await(t, "incomplete", func() string { return strings.Split(s.run(t, "zoneadm", "-z", "vm1", "list", "-p"), ":")[2] })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	s.latency(t, "none")
	if got := s.try(t, "", "zoneadm", "-z", "vm1", "boot"); got.Exit == 0 {
		t.Error("an incomplete zone booted")
	}
	s.run(t, "zoneadm", "-z", "vm1", "uninstall", "-F")
	s.run(t, "zonecfg", "-z", "vm1", "delete", "-F")
}

func TestAFaultKillsTheScriptThatCalled(t *testing.T) {
	for name, done := range map[string]bool{world.FaultKill: false, world.FaultKillAfter: true, world.FaultKillDuring: true} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t)
			arm(t, s.sled, world.Fault{Name: name, Match: "zfs create"})
			out, _, exit := s.sh(t, "echo before; zfs create rpool/x; echo after; exit 0")
			if out != "before\n" || exit != -1 {
				t.Errorf("exit %d, printed %q", exit, out)
			}
			want := strconv.FormatBool(done)
			s.await(t, want, func() string { return strconv.FormatBool(s.try(t, "", "zfs", "list", "-H", "rpool/x").Exit == 0) })
		})
	}
}
