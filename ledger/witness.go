package ledger

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/host"
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
	unlock, err := l.lock(ctx, host.LockExclusive)
	if err != nil {
		return err
	}
	defer unlock()
	p, err := l.writer(ctx)
	if err != nil {
		return err
	}
	if len(p.missing) > 0 {
		return p.missingError() // nobody has gone on without it yet
	}
	if _, _, err := l.consult(ctx, p); err != nil {
		return err
	}
	return l.testify(ctx, p)
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

// doubt warns of a view that such a line may have made too small: others went
// on, or still may.
func (l *Ledger) doubt(ctx context.Context, p *picture) {
	if !p.unconfirmed() {
		return
	}
	mark, ok, err := l.consult(ctx, p)
	switch {
	case err != nil:
		p.warn("%v", err)
	case ok && mark != p.epoch.mark(p.best.text.Ledger):
		p.warn("the change of who keeps the state file, to epoch %d, is not confirmed: until something is written, a copy that is away may overrule it", p.epoch.N)
	}
}
