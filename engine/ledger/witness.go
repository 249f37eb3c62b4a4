package ledger

import (
	"context"
	"fmt"
	"slices"

	"github.com/sledctl/sledctl/engine/ledger/format"
)

// WitnessTag is what one witness says: a pool, most often.
type WitnessTag struct {
	Pool   string
	Tag    EpochTag
	Tagged bool // false: it has no mark
}

// Witness keeps a Mark outside the copies, so that a copy which slept while
// others went on is known for what it is. It is asked before the ledger is
// created, before its members are changed, and before anything is read or
// appended directly behind an epoch line; it hears of each epoch once that is
// on disk.
type Witness interface {
	// Read returns what each of them says.
	Read(ctx context.Context) ([]WitnessTag, error)
	// Write puts the mark where there is none, an older one of its ledger, or one
	// that is given up for it: of such a ledger, and no later. One that took it is
	// enough. Marks of other ledgers are left alone.
	Write(ctx context.Context, m EpochTag, givenUp ...EpochTag) error
}

// NoWitness is the witness of a sled that has none yet: it remembers nothing.
// With it, nothing shows whether a missing copy was used alone meanwhile.
type NoWitness struct{}

// Read finds no mark.
func (NoWitness) Read(context.Context) ([]WitnessTag, error) { return nil, nil }

// Write forgets the mark.
func (NoWitness) Write(context.Context, EpochTag, ...EpochTag) error { return nil }

// heard is what the witnesses say, weighed against a copy.
type heard struct {
	latest  *EpochTag    // of the copy's ledger; nil: none is
	foreign []WitnessTag // marks of other ledgers that nobody gave up
}

// latest is the mark that counts, that with the highest N. Two of one N that
// differ otherwise are an error: the sled went on in two ways.
func latest(said []WitnessTag) (*EpochTag, error) {
	var last *WitnessTag
	for _, s := range said {
		switch {
		case !s.Tagged:
		case last == nil || s.Tag.N > last.Tag.N:
			last = &s
		case s.Tag.N == last.Tag.N && s.Tag != last.Tag:
			return nil, &ContradictionError{[2]WitnessTag{*last, s}}
		}
	}
	if last == nil {
		return nil, nil
	}
	return &last.Tag, nil
}

// weigh separates the tags of the text's ledger from others.
func weigh(t *format.Text, said []WitnessTag) (h heard, err error) {
	var ours []WitnessTag
	for _, s := range said {
		switch {
		case s.Tagged && s.Tag.Ledger == t.Ledger:
			ours = append(ours, s)
		case s.Tagged && !slices.ContainsFunc(t.GivenUp(), s.Tag.EndedBy):
			h.foreign = append(h.foreign, s)
		}
	}
	h.latest, err = latest(ours)
	return h, err
}

// against is the mark that refutes the text; nil: none does. Where some marks are
// the ledger's own, others are of disks that were put in.
func (h heard) against(t *format.Text) *EpochTag {
	switch {
	case h.latest != nil && !t.Knows(*h.latest):
		return h.latest
	case h.latest == nil && len(h.foreign) > 0:
		return &h.foreign[0].Tag
	}
	return nil
}

// checkWitness refuses if the witness knows of an epoch that the copies at hand do
// not, or of another ledger only.
func (l *Ledger) checkWitness(ctx context.Context, p *survey) (heard, error) {
	said, err := l.places.Witness.Read(ctx)
	if err != nil {
		return heard{}, &unheardError{err}
	}
	h, err := weigh(p.best.text, said)
	if err != nil {
		return h, err
	}
	mark := h.against(p.best.text)
	switch {
	case mark == nil:
		return h, nil
	case mark.Ledger == p.best.text.Ledger:
		return h, &SupersededError{Tag: *mark, Files: p.files()}
	}
	return h, &ForeignError{Found: p.best.text.Ledger, Sled: mark.Ledger, Files: p.files()}
}

// unheardError is a witness that cannot be asked.
type unheardError struct{ err error }

func (e *unheardError) Error() string {
	return fmt.Sprintf("ask the witness of the ledger: %v", e.err)
}

func (e *unheardError) Unwrap() error { return e.err }

// files names the copies at hand.
func (p *survey) files() []string {
	var names []string
	for _, c := range p.copies {
		names = append(names, c.File())
	}
	return names
}

// updateWitness tells the witness which epoch is in force.
func (l *Ledger) updateWitness(ctx context.Context, p *survey) error {
	if err := l.places.Witness.Write(ctx, p.epoch.Tag(p.best.text.Ledger), p.best.text.GivenUp()...); err != nil {
		return fmt.Errorf("tell the witness of the ledger: %w", err)
	}
	return nil
}

// RefreshWitness writes to the witness which epoch is in force, as at the beginning of
// an epoch: it may have got disks since. The errors are those of Read, ErrMissing
// if any member is missing, ErrSuperseded, and the witness' own.
func (l *Ledger) RefreshWitness(ctx context.Context) error {
	return l.writing(ctx, func(p *survey) error {
		if len(p.missing) > 0 {
			return p.missingError() // the sled has not continued without it yet
		}
		if !p.evidence.asked {
			if err := l.ask(ctx, p); err != nil {
				return err
			}
		}
		if p.evidence.unheard != nil {
			return p.evidence.unheard
		}
		if err := l.updateWitness(ctx, p); err != nil {
			return err
		}
		p.evidence.agreed, p.evidence.marks = true, max(1, p.evidence.marks)
		l.restamp(p, true)
		return nil
	})
}

// unwitnessed says whether nothing follows the last epoch line. Its
// writer may not have lived to tell the witness, and others may have continued.
func (p *survey) unwitnessed() bool { return p.best.text.Head().Seq == p.epoch.Seq }

// affirm does what must be done before anything is appended behind an epoch
// line.
func (l *Ledger) affirm(ctx context.Context, p *survey) error {
	if !p.unwitnessed() {
		return nil
	}
	if _, err := l.checkWitness(ctx, p); err != nil {
		return err
	}
	return l.updateWitness(ctx, p)
}

// confirm does what must be done before the members are changed, whatever the
// last line is: a copy that was given up while it was away does not know it.
func (l *Ledger) confirm(ctx context.Context, p *survey) (witnessed bool, err error) {
	h, err := l.checkWitness(ctx, p)
	if err != nil {
		return h.latest != nil, err
	}
	return h.latest != nil, l.affirm(ctx, p)
}

// rivalled says whether a member of the epoch before is away, or does not hold
// what is shown: then that member may continue without it.
func (p *survey) rivalled() bool {
	epochs, shown := p.best.text.Epochs, p.best.text.Head()
	if len(epochs) == 1 {
		return false
	}
	return slices.ContainsFunc(epochs[len(epochs)-2].Copies, func(s MemberRef) bool {
		return !slices.ContainsFunc(p.copies, func(c *copyAt) bool { return c.text.Copy == s.Copy && c.text.Holds(shown) })
	})
}
