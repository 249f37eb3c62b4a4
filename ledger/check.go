package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/sledctl/sledctl/host"
)

// Verdict is a word for what a place holds.
type Verdict string

// The verdicts. Only the first four are sound.
const (
	IsMember   Verdict = "member"
	IsBehind   Verdict = "behind"   // a member that the next writer brings up
	IsUnused   Verdict = "unused"   // an earlier state, or one whose end was never acknowledged; no member
	IsNone     Verdict = "none"     // no file, and none is expected
	IsMissing  Verdict = "missing"  // a member, and not there
	IsBroken   Verdict = "broken"   // there, and not to be believed
	IsTwin     Verdict = "twin"     // the same copy is in another place too
	IsForked   Verdict = "forked"   // neither what the best copy has been nor its continuation
	IsUnproved Verdict = "unproved" // a copy that only others could confirm, and they are missing
)

// Sound says whether nothing has to be done about it.
func (v Verdict) Sound() bool { return v == IsMember || v == IsBehind || v == IsUnused || v == IsNone }

// Examined is one place.
type Examined struct {
	Location
	Copy      string // its id; empty where there is none
	Ledger    string
	Verdict   Verdict
	Detail    string // why, where it needs one
	Head      Head
	Epoch     uint64
	Lines     int
	Facts     int // live ones
	Histories int // files of left-out lines beside it
}

// Examination is what Check found.
type Examination struct {
	Places   []Examined
	Warnings []string
	Faults   []error // what is wrong; none: nothing
}

// Err is an *UnsoundError, or nil.
func (x Examination) Err() error {
	if len(x.Faults) == 0 {
		return nil
	}
	return &UnsoundError{x.Faults}
}

// Check reads everything in every place, verifies it, and says what each is
// worth. It changes nothing. Err is nil if all is sound; the error returned is
// that of the lock or the context: nothing could be looked at.
func Check(ctx context.Context, files host.Files, places Places) (Examination, error) {
	l, err := unopened(files, places)
	if err != nil {
		return Examination{}, err
	}
	unlock, err := l.lock(ctx, host.LockShared)
	if err != nil {
		return Examination{}, err
	}
	defer unlock()
	var x Examination
	p, err := l.look(ctx)
	switch {
	case ctx.Err() != nil:
		return x, ctx.Err()
	case err != nil:
		x.Faults = append(x.Faults, l.missed(ctx, err))
		p = nil
	default:
		x.Faults = append(x.Faults, l.suspect(ctx, p)...)
		x.Warnings = p.warnings
	}
	for _, at := range l.places.Locations {
		place, faults := l.examine(at, p)
		x.Places, x.Faults = append(x.Places, place), append(x.Faults, faults...)
	}
	return x, nil
}

// suspect is what is wrong with the ledger as a whole.
func (l *Ledger) suspect(ctx context.Context, p *picture) []error {
	var faults []error
	if len(p.missing) > 0 {
		faults = append(faults, p.missingError())
	}
	for _, s := range p.epoch.Lost {
		faults = append(faults, fmt.Errorf("%w: it is kept without %v", ErrMissing, s))
	}
	if _, _, err := l.consult(ctx, p); err != nil {
		faults = append(faults, err)
	}
	return faults
}

// examine looks at one place; p is nil where the copies cannot be believed.
func (l *Ledger) examine(at Location, p *picture) (Examined, []error) {
	x := Examined{Location: at}
	c := l.at(at)
	if c == nil {
		return l.examineAbsent(x, p)
	}
	x.Copy, x.Ledger, x.Head, x.Epoch = c.text.Copy, c.text.Ledger, c.text.head(), c.text.epoch().N
	x.Lines = len(c.text.lines)
	x.Verdict, x.Detail = l.judge(c, p)
	faults := c.decode(&x)
	lines := map[uint64][]byte{}
	if err := addHistories(l.files, c, lines); err != nil {
		faults = append(faults, err)
	}
	if all, err := histories(l.files, c.Directory); err == nil {
		x.Histories = len(all)
	}
	return x, faults
}

// decode reads every value of a copy; otherwise nobody does that before it is
// asked for.
func (c *copyAt) decode(x *Examined) []error {
	facts, err := c.text.facts()
	if err == nil {
		x.Facts = len(facts.under(""))
	}
	for i := 0; err == nil && i < len(c.text.lines); i++ {
		var e Entry
		if e, err = entry(c.text.line(i)); err != nil {
			break
		}
		for _, f := range e.Facts {
			if !json.Valid(f.Value) {
				err = &fault{i + 2, fmt.Sprintf("the value of %s is not JSON", f.Key)}
			}
		}
	}
	if err == nil {
		return nil
	}
	x.Verdict, x.Detail = IsBroken, err.Error()
	return []error{broken(c.File(), err)}
}

func (l *Ledger) examineAbsent(x Examined, p *picture) (Examined, []error) {
	var why error
	for _, a := range l.absent {
		if a.File == x.File() {
			why = a.Err
		}
	}
	x.Verdict, x.Detail = IsNone, strings.TrimPrefix(fmt.Sprint(cause(why)), x.File()+": ")
	if p != nil {
		for _, m := range p.missing {
			if m.Pool == x.Pool {
				x.Verdict, x.Copy = IsMissing, m.Copy
				return x, nil
			}
		}
	}
	switch {
	case errors.Is(why, errNoFile), errors.Is(why, ErrNotMounted), errors.Is(why, errUnfinished):
		return x, nil
	}
	x.Verdict = IsBroken
	return x, []error{fmt.Errorf("%s: %w", x.File(), why)}
}

// judge says what a copy is worth.
func (l *Ledger) judge(c *copyAt, p *picture) (Verdict, string) {
	if p == nil {
		return l.accuse(c)
	}
	relation, _ := relate(p.best.text, c.text, l.without)
	switch member := p.epoch.seated(c.text.Copy); {
	case relation == deadTail:
		return IsUnused, "what it holds at its end was never acknowledged"
	case !member && len(p.members) == 0:
		return IsUnproved, "it is no member by its own last word"
	case !member && relation == equal:
		return IsUnused, "it is no member"
	case !member:
		return IsUnused, "it is no member, and an earlier state"
	case c.text.torn > 0:
		return IsBehind, "its last line is torn"
	case relation == behind:
		return IsBehind, fmt.Sprintf("the best copy is at %v", p.best.text.head())
	}
	return IsMember, ""
}

// accuse compares copies that cannot be believed together.
func (l *Ledger) accuse(c *copyAt) (Verdict, string) {
	var all []*copyAt
	for _, at := range l.places.Locations {
		other := l.at(at)
		if other == nil {
			continue
		}
		all = append(all, other)
		if other != c && other.text.Copy == c.text.Copy {
			return IsTwin, "the same copy is in " + other.File()
		}
	}
	top := best(all, l.without)
	if relation, why := relate(top.text, c.text, l.without); relation == forked {
		return IsForked, why
	}
	return IsForked, "another copy disagrees with it"
}
