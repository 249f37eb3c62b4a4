package ledger

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sledctl/sledctl/engine/ledger/format"
)

// dropMissing makes the present members the only ones. From then on nothing is
// missing, no flag is needed, and every View warns. The facts that follow are
// written by the caller.
//
// The present members are equal and members by their own last epoch line. What
// they cannot know is whether the missing ones did the same without them: the
// witness does.
func (l *Ledger) dropMissing(ctx context.Context, p *survey) (*survey, error) {
	witnessed, err := l.confirm(ctx, p)
	if err != nil {
		return nil, err
	}
	if !witnessed {
		l.warn("no witness could rule out that the missing ledger copies continued without this one")
	}
	var present []MemberRef
	lost := slices.Clone(p.epoch.Lost)
	for _, s := range p.epoch.Copies {
		if slices.ContainsFunc(p.members, func(c *copyAt) bool { return c.text.Copy == s.Copy }) {
			present = append(present, s)
		} else {
			lost = append(lost, s)
		}
	}
	by := l.degraded()
	return l.change(ctx, p, p.epoch.Next(present, lost, by.who, by.why), p.members, nil)
}

// change begins an epoch: its line goes to the first copies, then to the
// others, then the witness is told. A copy among the others has what the first
// have. The caller has had the last change confirmed.
func (l *Ledger) change(ctx context.Context, p *survey, e Epoch, first, others []*copyAt) (*survey, error) {
	line := format.EncodeLine(p.best.text.Head(), e.N, time.Now(), []Fact{e.Fact()})
	if err := l.unstamp(); err != nil {
		return nil, fmt.Errorf("change who keeps the ledger: %w", err)
	}
	for _, copies := range [][]*copyAt{first, others} {
		if err := l.write(copies, line); err != nil {
			return nil, l.kill(err, false)
		}
	}
	p, err := l.settle(p)
	if err != nil {
		return nil, err
	}
	if err := l.updateWitness(ctx, p); err != nil {
		return nil, err
	}
	p.evidence.agreed, p.evidence.marks = true, max(1, p.evidence.marks)
	l.restamp(p, true)
	return p, nil
}
