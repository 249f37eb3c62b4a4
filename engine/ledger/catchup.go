package ledger

import (
	"context"
	"fmt"
	"slices"

	"github.com/sledctl/sledctl/engine/ledger/format"
	"github.com/sledctl/sledctl/host"
)

// writing lets do change what writer has found. Nobody else writes meanwhile.
func (l *Ledger) writing(ctx context.Context, do func(*survey) error) error {
	unlock, err := l.lock(ctx, host.LockExclusive)
	if err != nil {
		return err
	}
	defer unlock()
	p, err := l.writer(ctx)
	if err != nil {
		return err
	}
	return do(p)
}

// writer is a look at all places by someone who holds the lock alone and wants
// to write: no member may be missing (unless the sled may continue without it), and
// those that are present end up equal. A line that its writer did not live to
// acknowledge is rolled forward, never dropped.
func (l *Ledger) writer(ctx context.Context) (*survey, error) {
	p, err := l.lookToWrite(ctx)
	if err != nil || p.level() {
		return p, err
	}
	if err := l.catchUp(p); err != nil {
		return nil, l.kill(err, false)
	}
	if p, err = l.lookToWrite(ctx); err != nil {
		return nil, err
	}
	if !p.level() {
		return nil, fmt.Errorf("%s and %s still differ after the shorter was brought up", p.best.File(), p.shortest().File())
	}
	return p, nil
}

// lookToWrite refuses what a writer may not continue with.
func (l *Ledger) lookToWrite(ctx context.Context) (*survey, error) {
	p, err := l.look(ctx)
	if err != nil {
		return nil, err
	}
	if len(p.members) == 0 {
		return nil, p.missingError()
	}
	if err := l.weigh(ctx, p, true); err != nil {
		return nil, err
	}
	if len(p.missing) == 0 || l.degraded() != nil {
		return p, nil
	}
	return nil, p.missingError()
}

func (l *Ledger) degraded() *reason {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dropping
}

// level says whether all present members hold what the best copy holds, and
// can be appended to.
func (p *survey) level() bool {
	return !slices.ContainsFunc(p.members, p.lags)
}

func (p *survey) lags(c *copyAt) bool {
	return c.text.End != format.EndComplete || c.text.Head() != p.best.text.Head()
}

// catchUp brings shorter members up to the best copy: one line is appended, more
// are written with the whole file. What is no line is cut by writing the file again.
func (l *Ledger) catchUp(p *survey) error {
	best := p.best.text
	for _, c := range p.members {
		switch {
		case !p.lags(c):
			continue
		case c.text.End == format.EndComplete && best.Follows(c.text.Head()):
			if err := l.files.Append(c.File(), append(slices.Clip(best.Line(best.Len()-1)), '\n')); err != nil {
				return err
			}
			// The look that follows flushes it.
		default:
			if err := l.spare(c); err != nil {
				return err
			}
			if err := l.replace(c.Location, best.As(c.text.Copy)); err != nil {
				return err
			}
		}
	}
	return nil
}
