package commands_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sledctl/sledctl/test/sledtest"
)

// agentManifest is that of the agent's service.
const agentManifest = "sledctl-agent.xml"

func TestTheAgentsManifestIsWellFormed(t *testing.T) {
	data, m := readManifest(t, agentManifest)
	wellFormed(t, data)
	_, instances := readManifest(t, instancesManifest)
	needs := m.needs(t)
	for _, want := range []string{"svc:/system/filesystem/local:default", "svc:/system/zones:default", "svc:/" + instances.Service.Name + ":default"} {
		if !slices.Contains(needs, want) {
			t.Errorf("it does not depend on %s", want)
		}
	}
	if got, want := m.startd(t), map[string]string{"duration": "child", "ignore_error": "core,signal"}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for _, method := range m.Service.Methods {
		if strings.Contains(method.Exec, ":kill") {
			t.Errorf("%s signals the host commands, too: %s", method.Name, method.Exec)
		}
	}
}

// systemdUnit returns a unit's settings by section and name. A setting that occurs
// twice is an error: sledctl's unit has none.
func systemdUnit(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "docs", "systemd", "sledctl-agent.service"))
	if err != nil {
		t.Fatal(err)
	}
	settings, section := map[string]string{}, ""
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		line := lines.Text()
		name, value, setting := strings.Cut(line, "=")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]"):
			section = line
		case !setting || section == "" || name != strings.TrimSpace(name) || settings[section+name] != "":
			t.Errorf("%s: %q", section, line)
		default:
			settings[section+name] = value
		}
	}
	return settings
}

func TestTheSystemdUnitSaysWhatItMust(t *testing.T) {
	unit := systemdUnit(t)
	for name, want := range map[string]string{"[Service]Type": "notify", "[Service]KillMode": "process", "[Service]Restart": "on-failure", "[Install]WantedBy": "multi-user.target"} {
		if unit[name] != want {
			t.Errorf("%s=%s, want %s", name, unit[name], want)
		}
	}
	if unit["[Unit]Description"] == "" || !strings.HasPrefix(unit["[Service]Environment"], "SLEDCTL_HOST=sim:/") {
		t.Errorf("%v", unit)
	}
}

// What the units run is sledctl's own, with its own flags.
func TestTheUnitsRunAnAgent(t *testing.T) {
	_, m := readManifest(t, agentManifest)
	s := sledtest.New(t, sledtest.Small(), "")
	for where, line := range map[string]string{"SMF": m.method(t, "start"), "systemd": systemdUnit(t)["[Service]ExecStart"]} {
		program, line, _ := strings.Cut(line, " ")
		if filepath.Base(program) != "sledctl" || !strings.HasPrefix(line, "agent") {
			t.Errorf("%s runs %s %s", where, program, line)
		}
		if a := s.Try(line + " --help"); a.Exit != 0 || !strings.Contains(a.Out, "sledctl agent") {
			t.Errorf("%s runs sledctl %s: exit %d, %s", where, line, a.Exit, a.Errs)
		}
	}
}

