package propolis

import (
	"context"
	"errors"
	"time"

	"github.com/sledctl/sledctl/sim/world"
)

// What has become of a migration is not in one sled's state alone: the other
// side may have ended before its time. So each request lets the server look at
// the other side first, and repair its own future by what it finds.

// patience is how long a target that says nothing may be about to say something.
// Its server can only have died with the program that answers for it.
const patience = 10 * time.Second

// settle makes the server's machine agree with the other sides of its
// migrations, as far as these are not over for sure.
func (s *server) settle(ctx context.Context) error {
	var in, out *world.Migration
	err := s.world.View(ctx, func(tx *world.Tx) error {
		if p := find(tx, s.pid); p != nil && p.VM != nil {
			in, out = unsure(p.VM.In), unsure(p.VM.Out)
		}
		return nil
	})
	for _, m := range []*world.Migration{in, out} {
		if err == nil && m != nil {
			err = s.settleOne(ctx, *m)
		}
	}
	return err
}

func unsure(m *world.Migration) *world.Migration {
	if m == nil || m.Sure || m.Peer == "" {
		return nil
	}
	seen := *m
	return &seen
}

// account is what the other side's sled reports about a migration.
type account struct {
	gone   bool      // there is no such machine, or no such sled
	broke  time.Time // it ended then, before the migration did; zero: it did not
	course *world.Migration
}

func (s *server) settleOne(ctx context.Context, m world.Migration) error {
	told, err := s.ask(ctx, m)
	if err != nil {
		return err
	}
	return s.world.Update(ctx, func(tx *world.Tx) error {
		p := find(tx, s.pid)
		if p == nil || p.VM == nil {
			return nil
		}
		for _, own := range []*world.Migration{p.VM.In, p.VM.Out} {
			if own != nil && own.ID == m.ID {
				conclude(tx, p.VM, own, told)
			}
		}
		return nil
	})
}

// ask looks at the other side.
func (s *server) ask(ctx context.Context, m world.Migration) (account, error) {
	peer, err := s.world.Neighbour(ctx, m.Peer)
	if err != nil || peer == nil {
		return account{gone: true}, err
	}
	told := account{gone: true}
	err = peer.View(ctx, func(tx *world.Tx) error {
		told.broke, _ = tx.Broke(m.ID)
		for _, p := range tx.State.Processes {
			if p.VM == nil {
				continue
			}
			for _, other := range []*world.Migration{p.VM.In, p.VM.Out} {
				if other != nil && other.ID == m.ID {
					told.gone = false
					if !other.End.IsZero() {
						course := *other
						told.course = &course
					}
				}
			}
		}
		return nil
	})
	if errors.Is(err, world.ErrNoWorld) {
		return account{gone: true}, nil
	}
	return told, err
}

// repair writes what the other side told into a machine's future.
func conclude(tx *world.Tx, vm *world.VM, m *world.Migration, told account) {
	if m.End.IsZero() && told.course != nil { // the target has made up its mind
		m.Stages, m.Fails, m.Listen, m.From = told.course.Stages, told.course.Fails, told.course.Listen, told.course.From
		if len(m.Stages) == 0 {
			breakOff(vm, m, told.course.End)
		} else {
			playOut(vm)
		}
	}
	switch {
	case !told.broke.IsZero() && (m.End.IsZero() || told.broke.Before(m.End)):
		breakOff(vm, m, told.broke)
	case told.broke.IsZero() && told.gone && m.Flows(tx.Now), m.End.IsZero() && tx.Now.Sub(m.Phases[0].From) > patience:
		breakOff(vm, m, tx.Now)
	}
	if m.Sure = !m.Flows(tx.Now); m.Sure && m == vm.In && !m.Fails {
		takeOver(tx, vm)
	}
}

// breakOff ends a migration at a moment: the source goes on, the target fails.
func breakOff(vm *world.VM, m *world.Migration, at time.Time) {
	vm.Timeline, m.Phases = until(vm.Timeline, at), until(m.Phases, at)
	m.End, m.Fails = at, true
	if m == vm.Out {
		vm.Moved = nil
		goOn(vm)
		return
	}
	failIn(vm, at)
}

// until is a timeline up to a moment.
func until(timeline []world.Timepoint, at time.Time) []world.Timepoint {
	for i, point := range timeline {
		if point.From.After(at) {
			return timeline[:i:i]
		}
	}
	return timeline
}

// follow settles as soon as the other side of a migration that flows ends, until
// it is stopped: requests that wait for this machine learn it.
func (c *call) follow() (stop func()) {
	ctx, cancel := context.WithCancel(c.r.Context())
	var m *world.Migration
	_ = c.view(func(tx *world.Tx, p *world.Process) error {
		if p.VM != nil && p.VM.Migrating(tx.Now) != nil {
			m = unsure(p.VM.Migrating(tx.Now))
		}
		return nil
	})
	if m == nil {
		return cancel
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		peer, err := c.world.Neighbour(ctx, m.Peer)
		if err != nil || peer == nil {
			return
		}
		broke := func(tx *world.Tx) bool { _, broke := tx.Broke(m.ID); return broke }
		if peer.Wait(ctx, broke) == nil {
			_ = c.settle(ctx)
		}
	}()
	return func() { cancel(); <-done }
}
