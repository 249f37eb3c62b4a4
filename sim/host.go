package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/tools"
	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
)

// simHost is a sled as a host.Host.
type simHost struct{ sled *Sled }

// Files is the file system of the global zone.
func (h *simHost) Files() host.Files { return h.sled.files }

// Run runs one command. One that changes something is never ended: when ctx
// is, it continues alone, as a real one does.
func (h *simHost) Run(ctx context.Context, c host.Command) (host.Result, error) {
	if err := ctx.Err(); err != nil {
		return host.Result{}, fmt.Errorf("%s was not run: %w", c.Program, err)
	}
	if err := c.Check(); err != nil {
		return host.Result{}, err
	}
	call := callOf(c)
	if err := h.Lookup(call.Tool); err != nil {
		return host.Result{}, err
	}
	if c.ReadOnly {
		reply, err := h.sled.dispatcher(nil).Exec(ctx, call)
		if err != nil && ctx.Err() != nil {
			err = fmt.Errorf("%s was killed: %w", c.Program, ctx.Err())
		}
		if c.Output != nil && err == nil {
			_, err = io.WriteString(c.Output, reply.Stdout)
			reply.Stdout = ""
		}
		return resultOf(c, reply), err
	}
	var broken error
	if c.Input != nil {
		if call.Stdin, broken = arrived(ctx, c.Input); ctx.Err() != nil { // it has lost its input, and has a moment for that
			var release func()
			ctx, release = context.WithTimeout(context.WithoutCancel(ctx), inputGrace)
			defer release()
		}
	}
	result, err := h.change(ctx, c, call)
	if broken != nil {
		err = errors.Join(err, &host.InputError{Program: c.Program, Err: broken})
	}
	return result, err
}

// inputGrace is how long a command that has lost its input is waited for, as on a real sled.
const inputGrace = 10 * time.Second

// arrived is what comes from a reader until the context ends.
func arrived(ctx context.Context, in io.Reader) ([]byte, error) {
	type part struct {
		data []byte
		err  error
	}
	parts := make(chan part)
	go func() {
		for {
			data := make([]byte, 64<<10)
			n, err := in.Read(data)
			select {
			case parts <- part{data[:n], err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	all := []byte{} // there is input, if none of it
	for {
		select {
		case p := <-parts:
			all = append(all, p.data...)
			switch {
			case errors.Is(p.err, io.EOF):
				return all, nil
			case p.err != nil:
				return all, p.err
			}
		case <-ctx.Done():
			return all, context.Cause(ctx)
		}
	}
}

// Lookup fails with host.ErrNoCommand if the sled lacks one of the programs.
func (h *simHost) Lookup(programs ...string) error {
	for _, p := range programs {
		_, ok := tools.Lookup(p)
		if !ok {
			_, ok = tools.Script(h.sled.files, p)
		}
		if !ok {
			return fmt.Errorf("%s: %w (simulated sled)", p, host.ErrNoCommand)
		}
	}
	return nil
}

// change runs a command that outlives its caller.
func (h *simHost) change(ctx context.Context, c host.Command, call cli.Call) (host.Result, error) {
	type end struct {
		reply cli.Reply
		err   error
	}
	ended := make(chan end, 1)
	killed := make(chan struct{})
	release := host.Retain(ctx)
	h.sled.left.Go(func() {
		reply, err := h.sled.dispatcher(sync.OnceFunc(func() { close(killed) })).Exec(h.sled.ctx, call)
		release() // a real child's locks are free before its end is known
		ended <- end{reply, err}
	})
	dead := fmt.Errorf("%s: the caller was %w", c.Program, ErrKilled)
	select {
	case e := <-ended:
		select {
		case <-killed: // before that, and was not heard of
			return host.Result{}, dead
		default:
		}
		if errors.Is(e.err, context.Canceled) {
			e.err = fmt.Errorf("%s: the simulated sled was closed: %w", c.Program, e.err)
		}
		return resultOf(c, e.reply), e.err
	case <-killed:
		return host.Result{}, dead
	case <-ctx.Done():
		return host.Result{}, &host.StillRunningError{PID: os.Getpid(), Command: c, Err: ctx.Err()}
	}
}

// dispatcher runs one command. Killed is called when a fault kills its caller.
func (s *Sled) dispatcher(killed func()) *tools.Dispatcher {
	return &tools.Dispatcher{World: s.world, Kill: func() {
		if s.Kill != nil {
			s.Kill()
		}
		if killed != nil {
			killed()
		}
	}}
}

func callOf(c host.Command) cli.Call {
	argv := c.Argv()
	call := cli.Call{Tool: argv[0], Args: argv[1:], Stdin: c.Stdin, Env: map[string]string{}, Zone: world.GlobalZone}
	if c.Zone == "" {
		for _, e := range c.Env {
			name, value, _ := strings.Cut(e, "=")
			call.Env[name] = value
		}
	}
	return call
}

func resultOf(c host.Command, r cli.Reply) host.Result {
	return host.FinishZoneResult(c, host.Result{Exit: r.Exit, Stdout: []byte(r.Stdout), Stderr: []byte(r.Stderr)})
}
