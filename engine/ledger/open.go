package ledger

import (
	"errors"
	"fmt"
	"slices"
)

// picture is what a look at all places amounts to.
type picture struct {
	best     *copyAt
	copies   []*copyAt // all that are there
	epoch    Epoch     // the best copy's last: it says who the members are
	members  []*copyAt // that are present, in the order of the epoch line
	missing  []Member
	absent   []Absence
	warnings []string
	// unconfirmed is why the view may lack what was acknowledged; none: it is sure.
	unconfirmed []string
	evidence    *evidence
	foreign     bool // Check has found them to be another sled's
}

// choose decides which copies to believe. Not a vote: the copy with the most
// epoch lines, then the most lines, is the best, and every other must be what
// that one has been, or an end that never counted.
func choose(copies []*copyAt, absent []Absence) (*picture, error) {
	if len(copies) == 0 {
		return nil, &AbsentError{Places: absent}
	}
	if err := twins(copies); err != nil {
		return nil, err
	}
	p := &picture{best: best(copies), copies: copies, absent: absent}
	p.epoch = p.best.text.epoch()
	for _, c := range copies {
		relation, why := relate(p.best.text, c.text)
		switch relation {
		case forked:
			return nil, fork(p.best, c, why)
		case deadTail:
			p.warn("%s is not used: what it holds from %v on was never acknowledged", c.File(), c.text.head())
		}
	}
	p.seat(copies)
	p.warnOfBroken()
	return p, nil
}

// best is the copy that all others must have been, or be, or have left.
func best(copies []*copyAt) *copyAt {
	found := copies[0]
	for _, c := range copies[1:] {
		if c.text.better(found.text) {
			found = c
		}
	}
	return found
}

// warnOfBroken tells of files that are in nobody's way, and are broken.
func (p *picture) warnOfBroken() {
	for _, a := range p.absent {
		named := slices.ContainsFunc(p.missing, func(m Member) bool { return m.Err == a.Err })
		if errors.Is(a.Err, ErrBroken) && !named {
			p.warn("%v", a.Err)
		}
	}
}

func twins(copies []*copyAt) error {
	byID := map[string]*copyAt{}
	for _, c := range copies {
		if other := byID[c.text.Copy]; other != nil {
			return &TwinsError{c.text.Copy, [2]string{other.File(), c.File()}}
		}
		byID[c.text.Copy] = c
	}
	return nil
}

// epoch is the text's last.
func (t *text) epoch() Epoch { return t.epochs[len(t.epochs)-1] }

func (t *text) better(than *text) bool {
	if len(t.epochs) != len(than.epochs) {
		return len(t.epochs) > len(than.epochs)
	}
	return t.head().Seq > than.head().Seq
}

// relation is what a copy is to the best one.
type relation int

const (
	equal    relation = iota
	behind            // an earlier state of the best
	deadTail          // earlier, and then something that was never acknowledged
	forked            // neither: someone's facts would be lost
)

// relate says what c is to best, and why the two cannot be reconciled.
func relate(best, c *text) (relation, string) {
	at := c.head()
	switch {
	case best.Ledger != c.Ledger:
		return forked, fmt.Sprintf("they are of two ledgers, %s and %s", best.Ledger, c.Ledger)
	case at == best.head():
		return equal, ""
	case best.holds(at):
		return behind, ""
	case !sameEpochs(c.epochs, best.epochs):
		return forked, "their members were changed on both sides"
	}
	k := len(c.epochs)
	over := k < len(best.epochs) // c's last epoch has ended
	if at.Seq < best.Base.Seq && (!over || at.Seq < best.epochs[k].Seq) {
		return behind, "" // the rewrite of best has left the line out
	}
	if !over {
		return forked, fmt.Sprintf("the line of %v occurs on one side only", at)
	}
	if at.Seq >= best.epochs[k].Seq && c.agrees(best, best.epochs[k]) && !best.epoch().seated(c.Copy) {
		return deadTail, ""
	}
	return forked, fmt.Sprintf("one went on with seq %d where the other begins epoch %d", best.epochs[k].Seq, best.epochs[k].N)
}

// agrees says whether t is what best was when best's epoch began: that line's
// hash is made over the one before it.
func (t *text) agrees(best *text, began Epoch) bool {
	before, ok := t.hashAt(began.Seq - 1)
	i, found := best.find(began.Seq)
	return ok && found && string(newChain().hash([]byte(before), best.line(i)[hashEnd:])) == began.hash
}

func fork(best, other *copyAt, why string) error {
	return &ForkedError{
		Best: best.File(), BestHead: best.text.head(), BestEpoch: best.text.epoch(),
		Other: other.File(), OtherHead: other.text.head(), OtherEpoch: other.text.epoch(),
		Reason: why,
	}
}

// seat finds the members among the copies.
func (p *picture) seat(copies []*copyAt) {
	byID := map[string]*copyAt{}
	for _, c := range copies {
		byID[c.text.Copy] = c
	}
	for _, s := range p.epoch.Copies {
		if c := byID[s.Copy]; c != nil {
			p.members = append(p.members, c)
			continue
		}
		p.missing = append(p.missing, Member{Seat: s, Err: p.whyMissing(s)})
	}
	for _, s := range p.epoch.Lost {
		e := lostIn(p.best.text.epochs, s)
		p.warn("the state file is kept without %v since %s (%s: %s): `sledctl ledger heal` takes a new disk in",
			s, e.Time.Format("2006-01-02 15:04:05Z"), e.Who, e.Why)
	}
}

// lostIn is the epoch that began without that member.
func lostIn(epochs []Epoch, s Seat) Epoch {
	i := slices.IndexFunc(epochs, func(e Epoch) bool { return slices.Contains(e.Lost, s) })
	return epochs[i]
}

// whyMissing is what was found in the place where the copy should be.
func (p *picture) whyMissing(s Seat) error {
	for _, a := range p.absent {
		if a.Pool == s.Pool {
			return a.Err
		}
	}
	return errNoPlace
}

func (p *picture) warn(form string, args ...any) {
	p.warnings = append(p.warnings, fmt.Sprintf(form, args...))
}

// shortest is the present member with the fewest lines: what it holds, all
// hold.
func (p *picture) shortest() *copyAt {
	least := p.members[0]
	for _, c := range p.members[1:] {
		if c.text.head().Seq < least.text.head().Seq {
			least = c
		}
	}
	return least
}

func (p *picture) missingError() error {
	e := &MissingError{Missing: p.missing, Head: p.best.text.head(), Epoch: p.epoch, Others: p.absent}
	for _, c := range p.members {
		e.Present = append(e.Present, Member{Seat: c.seat(), File: c.File()})
	}
	return e
}

// view is what copy c holds.
func (p *picture) view(c *copyAt) (View, error) {
	facts, err := c.text.facts()
	if err != nil {
		return View{}, broken(c.File(), err)
	}
	v := View{index: facts, data: c.text.data, head: c.text.head(), ledger: c.text.Ledger, epochs: p.best.text.epochs, warnings: p.warnings, unconfirmed: p.unconfirmed}
	for _, m := range p.members {
		v.members = append(v.members, Member{Seat: m.seat(), File: m.File()})
	}
	v.members = append(v.members, p.missing...)
	return v, nil
}
