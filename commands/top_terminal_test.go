package commands_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"
	"golang.org/x/term"

	"github.com/sledctl/sledctl/test/sledtest"
)

// ptyTop is the program, run as top on a terminal.
type ptyTop struct {
	t         *testing.T
	keys      *os.File // what is typed there
	user      *os.File // the end that programs have
	cmd       *exec.Cmd
	mutex     sync.Mutex
	output    bytes.Buffer
	height    uint16
	beginning *term.State
}

func startPtyTop(t *testing.T, top *exec.Cmd) *ptyTop {
	t.Helper()
	keys, user, err := pty.Open()
	if err != nil {
		t.Skip("there are no terminals: ", err)
	}
	p := &ptyTop{t: t, keys: keys, user: user, height: 24, cmd: top}
	p.resize()
	if p.beginning, err = term.GetState(int(user.Fd())); err != nil {
		t.Fatal(err)
	}
	p.cmd.Env = append(p.cmd.Env, "TERM=xterm")
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = user, user, user
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill(); user.Close(); keys.Close() })
	go func() {
		buffer := make([]byte, 4096)
		for {
			n, err := keys.Read(buffer)
			p.mutex.Lock()
			p.output.Write(buffer[:n])
			p.mutex.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return p
}

// resize gives the terminal another height, at which all is drawn again.
func (p *ptyTop) resize() {
	p.height = 24 + 25 - p.height
	if err := pty.Setsize(p.keys, &pty.Winsize{Rows: p.height, Cols: 80}); err != nil {
		p.t.Fatal(err)
	}
}

func (p *ptyTop) types(keys string) {
	p.t.Helper()
	if _, err := p.keys.WriteString(keys); err != nil {
		p.t.Fatal(err)
	}
}

// written is what was written since the last time that this was asked.
func (p *ptyTop) written() string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	defer p.output.Reset()
	return p.output.String()
}

// shows waits until a text is on the screen.
func (p *ptyTop) shows(want string) {
	p.t.Helper()
	seen := ""
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		p.resize()
		time.Sleep(100 * time.Millisecond)
		if seen = ansi.Strip(p.written()); strings.Contains(seen, want) {
			return
		}
	}
	p.t.Fatalf("%q is not on the screen:\n%s", want, seen)
}

// An operator filters on a terminal, is shown a command before she is asked whether she
// wants it, and has the terminal back as it was. What a command leaves that is killed while
// top waits for it is what a kill leaves: the next one does the rest.
func TestTopOnATerminal(t *testing.T) {
	if testing.Short() {
		t.Skip(unraced)
	}
	dir := t.TempDir()
	sledctl := func(words ...string) string {
		t.Helper()
		out, err := program(t, dir, words...).Output()
		if err != nil {
			t.Fatalf("%q: %v: %s", words, err, out)
		}
		return string(out)
	}
	sledctl("sim", "drill", filepath.Join(dir, "sled"))
	p := startPtyTop(t, program(t, dir, "top"))
	p.shows("40 VMs")
	p.types("/")
	p.shows("filter: _")
	p.types("state!=running\r")
	p.shows("/filter: state!=running")
	p.shows(">ci8")
	p.types("jj")
	p.shows(">mail01")
	p.types("e")
	p.shows("sledctl instance ensure mail01   run it? [y/N]")
	p.types("n")
	p.shows("not run: sledctl instance ensure mail01")

	sledctl("sim", "fault", "clear")
	sledctl("sim", "fault", "add", "hang", "--match", "zoneadm boot")
	p.types("e")
	p.shows("run it? [y/N]")
	p.types("y")
	p.shows("at work: sledctl instance ensure mail01")
	var listed struct{ Items []struct{ PID int } }
	for deadline := time.Now().Add(30 * time.Second); len(listed.Items) == 0 || listed.Items[0].PID == 0; time.Sleep(20 * time.Millisecond) {
		if err := json.Unmarshal([]byte(sledctl("events", "--last", "1", "-o", "json")), &listed); err != nil || time.Now().After(deadline) {
			t.Fatal("nothing is at work: ", err)
		}
	}
	if err := syscall.Kill(listed.Items[0].PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.shows("sledctl instance ensure mail01: signal: killed")
	p.written()
	p.types("q")
	if err := p.cmd.Wait(); err != nil {
		t.Error(err)
	}
	if now, err := term.GetState(int(p.user.Fd())); err != nil || *now != *p.beginning {
		t.Errorf("the terminal is not as it was: %v", err)
	}
	time.Sleep(100 * time.Millisecond)
	if all := p.written(); !strings.Contains(all, "\x1b[?1049l") {
		t.Errorf("the screen from before is not back: %q", all)
	}

	sledctl("sim", "fault", "clear")
	sledctl("instance", "ensure", "mail01", "--wait")
	if all := sledctl("events", "mail01", "--last", "2", "-H", "--columns", "result"); all != "died\nok\n" {
		t.Errorf("the events are\n%s", all)
	}
	if state := sledctl("instance", "list", "mail01", "-H", "--columns", "state"); state != "running\n" {
		t.Errorf("mail01 is %s", state)
	}
}

// An operator watches another sled over ssh: her terminal is that of the other sled's top,
// which names the sled as she does, and a command that she agrees to acts there.
func TestTopOverSSH(t *testing.T) {
	if sledtest.Quick() {
		t.Skip("a screen is waited for")
	}
	dir := t.TempDir()
	const ssh = `#!/bin/sh
[ "$1 $2" = "-t root@two" ] || { echo "ssh was given $*" >&2; exit 255; }
shift 2
SLEDCTL_HOST=sim:$HOME/two exec sh -c "$*"
`
	if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte(ssh), 0o700); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	sledctl := func(host string, words ...string) *exec.Cmd {
		c := program(t, dir, words...)
		c.Env = append(c.Env, "SLEDCTL_HOST="+host, "XDG_CONFIG_HOME="+dir, "PATH="+dir+":"+os.Getenv("PATH"))
		return c
	}
	for _, words := range []string{"bootstrap", "instance ensure web1", "instance stop web1"} {
		if out, err := sledctl("sim:"+filepath.Join(dir, "two"), strings.Fields(words)...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", words, err, out)
		}
	}
	if out, err := sledctl("", "sled", "add", "two", "--ssh", "root@two").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p := startPtyTop(t, sledctl("", "--sled", "two", "top"))
	p.shows(">web1  stopped")
	p.types("2")
	p.shows("sledctl --sled two storage list")
	p.types("1")
	p.types("e")
	p.shows("sledctl --sled two instance ensure web1   run it? [y/N]")
	p.types("y")
	p.shows(">web1  running")
	p.types("q")
	if err := p.cmd.Wait(); err != nil {
		t.Error(err)
	}
	if now, err := term.GetState(int(p.user.Fd())); err != nil || *now != *p.beginning {
		t.Errorf("the terminal is not as it was: %v", err)
	}
}
