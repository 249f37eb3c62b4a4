package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/sledctl/sledctl/engine/ledger/format"
	"github.com/sledctl/sledctl/host"
	"golang.org/x/sync/errgroup"
)

// Update lets decide look at what the ledger holds and appends the facts that
// it returns, as one: no other process writes in between, and after any power
// cut either all of them are there or none. It returns once they are on the
// disks of all members, with the view that holds them. Without facts, or with
// decide's error, nothing is written. Decide must not use the Ledger.
//
// The errors are those of Read, ErrMissing if any member is missing (but see
// Degrade), ErrSuperseded, and ErrWriteFailed after which l is of no use; decide's own
// are returned as they are.
func (l *Ledger) Update(ctx context.Context, decide func(View) ([]Fact, error)) (View, error) {
	var view View
	err := l.writing(ctx, func(p *survey) (err error) {
		view, err = l.update(ctx, p, decide)
		return err
	})
	return view, err
}

func (l *Ledger) update(ctx context.Context, p *survey, decide func(View) ([]Fact, error)) (View, error) {
	view, err := p.view(p.best)
	if err != nil {
		return View{}, err
	}
	facts, err := decide(view)
	if err != nil || len(facts) == 0 {
		return view, err
	}
	if facts, err = format.CheckFacts(facts); err != nil {
		return view, err
	}
	if len(p.missing) > 0 && l.degraded() != nil {
		if p, err = l.dropMissing(ctx, p); err != nil {
			return view, err
		}
	}
	if p, err = l.append(ctx, p, facts); err != nil {
		return view, err
	}
	l.tidy(p)
	l.keepIndex(p.best.text, true)
	return p.view(p.best)
}

// append writes one line to all present members, which are equal.
func (l *Ledger) append(ctx context.Context, p *survey, facts []Fact) (*survey, error) {
	if err := l.affirm(ctx, p); err != nil {
		return nil, err
	}
	for _, m := range p.members {
		if err := private(l.files, m.Location); err != nil {
			return nil, err
		}
	}
	line := format.EncodeLine(p.best.text.Head(), p.epoch.N, time.Now(), facts)
	if size := len(p.best.text.Data()) + len(line); size > maxFile {
		return nil, fmt.Errorf("the ledger would have %d bytes: at most %d are possible", size, maxFile)
	}
	if err := l.write(p.members, line); err != nil {
		return nil, l.kill(err, true)
	}
	next, err := l.settle(p)
	if err == nil {
		l.restamp(next, true)
		l.sureOf(next)
	}
	return next, err
}

// settle applies the rules again after a write by someone who had found p.
func (l *Ledger) settle(p *survey) (*survey, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	next, err := l.decide()
	if err == nil {
		next.evidence = p.evidence
		next.evidence.doubt = ""
		next.unconfirmed = next.doubts()
	}
	return next, err
}

// write appends a line to copies that are equal: to all of them, then each is
// flushed.
func (l *Ledger) write(copies []*copyAt, line []byte) error {
	for _, c := range copies {
		if err := l.files.Append(c.File(), line); err != nil {
			return err
		}
	}
	if err := l.flush(copies); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sure = nil
	for _, c := range copies {
		longer, err := c.with(l.files, line)
		if err != nil {
			return err
		}
		l.seen[c.Directory] = longer
	}
	return nil
}

func (l *Ledger) flush(copies []*copyAt) error {
	var group errgroup.Group
	for _, c := range copies {
		group.Go(func() error { return l.files.Sync(c.File()) })
	}
	return group.Wait()
}

// with is the copy with a line that was just appended to its file.
func (c *copyAt) with(files host.Files, line []byte) (*copyAt, error) {
	info, err := files.Stat(c.File())
	if err != nil {
		return nil, err
	}
	if info.Inode != c.info.Inode || info.Size != c.info.Size+int64(len(line)) {
		return nil, fmt.Errorf("%s was changed by someone who does not hold the lock", c.File())
	}
	longer, err := c.text.Extend(line)
	if err != nil {
		return nil, err
	}
	return &copyAt{Location: c.Location, text: longer, info: info, left: c.left}, nil
}

// kill ends the use of l: after a failed write only a new Open can tell what
// is on the disks.
func (l *Ledger) kill(err error, unknown bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	dead := &WriteError{Err: err, Unknown: unknown}
	l.dead = dead
	return dead
}
