package ledger

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// goAlone makes the present members the only ones. From then on nothing is
// missing, no flag is needed, and every View warns. The facts that follow are
// written by the caller.
//
// The present members are equal and members by their own last epoch line. What
// they cannot know is whether the missing ones did the same without them: the
// witness does.
func (l *Ledger) goAlone(ctx context.Context, p *picture) (*picture, error) {
	if err := l.consult(ctx, p); err != nil {
		return nil, err
	}
	var present []Seat
	lost := slices.Clone(p.epoch.Lost)
	for _, s := range p.epoch.Copies {
		if slices.ContainsFunc(p.members, func(c *Copy) bool { return c.text.Copy == s.Copy }) {
			present = append(present, s)
		} else {
			lost = append(lost, s)
		}
	}
	return l.change(ctx, p, p.epoch.next(present, lost, *l.degraded()), p.members, nil)
}

// change begins an epoch: its line goes to the first copies, then to the
// others, then the witness is told. A copy among the others has what the first
// have.
func (l *Ledger) change(ctx context.Context, p *picture, e Epoch, first, others []*Copy) (*picture, error) {
	head := p.members[0].text.head()
	if head.Seq == p.epoch.Seq {
		if err := l.affirm(ctx, p); err != nil {
			return nil, err
		}
	}
	line := encodeLine(head, e.N, time.Now(), []Fact{e.fact()})
	for _, copies := range [][]*Copy{first, others} {
		if err := l.write(copies, line); err != nil {
			return nil, l.kill(err, false)
		}
	}
	p, err := l.settle()
	if err != nil {
		return nil, err
	}
	return p, l.testify(ctx, p)
}

// consult refuses if the witness knows of an epoch that the copies at hand do
// not.
func (l *Ledger) consult(ctx context.Context, p *picture) error {
	mark, ok, err := l.places.Witness.Read(ctx)
	if err != nil {
		return fmt.Errorf("ask the witness of the state file: %w", err)
	}
	if !ok {
		return nil
	}
	known := slices.ContainsFunc(p.best.text.epochs, func(e Epoch) bool { return e.N == mark.N && e.ID == mark.Epoch })
	if known && mark.Ledger == p.best.text.Ledger {
		return nil
	}
	e := &OverruledError{Mark: mark}
	for _, c := range p.members {
		e.Files = append(e.Files, c.File())
	}
	return e
}

// testify tells the witness which epoch is in force.
func (l *Ledger) testify(ctx context.Context, p *picture) error {
	mark := Mark{Ledger: p.best.text.Ledger, N: p.epoch.N, Epoch: p.epoch.ID}
	if err := l.places.Witness.Write(ctx, mark); err != nil {
		return fmt.Errorf("tell the witness of the state file: %w", err)
	}
	return nil
}

// affirm does both, before anything is appended behind an epoch line: whoever
// wrote that line may not have lived to tell.
func (l *Ledger) affirm(ctx context.Context, p *picture) error {
	if err := l.consult(ctx, p); err != nil {
		return err
	}
	return l.testify(ctx, p)
}
