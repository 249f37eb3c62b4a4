package tools

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
)

// ErrNoTool is returned for a command that the sled does not have.
var ErrNoTool = errors.New("no such command")

// Dispatcher runs commands on a world from their first transaction to their
// last, and what lies between: locks, latencies, waits and faults.
type Dispatcher struct {
	World *world.World
	// Kill is what a fault that kills the caller does. Nil: the command's
	// error is ErrKilled.
	Kill func()
	// Stale says that a transaction has something to do before the sled is looked at.
	// Nil: none ever has.
	Stale func(*world.Tx) bool
}

var _ cli.Machine = (*Dispatcher)(nil)

// Has tells whether the sled has a command of this name.
func (d *Dispatcher) Has(name string) bool { _, ok := Lookup(name); return ok }

// Exec runs a command to its end. The error is ErrNoTool, ErrKilled, the
// context's, or one of the world itself.
func (d *Dispatcher) Exec(ctx context.Context, c cli.Call) (cli.Reply, error) {
	tool, ok := find(c.Tool)
	if !ok {
		tool, ok = Script(d.World.Files(), c.Tool)
	}
	if !ok {
		return cli.Reply{}, fmt.Errorf("%s: %w", c.Tool, ErrNoTool)
	}
	if c.Zone == "" {
		c.Zone = world.GlobalZone
	}
	r := &running{Dispatcher: d, call: c, locked: map[string]func(){}}
	defer r.unlock()
	return r.run(ctx, tool)
}

// Start runs a command that is not waited for: what it would wait for has
// come, as far as it can be foreseen.
func (d *Dispatcher) Start(ctx context.Context, c cli.Call) error {
	return d.World.Update(ctx, func(tx *world.Tx) error { return (&inside{tx}).Start(ctx, c) })
}

// View shows the sled.
func (d *Dispatcher) View(ctx context.Context, fn func(*world.Tx)) error {
	return d.World.View(ctx, func(tx *world.Tx) error { fn(tx); return nil })
}

// running is a command on its way.
type running struct {
	*Dispatcher
	call   cli.Call
	views  bool // it only looks
	locked map[string]func()
	missed *world.Fault // it does not notice what it waits for
}

func (r *running) unlock() {
	for _, unlock := range r.locked {
		unlock()
	}
}

func (r *running) run(ctx context.Context, tool cli.Tool) (cli.Reply, error) {
	whole, fault, err := r.begin(ctx, tool)
	if err != nil {
		return whole, err
	}
	if fault != nil {
		if whole, err = r.suffer(ctx, fault, tool, whole); err != nil {
			return whole, err
		}
	}
	for whole.Next != nil {
		if fault != nil && fault.Name == world.FaultKilled && whole.Next.Lock == "" && fault.Text == whole.Next.At {
			break
		}
		reply, err := r.next(ctx, whole.Next)
		whole.Add(reply)
		if err != nil {
			return whole, err
		}
	}
	switch {
	case fault == nil:
	case fault.Name == world.FaultKillAfter:
		return whole, r.kill()
	case fault.Name == world.FaultKilled:
		return cli.Reply{Stdout: whole.Stdout, Stderr: whole.Stderr, Exit: cli.ExitKilled}, nil
	}
	return whole, nil
}

// begin is the first transaction of a command, and the fault that it has met. One
// that only looks keeps nobody waiting, if there is no fault that it would use up.
func (r *running) begin(ctx context.Context, tool cli.Tool) (whole cli.Reply, fault *world.Fault, err error) {
	if r.views = looks(r.call); r.views {
		writes := false
		whole, err = r.transaction(ctx, func(tx *world.Tx) cli.Reply {
			if writes = len(tx.State.Faults) > 0 || r.Stale != nil && r.Stale(tx); writes {
				return cli.Reply{}
			}
			return tool(tx, r.call)
		})
		if !writes || err != nil {
			return whole, nil, err
		}
		r.views = false
	}
	whole, err = r.transaction(ctx, func(tx *world.Tx) cli.Reply {
		if fault = tx.TakeFault(cli.Words(r.call), commandFaults()...); fault == nil {
			return tool(tx, r.call)
		}
		return faulted(tx, fault, tool, r.call)
	})
	return whole, fault, err
}

