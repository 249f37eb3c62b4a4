package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/sledctl/sledctl/host"
)

// read looks as a reader does.
func (l *lab) read() error {
	v, err := l.process().Read(context.Background())
	if err != nil {
		return l.refusal(err)
	}
	return l.see(v, l.strict())
}

// update appends something as a writer does, with a new process or one that
// has looked before.
func (l *lab) update(p *Ledger, degrade bool, meanwhile func() error) error {
	if degrade {
		p.Degrade("lab", "alone")
	}
	n, before := l.next, l.maybe
	l.next++
	refused := slices.Concat(l.refused, []int{n})
	l.ifNot = l.belief
	l.ifNot.refused = refused
	l.ifUnknown = l.ifNot
	var law error
	decided, epoch := false, uint64(0)
	v, err := p.Update(context.Background(), func(v View) (facts []Fact, err error) {
		if law = l.see(v, l.strict()); law != nil {
			return nil, nil
		}
		if meanwhile != nil {
			law = meanwhile()
		}
		decided, epoch = true, v.Epoch().N
		l.ifNot = l.belief
		l.ifNot.refused = refused
		facts, err = l.decide(n, v)
		l.ifUnknown = l.belief
		if degrade {
			l.ifUnknown = l.belief.changing()
			l.ifUnknown.maybe = slices.Concat(before, l.maybe)
		}
		return facts, err
	})
	if law != nil {
		return law
	}
	if err == nil {
		if v.Epoch().N != epoch {
			l.changes++
		}
		if law := l.see(v, true); law != nil {
			return law
		}
		return l.acknowledged(n)
	}
	if degrade && decided {
		l.belief = l.belief.changing()
	}
	w, failed := errors.AsType[*WriteError](err)
	if failed {
		if _, after := p.Read(context.Background()); !errors.Is(after, ErrWriteFailed) {
			return fmt.Errorf("a process goes on after %v", w) // no %w: a disk that failed is not what is wrong
		}
	}
	if failed && w.Unknown {
		return nil
	}
	l.refused, l.maybe = refused, before
	return l.refusal(err)
}

// late appends something with a process that looked before another one wrote.
func (l *lab) late() error {
	p := l.process()
	if _, err := p.Read(context.Background()); err != nil {
		return l.refusal(err)
	}
	if err := l.update(l.process(), false, nil); err != nil {
		return err
	}
	return l.update(p, false, nil)
}

// fail appends something while a disk fails in its nth change, and works again
// after it; half says that it takes half of that one.
func (l *lab) fail(d *disk, n int, half bool) error {
	fault := error(syscall.EIO)
	if half {
		fault = errHalf
	}
	d.budget, d.fault = n, func() error {
		d.working()
		return fault
	}
	err := l.update(l.process(), false, nil)
	l.sled.revive()
	if errors.Is(err, syscall.EIO) || errors.Is(err, syscall.ENOSPC) {
		return nil // it says so
	}
	return err
}

// twin makes a disk a copy of another one, as dd(8) does.
func (l *lab) twin(d *disk) error {
	for _, other := range l.sled.disks {
		if other != d && other.mounted {
			d.files = other.files.Clone()
			d.flush()
			l.strayed(d)
			return nil
		}
	}
	return nil
}

// tidy rewrites one copy, whatever the others are. No line is lost to history.
func (l *lab) tidy(d *disk) error {
	p := l.process()
	picture, err := p.look(context.Background())
	if err != nil {
		return l.refusal(err)
	}
	c := picture.member(d.at)
	if c == nil || !p.mayRewrite(picture) {
		return nil
	}
	before := l.history()
	l.ifNot, l.ifUnknown = l.belief, l.belief
	keep, leave, err := c.text.Split()
	if err != nil || len(leave) == 0 {
		return err
	}
	if err := p.leaveOut(c, keep, leave); err != nil {
		return fmt.Errorf("rewrite: %w", err)
	}
	if now := l.history(); now < before {
		return fmt.Errorf("history had %d lines, now %d", before, now)
	}
	return nil
}

// history is how many lines can still be read.
func (l *lab) history() int {
	n := 0
	for _, err := range History(context.Background(), l.sled, l.sled.places()) {
		if err == nil {
			n++
		}
	}
	return n
}

// create must never make a second ledger.
func (l *lab) create() error {
	err := Create(context.Background(), l.sled, l.sled.places(), Creation{Who: "lab"})
	if err == nil {
		return fmt.Errorf("a second ledger was made")
	}
	return l.refusal(err)
}

// flush makes what is on a disk certain, as an unmount does.
func (d *disk) flush() { d.files.Settle() }

// others is a sled whose locks are not waited for.
type others struct{ *sled }

func (o others) Lock(ctx context.Context, name string, mode host.LockMode) (host.Lock, error) {
	try := host.TryExclusive
	if mode == host.LockShared {
		try = host.TryShared
	}
	return o.sled.Lock(ctx, name, try)
}

// meanwhile is another process that writes while this one decides: it must not
// get that far.
func (l *lab) meanwhile() error {
	p := l.process()
	p.files = others{l.sled}
	n := l.next
	l.next++
	value, err := json.Marshal(opName(n))
	if err != nil {
		return err
	}
	_, err = p.Update(context.Background(), func(View) ([]Fact, error) { return []Fact{{Key: "other", Value: value}}, nil })
	if err == nil {
		return fmt.Errorf("two processes write at once")
	}
	if !errors.Is(err, host.ErrLocked) {
		return fmt.Errorf("unexplained: %w", err)
	}
	return nil
}
