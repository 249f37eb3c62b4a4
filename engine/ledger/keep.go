package ledger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/sledctl/sledctl/engine/ledger/format"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
)

// KeepPreview is what it costs to believe one copy and no other. It is the only way to
// give facts up.
type KeepPreview struct {
	Kept   string // the file
	Head   Head   // its last line
	Others []Discarded
	// Unseen is a mark of the witness that the kept copy does not know: what
	// was written in that epoch is lost too, and nobody can say what it was.
	Unseen *EpochTag

	keep Location
}

// Discarded is a copy that is set aside.
type Discarded struct {
	File  string
	Head  Head
	Facts []Entry // that the kept copy does not have; none where it is an earlier state of it
}

// PreviewKeep looks at what Keep would give up, and changes nothing. Name is a copy's
// id, the uuid of its pool, its file or its directory. The errors are
// ErrNoCopy, and those of reading.
func PreviewKeep(ctx context.Context, files host.Files, places Places, name string) (KeepPreview, error) {
	l, err := unopened(files, places)
	if err != nil {
		return KeepPreview{}, err
	}
	unlock, err := l.lock(ctx, host.LockShared)
	if err != nil {
		return KeepPreview{}, err
	}
	defer unlock()
	return l.previewKeep(ctx, name)
}

// ErrNoCopy is a name that no readable copy has, or more than one.
var ErrNoCopy = fault.New(fault.NotFound, "no such copy of the ledger")

// previewKeep looks at all copies, also at those that disagree.
func (l *Ledger) previewKeep(ctx context.Context, name string) (KeepPreview, error) {
	copies, err := l.copies(ctx)
	if err != nil {
		return KeepPreview{}, err
	}
	kept, err := named(copies, name)
	if err != nil {
		return KeepPreview{}, err
	}
	loss := KeepPreview{Kept: kept.File(), Head: kept.text.Head(), keep: kept.Location}
	h, err := l.saidOf(ctx, kept)
	if err != nil {
		return KeepPreview{}, err
	}
	loss.Unseen = h.against(kept.text)
	for _, c := range copies {
		if c == kept {
			continue
		}
		facts, err := c.text.Beyond(kept.text)
		if err != nil {
			return KeepPreview{}, broken(c.File(), err)
		}
		loss.Others = append(loss.Others, Discarded{File: c.File(), Head: c.text.Head(), Facts: facts})
	}
	return loss, nil
}

// saidOf is what the witness says, weighed against a copy.
func (l *Ledger) saidOf(ctx context.Context, c *copyAt) (heard, error) {
	said, err := l.places.Witness.Read(ctx)
	if err != nil {
		return heard{}, &unheardError{err}
	}
	return weigh(c.text, said)
}

// copies is all that can be read, whatever the rules decide about it.
func (l *Ledger) copies(ctx context.Context) ([]*copyAt, error) {
	if _, err := l.look(ctx); errors.Is(err, ErrWriteFailed) || ctx.Err() != nil {
		return nil, err
	}
	copies, absent := l.readable()
	if len(copies) == 0 {
		return nil, l.missed(ctx, &AbsentError{Places: absent})
	}
	return copies, nil
}

// readable is what the last look found.
func (l *Ledger) readable() ([]*copyAt, []Absence) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []*copyAt
	for _, at := range l.places.Locations {
		if c := l.seen[at.Directory]; c != nil {
			out = append(out, c)
		}
	}
	return out, l.absent
}

// named is the one copy that a name means.
func named(copies []*copyAt, name string) (*copyAt, error) {
	var found *copyAt
	for _, c := range copies {
		if name != c.text.Copy && name != c.Pool && path.Clean(name) != c.File() && path.Clean(name) != c.Directory || name == "" {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("%w: %s names both %s and %s: name the file", ErrNoCopy, name, found.File(), c.File())
		}
		found = c
	}
	if found == nil {
		return nil, fmt.Errorf("%w: %s", ErrNoCopy, name)
	}
	return found, nil
}

// Keep makes the copy that loss keeps the only one that counts, whatever
// the others and the witness say, and sets the others aside: they are renamed,
// never deleted. Join takes their places in again.
//
// The errors are those of reading and writing; ErrChanged if anything was
// written since loss was looked at.
func Keep(ctx context.Context, files host.Files, places Places, loss KeepPreview, who, why string) error {
	l, err := unopened(files, places)
	if err != nil {
		return err
	}
	return l.keep(ctx, loss, reason{who, why})
}

