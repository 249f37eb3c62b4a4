package probe

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/sledctl/sledctl/host"
)

// Verdict says how far a simulated sled answers as the recorded one did.
type Verdict string

// The verdicts.
const (
	ByteEqual  Verdict = "byte-equal"  // both streams and the exit code
	ParseEqual Verdict = "parse-equal" // sledctl reads the same out of both
	Different  Verdict = "different"
)

// Compared is one command, and how its two outputs differ.
type Compared struct {
	Command string  `json:"command"`
	Verdict Verdict `json:"verdict"`
	// Where is the first line that differs, e.g. "stdout 3"; empty: none does.
	Where     string `json:"where"`
	Recorded  string `json:"recorded"`
	Simulated string `json:"simulated"`
	// Guesses are the ids of docs/unverified.md that say something about the command.
	Guesses []string `json:"guesses"`
}

// Compare runs the commands of an archive on a sled that was laid out from it.
func Compare(ctx context.Context, a Archive, h host.Host) ([]Compared, error) {
	h = host.ReadOnly(h)
	simulated := answers{}
	asked := slices.DeleteFunc(slices.Clone(a.Answers), func(one Answer) bool { return one.Active }) // the others change something
	for _, one := range asked {
		r, err := ask(ctx, h, command(one.Argv))
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		replay := Answer{Argv: one.Argv, Exit: r.Exit, Stdout: r.Stdout, Stderr: r.Stderr}
		if err != nil {
			replay.Failed = err.Error()
		}
		simulated[joined(one.Argv)] = replay
	}
	all := make([]Compared, 0, len(asked))
	for _, one := range asked {
		all = append(all, simulated.compare(ctx, one))
	}
	return all, nil
}

func joined(argv []string) string { return strings.Join(argv, " ") }

func (s answers) compare(ctx context.Context, recorded Answer) Compared {
	replay := s[joined(recorded.Argv)]
	c := Compared{Command: host.Command{Program: recorded.Argv[0], Args: recorded.Argv[1:]}.Shell(), Verdict: ByteEqual, Guesses: []string{}}
	c.Where, c.Recorded, c.Simulated = difference(recorded, replay)
	if c.Where == "" {
		return c
	}
	c.Verdict = Different
	if s.readEqual(ctx, recorded) {
		c.Verdict = ParseEqual
	}
	c.Guesses = guessesOf(recorded.Argv)
	return c
}

// readEqual says whether sledctl reads the same from the simulated sled whether it gives
// the recorded answer to one command or its own.
func (s answers) readEqual(ctx context.Context, recorded Answer) bool {
	read := readerOf(recorded.Argv)
	if read == nil || recorded.Failed != "" {
		return false
	}
	other := answers{}
	for k, v := range s {
		other[k] = v
	}
	other[joined(recorded.Argv)] = recorded
	heard := &listener{Host: other, line: joined(recorded.Argv)}
	a, errA := read(ctx, s)
	b, errB := read(ctx, heard)
	return heard.asked.Load() && errA == nil && errB == nil && reflect.DeepEqual(a, b)
}

// listener notes whether a command was asked for. A reader may run several at once.
type listener struct {
	host.Host
	line  string
	asked atomic.Bool
}

// Run passes a command on.
func (l *listener) Run(ctx context.Context, c host.Command) (host.Result, error) {
	if joined(append([]string{c.Program}, c.Args...)) == l.line {
		l.asked.Store(true)
	}
	return l.Host.Run(ctx, c)
}

// difference is the first line in which two answers differ.
func difference(a, b Answer) (where, first, second string) {
	if unsimulated(b) {
		return "stderr 1", lineAt(slices.Collect(strings.Lines(string(a.Stderr))), 0), strings.TrimSpace(string(b.Stderr))
	}
	for _, stream := range []struct {
		name string
		a, b []byte
	}{{"stdout", a.Stdout, b.Stdout}, {"stderr", a.Stderr, b.Stderr}} {
		if bytes.Equal(stream.a, stream.b) {
			continue
		}
		x, y := slices.Collect(strings.Lines(string(stream.a))), slices.Collect(strings.Lines(string(stream.b)))
		n := 0
		for n < len(x) && n < len(y) && x[n] == y[n] {
			n++
		}
		return fmt.Sprintf("%s %d", stream.name, n+1), lineAt(x, n), lineAt(y, n)
	}
	switch {
	case a.Failed != b.Failed:
		return "end", a.Failed, b.Failed
	case a.Exit != b.Exit:
		return "exit", fmt.Sprint(a.Exit), fmt.Sprint(b.Exit)
	}
	return "", "", ""
}

// unsimulated says whether a simulated sled refused a command that it does not know.
func unsimulated(a Answer) bool { return bytes.HasPrefix(a.Stderr, []byte("not simulated: ")) }

// lineAt is a line without its end; empty: there is none.
func lineAt(all []string, n int) string {
	if n >= len(all) {
		return ""
	}
	return strings.TrimSuffix(all[n], "\n")
}

// answers is a host that has nothing but answers.
type answers map[string]Answer

// Run gives the answer to a command.
func (s answers) Run(_ context.Context, c host.Command) (host.Result, error) {
	a, ok := s[joined(append([]string{c.Program}, c.Args...))]
	if !ok || c.Zone != "" || a.Failed != "" {
		return host.Result{}, host.ErrNoCommand
	}
	return a.Result(), nil
}

func (answers) Dial(context.Context, string, string) (net.Conn, error) {
	return nil, host.ErrReadOnly
}

func (answers) DeviceVersion(context.Context, host.Device) (int, error) { return 0, host.ErrReadOnly }

func (answers) Files() host.Files { return nil }
