package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"

	"github.com/sledctl/sledctl/engine/ledger/format"
)

// look visits every place, reads what has changed there since the last look,
// and decides what it amounts to. The lock is held.
func (l *Ledger) look(ctx context.Context) (*survey, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead != nil {
		return nil, l.dead
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	visits := make([]*probe, len(l.places.Locations))
	for i, at := range l.places.Locations {
		visits[i] = &probe{Location: at, before: l.seen[at.Directory]}
	}
	l.each(visits, func(v *probe) { v.read(l.files) })
	var known *format.Text
	for _, v := range visits {
		v.verify(l, known)
		if v.found != nil && known == nil {
			known = v.found.text
		}
	}
	for _, v := range visits {
		v.believe()
	}
	l.seen, l.absent = map[string]*copyAt{}, nil
	for _, v := range visits {
		if v.found != nil {
			l.seen[v.Directory] = v.found
		} else {
			l.absent = append(l.absent, Absence{File: v.File(), Pool: v.Pool, Err: v.err})
		}
	}
	unchanged := !slices.ContainsFunc(visits, func(v *probe) bool { return v.found == nil || v.found != v.before })
	if !unchanged {
		l.sure = nil // the next look is compared with this one
	}
	p, err := l.decide()
	if err == nil {
		p.unchanged = unchanged
	}
	return p, err
}

// each does something in every place, side by side.
func (l *Ledger) each(visits []*probe, do func(*probe)) {
	if len(visits) == 1 {
		do(visits[0])
		return
	}
	var wg sync.WaitGroup
	for _, v := range visits {
		wg.Go(func() { do(v) })
	}
	wg.Wait()
}

// decide applies the rules to what is known of all places.
func (l *Ledger) decide() (*survey, error) {
	var copies []*copyAt
	for _, at := range l.places.Locations {
		if c := l.seen[at.Directory]; c != nil {
			copies = append(copies, c)
		}
	}
	for _, a := range l.absent {
		if exhausted(a.Err) {
			return nil, fmt.Errorf("read the ledger: %w", a.Err) // nothing is known of the copy
		}
	}
	p, err := choose(copies, l.absent)
	if err == nil {
		p.warnings = append(p.warnings, l.doubts...)
	}
	return p, err
}

// exhausted says whether a file was not opened for lack of descriptors.
func exhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// warn is a warning of every later View, and told at once.
func (l *Ledger) warn(text string) {
	l.mu.Lock()
	l.doubts = append(l.doubts, text)
	l.mu.Unlock()
	if l.places.Warn != nil {
		l.places.Warn(text)
	}
}
