package host_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/hosttest/expect"
)

// What one command prints is the input of another, however much it is, and nothing of it is kept.
func TestOutputOfOneCommandIsInputOfAnother(t *testing.T) {
	s := newSled(t)
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<18) // 4 MiB: no pipe holds it
	expect.OK(t, os.WriteFile(filepath.Join(s.dir, "in"), data, 0o600))
	s.command(t, "give", `/bin/cat "$1"`)
	s.command(t, "take", `/bin/cat > "$1"; echo taken`)
	in, out := io.Pipe()
	given := make(chan error, 1)
	go func() {
		r, err := s.host.Run(t.Context(), host.Command{Program: "give", Args: []string{filepath.Join(s.dir, "in")}, Output: out, ReadOnly: true})
		given <- errors.Join(err, out.CloseWithError(err))
		if len(r.Stdout) > 0 {
			t.Errorf("%d bytes are in the result", len(r.Stdout))
		}
	}()
	r, err := s.host.Run(t.Context(), host.Command{Program: "take", Args: []string{filepath.Join(s.dir, "out")}, Input: in, From: "give in"})
	expect.OK(t, errors.Join(err, <-given))
	got, err := os.ReadFile(filepath.Join(s.dir, "out"))
	if expect.OK(t, err); !bytes.Equal(got, data) || string(r.Stdout) != "taken\n" {
		t.Errorf("%d bytes of %d, and %q", len(got), len(data), r.Stdout)
	}
	if left := s.outputs(t); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// A command whose input breaks off sees its end, and the run fails.
func TestInputThatBreaksOff(t *testing.T) {
	s := newSled(t)
	broken := errors.New("the line is cut")
	s.command(t, "take", "/bin/cat")
	r, err := s.host.Run(t.Context(), host.Command{Program: "take", From: "give", Input: io.MultiReader(strings.NewReader("a part"), failing{broken})})
	if fails(t, err, broken); string(r.Stdout) != "a part" {
		t.Errorf("%q", r.Stdout)
	}
}

func fails(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%v, want %v", err, want)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error)  { return 0, f.err }
func (f failing) Write([]byte) (int, error) { return 0, f.err }

// A command that reads is never killed; it loses its input when the context ends, and is waited for.
func TestInputEndsWithTheContext(t *testing.T) {
	s := newSled(t)
	s.command(t, "take", "read a; echo got $a; /bin/cat; echo end")
	ctx, cancel := context.WithCancel(t.Context())
	in, out := io.Pipe()
	defer out.Close()
	go func() {
		_, _ = out.Write([]byte("one\n"))
		_, _ = out.Write([]byte("two\n")) // the command has the first by then
		cancel()
	}()
	r, err := s.host.Run(ctx, host.Command{Program: "take", From: "give", Input: in})
	if fails(t, err, context.Canceled); errors.Is(err, host.ErrStillRunning) || !strings.HasPrefix(string(r.Stdout), "got one\n") || !strings.HasSuffix(string(r.Stdout), "end\n") {
		t.Errorf("%v, %q", err, r.Stdout)
	}
}

// A command that does not want all of its input ends, whatever still comes.
func TestACommandThatLeavesItsInput(t *testing.T) {
	s := newSled(t)
	s.command(t, "take", "exit 3")
	in, out := io.Pipe()
	defer out.Close()
	r, err := s.host.Run(t.Context(), host.Command{Program: "take", From: "give", Input: in})
	if expect.OK(t, err); r.Exit != 3 {
		t.Errorf("exit %d", r.Exit)
	}
	r, err = s.host.Run(t.Context(), host.Command{Program: "take", From: "give", Input: endless{}})
	if expect.OK(t, err); r.Exit != 3 {
		t.Errorf("exit %d", r.Exit)
	}
	s.command(t, "skim", "exit 0")
	_, err = s.host.Run(t.Context(), host.Command{Program: "skim", From: "give", Input: endless{}})
	if _, early := errors.AsType[*host.InputError](err); !early {
		t.Error(err)
	}
}

// The last of the input is waited for, also where the command has ended before.
func TestInputThatFailsAtItsEnd(t *testing.T) {
	s := newSled(t)
	s.command(t, "take", "read a")
	in, out := io.Pipe()
	wrong := errors.New("another digest")
	go func() {
		_, _ = out.Write([]byte("one\n"))
		time.Sleep(20 * time.Millisecond) // the command ends meanwhile
		out.CloseWithError(wrong)
	}()
	_, err := s.host.Run(t.Context(), host.Command{Program: "take", From: "give", Input: in})
	fails(t, err, wrong)
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestOutputThatNobodyTakesEndsItsCommand(t *testing.T) {
	s := newSled(t)
	full := errors.New("full")
	s.command(t, "give", "while :; do echo y; done")
	_, err := s.host.Run(t.Context(), host.Command{Program: "give", ReadOnly: true, Output: failing{full}})
	fails(t, err, full)
}

func TestPipesOnTheWrongSideAreRefused(t *testing.T) {
	s := newSled(t)
	s.command(t, "give", "")
	in, out := strings.NewReader(""), io.Discard
	for _, c := range []host.Command{
		{Program: "give", Input: in}, {Program: "give", Input: in, From: "x", ReadOnly: true}, {Program: "give", Input: in, From: "x", Stdin: []byte("a")},
		{Program: "give", Output: out}, {Program: "give", Output: out, ReadOnly: true, Zone: "z"}, {Program: "give", Input: in, From: "x", Zone: "z"},
	} {
		if _, err := s.host.Run(t.Context(), c); err == nil {
			t.Errorf("%+v was run", c)
		}
	}
}

// A program that dies leaves the commands that read from it with a part of their input.
func TestInputOfAProgramThatDies(t *testing.T) {
	for mode, want := range map[host.CrashMode]string{host.CrashBefore: "", host.CrashDuring: "all t", host.CrashAfter: "all that is"} {
		s := newSled(t)
		got := filepath.Join(s.dir, "got")
		s.command(t, "take", `/bin/cat > "$1"`)
		c := host.Crash(s.host, 1, mode)
		_, err := c.Run(t.Context(), host.Command{Program: "take", Args: []string{got}, From: "give", Input: strings.NewReader("all that is")})
		fails(t, err, host.ErrCrashed)
		c.Wait()
		if data, _ := os.ReadFile(got); string(data) != want {
			t.Errorf("mode %d: %q", mode, data)
		}
	}
}

func TestACommandBehindAPipeIsShownAsAShellHasIt(t *testing.T) {
	c := host.Command{Program: "zfs", Args: []string{"receive", "b"}, From: "zfs send a@s", Input: strings.NewReader("")}
	if l := host.CommandLine(c); l.Text != "zfs send a@s | zfs receive b" || l.Program() != "zfs" || l.Kind != host.LineRun {
		t.Errorf("%+v", l)
	}
}
