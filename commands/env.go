package commands

import (
	"context"
	"fmt"
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
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sled/instance/migration"
)

// Env is what commands get: the streams, and functions for all that costs
// something. Each is called by who needs it, and does its work once.
type Env struct {
	Streams *terminal.Streams
	Config  func() (config.Config, error)
	Host    func() (host.Host, error)
	Ledger  func(context.Context) (*ledger.Ledger, error)
	Now     func() time.Time

	// Draw is a new random id.
	Draw func() string
	// Remote runs another sled's sledctl.
	Remote func(ctx context.Context, words []string, stdin []byte) (migration.Answer, error)
	// Listen is how the agent and a forwarded screen listen; nil: where they are told to.
	Listen func(context.Context, agent.Address) (net.Listener, error)
	// Call reaches an agent; nil: over the network.
	Call client.Dial

	environ     []string
	version     string
	started     time.Time
	words       []string // of the command line
	flags       globalFlags
	newLedger   bool // bootstrap makes one although the sled had another
	formatBlank bool // bootstrap makes pools on blank disks
	output      terminal.Output
	progress    *progress
	watch       func(plan.Event)      // next to progress; nil: nobody
	simDir      func() (string, bool) // the simulated sled's directory, if that is the host
	sled        *sim.Sled
	crash       *crashing // --crash-at; nil: none
	book        *book
	completing  bool            // a shell asks what could be typed
	spoken      propolis.Spoken // which version of its API each Propolis takes
}

// globalFlags are the flags of every command.
type globalFlags struct {
	host     string
	config   string
	timeout  time.Duration
	degraded bool
	wait     bool
	crashAt  string
}

// NewEnv is the environment of one run.
func NewEnv(streams *terminal.Streams, environ []string, version string) *Env {
	e := &Env{Streams: streams, Now: time.Now, environ: environ, version: version, started: time.Now(), Draw: uuid.NewString}
	e.progress = newProgress(streams)
	e.Host = sync.OnceValues(func() (host.Host, error) { return e.crash.on(e.openHost()) })
	e.Config = sync.OnceValues(e.loadConfig)
	e.simDir = e.simulated
	e.Remote = e.runProgram
	e.book = &book{open: e.openLedger, tell: e.progress.warn, scripted: func() bool { return e.output.Format == terminal.FormatJSON }}
	e.output.Unconfirmed = e.book.doubts
	e.Ledger = e.openedLedger
	return e
}

// Close ends what the run has opened.
func (e *Env) Close() {
	if e.sled != nil {
		e.sled.Close()
	}
}

func variable(environ []string, name string) string {
	for i := len(environ) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(environ[i], name+"="); ok {
			return value
		}
	}
	return ""
}

// hostName is --host, else SLEDCTL_HOST, else what suits the system.
func (e *Env) hostName() string {
	if e.flags.host != "" {
		return e.flags.host
	}
	if name := variable(e.environ, "SLEDCTL_HOST"); name != "" {
		return name
	}
	if runtime.GOOS == "illumos" {
		return "illumos"
	}
	return "sim"
}

// simulated tells whether the host is a simulated sled, and where it lives.
func (e *Env) simulated() (dir string, ok bool) {
	name, dir, _ := strings.Cut(e.hostName(), ":")
	if name != "sim" {
		return "", false
	}
	if dir != "" {
		return dir, true
	}
	state := variable(e.environ, "XDG_STATE_HOME")
	if state == "" {
		state = filepath.Join(variable(e.environ, "HOME"), ".local", "state")
	}
	return filepath.Join(state, "sledctl", "sim"), true
}

func (e *Env) openHost() (host.Host, error) {
	if dir, ok := e.simDir(); ok {
		sled, err := ensureSim(dir)
		if err != nil {
			return nil, &refusedError{err: err, hint: "sledctl sim init --host sim:DIR makes another one"}
		}
		e.sled = sled
		if name := variable(e.environ, sim.ExchangesVariable); name != "" {
			sled.Observe = sim.Record(name)
		}
		sled.Kill = func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) } // a fault that kills the caller means it
		return sled.Host(), nil
	}
	if name := e.hostName(); name != "illumos" {
		return nil, &usageError{text: fmt.Sprintf("--host %q: want illumos, sim or sim:DIR", name)}
	}
	c, err := e.Config()
	if err != nil {
		return nil, err
	}
	o := host.IllumosOptions{CommandPath: c.Host.CommandPath, Root: c.Host.Root, RunDir: c.Paths.Run}
	if dir := variable(e.environ, sim.DirVariable); dir != "" && o.Root == sim.Root(dir) {
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
	o.Files, o.Environment = e.sled.Host().Files(), []string{sim.DirVariable}
	return nil
}

// openStandIn opens the sled of a sledctl sim shell.
func openStandIn(e *Env, dir string) error {
	if e.sled != nil {
		return nil
	}
	sled, err := sim.Open(dir)
	if err != nil {
		return &refusedError{err: err, hint: sim.DirVariable + " names the sled of a sledctl sim shell"}
	}
	e.sled = sled
	return nil
}

func who(environ []string) string {
	if user := variable(environ, "LOGNAME"); user != "" {
		return user
	}
	return "sledctl"
}

// view reads the ledger and warns of what is wrong with it.
func (e *Env) view(ctx context.Context) (ledger.View, error) {
	book, err := e.Ledger(ctx)
	if err != nil {
		return ledger.View{}, err
	}
	view, err := book.Read(ctx)
	e.warnOf(view)
	return view, err
}

// reach is the sled, and what it is configured to be.
func (e *Env) reach() (config.Config, host.Host, error) {
	c, err := e.Config()
	if err != nil {
		return c, nil, err
	}
	h, err := e.Host()
	return c, h, err
}

// operation is what the nouns work with, and the configuration that their
// settings are made of.
func (e *Env) operation() (config.Config, operation.Env, error) {
	c, h, err := e.reach()
	if err != nil {
		return c, operation.Env{}, err
	}
	return c, operation.Env{
		Host: h, Ledger: e.Ledger, RunDir: c.Paths.Run, PID: os.Getpid(), Wait: e.flags.wait,
		NewID: e.Draw, Observe: e.observe, Warn: e.progress.warn,
	}, nil
}

func (e *Env) observe(event plan.Event) {
	e.progress.observe(event)
	if e.watch != nil {
		e.watch(event)
	}
}