// answers waits until an agent answers at a socket. Nobody listens there before
// the agent is up.
func answers(t *testing.T, socket string) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		reply, err := client.Get("http://sled/healthz")
		if err == nil {
			reply.Body.Close()
			if reply.StatusCode != http.StatusOK && reply.StatusCode != http.StatusNoContent {
				t.Errorf("it answers with %s", reply.Status)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// manager is where a service manager is told what an agent is at, as sd_notify(3)
// has it.
type manager struct {
	*net.UnixConn
	t *testing.T
}

func listenAsManager(t *testing.T, name string) manager {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram", Name: name})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return manager{conn, t}
}

// told is what it is told within some time; nothing is "".
func (m manager) told(within time.Duration) string {
	m.t.Helper()
	if err := m.SetReadDeadline(time.Now().Add(within)); err != nil {
		m.t.Fatal(err)
	}
	data := make([]byte, 100)
	n, err := m.Read(data)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		m.t.Fatal(err)
	}
	return string(data[:n])
}

// An agent that listens, and cannot answer yet as the ledger is being read
// by somebody, does not say that it is ready.
func TestTheAgentTellsTheServiceManager(t *testing.T) {
	if sledtest.Quick() {
		t.Skip("starting processes takes seconds")
	}
	for name, at := range map[string]string{"in a directory": filepath.Join(t.TempDir(), "notify"), "in none": fmt.Sprintf("@sledctl-%d-%s", os.Getpid(), t.Name())} {
		t.Run(name, func(t *testing.T) {
			p := sledtest.Programs{T: t, Dir: filepath.Join(t.TempDir(), "sled")}
			p.Run("sim", "init", "--m2", "1", "--u2", "1")
			p.Run("bootstrap")
			m := listenAsManager(t, at)
			release := readingTheStateFile(t, p.Dir)
			socket := filepath.Join(t.TempDir(), "agent.sock")
			u := p.Unit("sledctl agent --listen unix:"+socket, "NOTIFY_SOCKET="+at)
			awaitListener(t, socket)
			if told := m.told(300 * time.Millisecond); told != "" {
				t.Errorf("before it answers it says %q", told)
			}
			release()
			if told := m.told(time.Minute); told != "READY=1" {
				t.Errorf("it says %q: %s", told, u.Log)
			}
			answers(t, socket)
			if err := u.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if told := m.told(time.Minute); told != "STOPPING=1" {
				t.Errorf("at its end it says %q", told)
			}
			u.Ends()
			if told := m.told(time.Millisecond); told != "" {
				t.Errorf("after its end it has said %q", told)
			}
		})
	}
}

// readingTheStateFile keeps everybody from writing to it, until released.
func readingTheStateFile(t *testing.T, dir string) (release func()) {
	t.Helper()
	lock, err := os.Open(filepath.Join(dir, "root", "var", "run", "sledctl", "ledger.lock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lock.Close() })
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_SH); err != nil {
		t.Fatal(err)
	}
	return func() { lock.Close() }
}

// awaitListener waits until somebody listens.
func awaitListener(t *testing.T, socket string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			conn.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// If the service manager cannot be notified, the agent logs a line, and answers.
func TestAnAgentWhoseServiceManagerIsGoneAnswers(t *testing.T) {
	p := sledtest.Programs{T: t, Dir: filepath.Join(t.TempDir(), "sled")}
	p.Run("sim", "init", "--m2", "1", "--u2", "1")
	p.Run("bootstrap")
	socket := filepath.Join(t.TempDir(), "agent.sock")
	u := p.Unit("sledctl agent --listen unix:"+socket, "NOTIFY_SOCKET="+filepath.Join(t.TempDir(), "gone"))
	answers(t, socket)
	_ = u.Cmd.Process.Signal(syscall.SIGTERM)
	u.Ends()
	if !strings.Contains(u.Log.String(), "the service manager was not told") {
		t.Errorf("%s", u.Log)
	}
}

// The methods of the agent's service start it and end it, and the VMs of the
// sled go on meanwhile. svcprop is as svc.startd fills it: restarter/start_pid is
// the process that it has made.
func TestTheAgentsServiceIsRestarted(t *testing.T) {
	_, m := readManifest(t, agentManifest)
	p := sledtest.Programs{T: t, Dir: filepath.Join(t.TempDir(), "sled")}
	p.Run("sim", "init", "--m2", "1", "--u2", "1")
	p.Run("bootstrap")
	p.Run("instance", "ensure", "web1")
	const about = "name,state,propolis_id"
	before := p.Run("instance", "list", "-H", "--columns", about)
	socket := filepath.Join(p.Dir, "root", "var", "run", "sledctl", "agent.sock")
	bin := t.TempDir()
	fmri := "svc:/" + m.Service.Name + ":default"
	stop := "PATH=" + bin + ":$PATH SMF_FMRI=" + fmri + " " + m.method(t, "stop")
	for range 2 {
		u := p.Unit(m.method(t, "start"))
		pid := strconv.Itoa(u.Cmd.Process.Pid)
		script := "#!/bin/sh\n[ \"$*\" = '-p restarter/start_pid " + fmri + "' ] && echo " + pid + "\n"
		if err := os.WriteFile(filepath.Join(bin, "svcprop"), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		answers(t, socket)
		if exit, log := p.Shell(stop); exit != 0 {
			t.Errorf("stop: exit %d: %s", exit, log)
		}
		u.Ends()
		if exit, log := p.Shell(stop); exit != 0 {
			t.Errorf("stop of an agent that is gone: exit %d: %s", exit, log)
		}
		if after := p.Run("instance", "list", "-H", "--columns", about); after != before {
			t.Errorf("before:\n%s\nafter:\n%s", before, after)
		}
	}
}
