package ledger

import (
	"context"
	"fmt"
	"slices"
)

// Mark says which epoch of which ledger was last in force.
type Mark struct {
	Ledger string
	N      uint64
	Epoch  string // the epoch's id
}

// Witness keeps a Mark outside the copies, so that a copy which slept while
// others went on is known for what it is. It is asked before the ledger is
// created, before a sled goes on alone, and before anything is read or appended
// directly behind an epoch line; it is told of each epoch once that is on disk.
type Witness interface {
	// Read returns the mark with the highest N, false if there is none. Marks of
	// one N that differ otherwise are an error.
	Read(ctx context.Context) (Mark, bool, error)
	Write(ctx context.Context, m Mark) error
}

// NoWitness is the witness of a sled that has none yet: it remembers nothing.
// With it, nobody can tell whether a missing copy went on alone meanwhile.
type NoWitness struct{}

// Read finds no mark.
func (NoWitness) Read(context.Context) (Mark, bool, error) { return Mark{}, false, nil }

// Write forgets the mark.
func (NoWitness) Write(context.Context, Mark) error { return nil }

// consult refuses if the witness knows of an epoch that the copies at hand do
// not. It says whether there was a mark at all.
func (l *Ledger) consult(ctx context.Context, p *picture) (witnessed bool, err error) {
	mark, ok, err := l.places.Witness.Read(ctx)
	if err != nil {
		return false, fmt.Errorf("ask the witness of the state file: %w", err)
	}
	if !ok {
		return false, nil
	}
	known := slices.ContainsFunc(p.best.text.epochs, func(e Epoch) bool { return e.N == mark.N && e.ID == mark.Epoch })
	if known && mark.Ledger == p.best.text.Ledger {
		return true, nil
	}
	e := &OverruledError{Mark: mark}
	for _, c := range p.members {
		e.Files = append(e.Files, c.File())
	}
	return true, e
}

// testify tells the witness which epoch is in force.
func (l *Ledger) testify(ctx context.Context, p *picture) error {
	mark := Mark{Ledger: p.best.text.Ledger, N: p.epoch.N, Epoch: p.epoch.ID}
	if err := l.places.Witness.Write(ctx, mark); err != nil {
		return fmt.Errorf("tell the witness of the state file: %w", err)
	}
	return nil
}

// unconfirmed says whether nothing follows the last epoch line. Whoever wrote
// it may not have lived to tell the witness, and others may have gone on.
func (p *picture) unconfirmed() bool { return p.best.text.head().Seq == p.epoch.Seq }

// affirm does what must be done before anything is appended behind an epoch
// line.
func (l *Ledger) affirm(ctx context.Context, p *picture) error {
	if !p.unconfirmed() {
		return nil
	}
	if _, err := l.consult(ctx, p); err != nil {
		return err
	}
	return l.testify(ctx, p)
}

// doubt warns of a view that such a line may have made too small.
func (l *Ledger) doubt(ctx context.Context, p *picture) {
	if !p.unconfirmed() {
		return
	}
	if _, err := l.consult(ctx, p); err != nil {
		p.warn("%v", err)
	}
}
