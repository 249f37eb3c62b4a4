package ledger

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/sledctl/sledctl/engine/ledger/format"
	"github.com/sledctl/sledctl/host"
)

// Join makes copies in the given locations and members of them. A location
// that holds a member is left as it is; any other file there is renamed aside.
// No member may be missing, but see Degrade: replacing a disk is going on
// alone, then Join.
//
// The errors are those of Update, and ErrNotMounted.
func (l *Ledger) Join(ctx context.Context, newMembers []Location, who, why string) error {
	return l.writing(ctx, func(p *survey) error { return l.join(ctx, p, cleaned(newMembers), reason{who, why}) })
}

func (l *Ledger) join(ctx context.Context, p *survey, newMembers []Location, by reason) error {
	newMembers = slices.DeleteFunc(newMembers, func(at Location) bool { return p.member(at) != nil })
	if len(newMembers) == 0 {
		return nil
	}
	for _, at := range newMembers {
		if err := at.Mounted(l.files); err != nil {
			return fmt.Errorf("%s: %w", at.File(), cause(err))
		}
	}
	var err error
	if len(p.missing) > 0 {
		p, err = l.dropMissing(ctx, p)
	} else {
		_, err = l.confirm(ctx, p)
	}
	if err != nil {
		return err // before anything is set aside
	}
	return l.add(ctx, p, newMembers, by)
}

// add makes the copies, then members of them.
func (l *Ledger) add(ctx context.Context, p *survey, newMembers []Location, by reason) error {
	for _, at := range newMembers {
		if err := l.writeCopy(at, p.members[0].text); err != nil {
			return l.kill(fmt.Errorf("make a copy of the ledger: %w", err), false)
		}
	}
	p, err := l.lookToWrite(ctx)
	if err != nil {
		return err
	}
	return l.addMembers(ctx, p, newMembers, by)
}

// writeCopy writes a copy, not yet a member, into a location.
func (l *Ledger) writeCopy(at Location, t *format.Text) error {
	if err := l.ensureDirectory(at); err != nil {
		return err
	}
	if err := l.setAside(at); err != nil {
		return err
	}
	if err := l.replace(at, t.As(format.NewID())); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Contains(l.places.Locations, at) {
		l.places.Locations = append(slices.Clip(l.places.Locations), at)
	}
	return nil
}

// setAside renames the file of a location, if there is one.
func (l *Ledger) setAside(at Location) error {
	found, err := exists(l.files, at.File())
	if err != nil || !found {
		return err
	}
	return rename(l.files, at.File(), path.Join(at.Directory, asideName()))
}

// How the names of the files begin that were set aside. An earlier sledctl named them
// asideEarlier, and they stay until they are removed.
const (
	asidePrefix  = "superseded-"
	asideEarlier = "aside-"
)

// wasSetAside reports whether a file has the name of one that was set aside.
func wasSetAside(name string) bool {
	return strings.HasPrefix(name, asidePrefix) || strings.HasPrefix(name, asideEarlier)
}

func asideName() string {
	return fmt.Sprintf(asidePrefix+"%s-%s.jsonl", time.Now().UTC().Format("20060102T150405Z"), format.NewID())
}

// spare keeps what a file holds readable before it is replaced, and says so. The
// file keeps its name meanwhile: should its writer be killed, no copy is missing.
// What is read of no file is not copied either: such a one is renamed.
func (l *Ledger) spare(c *copyAt) error {
	data, err := host.ReadAtMost(l.files, c.File(), maxFile)
	var aside string
	switch {
	case c.info.Size > maxFile:
		aside = asideName()
		err = rename(l.files, c.File(), path.Join(c.Directory, aside))
	case err == nil:
		aside = fmt.Sprintf(asidePrefix+"seq%d-%.16s.jsonl", c.text.Head().Seq, format.Sum(data))
		err = host.WriteFile(l.files, path.Join(c.Directory, aside), data, fileMode)
	}
	if err == nil {
		l.warn(fmt.Sprintf("%s was repaired; what it held is in %s next to it", c.File(), aside))
	}
	return err
}

// addMembers begins the epoch in which the newMembers count. The old members get its
// line first: a new member alone must never claim that it counts.
func (l *Ledger) addMembers(ctx context.Context, p *survey, newMembers []Location, by reason) error {
	seats, lost := slices.Clone(p.epoch.Copies), slices.Clone(p.epoch.Lost)
	var others []*copyAt
	for _, at := range newMembers {
		c := l.at(at)
		if c == nil || p.lags(c) {
			return fmt.Errorf("the copy that was just written cannot be used: %w", p.why(at))
		}
		others, seats = append(others, c), append(seats, c.ref())
		lost = replaced(lost, at.Pool)
	}
	_, err := l.change(ctx, p, p.epoch.Next(seats, lost, by.who, by.why), p.members, others)
	return err
}

// replaced is lost without the place that a new member takes: its own pool's, or
// the one that waits longest.
func replaced(lost []MemberRef, pool string) []MemberRef {
	if len(lost) == 0 {
		return nil
	}
	i := max(0, slices.IndexFunc(lost, func(s MemberRef) bool { return s.Pool == pool }))
	return slices.Delete(lost, i, i+1)
}

// Leave takes the copy in a directory out of the members. Its file stays, with
// the line that says so. At least one member must remain; a directory that
// holds no member is no error. The errors are those of Update.
func (l *Ledger) Leave(ctx context.Context, directory string, who, why string) error {
	return l.writing(ctx, func(p *survey) error { return l.leave(ctx, p, directory, reason{who, why}) })
}

func (l *Ledger) leave(ctx context.Context, p *survey, directory string, by reason) error {
	leaver := p.member(Location{Directory: directory})
	switch {
	case leaver == nil:
		return nil
	case len(p.missing) > 0:
		return p.missingError()
	case len(p.members) == 1:
		return fmt.Errorf("%s is the only copy of the ledger", leaver.File())
	}
	if _, err := l.confirm(ctx, p); err != nil {
		return err
	}
	stay := slices.DeleteFunc(slices.Clone(p.members), func(c *copyAt) bool { return c == leaver })
	seats := slices.DeleteFunc(slices.Clone(p.epoch.Copies), func(s MemberRef) bool { return s.Copy == leaver.text.Copy })
	_, err := l.change(ctx, p, p.epoch.Next(seats, p.epoch.Lost, by.who, by.why), stay, []*copyAt{leaver})
	return err
}

// member is the present member in that directory, or nil.
func (p *survey) member(at Location) *copyAt {
	for _, c := range p.members {
		if c.Directory == path.Clean(at.Directory) {
			return c
		}
	}
	return nil
}

// why is why there is no copy in a location.
func (p *survey) why(at Location) error {
	for _, a := range p.absent {
		if a.File == at.File() {
			return fmt.Errorf("%s: %w", a.File, a.Err)
		}
	}
	return fmt.Errorf("%s: it is not what was written", at.File())
}

func (l *Ledger) at(at Location) *copyAt {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen[at.Directory]
}
