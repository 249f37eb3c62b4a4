package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Mark says which epoch of which ledger was last in force. As JSON it is its
// text.
type Mark struct {
	Ledger string
	N      uint64
	Epoch  string // the epoch's id
}

// String is the mark as a witness keeps it: LEDGER:N:EPOCH.
func (m Mark) String() string { return fmt.Sprintf("%s:%d:%s", m.Ledger, m.N, m.Epoch) }

// ParseMark reads what String wrote. Any other text is an error.
func ParseMark(text string) (Mark, error) {
	ledger, rest, one := strings.Cut(text, ":")
	n, epoch, two := strings.Cut(rest, ":")
	number, err := strconv.ParseUint(n, 10, 64)
	if m := (Mark{ledger, number, epoch}); one && two && err == nil && number > 0 && ledger != "" && epoch != "" && m.String() == text {
		return m, nil
	}
	return Mark{}, fmt.Errorf("%q is not the mark of a state file, LEDGER:N:EPOCH", text)
}

// MarshalText is String.
func (m Mark) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText is ParseMark.
func (m *Mark) UnmarshalText(text []byte) (err error) {
	*m, err = ParseMark(string(text))
	return err
}

// Latest is the mark of several that counts, that with the highest N. Two of
// one N that differ otherwise are an error: the sled went on in two ways.
func Latest(marks ...Mark) (latest Mark, ok bool, err error) {
	for _, m := range marks {
		switch {
		case !ok || m.N > latest.N:
			latest, ok = m, true
		case m.N == latest.N && m != latest:
			return Mark{}, false, fmt.Errorf("witnesses contradict each other: %v and %v", latest, m)
		}
	}
	return latest, ok, nil
}

// Witness keeps a Mark outside the copies, so that a copy which slept while
// others went on is known for what it is. It is asked before the ledger is
// created, before its members are changed, and before anything is read or
// appended directly behind an epoch line; it is told of each epoch once that is
// on disk.
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
// not. It says what the mark is, and whether there is one at all.
func (l *Ledger) consult(ctx context.Context, p *picture) (mark Mark, witnessed bool, err error) {
	mark, ok, err := l.places.Witness.Read(ctx)
	if err != nil {
		return Mark{}, false, fmt.Errorf("ask the witness of the state file: %w", err)
	}
	if !ok || p.best.text.knows(mark) {
		return mark, ok, nil
	}
	e := &OverruledError{Mark: mark}
	for _, c := range p.members {
		e.Files = append(e.Files, c.File())
	}
	return mark, true, e
}

// knows says whether the mark's epoch is in the history of t, or was given up
// in it.
func (t *text) knows(m Mark) bool {
	return slices.ContainsFunc(t.epochs, func(e Epoch) bool { return e.mark(t.Ledger) == m || e.Despite != nil && *e.Despite == m })
}

// testify tells the witness which epoch is in force.
func (l *Ledger) testify(ctx context.Context, p *picture) error {
	if l.without.lacks(ruleTell) {
		return nil
	}
	if err := l.places.Witness.Write(ctx, p.epoch.mark(p.best.text.Ledger)); err != nil {
		return fmt.Errorf("tell the witness of the state file: %w", err)
	}
	return nil
}

// Attest tells the witness which epoch is in force, as it is told when one
// begins: it may have got disks since. The errors are those of Read, ErrMissing
// if any member is missing, ErrOverruled, and the witness' own.
func (l *Ledger) Attest(ctx context.Context) error {
	return l.writing(ctx, func(p *picture) error {
		if len(p.missing) > 0 {
			return p.missingError() // nobody has gone on without it yet
		}
		if _, _, err := l.consult(ctx, p); err != nil {
			return err
		}
		return l.testify(ctx, p)
	})
}

// unconfirmed says whether nothing follows the last epoch line. Whoever wrote
// it may not have lived to tell the witness, and others may have gone on.
func (p *picture) unconfirmed() bool { return p.best.text.head().Seq == p.epoch.Seq }

// affirm does what must be done before anything is appended behind an epoch
// line.
func (l *Ledger) affirm(ctx context.Context, p *picture) error {
	if !p.unconfirmed() || l.without.lacks(ruleConfirm) {
		return nil
	}
	if _, _, err := l.consult(ctx, p); err != nil {
		return err
	}
	return l.testify(ctx, p)
}

// confirm does what must be done before the members are changed, whatever the
// last line is: a copy that was given up while it was away does not know it.
func (l *Ledger) confirm(ctx context.Context, p *picture) (witnessed bool, err error) {
	_, witnessed, err = l.consult(ctx, p)
	if err != nil && !l.without.lacks(ruleAsk) {
		return witnessed, err
	}
	return witnessed, l.affirm(ctx, p)
}

// doubt refuses a view behind such a line if others are known to have gone on,
// and warns of one that they still may overrule: it is a view with a member
// missing, who counted until that line was written. What such a view holds may
// be lost; to refuse it would keep healthy disks from being read after any
// change of the members was killed. Nothing is ever done on its strength:
// whoever does something writes first, and that asks the witness and tells it.
func (l *Ledger) doubt(ctx context.Context, p *picture) error {
	if !p.unconfirmed() || l.without.lacks(ruleDoubt) {
		return nil
	}
	mark, witnessed, err := l.consult(ctx, p)
	switch {
	case errors.Is(err, ErrOverruled):
		return err
	case err != nil:
		p.warn("%v", err)
	case witnessed && mark != p.epoch.mark(p.best.text.Ledger), !witnessed && p.rivalled():
		p.warn("the change of who keeps the state file, to epoch %d, is not confirmed: until something is written, a copy that is away may overrule it", p.epoch.N)
	}
	return nil
}

// rivalled says whether a member of the epoch before is away, or does not hold
// what is shown: then it may go on without it.
func (p *picture) rivalled() bool {
	epochs, shown := p.best.text.epochs, p.shortest().text.head()
	if len(epochs) == 1 {
		return false
	}
	return slices.ContainsFunc(epochs[len(epochs)-2].Copies, func(s Seat) bool {
		return !slices.ContainsFunc(p.copies, func(c *copyAt) bool { return c.text.Copy == s.Copy && c.text.holds(shown) })
	})
}