// suffer is what a fault does between transactions.
func (r *running) suffer(ctx context.Context, f *world.Fault, tool cli.Tool, so cli.Reply) (cli.Reply, error) {
	switch f.Name {
	case world.FaultKill:
		return so, r.kill()
	case world.FaultKillDuring:
		_ = r.kill()
	case world.FaultMissed:
		r.missed = f
	case world.FaultHang:
		if err := r.hang(ctx, f); err != nil {
			return so, err
		}
		return r.transaction(ctx, func(tx *world.Tx) cli.Reply { return tool(tx, r.call) })
	}
	return so, nil
}

func (r *running) hang(ctx context.Context, f *world.Fault) error {
	if f.Delay > 0 {
		return r.sleep(ctx, f.Delay)
	}
	return r.wait(ctx, func(tx *world.Tx) bool { return !tx.Armed(f.Name, f.Match) })
}

func (r *running) kill() error {
	if r.Kill != nil {
		r.Kill()
	}
	return cli.ErrKilled
}

// next goes one transaction further.
func (r *running) next(ctx context.Context, n *cli.Next) (cli.Reply, error) {
	if n.Lock != "" && r.locked[n.Lock] == nil {
		unlock, err := r.World.LockZone(ctx, n.Lock)
		if err != nil {
			return cli.Reply{}, err
		}
		r.locked[n.Lock] = unlock
	}
	if n.Hold != nil {
		release, err := r.World.HoldLink(ctx, *n.Hold)
		if err != nil {
			return cli.Reply{}, err
		}
		defer release()
	}
	if n.After > 0 {
		if err := r.sleep(ctx, n.After); err != nil {
			return cli.Reply{}, err
		}
	}
	if n.Until != nil {
		if r.missed != nil {
			if err := r.hang(ctx, r.missed); err != nil {
				return cli.Reply{}, err
			}
		}
		if err := r.wait(ctx, n.Until); err != nil {
			return cli.Reply{}, err
		}
	}
	if n.Session != nil {
		return n.Session(ctx, r.Dispatcher)
	}
	return r.transaction(ctx, n.Do)
}

// sleep waits, but not longer than the zone lives in which the command runs: the
// transaction that follows tells.
func (r *running) sleep(ctx context.Context, delay time.Duration) error {
	limited, cancel := context.WithTimeout(ctx, delay)
	defer cancel()
	if r.call.Kernel == 0 {
		<-limited.Done()
		return ctx.Err()
	}
	if err := r.wait(limited, func(*world.Tx) bool { return false }); err != nil {
		return ctx.Err()
	}
	return nil
}

// transaction runs fn, unless the zone that the command runs in is gone.
func (r *running) transaction(ctx context.Context, fn func(*world.Tx) cli.Reply) (cli.Reply, error) {
	run := r.World.Update
	if r.views {
		run = r.World.View
	}
	var reply cli.Reply
	err := run(ctx, func(tx *world.Tx) error {
		if !alive(tx, r.call) {
			return cli.ErrKilled
		}
		reply = fn(tx)
		return nil
	})
	return reply, err
}

// wait waits until something holds or the command is dead; the transaction
// that follows tells.
func (r *running) wait(ctx context.Context, until func(*world.Tx) bool) error {
	return r.World.Wait(ctx, func(tx *world.Tx) bool { return until(tx) || !alive(tx, r.call) })
}

// alive tells whether the zone in which a command runs is still the one that
// it was started in, and runs processes: one that is mounted does too.
func alive(tx *world.Tx, c cli.Call) bool {
	if c.Kernel == 0 {
		return true
	}
	z := tx.FindZone(c.Zone)
	return z != nil && z.Kernel != nil && z.Kernel.ID == c.Kernel &&
		(z.Kernel.State == world.ZoneRunning || z.Kernel.State == world.ZoneMounted)
}
