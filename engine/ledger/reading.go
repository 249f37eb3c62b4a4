package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/engine/ledger/format"
)

// What a look amounts to is one of three: sure, shown and unconfirmed, or refused.
// These rules decide which, beyond those of open.go. They are the same for those
// who write.

// evidence is what is known next to the copies.
type evidence struct {
	stamp  *stamp // what this boot has seen; nil: nothing
	disks  []string
	asked  bool // the witness was, by this look
	agreed bool // it was heard, and knows nothing against the epoch
	marks  int  // of this ledger
	// unheard is why it could not be asked; doubt why what it says is not enough.
	unheard error
	doubt   string
}

// weigh decides whether a view is shown, and how, and leaves this boot's stamp where it is
// sure. Alone says that the lock is held alone.
func (l *Ledger) weigh(ctx context.Context, p *survey, alone bool) error {
	disks := l.disks()
	if p.evidence = l.weighed(p, disks); p.evidence != nil {
		return nil
	}
	p.evidence = &evidence{stamp: l.stamped(), disks: disks}
	for _, refuse := range []func(*survey) error{l.seenMore, l.damaged, l.outlived} {
		if err := refuse(p); err != nil {
			return err
		}
	}
	if err := l.hear(ctx, p); err != nil {
		return err
	}
	if p.unconfirmed = p.doubts(); len(p.unconfirmed) == 0 && len(p.members) > 0 {
		l.restamp(p, alone)
		l.sureOf(p)
	}
	return nil
}

// weighed is the evidence for what this process has found to be sure, where every copy
// and every disk is what it was then: a line that was acknowledged since, or an epoch that
// has begun, has changed a copy or come with a disk. Otherwise it is nil.
func (l *Ledger) weighed(p *survey, disks []string) *evidence {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !p.unchanged || l.sure == nil || !slices.Equal(l.sure.disks, disks) {
		return nil
	}
	e := *l.sure
	e.asked = false
	return &e
}

// sureOf remembers for weighed that all that p shows is sure.
func (l *Ledger) sureOf(p *survey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sure = nil
	if p.evidence.agreed && len(p.missing) == 0 && !p.unwitnessed() {
		l.sure = p.evidence
	}
}

// seenMore refuses what lacks a line that this boot has acknowledged.
func (l *Ledger) seenMore(p *survey) error {
	s := p.evidence.stamp
	switch {
	case s == nil:
		return nil
	case s.Ledger != p.best.text.Ledger:
		return &ForeignError{Found: p.best.text.Ledger, Sled: s.Ledger, Files: p.files()}
	case s.heldBy(p.best.text):
		return nil
	case s.N > p.epoch.N:
		return &SupersededError{Tag: EpochTag{Ledger: s.Ledger, N: s.N, Epoch: s.Epoch}, Files: p.files()}
	default:
		return &RewoundError{Seen: s.Seq, Head: p.best.text.Head(), Files: p.files()}
	}
}

// cleared says whether all that was acknowledged in this boot is there. What
// stands behind it was not.
func (p *survey) cleared() bool { return p.evidence.stamp != nil }

// damaged refuses if nobody has what was written at the end.
func (l *Ledger) damaged(p *survey) error {
	if p.cleared() || len(p.members) == 0 {
		return nil
	}
	e := &DamagedError{}
	for _, c := range p.members {
		if c.text.End != format.EndDamaged {
			return nil
		}
		e.Ends = append(e.Ends, End{File: c.File(), Head: c.text.Head(), Bytes: c.text.Rest, Seq: c.text.Begun})
	}
	return e
}

// outlived refuses if lines that a rewrite has left out of a copy are newer than
// any that are there.
func (l *Ledger) outlived(p *survey) error {
	for _, c := range p.copies {
		if c.left > p.best.text.Head().Seq {
			return &RewoundError{Seen: c.left, Head: p.best.text.Head(), Files: []string{c.File()}, History: historyName(c.left)}
		}
	}
	return nil
}

// hear asks the witness, unless this boot has, with these disks.
func (l *Ledger) hear(ctx context.Context, p *survey) error {
	e := p.evidence
	vouched := e.stamp.vouches(p.epoch, e.disks)
	switch {
	case p.unwitnessed(): // the witness hears of an epoch after its line
	case vouched:
		e.agreed, e.marks = true, e.stamp.Marks
		return nil
	}
	return l.ask(ctx, p)
}

