// Package cli is what every command needs: its environment, flags and words, and
// how the program ends. The commands themselves are in the neighbouring folders.
//
// Env's expensive members are functions: a command that needs no ledger opens none.
package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/agent"
	"github.com/sledctl/sledctl/agent/client"
	"github.com/sledctl/sledctl/commands/config"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sled/failure"
	"github.com/sledctl/sledctl/sled/instance/migration"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/volume"
)

// Env is what commands get: the streams, and functions for all that costs
// something. Each does its work once, at the first call.
type Env struct {
	Streams *terminal.Streams
	Config  func() (config.Config, error)
	Host    func() (host.Host, error)
	Ledger  func(context.Context) (*ledger.Ledger, error)
	Now     func() time.Time

	// Caller is who runs the command.
	Caller func() operation.By
	// Draw is a new random id.
	Draw func() string
	// Remote runs another sled's sledctl.
	Remote func(ctx context.Context, words []string, stdin []byte) (migration.Answer, error)
	// Feed is Remote with a stream as its input.
	Feed func(ctx context.Context, words []string, in io.Reader) (migration.Answer, error)
	// Listen is how the agent and a forwarded screen listen; nil: where they are told to.
	Listen func(context.Context, agent.Address) (net.Listener, error)
	// Call reaches an agent; nil: over the network.
	Call client.Dial

	Environ     []string // of the process, as NAME=VALUE
	Version     string   // that the program was built as; empty: none
	started     time.Time
	Words       []string // of the command line
	Called      string   // the command that they name, with sledctl; empty: not known yet
	Flags       GlobalFlags
	NewLedger   bool                  // bootstrap makes one although the sled had another
	FormatBlank bool                  // bootstrap makes pools on blank disks
	Afar        Afar                  // how commands are typed that act on the same sled
	Output      terminal.Output       // how results are printed
	Progress    *Progress             // what is told on stderr
	Watch       func(plan.Event)      // next to progress; nil: nobody
	SimDir      func() (string, bool) // the simulated sled's directory, if that is the host
	Sled        *sim.Sled             // that is the host, once it is open
	crash       *crashing             // --crash-at; nil: none
	book        *book
	Completing  bool              // a shell asks what could be typed
	listening   <-chan struct{}   // closed once signals are heard; nil: they are
	versions    propolis.Versions // which version of its API each Propolis takes
}

// GlobalFlags are the flags of every command.
type GlobalFlags struct {
	Host     string
	sled     string
	knownAs  string
	Config   string
	timeout  time.Duration
	degraded bool
	Wait     bool
	crashAt  string
	progress string
	utc      bool
}

// NewEnv is the environment of one run.
func NewEnv(streams *terminal.Streams, environ []string, version string) *Env {
	e := &Env{Streams: streams, Now: time.Now, Environ: environ, Version: version, started: time.Now(), Draw: uuid.NewString}
	e.Progress = newProgress(streams, func() time.Time { return e.Now() })
	e.Progress.typed = func(text string) string { return e.Afar.Typed(text) }
	e.Caller = sync.OnceValue(func() operation.By { return caller(environ) })
	e.Host = sync.OnceValues(func() (host.Host, error) { return e.crash.on(e.openHost()) })
	e.Config = sync.OnceValues(e.loadConfig)
	e.SimDir = e.simulated
	e.Feed = e.runProgram
	e.Remote = func(ctx context.Context, words []string, stdin []byte) (migration.Answer, error) {
		return e.runProgram(ctx, words, bytes.NewReader(stdin))
	}
	e.book = &book{open: e.openLedger, tell: e.Progress.Warn, scripted: func() bool { return e.Output.Format == terminal.FormatJSON }}
	e.Output.Unconfirmed = e.book.doubts
	e.Ledger = e.openedLedger
	return e
}

// Close ends what the run has opened.
func (e *Env) Close() {
	if e.Sled != nil {
		e.Sled.Close()
	}
}

// Variable is the value of a variable of an environment; empty: it is not set.
func Variable(environ []string, name string) string {
	for i := len(environ) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(environ[i], name+"="); ok {
			return value
		}
	}
	return ""
}

// ActOn has the run act on a host, as --host does.
func (e *Env) ActOn(name string) { e.Flags.Host = name }

// HostName is --host, else SLEDCTL_HOST, else what suits the system.
func (e *Env) HostName() string {
	if e.Flags.Host != "" {
		return e.Flags.Host
	}
	if name := Variable(e.Environ, "SLEDCTL_HOST"); name != "" {
		return name
	}
	if runtime.GOOS == "illumos" {
		return "illumos"
	}
	return "sim"
}

