// Package host is the one boundary between sledctl and the machine that it
// prepares: run a command, open a connection, touch a file. Everything else
// in the program is a function of what came through here.
//
// Two implementations answer it: Illumos (real processes) and the simulated
// sled of package sim. Trace, ReadOnly and Crash decorate either.
package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/sledctl/sledctl/host/fault"
)

// Host is a sled as sledctl reaches it. Implementations are safe for
// concurrent use.
type Host interface {
	// Run runs one command to its end. The error is nil whenever the command
	// ran and ended by itself, whatever its exit code: floor-0 packages decide
	// what an exit code means and turn it into a *CommandError. A non-nil error
	// is one of ErrNoCommand, ErrPrivileges, ErrStillRunning (with what still
	// runs), ErrReadOnly, or the context's.
	Run(ctx context.Context, c Command) (Result, error)

	// Dial opens a connection to a service of the sled, as net.Dialer does.
	// Network is "tcp"; the address is IP:PORT.
	Dial(ctx context.Context, network, address string) (net.Conn, error)

	// DeviceVersion asks a device of the kernel for the version of its interface.
	// A device that does not exist is an fs.ErrNotExist.
	DeviceVersion(ctx context.Context, d Device) (int, error)

	// Files is the sled's file system; names are absolute.
	Files() Files
}

// Device is the node of a device that can be asked for its version. The node of a VM is
// none of them, and is never opened.
type Device string

// The devices of the kernel that every VM needs.
const (
	VMM   Device = "/dev/vmmctl" // VMs
	Viona Device = "/dev/viona"  // their NICs
)

// Request is the number of the ioctl(2) that gives the version; 0: there is none
// (VMM_INTERFACE_VERSION in usr/src/uts/intel/sys/vmm_dev.h, VNA_IOC_VERSION in
// usr/src/uts/intel/sys/viona_io.h).
func (d Device) Request() int {
	switch d {
	case VMM:
		return 'V'<<16 | 'M'<<8 | 4
	case Viona:
		return 'V'<<16 | 'C'<<8 | 3
	}
	return 0
}

// Line is the query as traces show it. No command of the system asks it.
func (d Device) Line() Line {
	return Line{Kind: LineQuery, Text: fmt.Sprintf("# ioctl(%s, %#x)", d, d.Request())}
}

// Command is one command line for the sled.
type Command struct {
	Program string   // bare name, "zoneadm"; the host finds it on its command path
	Args    []string // without the program
	Env     []string // KEY=VALUE, added to the clean environment
	Stdin   []byte   // nil: /dev/null

	// Input is given to a command that changes something as its standard input, while it runs: what
	// does not fit into Stdin. It ends when the reader does, fails, or sledctl dies: the command must know by
	// itself whether all has arrived. A reader that fails fails the run (*InputError), and so does a command that
	// succeeds and has not read all. From is the command line whose output it is.
	Input io.Reader
	From  string
	// Output takes what a command that only looks prints, as it prints it. Nil: all of it is in the result. A
	// writer that fails ends the command, and fails the run.
	Output io.Writer

	// Zone runs the command inside this zone, through zlogin. Empty: where we are.
	Zone string
	// ReadOnly promises that the command changes nothing: it may run in a dry
	// run, needs no privileges, and is killed at its deadline. A command that
	// changes something never is.
	ReadOnly bool
}

// Result is what an ended command left.
type Result struct {
	Exit           int
	Stdout, Stderr []byte
	// Unknown is set when a command in a zone ended without telling its status
	// (the zone was halted, the shell was killed: zlogin(1) then says 0).
	// Exit is then meaningless.
	Unknown bool
}

// The kinds of failure that someone decides on. Floor-0 packages put one of
// them into CommandError.Kind, and only for texts that they know: an unknown
// text has no kind.
var (
	ErrNotFound  = errors.New("not found")
	ErrExists    = errors.New("already exists")
	ErrBusy      = errors.New("busy")
	ErrState     = errors.New("invalid state")
	ErrTransient = errors.New("not ready yet")
	ErrRefused   = errors.New("refused")

	ErrNoCommand    = fault.New(fault.Refused, "command not found on the command path")
	ErrPrivileges   = fault.New(fault.Refused, "needs all privileges in the global zone")
	ErrReadOnly     = errors.New("refused: this run changes nothing")
	ErrStillRunning = fault.New(fault.Deadline, "still running on the host")
)

// CommandError is a command that failed, with the host's output.
type CommandError struct {
	Command Command
	Result  Result
	Means   error // one of the errors above, or nil
}

// Error is one line: the program's words if it said any, else its exit code.
func (e *CommandError) Error() string {
	words := strings.TrimSpace(string(e.Result.Stderr))
	if words == "" {
		words = strings.TrimSpace(string(e.Result.Stdout))
	}
	words = strings.Join(strings.FieldsFunc(words, func(r rune) bool { return r == '\n' }), "; ")
	switch {
	case e.Result.Unknown && words == "":
		return fmt.Sprintf("%s: ended without a status in zone %q", e.Command.Program, e.Command.Zone)
	case e.Result.Unknown:
		return fmt.Sprintf("%s: ended without a status in zone %q: %s", e.Command.Program, e.Command.Zone, words)
	case words == "":
		return fmt.Sprintf("%s: exit %d", e.Command.Program, e.Result.Exit)
	case strings.HasPrefix(words, e.Command.Program+":"):
		return words
	}
	return e.Command.Program + ": " + words
}

func (*CommandError) Kind() fault.Kind { return fault.Failed }

// Unwrap gives what it means, so that errors.Is(err, host.ErrBusy) works.
func (e *CommandError) Unwrap() error { return e.Means }

// How long what is busy is left alone: twice as long each time.
const (
	firstPause   = 20 * time.Millisecond
	longestPause = time.Second
)

// Patiently repeats what is ErrBusy until the context ends, with pauses from 20 ms to 1 s; the
// error then says for how long it was busy. Attempts are counted from 0.
func Patiently(ctx context.Context, try func(attempt int) error) error {
	began := time.Now()
	pause := firstPause
	for attempt := 0; ; attempt++ {
		err := try(attempt)
		if !errors.Is(err, ErrBusy) {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%w: busy for %v: %w", err, time.Since(began).Round(time.Millisecond), context.Cause(ctx))
		}
		pause = min(2*pause, longestPause)
	}
}
