package ledger

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/host"
)

// writerRoot makes the test binary a process that writes to a ledger below
// that directory; writerRounds says how often.
const (
	writerRoot   = "LEDGER_TEST_ROOT"
	writerRounds = "LEDGER_TEST_ROUNDS"
)

func TestMain(m *testing.M) {
	root := os.Getenv(writerRoot)
	if root == "" {
		os.Exit(m.Run())
	}
	rounds, err := strconv.Atoi(os.Getenv(writerRounds))
	if err == nil {
		err = count(root, rounds)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// count increments n, and prints each value that was acknowledged.
func count(root string, rounds int) error {
	l, _, err := Open(context.Background(), host.Dir(root), twoDirectories())
	if err != nil {
		return err
	}
	l.limit = 3000
	for range rounds {
		v, err := l.Update(context.Background(), increment)
		if err != nil {
			return err
		}
		n, _ := v.Get("n")
		fmt.Println(string(n))
	}
	return nil
}

func twoDirectories() Places {
	return Places{Lock: "/run/ledger.lock", Locations: []Location{{Directory: "/a"}, {Directory: "/b"}}}
}

// writer is another process that counts.
func writer(t *testing.T, root string, rounds int) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	try(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), writerRoot+"="+root, fmt.Sprintf("%s=%d", writerRounds, rounds))
	cmd.Stderr = os.Stderr
	return cmd
}

func counted(t *testing.T, files host.Files) string {
	t.Helper()
	l, _, err := Open(t.Context(), files, twoDirectories())
	try(t, err)
	v := must(t)(l.Read(t.Context()))
	if len(v.Warnings()) > 0 {
		t.Errorf("warned %v", v.Warnings())
	}
	n, _ := v.Get("n")
	return string(n)
}

func TestProcessesTakeTurns(t *testing.T) {
	const processes, rounds = 3, 100
	root := t.TempDir()
	files := host.Dir(root)
	try(t, Create(t.Context(), files, twoDirectories(), Creation{Who: "test"}))
	var running []*exec.Cmd
	for range processes {
		cmd := writer(t, root, rounds)
		try(t, cmd.Start())
		running = append(running, cmd)
	}
	for _, cmd := range running {
		try(t, cmd.Wait())
	}
	if n := counted(t, files); n != fmt.Sprint(processes*rounds) {
		t.Errorf("n is %s", n)
	}
}

// A process that is killed has lost nothing that it was told is written.
func TestAKilledProcessHasLostNothing(t *testing.T) {
	root := t.TempDir()
	files := host.Dir(root)
	try(t, Create(t.Context(), files, twoDirectories(), Creation{Who: "test"}))
	acknowledged := 0
	for kill := range 12 {
		cmd := writer(t, root, 1<<30)
		out, err := cmd.StdoutPipe()
		try(t, err)
		try(t, cmd.Start())
		lines := bufio.NewScanner(out)
		for range 1 + 7*kill {
			if !lines.Scan() {
				t.Fatal("the writer ended by itself")
			}
		}
		try(t, cmd.Process.Kill())
		last := lines.Text()
		for lines.Scan() {
			if whole := strings.TrimSpace(lines.Text()); whole != "" {
				last = whole
			}
		}
		_ = cmd.Wait() // says that it was killed
		acknowledged, err = strconv.Atoi(last)
		try(t, err)
		set(t, openIn(t, files), fact("x", fmt.Sprint(kill)))
		n, err := strconv.Atoi(counted(t, files))
		try(t, err)
		if n != acknowledged && n != acknowledged+1 {
			t.Fatalf("kill %d: %d were acknowledged, %d are there", kill, acknowledged, n)
		}
	}
	if acknowledged < 400 {
		t.Errorf("only %d appends", acknowledged)
	}
}

func openIn(t *testing.T, files host.Files) *Ledger {
	t.Helper()
	l, _, err := Open(t.Context(), files, twoDirectories())
	try(t, err)
	return l
}