// simulated tells whether the host is a simulated sled, and where it lives.
func (e *Env) simulated() (dir string, ok bool) {
	name, dir, _ := strings.Cut(e.HostName(), ":")
	if name != "sim" {
		return "", false
	}
	if dir != "" {
		return dir, true
	}
	state := Variable(e.Environ, "XDG_STATE_HOME")
	if state == "" {
		state = filepath.Join(Variable(e.Environ, "HOME"), ".local", "state")
	}
	return filepath.Join(state, "sledctl", "sim"), true
}

func (e *Env) openHost() (host.Host, error) {
	if dir, ok := e.SimDir(); ok {
		sled, err := ensureSim(dir)
		if err != nil {
			return nil, &failure.RefusedError{Err: err, Advice: "to make another one, run: sledctl sim init --host sim:DIR"}
		}
		e.Sled = sled
		if name := Variable(e.Environ, sim.ExchangesVariable); name != "" {
			sled.Observe = sim.Record(name)
		}
		sled.Kill = func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) } // a fault that kills the caller means it
		return sled.Host(), nil
	}
	if name := e.HostName(); name != "illumos" {
		return nil, &UsageError{Text: fmt.Sprintf("--host %q: want illumos, sim or sim:DIR", name)}
	}
	c, err := e.Config()
	if err != nil {
		return nil, err
	}
	o := host.IllumosOptions{CommandPath: c.Host.CommandPath, Root: c.Host.Root, RunDir: c.Paths.Run}
	if dir := Variable(e.Environ, sim.DirVariable); dir != "" && o.Root == sim.Root(dir) {
		if err := standIn(e, &o, dir); err != nil {
			return nil, err
		}
	}
	return host.NewIllumos(o), nil
}

// standIn lets a real host's place be taken by a simulated sled: its commands
// learn which sled they act on, and its files are shown with their mounts.
func standIn(e *Env, o *host.IllumosOptions, dir string) error {
	if err := openStandIn(e, dir); err != nil {
		return err
	}
	o.Files, o.Environment = e.Sled.Host().Files(), []string{sim.DirVariable}
	return nil
}

// openStandIn opens the sled of a sledctl sim shell.
func openStandIn(e *Env, dir string) error {
	if e.Sled != nil {
		return nil
	}
	sled, err := sim.Open(dir)
	if err != nil {
		return &failure.RefusedError{Err: err, Advice: "run it in a sledctl sim shell, which sets " + sim.DirVariable}
	}
	e.Sled = sled
	return nil
}

// Who is the user in whose name the run writes to the ledger.
func Who(environ []string) string {
	if user := Variable(environ, "LOGNAME"); user != "" {
		return user
	}
	return "sledctl"
}

// Reach is the sled, and what it is configured to be.
func (e *Env) Reach() (config.Config, host.Host, error) {
	c, err := e.Config()
	if err != nil {
		return c, nil, err
	}
	h, err := e.Host()
	return c, h, err
}

// Operation is what the domain packages work with, and the configuration that their
// settings are made of.
func (e *Env) Operation() (config.Config, operation.Env, error) {
	c, h, err := e.Reach()
	if err != nil {
		return c, operation.Env{}, err
	}
	if e.listening != nil {
		<-e.listening
	}
	return c, operation.Env{
		Host: h, Ledger: e.Ledger, RunDir: c.Paths.Run, PID: os.Getpid(), By: e.Caller(), Argv: argv(without(e.Words, "--known-as")), Exit: failure.Exit, Wait: e.Flags.Wait,
		NewID: e.Draw, Observe: e.observe, Awaits: e.Progress.awaits, Name: NameOf, Warn: e.Progress.Warn,
	}, nil
}

func (e *Env) observe(event operation.Event) {
	e.Progress.observe(event)
	if e.Watch != nil && event.Kind != operation.Over {
		e.Watch(event.Event)
	}
}

// NameOf is what an operator calls the subject of an operation: an instance has a name,
// the sled as a whole none.
func NameOf(view ledger.View, subject string) string {
	if id, ok := strings.CutPrefix(subject, naming.KeyInstance); ok {
		if r, err := record.Existing(view, id, id); err == nil {
			return r.Name
		}
		return id
	}
	if strings.HasPrefix(subject, naming.KeyVolume) {
		if r, known := volume.BySubject(view, subject); known {
			return r.Name
		}
	}
	if id, name, ok := strings.Cut(strings.TrimPrefix(subject, naming.KeySnapshot), "/"); ok && strings.HasPrefix(subject, naming.KeySnapshot) {
		return NameOf(view, naming.KeyInstance+id) + "@" + name
	}
	_, name, _ := strings.Cut(subject, "/")
	return name
}
