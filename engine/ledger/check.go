package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/engine/ledger/format"
	"github.com/sledctl/sledctl/host"
)

// Verdict is a word for what a place holds.
type Verdict string

// The verdicts. Only the first five are sound.
const (
	IsMember      Verdict = "member"
	IsBehind      Verdict = "behind"      // a member that the next writer brings up
	IsTorn        Verdict = "torn"        // a member behind whose end a line was begun, which the next writer cuts
	IsStale       Verdict = "stale"       // an earlier state, or one whose end was never acknowledged; no member
	IsNone        Verdict = "none"        // no file, and none is expected
	IsMissing     Verdict = "missing"     // a member, and not there
	IsBroken      Verdict = "broken"      // there, and not to be believed
	IsDuplicate   Verdict = "duplicate"   // the same copy is in another place too
	IsForked      Verdict = "forked"      // neither what the best copy has been nor its continuation
	IsUnconfirmed Verdict = "unconfirmed" // a copy that only others could confirm, and they are missing
	IsDamaged     Verdict = "damaged"     // something that no writer leaves stands behind its last line
	IsRewound     Verdict = "rewound"     // it lacks lines that were in it
	IsForeign     Verdict = "another sled's"
)

// Sound says whether nothing has to be done about it.
func (v Verdict) Sound() bool {
	return v == IsMember || v == IsBehind || v == IsTorn || v == IsStale || v == IsNone
}

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
	Histories int // files of left-out lines next to it
}

// Examination is what Check found.
type Examination struct {
	Places   []Examined
	Tags     []PoolTag
	Seen     *Seen // by this boot; nil: nothing
	Warnings []string
	Faults   []error // what is wrong; none: nothing
}

// PoolTag is what the disks of one pool say.
type PoolTag struct {
	Pool string
	Tag  *EpochTag // nil: nothing
	Says Says
}

// Says is a word for what a mark is worth.
type Says string

// What a mark may be.
const (
	SaysCurrent Says = "current"
	SaysOlder   Says = "older"          // its pool was missing when the members were changed
	SaysNewer   Says = "newer"          // of an epoch that no copy knows
	SaysOther   Says = "another sled's" // of another ledger
	SaysGivenUp Says = "given up"       // an operator went on in spite of it
	SaysNothing Says = "none"           // the pool has no mark
)

// Seen is the last line that was acknowledged, or shown for sure, in this boot.
type Seen struct {
	Ledger string
	Epoch  uint64
	Seq    uint64
	Hash   string
	Agreed bool // the witness was heard since, with these disks
}

// Err is an *CheckFailedError, or nil.
func (x Examination) Err() error {
	if len(x.Faults) == 0 {
		return nil
	}
	return &CheckFailedError{x.Faults}
}

// Check reads everything in every place, verifies it, and says what each is
// worth. It changes nothing. Err is nil if all is sound; the error returned is
// that of the lock or the context: nothing could be looked at.
func Check(ctx context.Context, files host.Files, places Places) (Examination, error) {
	return check(ctx, files, places, true)
}

// CheckCopies is Check without the values of the facts: it takes the lines as their
// checksums say that they are. Facts is 0.
func CheckCopies(ctx context.Context, files host.Files, places Places) (Examination, error) {
	return check(ctx, files, places, false)
}

func check(ctx context.Context, files host.Files, places Places, values bool) (Examination, error) {
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
	case exhausted(err):
		return x, err
	case err != nil:
		x.Faults = append(x.Faults, l.missed(ctx, err))
		p = nil
	default:
		x.Faults = append(x.Faults, l.suspect(ctx, p)...)
		x.Warnings = View{warnings: p.warnings, unconfirmed: p.unconfirmed}.Warnings()
	}
	x.Tags, x.Seen = l.tags(ctx, p), l.seenSoFar(p)
	for _, at := range l.places.Locations {
		place, faults := l.examine(at, p, values)
		x.Places, x.Faults = append(x.Places, place), append(x.Faults, faults...)
	}
	return x, nil
}

// suspect is what is wrong with the ledger as a whole.
func (l *Ledger) suspect(ctx context.Context, p *survey) []error {
	var faults []error
	if len(p.missing) > 0 {
		faults = append(faults, p.missingError())
	}
	for _, s := range p.epoch.Lost {
		faults = append(faults, fmt.Errorf("%w: it is kept without %v", ErrMissing, s))
	}
	p.evidence = &evidence{stamp: l.stamped(), disks: l.disks()}
	for _, refuse := range []func(*survey) error{l.seenMore, l.damaged, l.outlived} {
		if err := refuse(p); err != nil {
			faults = append(faults, err)
			p.foreign = p.foreign || errors.Is(err, ErrForeign)
		}
	}
	if err := l.ask(ctx, p); err != nil {
		faults = append(faults, err)
		p.foreign = p.foreign || errors.Is(err, ErrForeign)
	}
	if p.evidence.unheard != nil {
		faults = append(faults, p.evidence.unheard)
	}
	p.unconfirmed = p.doubts()
	return faults
}

// tags is what each pool says.
func (l *Ledger) tags(ctx context.Context, p *survey) []PoolTag {
	said, err := l.places.Witness.Read(ctx)
	if err != nil {
		return nil // and a fault
	}
	var out []PoolTag
	for _, s := range said {
		m := PoolTag{Pool: s.Pool, Says: SaysNothing}
		if s.Tagged {
			m.Tag, m.Says = &s.Tag, ""
		}
		if s.Tagged && p != nil {
			m.Says = p.says(s.Tag)
		}
		out = append(out, m)
	}
	return out
}

