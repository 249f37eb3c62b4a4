package leash

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A process that holds others is killed: they end.
func TestProcessesEndWithTheOneThatStartedThem(t *testing.T) {
	if os.Getenv("LEASH_HOLDS") != "" { // this is the one that is killed
		l, err := New()
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			c := exec.Command("sleep", "300")
			if _, err := l.Start(c); err != nil {
				t.Fatal(err)
			}
			os.Stderr.WriteString(strconv.Itoa(c.Process.Pid) + "\n")
		}
		time.Sleep(time.Minute)
		return
	}
	c := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	c.Env = append(os.Environ(), "LEASH_HOLDS=1")
	said, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	lines := bufio.NewScanner(said)
	for len(pids) < 2 && lines.Scan() {
		pid, err := strconv.Atoi(strings.TrimSpace(lines.Text()))
		if err != nil {
			t.Fatalf("%q", lines.Text())
		}
		pids = append(pids, pid)
	}
	if len(pids) < 2 {
		t.Fatal("it started nothing")
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // it was killed
	for _, pid := range pids {
		for end := time.Now().Add(10 * time.Second); alive(pid); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("process %d goes on", pid)
			}
		}
	}
}

// alive reports whether a process runs: one that has ended and is not waited for does not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || !strings.Contains(string(stat), ") Z ")
}

func TestAProcessEndsWhenItIsAsked(t *testing.T) {
	l, err := New()
	if err != nil {
		t.Fatal(err)
	}
	mild, err := l.Start(exec.Command("sleep", "300"))
	if err != nil {
		t.Fatal(err)
	}
	if err := mild.End(t.Context()); err != nil || mild.Err() == nil {
		t.Error(err, mild.Err())
	}
	if err := mild.Kill(); err != nil {
		t.Errorf("killed again: %v", err)
	}
	left, err := l.Start(exec.Command("sleep", "300"))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	select {
	case <-left.Done():
	case <-time.After(10 * time.Second):
		t.Error("a closed leash leaves a process")
	}
}