// ask hears the witness now. Nothing is ever done on the strength of an epoch that
// it has not heard of: a process that does something writes first, and tells it.
func (l *Ledger) ask(ctx context.Context, p *survey) error {
	e := p.evidence
	e.asked = true
	h, err := l.checkWitness(ctx, p)
	if errors.As(err, new(*unheardError)) {
		e.unheard = err
		return ctx.Err()
	}
	if err != nil {
		return err
	}
	e.agreed = len(h.foreign) == 0
	if h.latest != nil {
		e.marks = 1
	}
	if len(h.foreign) > 0 {
		var pools []string
		for _, s := range h.foreign {
			pools = append(pools, s.Pool)
		}
		p.warn("pools %s are another sled's: they know of ledger %s; this is ledger %s", strings.Join(pools, ", "), h.foreign[0].Tag.Ledger, p.best.text.Ledger)
	}
	known := h.latest != nil && *h.latest == p.epoch.Tag(p.best.text.Ledger)
	if p.unwitnessed() && !known && (h.latest != nil || p.rivalled()) {
		e.doubt = fmt.Sprintf("epoch %d (a change of the ledger's members) is not confirmed: until the next write, a missing copy may overrule it", p.epoch.N)
	}
	return nil
}

// doubts is why the view is not sure; none: it is.
func (p *survey) doubts() []string {
	said := p.lost()
	for _, c := range p.members {
		said = append(said, p.lag(c)...)
	}
	for _, c := range p.members {
		if c.text.End == format.EndDamaged {
			said = append(said, fmt.Sprintf("%d bytes behind seq %d of %v are no line: %s", c.text.Rest, c.text.Head().Seq, c.ref(), p.elsewhere(c)))
		}
	}
	if p.begun() {
		said = append(said, fmt.Sprintf("a line was begun behind seq %d and not finished: its writer was cut off before it was acknowledged, unless every copy lost its end in one way", p.best.text.Head().Seq))
	}
	if p.evidence.unheard != nil {
		said = append(said, p.evidence.unheard.Error())
	}
	if p.evidence.doubt != "" {
		said = append(said, p.evidence.doubt)
	}
	return said
}

// lost reports members that are missing.
func (p *survey) lost() (said []string) {
	known := "no witness can rule out that it continued without this copy"
	if p.evidence.agreed && p.evidence.marks > 0 {
		known = "the U.2s know of no newer epoch"
	}
	for _, m := range p.missing {
		said = append(said, fmt.Sprintf("%v of the ledger is missing: %v; %s", m.MemberRef, cause(m.Err), known))
	}
	return said
}

// lag reports a member that does not hold the last line. Without a fault it
// lacks no more than one: the next is only written behind one that all hold.
func (p *survey) lag(c *copyAt) []string {
	head, has := p.best.text.Head(), c.text.Head()
	switch by := head.Seq - has.Seq; {
	case head == has:
		return nil
	case by == 1:
		return []string{fmt.Sprintf("seq %d is not on %v: it was never acknowledged, or that copy has lost it; nothing is lost, and the next change brings it there", head.Seq, c.ref())}
	default:
		return []string{fmt.Sprintf("%v is %d lines behind, more than a crash can leave: it was rewound", c.ref(), by)}
	}
}

// elsewhere says what is lost with the end of a copy.
func (p *survey) elsewhere(c *copyAt) string {
	i := slices.IndexFunc(p.members, func(o *copyAt) bool { return o.text.End != format.EndDamaged && o.text.Head() == p.best.text.Head() })
	switch {
	case i < 0 && p.cleared():
		return "nothing that was acknowledged since the sled booted is lost"
	case i < 0:
		return "what was written there cannot be read, and no other copy holds as much"
	}
	return fmt.Sprintf("%v is whole", p.members[i].ref())
}

// begun says whether the last line may have been followed by one that every copy
// has lost the end of. If another copy is complete, the line was not acknowledged: it would be
// there.
func (p *survey) begun() bool {
	torn := false
	for _, c := range p.members {
		if c.text.Head() != p.best.text.Head() {
			continue
		}
		if c.text.End != format.EndTorn {
			return false
		}
		torn = true
	}
	return torn && !p.cleared()
}
