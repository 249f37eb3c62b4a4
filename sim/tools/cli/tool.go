// Package cli is what the commands of the simulated sled have in common: their
// call and reply, the options that getopt(3C) finds, the tables of libofmt, what
// a file operation came to, and the refusal of what is not simulated.
package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sledctl/sledctl/sim/world"
)

// Call is one command line.
type Call struct {
	Tool  string            // base name, "zoneadm"
	Args  []string          // without the tool
	Stdin []byte            // nil: /dev/null
	Env   map[string]string // beyond the clean environment
	Zone  string            // where it runs: "global" or the name of a zone
	// Kernel is the id of the kernel zone that it runs in: when that is gone,
	// so is the command. 0: it lives as long as it likes.
	Kernel int
}

// Reply is what a command printed so far and its exit code, or what it does
// next. Latencies, hangs and zone locks lie between transactions: a command
// that takes time returns a Next, and its transaction ends.
type Reply struct {
	Stdout, Stderr string
	Exit           int
	Next           *Next // nil: the command has ended

	// Blocked is set by RunShell: the script came to a command that does not
	// end by itself, such as a server in the foreground, and goes no further.
	Blocked bool
	// Took is how long the work took, where it was not waited for (RunShell).
	Took time.Duration
}

// Next is the rest of a command that is not finished.
type Next struct {
	// At says where the command is, for a fault that kills it there.
	At string
	// Lock names a zone whose lock is taken before Do and held until the
	// command ends. Taking it waits, as zoneadm does (zonecfg_grab_lock_file in
	// usr/src/lib/libzonecfg/common/libzonecfg.c).
	Lock string
	// Hold, if set, is a link that is held from now to the end of Do.
	Hold *world.LinkID
	// After is how long the work takes before Do runs.
	After time.Duration
	// Until, if set, waits until it says true, looking again whenever the
	// world changes; it must not change anything.
	Until func(*world.Tx) bool
	// Do is the next transaction. What it prints is added.
	Do func(*world.Tx) Reply
	// Session, instead of Do, runs further commands, each with transactions of
	// its own: a shell.
	Session func(ctx context.Context, m Machine) (Reply, error)
}

// Machine is what a session acts on.
type Machine interface {
	// Has tells whether the sled has a command of this name.
	Has(name string) bool
	// Exec runs a command to its end. The error is ErrKilled, or the context's.
	Exec(ctx context.Context, c Call) (Reply, error)
	// Start runs a command that is not waited for.
	Start(ctx context.Context, c Call) error
	// View shows the sled.
	View(ctx context.Context, fn func(*world.Tx)) error
}

// Tool is a command: one transaction, or the first of several.
type Tool func(tx *world.Tx, c Call) Reply

// ExitNotSimulated is EX_SOFTWARE of sysexits(3HEAD), which no simulated
// command has for an end of its own.
const ExitNotSimulated = 70

// NotSimulated refuses what the real command has and the simulated one has not:
// it is neither imitated nor passed over.
func NotSimulated(tool, format string, args ...any) Reply {
	return Reply{Stderr: "not simulated: " + tool + ": " + fmt.Sprintf(format, args...) + "\n", Exit: ExitNotSimulated}
}

// Refusing is a command that refuses its call where it panics with
// world.Unsimulated, now or in a later transaction.
func Refusing(tool Tool) Tool {
	return func(tx *world.Tx, c Call) Reply { return refusing(c, func() Reply { return tool(tx, c) }) }
}

// Simulated refuses the call unless this holds. The call itself names
// what the simulated command lacks.
func Simulated(holds bool) { world.Simulated(holds) }

func refusing(c Call, do func() Reply) (r Reply) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case world.Unsimulated:
			if p.What == "" {
				p.What = strings.Join(c.Args, " ")
			}
			r = NotSimulated(c.Tool, "%s", p.What)
		default:
			panic(p)
		}
	}()
	r = do()
	if r.Next == nil || r.Next.Do == nil {
		return r
	}
	next := *r.Next
	then := next.Do
	next.Do = func(tx *world.Tx) Reply { return refusing(c, func() Reply { return then(tx) }) }
	r.Next = &next
	return r
}

// Words are what a fault is matched with: the command line, after the zone
// that it runs in if that is not the global one.
func Words(c Call) []string {
	all := append([]string{c.Tool}, c.Args...)
	if c.Zone != world.GlobalZone {
		all = append([]string{c.Zone}, all...)
	}
	return all
}

// ErrKilled is the end of a command that was killed: with the zone that it ran
// in, or by a fault that kills its caller.
var ErrKilled = errors.New("killed")

// ExitKilled is the exit code, as a shell has it, of a command that SIGKILL ended.
const ExitKilled = 128 + 9

// ErrBlocked ends a script at a command that waits for what cannot come.
var ErrBlocked = errors.New("waits for ever")

// Add appends what the next transaction printed.
func (r *Reply) Add(next Reply) {
	r.Stdout += next.Stdout
	r.Stderr += next.Stderr
	r.Exit, r.Next, r.Blocked = next.Exit, next.Next, next.Blocked
}

// Warn is uu_warn(3UUTIL): the program's name first.
func (r *Reply) Warn(tool, format string, args ...any) {
	r.Stderr += tool + ": " + fmt.Sprintf(format, args...)
}

// Die is uu_die(3UUTIL).
func (r Reply) Die(tool, format string, args ...any) Reply {
	r.Warn(tool, format, args...)
	r.Exit = 1
	return r
}