// ErrChanged is a loss that has changed since it was shown.
var ErrChanged = fault.New(fault.Ledger, "the copies of the ledger have changed since they were looked at")

func (l *Ledger) keep(ctx context.Context, loss KeepPreview, by reason) error {
	unlock, err := l.lock(ctx, host.LockExclusive)
	if err != nil {
		return err
	}
	defer unlock()
	now, err := l.previewKeep(ctx, loss.keep.File())
	if err != nil {
		return err
	}
	if !now.is(loss) {
		return ErrChanged
	}
	if err := errors.Join(l.flushGone(), l.forgetStamp()); err != nil {
		return err
	}
	kept, err := l.whole(ctx, l.at(loss.keep))
	if err != nil {
		return err
	}
	if err := l.claim(ctx, kept, by); err != nil {
		return err
	}
	if err := l.giveUp(loss); err != nil {
		return err
	}
	p, err := l.look(ctx)
	if err != nil {
		return err
	}
	if err := l.updateWitness(ctx, p); err != nil {
		return err
	}
	p.evidence = &evidence{disks: l.disks()} // the next process asks the witness
	l.restamp(p, true)
	return nil
}

// giveUp sets the others aside.
func (l *Ledger) giveUp(loss KeepPreview) error {
	for _, other := range loss.Others {
		if err := l.setAside(Location{Directory: path.Dir(other.File)}); err != nil {
			return l.kill(err, false)
		}
	}
	return nil
}

// flushGone makes sure that a file which is gone stays so: the process that set it
// aside may have been killed before that was on disk.
func (l *Ledger) flushGone() error {
	_, absent := l.readable()
	for _, a := range absent {
		if !errors.Is(a.Err, errNoFile) {
			continue
		}
		if err := l.files.SyncDir(path.Dir(a.File)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// whole is the copy without what stands behind its last line.
func (l *Ledger) whole(ctx context.Context, c *copyAt) (*copyAt, error) {
	if err := l.forgetLeft(c); err != nil {
		return nil, l.kill(err, false)
	}
	if c.text.End == format.EndComplete {
		return c, nil
	}
	if err := l.spare(c); err != nil {
		return nil, l.kill(err, false)
	}
	if err := l.replace(c.Location, c.text.As(c.text.Copy)); err != nil {
		return nil, l.kill(err, false)
	}
	copies, err := l.copies(ctx)
	if err != nil {
		return nil, err
	}
	return named(copies, c.File())
}

// forgetLeft sets history files aside that hold lines beyond the copy: they are
// given up.
func (l *Ledger) forgetLeft(c *copyAt) error {
	all, err := histories(l.files, c.Directory)
	for _, seq := range all {
		if name := path.Join(c.Directory, historyName(seq)); err == nil && seq > c.text.Head().Seq {
			err = rename(l.files, name, path.Join(c.Directory, asideName()))
		}
	}
	return err
}

// is says whether two looks saw the same.
func (s KeepPreview) is(other KeepPreview) bool {
	same := func(a, b Discarded) bool { return a.File == b.File && a.Head == b.Head }
	return s.Kept == other.Kept && s.Head == other.Head && slices.EqualFunc(s.Others, other.Others, same) &&
		(s.Unseen == nil) == (other.Unseen == nil) && (s.Unseen == nil || *s.Unseen == *other.Unseen)
}

// claim writes the epoch line that makes kept the only member. Its number is
// higher than any that is known, so that no other epoch can overrule it.
func (l *Ledger) claim(ctx context.Context, kept *copyAt, by reason) error {
	h, err := l.saidOf(ctx, kept)
	if err != nil {
		return err
	}
	e := kept.text.Epoch()
	lost := slices.DeleteFunc(slices.Concat(e.Lost, e.Copies), func(s MemberRef) bool { return s.Copy == kept.text.Copy })
	e = e.Next([]MemberRef{kept.ref()}, lost, by.who, by.why)
	if h.latest != nil {
		e.N = max(e.N, h.latest.N+1)
	}
	if e.Overrides = h.against(kept.text); e.Overrides != nil {
		e.N = max(e.N, e.Overrides.N+1)
	}
	copies, err := l.copies(ctx)
	if err != nil {
		return err
	}
	for _, c := range copies {
		e.N = max(e.N, c.text.Epoch().N+1)
	}
	line := format.EncodeLine(kept.text.Head(), e.N, time.Now(), []Fact{e.Fact()})
	if err := l.write([]*copyAt{kept}, line); err != nil {
		return l.kill(err, false)
	}
	return nil
}
