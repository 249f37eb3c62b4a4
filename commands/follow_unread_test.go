package commands_test

import (
	"errors"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/sledctl/sledctl/test/sledtest"
)

// What follows something that is silent ends as soon as no process reads what it prints, as a
// filter such as head does behind its first line: with the exit code that the signal has.
func TestWhatNoProcessReadsIsNotFollowed(t *testing.T) {
	if sledtest.Quick() {
		t.Skip("programs are waited for")
	}
	dir := withWeb1(t)
	for _, line := range []string{
		"instance console web1", "instance logs web1 -f", "instance logs web1 -f --raw", "instance watch web1", "events --follow",
		"status --watch=1h", "status --watch=1h -o json", "instance list --watch=1h",
	} {
		follows := program(t, dir, strings.Fields(line)...)
		out, err := follows.StdoutPipe()
		if err == nil {
			err = follows.Start()
		}
		if err == nil {
			_, err = io.ReadFull(out, make([]byte, 1))
		}
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		time.Sleep(300 * time.Millisecond) // all that it has to print fits into the pipe
		_ = out.Close()
		endsUnread(t, line, follows)
	}
}

// withWeb1 is where a simulated sled lies on which web1 runs.
func withWeb1(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, line := range []string{"sim init --m2 1 --u2 1", "bootstrap", "instance ensure web1"} {
		if out, err := program(t, dir, strings.Fields(line)...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", line, err, out)
		}
	}
	return dir
}

// endsUnread expects a program to end as one that the signal of a pipe without a reader has killed.
func endsUnread(t *testing.T, line string, follows *exec.Cmd) {
	t.Helper()
	late := time.AfterFunc(10*time.Second, func() { _ = follows.Process.Kill() })
	defer late.Stop()
	err := follows.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 141 {
		t.Errorf("%s: %v", line, err)
	}
}

// What is drawn in place, or follows something, ends as soon as its terminal hangs up, also where
// no signal says so: under nohup, or in a session that the terminal does not control.
func TestATerminalThatHungUpIsNotFollowed(t *testing.T) {
	if sledtest.Quick() {
		t.Skip("programs are waited for")
	}
	dir := withWeb1(t)
	for _, line := range []string{"status --watch=1h", "instance list --watch=1h", "top", "instance watch web1", "instance logs web1 -f"} {
		keys, user, err := pty.Open()
		if err != nil {
			t.Skip("there are no terminals: ", err)
		}
		follows := program(t, dir, strings.Fields(line)...)
		follows.Env = append(follows.Env, "TERM=xterm")
		follows.Stdin, follows.Stdout, follows.Stderr = user, user, user
		follows.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		err = follows.Start()
		if err == nil {
			_, err = io.ReadFull(keys, make([]byte, 1))
		}
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		time.Sleep(300 * time.Millisecond)
		_, _ = keys.Close(), user.Close()
		endsUnread(t, line, follows)
	}
}
