package ledger

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sledctl/sledctl/engine/ledger/format"
)

// survey is what a look at all places amounts to.
type survey struct {
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
	unchanged   bool // every place has the copy that was read there before
}

// choose decides which copies to believe. Not a vote: the copy with the most
// epoch lines, then the most lines, is the best, and every other must be what
// that one has been, or an end that never counted.
func choose(copies []*copyAt, absent []Absence) (*survey, error) {
	if len(copies) == 0 {
		return nil, &AbsentError{Places: absent}
	}
	if err := twins(copies); err != nil {
		return nil, err
	}
	p := &survey{best: best(copies), copies: copies, absent: absent}
	p.epoch = p.best.text.Epoch()
	for _, c := range copies {
		relation, why := format.Relate(p.best.text, c.text)
		switch relation {
		case format.Forked:
			return nil, fork(p.best, c, why)
		case format.DeadTail:
			p.warn("%s is not used: what it holds from %v on was never acknowledged", c.File(), c.text.Head())
		}
	}
	p.place(copies)
	p.warnOfBroken()
	return p, nil
}

// best is the copy that all others must have been, or be, or have left.
func best(copies []*copyAt) *copyAt {
	found := copies[0]
	for _, c := range copies[1:] {
		if c.text.Better(found.text) {
			found = c
		}
	}
	return found
}

// warnOfBroken reports broken files that are not in the place of a member.
func (p *survey) warnOfBroken() {
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

func fork(best, other *copyAt, why string) error {
	return &ForkedError{
		Best: best.File(), BestHead: best.text.Head(), BestEpoch: best.text.Epoch(),
		Other: other.File(), OtherHead: other.text.Head(), OtherEpoch: other.text.Epoch(),
		Reason: why,
	}
}

// place finds the members among the copies.
func (p *survey) place(copies []*copyAt) {
	byID := map[string]*copyAt{}
	for _, c := range copies {
		byID[c.text.Copy] = c
	}
	for _, s := range p.epoch.Copies {
		if c := byID[s.Copy]; c != nil {
			p.members = append(p.members, c)
			continue
		}
		p.missing = append(p.missing, Member{MemberRef: s, Err: p.whyMissing(s)})
	}
	for _, s := range p.epoch.Lost {
		e := lostIn(p.best.text.Epochs, s)
		p.warn("the ledger is kept without %v since %s (%s: %s): `sledctl ledger heal` takes a new disk in",
			s, e.Time.Format("2006-01-02 15:04:05Z"), e.Who, e.Why)
	}
}

// lostIn is the epoch that began without that member.
func lostIn(epochs []Epoch, s MemberRef) Epoch {
	i := slices.IndexFunc(epochs, func(e Epoch) bool { return slices.Contains(e.Lost, s) })
	return epochs[i]
}

// whyMissing is what was found in the place where the copy should be.
func (p *survey) whyMissing(s MemberRef) error {
	for _, a := range p.absent {
		if a.Pool == s.Pool {
			return a.Err
		}
	}
	return errNoPlace
}

func (p *survey) warn(form string, args ...any) {
	p.warnings = append(p.warnings, fmt.Sprintf(form, args...))
}

// shortest is the present member with the fewest lines: what it holds, all
// hold.
func (p *survey) shortest() *copyAt {
	least := p.members[0]
	for _, c := range p.members[1:] {
		if c.text.Head().Seq < least.text.Head().Seq {
			least = c
		}
	}
	return least
}

func (p *survey) missingError() error {
	e := &MissingError{Missing: p.missing, Head: p.best.text.Head(), Epoch: p.epoch, Others: p.absent}
	for _, c := range p.members {
		e.Present = append(e.Present, Member{MemberRef: c.ref(), File: c.File()})
	}
	return e
}

// view is what copy c holds.
func (p *survey) view(c *copyAt) (View, error) {
	facts, err := c.text.Facts()
	if err != nil {
		return View{}, broken(c.File(), err)
	}
	v := View{facts: facts, head: c.text.Head(), ledger: c.text.Ledger, epochs: p.best.text.Epochs, warnings: p.warnings, unconfirmed: p.unconfirmed}
	for _, m := range p.members {
		v.members = append(v.members, Member{MemberRef: m.ref(), File: m.File()})
	}
	v.members = append(v.members, p.missing...)
	return v, nil
}
