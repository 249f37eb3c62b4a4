package tools

import (
	"context"
	"errors"
	"fmt"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/tools/shell"
	"github.com/sledctl/sledctl/sim/world"
)

// inside is a Machine within one transaction: commands run at once, and the
// time that they take or wait for passes on the transaction's own clock only.
// What is scheduled for that time happens afterwards. So a start method is one
// event, and what it has done is there when it begins.
type inside struct{ tx *world.Tx }

var _ cli.Machine = (*inside)(nil)

// Has tells whether the sled has a command of this name.
func (m *inside) Has(name string) bool { _, ok := Lookup(name); return ok }

// Exec runs a command; the error is errBlocked if it does not end.
func (m *inside) Exec(ctx context.Context, c cli.Call) (cli.Reply, error) {
	tool, ok := find(c.Tool)
	if !ok {
		return cli.Reply{}, fmt.Errorf("%s: %w", c.Tool, ErrNoTool)
	}
	if c.Zone == "" {
		c.Zone = world.GlobalZone
	}
	f := m.tx.TakeFault(cli.Words(c), commandFaults()...)
	if f == nil {
		return m.finish(ctx, tool(m.tx, c))
	}
	switch f.Name {
	case world.FaultKill, world.FaultKillAfter, world.FaultKillDuring:
		return cli.Reply{}, cli.ErrKilled
	case world.FaultKilled:
		return cli.Reply{Exit: cli.ExitKilled}, nil
	case world.FaultHang, world.FaultMissed:
		if f.Delay == 0 {
			return cli.Reply{}, cli.ErrBlocked
		}
		m.tx.Now = m.tx.Now.Add(f.Delay)
		return m.finish(ctx, tool(m.tx, c))
	}
	return m.finish(ctx, faulted(m.tx, f, tool, c))
}

// finish runs what is left of a command.
func (m *inside) finish(ctx context.Context, whole cli.Reply) (cli.Reply, error) {
	for whole.Next != nil {
		n := whole.Next
		m.tx.Now = m.tx.Now.Add(n.After)
		for n.Until != nil && !n.Until(m.tx) {
			next, ok := m.tx.State.NextTime(m.tx.Now)
			if !ok {
				return whole, cli.ErrBlocked
			}
			m.tx.Now = next
		}
		var reply cli.Reply
		var err error
		if n.Session != nil {
			reply, err = n.Session(ctx, m)
		} else {
			reply = n.Do(m.tx)
		}
		whole.Add(reply)
		if err != nil {
			return whole, err
		}
	}
	return whole, nil
}

// Start runs a command that is not waited for.
func (m *inside) Start(ctx context.Context, c cli.Call) error {
	now := m.tx.Now
	defer func() { m.tx.Now = now }()
	_, _ = m.Exec(ctx, c)
	return nil
}

// View shows the sled within the transaction.
func (m *inside) View(_ context.Context, fn func(*world.Tx)) error { fn(m.tx); return nil }

// RunShell runs a script in a zone, within this transaction: its commands are
// the commands of the sled, a few small utilities of the shell and programs
// found among the zone's files; its files are the zone's. Commands that take
// time take it on the transaction's clock, which is set back at the end; Took
// says how long it was.
func RunShell(tx *world.Tx, zone, script string, env map[string]string, stdin []byte) cli.Reply {
	start := tx.Now
	defer func() { tx.Now = start }()
	reply, err := shell.Run(context.Background(), &inside{tx}, zone, script, env, stdin)
	reply.Blocked = errors.Is(err, cli.ErrBlocked)
	if errors.Is(err, cli.ErrKilled) {
		reply.Exit = cli.ExitKilled
	}
	reply.Took = tx.Now.Sub(start)
	return reply
}
