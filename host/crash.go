package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
)

// ErrCrashed is what every call on a crashed host gives.
var ErrCrashed = errors.New("crashed")

// CrashMode says how far the thing at the crash's point gets.
type CrashMode int

// The modes.
const (
	// CrashBefore: it is not done.
	CrashBefore CrashMode = iota
	// CrashAfter: it is done, and nobody learns of it.
	CrashAfter
	// CrashDuring: a command continues without its caller, and keeps its locks;
	// see Wait. Of a write, and of what is read for a command, only the first half is done. A request is sent, and
	// the server may or may not act on it. What cannot be done in part is done.
	CrashDuring
)

// Crashing is a host on which sledctl dies at a given point: from then on every
// Run, Dial and file operation fails at once with ErrCrashed, connections are
// closed and locks drop, except those that running commands have inherited.
//
// Points are the commands, requests and file operations that change something,
// from 1. Points run side by side are counted as they come.
type Crashing struct {
	host Host
	*crash
}

var _ Host = (*Crashing)(nil)

// Crash is h with a crash at point n; 0 is never, to count the points.
func Crash(h Host, n int, mode CrashMode) *Crashing {
	return &Crashing{host: h, crash: newCrash(n, mode)}
}

// Kill makes the crash a real one: at its point kill is called, which is to end
// the process and does not return. It is set before the host is used. What a
// command is about that runs within this process ends with it, so of the modes
// CrashDuring means little there.
func (c *Crashing) Kill(kill func()) *Crashing {
	c.then = kill
	return c
}

// Points returns how many there have been.
func (c *crash) Points() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.points
}

// Where tells at which point it has happened, for messages: its number, and what
// was done there.
func (c *crash) Where() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.what == "" {
		return "nowhere"
	}
	return fmt.Sprintf("%s point %d (%s)", []string{"before", "after", "in the middle of"}[c.mode], c.at, c.what)
}

// Crashed says whether it has happened.
func (c *crash) Crashed() bool { return c.dead.Err() != nil }

// Die is the crash, wherever the program is.
func (c *crash) Die() {
	c.mu.Lock()
	if c.what == "" {
		c.what = "from outside"
	}
	c.mu.Unlock()
	c.die(before)
}

// Wait returns when the commands that outlived the crash have ended, and the
// locks and connections are dropped.
func (c *crash) Wait() {
	if c.Crashed() {
		<-c.dropped
	}
	c.children.Wait()
}

func (c *Crashing) forAction(id string) Host { return &Crashing{ForAction(c.host, id), c.crash} }

// Run runs a command, if it is not too late.
func (c *Crashing) Run(ctx context.Context, cmd Command) (Result, error) {
	fate := alive
	if !cmd.ReadOnly {
		fate = c.point(cmd.Program + " " + strings.Join(cmd.Args, " "))
	}
	if fate == before || c.Crashed() {
		c.die(fate)
		return Result{}, fmt.Errorf("%s: %w", cmd.Program, ErrCrashed)
	}
	if cmd.Input != nil {
		cmd.Input = &crashInput{in: cmd.Input, crash: c.crash, cut: fate == during}
	}
	ended := c.start(ctx, cmd)
	if fate == during {
		c.die(fate)
	}
	select {
	case e := <-ended:
		c.die(fate)
		if !c.Crashed() {
			return e.result, e.err
		}
	case <-c.dead.Done():
	}
	return Result{}, fmt.Errorf("%s: %w", cmd.Program, ErrCrashed)
}

// crashInput is what a command reads from a program that dies: of what arrives then, half comes through.
type crashInput struct {
	in io.Reader
	*crash
	cut bool
}

func (r *crashInput) Read(p []byte) (int, error) {
	if !r.cut && r.Crashed() {
		return 0, ErrCrashed
	}
	n, err := r.in.Read(p)
	if r.cut {
		return n / 2, ErrCrashed
	}
	return n, err
}

type ending struct {
	result Result
	err    error
}

// start runs a command that may outlive us; its locks are retained by then.
func (c *Crashing) start(ctx context.Context, cmd Command) <-chan ending {
	ended := make(chan ending, 1)
	release := func() {}
	if !cmd.ReadOnly {
		release = Retain(ctx)
		ctx = c.outliving(ctx)
	}
	c.children.Go(func() {
		r, err := c.host.Run(ctx, cmd)
		release()
		ended <- ending{r, err}
	})
	return ended
}

// outliving ends as ctx does, unless the crash comes first: whatever the dying
// program cancels then, the command goes on.
func (c *crash) outliving(ctx context.Context) context.Context {
	o := &outliving{Context: context.WithoutCancel(ctx), caller: ctx, done: make(chan struct{})}
	context.AfterFunc(ctx, func() {
		if !c.Crashed() {
			close(o.done)
		}
	})
	return o
}

type outliving struct {
	context.Context // values
	caller          context.Context
	done            chan struct{}
}

func (o *outliving) Done() <-chan struct{} { return o.done }

func (o *outliving) Err() error {
	select {
	case <-o.done:
		return o.caller.Err()
	default:
		return nil
	}
}

// Dial opens a connection that the crash will close.
func (c *Crashing) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if c.Crashed() {
		return nil, ErrCrashed
	}
	conn, err := c.host.Dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return newCrashConn(conn, c.crash), nil
}

// DeviceVersion asks a device, if it is not too late.
func (c *Crashing) DeviceVersion(ctx context.Context, d Device) (int, error) {
	if c.Crashed() {
		return 0, ErrCrashed
	}
	return c.host.DeviceVersion(ctx, d)
}

// Files are the host's, until the crash.
func (c *Crashing) Files() Files { return &crashFiles{c.host.Files(), c.crash} }

// crash is the state that a crashing host shares with its files and
// connections.
type crash struct {
	at   int
	mode CrashMode

	dead     context.Context // done when it has happened
	kill     context.CancelFunc
	dropped  chan struct{} // closed when what the crash drops is
	children sync.WaitGroup
	making   sync.Mutex // held while a directory is looked for, and made

	mu     sync.Mutex
	points int
	what   string   // happened at the crash's point
	drop   []func() // locks and connections
	then   func()   // what the crash is instead; nil: the host plays dead
}

func newCrash(n int, mode CrashMode) *crash {
	c := &crash{at: n, mode: mode, dropped: make(chan struct{})}
	c.dead, c.kill = context.WithCancel(context.Background())
	return c
}

// fate is how a point ends. After alive follow the modes, in their order.
type fate int

const (
	alive fate = iota
	before
	after
	during
)

// point counts one, at which this happens.
func (c *crash) point(what string) fate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead.Err() != nil {
		return before
	}
	c.points++
	if c.points != c.at {
		return alive
	}
	c.what = what
	return before + fate(c.mode)
}

// die is the crash, if that is the fate and it has not happened yet.
func (c *crash) die(f fate) {
	if f == alive {
		return
	}
	if c.then != nil {
		c.then()
	}
	c.mu.Lock()
	first := !c.Crashed()
	c.kill()
	drop := c.drop
	c.drop = nil
	c.mu.Unlock()
	for _, d := range drop {
		d()
	}
	if first {
		close(c.dropped)
	}
}

// onDeath has something dropped by the crash, at once if it has happened.
func (c *crash) onDeath(drop func()) {
	c.mu.Lock()
	if c.dead.Err() == nil {
		c.drop = append(c.drop, drop)
		drop = func() {}
	}
	c.mu.Unlock()
	drop()
}