func (p *survey) says(m EpochTag) Says {
	t := p.best.text
	switch {
	case m == p.epoch.Tag(t.Ledger):
		return SaysCurrent
	case slices.ContainsFunc(t.GivenUp(), m.EndedBy):
		return SaysGivenUp
	case m.Ledger != t.Ledger:
		return SaysOther
	case m.N > p.epoch.N || m.N == p.epoch.N:
		return SaysNewer
	}
	return SaysOlder
}

func (l *Ledger) seenSoFar(p *survey) *Seen {
	s := l.stamped()
	if s == nil {
		return nil
	}
	return &Seen{s.Ledger, s.N, s.Seq, s.Hash, p != nil && s.vouches(p.epoch, l.disks())}
}

// examine looks at one place; p is nil where the copies cannot be believed.
func (l *Ledger) examine(at Location, p *survey, values bool) (Examined, []error) {
	x := Examined{Location: at}
	c := l.at(at)
	if c == nil {
		return l.examineAbsent(x, p)
	}
	x.Copy, x.Ledger, x.Head, x.Epoch = c.text.Copy, c.text.Ledger, c.text.Head(), c.text.Epoch().N
	x.Lines = c.text.Len()
	x.Verdict, x.Detail = l.judge(c, p)
	faults := accused(x)
	if values {
		faults = append(faults, c.decode(&x)...)
	}
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
	facts, err := c.text.Facts()
	if err == nil {
		for range facts.All("") {
			x.Facts++
		}
		err = c.text.CheckValues()
	}
	if err == nil {
		return nil
	}
	x.Verdict, x.Detail = IsBroken, err.Error()
	return []error{broken(c.File(), err)}
}

func (l *Ledger) examineAbsent(x Examined, p *survey) (Examined, []error) {
	var why error
	for _, a := range l.absent {
		if a.File == x.File() {
			why = a.Err
		}
	}
	var faults []error
	if b, ok := errors.AsType[*BrokenError](why); ok && p != nil && b.Last > p.best.text.Head().Seq {
		faults = append(faults, fmt.Errorf("%w: lines up to seq %d can be read behind the break in %s; the best copy ends at %v", ErrRewound, b.Last, x.File(), p.best.text.Head()))
	}
	x.Verdict, x.Detail = IsNone, strings.TrimPrefix(fmt.Sprint(cause(why)), x.File()+": ")
	if p != nil {
		for _, m := range p.missing {
			if m.Pool == x.Pool {
				x.Verdict, x.Copy = IsMissing, m.Copy
				return x, faults
			}
		}
	}
	switch {
	case errors.Is(why, errNoFile), errors.Is(why, ErrNotMounted), errors.Is(why, errUnfinished):
		return x, nil
	}
	x.Verdict = IsBroken
	return x, append(faults, fmt.Errorf("%s: %w", x.File(), why))
}

// accused is what is wrong with a copy next to what is wrong with all.
func accused(x Examined) []error {
	switch x.Verdict {
	case IsDamaged:
		return []error{fmt.Errorf("%w: %s: %s", ErrDamaged, x.File(), x.Detail)}
	case IsRewound:
		return []error{fmt.Errorf("%w: %s: %s", ErrRewound, x.File(), x.Detail)}
	}
	return nil
}

// judge says what a copy is worth.
func (l *Ledger) judge(c *copyAt, p *survey) (Verdict, string) {
	if p == nil {
		return l.accuse(c)
	}
	relation, _ := format.Relate(p.best.text, c.text)
	switch member := p.epoch.Seated(c.text.Copy); {
	case relation == format.DeadTail:
		return IsStale, "what it holds at its end was never acknowledged"
	case !member && len(p.members) == 0:
		return IsUnconfirmed, "it is no member by its own last word"
	case !member && relation == format.Equal:
		return IsStale, "it is no member"
	case !member:
		return IsStale, "it is no member, and an earlier state"
	case p.foreign:
		return IsForeign, "the sled has another ledger"
	}
	return p.judgeMember(c, relation)
}

// judgeMember says what a member is worth.
func (p *survey) judgeMember(c *copyAt, r format.Relation) (Verdict, string) {
	head, has := p.best.text.Head(), c.text.Head()
	switch s := p.evidence.stamp; {
	case c.text.End == format.EndDamaged:
		return IsDamaged, End{c.File(), has, c.text.Rest, c.text.Begun}.what()
	case s != nil && !s.heldBy(c.text) && !s.heldBy(p.best.text):
		return IsRewound, fmt.Sprintf("this boot acknowledged seq %d", s.Seq)
	case c.left > head.Seq:
		return IsRewound, "lines up to the number of " + historyName(c.left) + " were in it"
	case head.Seq > has.Seq+1:
		return IsRewound, fmt.Sprintf("%d lines behind, more than a crash can leave", head.Seq-has.Seq)
	case r == format.Behind:
		return IsBehind, fmt.Sprintf("the best copy is at %v", head)
	case c.text.End == format.EndTorn:
		return IsTorn, "a line was begun behind its last one, and not finished"
	case c.text.End == format.EndBare:
		return IsMember, "its last line has lost its newline, which the next writer gives it"
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
			return IsDuplicate, "the same copy is in " + other.File()
		}
	}
	top := best(all)
	if relation, why := format.Relate(top.text, c.text); relation == format.Forked {
		return IsForked, why
	}
	return IsForked, "another copy disagrees with it"
}
