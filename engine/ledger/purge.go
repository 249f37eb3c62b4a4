package ledger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/sledctl/sledctl/engine/ledger/format"
	"github.com/sledctl/sledctl/host"
)

// Purge leaves nothing of what should not have been written: no line that is
// unwanted stays in a copy, and no history and nothing that was set aside that
// has one. Instead gives the facts that stand in the place of those that are live
// and unwanted. All that is live is written once more, since lines go or stay as a
// whole; then the other files go, and the copies last: after a kill, the next process
// sees that it is not done. Where nothing is unwanted,
// nothing is written, and a Ledger that has seen so does not look again.
//
// The errors are those of Update. A member that is missing is an error too: what
// it has is found when it is back.
func (l *Ledger) Purge(ctx context.Context, unwanted func([]byte) bool, instead func(View) ([]Fact, error)) error {
	l.mu.Lock()
	pure := l.pure
	l.mu.Unlock()
	if pure {
		return nil
	}
	p, files, clean, err := l.unwantedHere(ctx, unwanted)
	found := err == nil && (len(files) > 0 || p.holds(unwanted, clean))
	if found {
		err = l.writing(ctx, func(p *survey) error { return l.purge(ctx, p, unwanted, instead) })
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pure = err == nil && len(p.missing) == 0; l.pure && !found {
		head := p.best.text.Head()
		l.clean = &head
	}
	return err
}

// unwantedHere looks for what is unwanted in what was read last, without the checks that
// a view needs: the change that removes it makes them.
func (l *Ledger) unwantedHere(ctx context.Context, unwanted func([]byte) bool) (p *survey, files []string, clean *Head, err error) {
	if p, err = l.lastRead(ctx); err != nil {
		return nil, nil, nil, l.missed(ctx, err)
	}
	if len(p.members) == 0 {
		return nil, nil, nil, p.missingError()
	}
	before, clean := l.searchedBefore(l.lastStamp())
	files, err = l.unwantedFiles(p, unwanted, before)
	return p, files, clean, err
}

// lastRead is what was read last of all places, or else is read now.
func (l *Ledger) lastRead(ctx context.Context) (*survey, error) {
	l.mu.Lock()
	if len(l.seen) == len(l.places.Locations) {
		defer l.mu.Unlock()
		return l.decide()
	}
	l.mu.Unlock()
	unlock, err := l.lock(ctx, host.LockShared)
	if err != nil {
		return nil, err
	}
	defer unlock()
	return l.look(ctx)
}

func (l *Ledger) purge(ctx context.Context, p *survey, unwanted func([]byte) bool, instead func(View) ([]Fact, error)) error {
	files, err := l.unwantedFiles(p, unwanted, nil)
	if err != nil {
		return err
	}
	if !l.mayRewrite(p) {
		return p.missingError()
	}
	dirty := p.holds(unwanted, nil)
	if dirty {
		if p, err = l.writeLive(ctx, p, instead); err != nil {
			return err
		}
	}
	for _, name := range files {
		if err := l.files.Remove(name); err != nil {
			return err
		}
		if err := l.files.SyncDir(path.Dir(name)); err != nil {
			return err
		}
	}
	if !dirty {
		return nil
	}
	for _, c := range p.members {
		kept, left, err := c.text.Split()
		if err != nil {
			return broken(c.File(), err)
		}
		l.mu.Lock()
		delete(l.seen, c.Directory)
		l.mu.Unlock()
		data := c.text.Without(kept, left)
		if unwanted(data) {
			return fmt.Errorf("%s still has what should not be there", c.File())
		}
		if err := l.replace(c.Location, data); err != nil {
			return err
		}
	}
	return nil
}

// again writes all that is live in one line.
func (l *Ledger) writeLive(ctx context.Context, p *survey, instead func(View) ([]Fact, error)) (*survey, error) {
	view, err := p.view(p.best)
	if err != nil {
		return nil, err
	}
	facts, err := instead(view)
	if err != nil {
		return nil, err
	}
	for key, value := range view.All("") {
		if !slices.ContainsFunc(facts, func(f Fact) bool { return f.Key == key }) {
			facts = append(facts, Fact{Key: key, Value: value})
		}
	}
	if facts, err = format.CheckFacts(facts); err != nil || len(facts) == 0 {
		return p, err
	}
	return l.append(ctx, p, facts)
}

// holds says whether a member has what is unwanted, behind the line up to which nothing is;
// nil: anywhere.
func (p *survey) holds(unwanted func([]byte) bool, clean *Head) bool {
	return slices.ContainsFunc(p.members, func(c *copyAt) bool {
		if clean == nil {
			return unwanted(c.text.Data())
		}
		return unwanted(c.text.Behind(*clean))
	})
}

// unwantedFiles are the files next to the members that have what is unwanted. Those
// that were searched before are not read again.
func (l *Ledger) unwantedFiles(p *survey, unwanted func([]byte) bool, before []string) (names []string, err error) {
	searched := []string{}
	for _, c := range p.members {
		entries, err := l.files.ReadDir(c.Directory)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			_, past := historySeq(e.Name)
			if !e.Mode.IsRegular() || !past && !wasSetAside(e.Name) {
				continue
			}
			name := path.Join(c.Directory, e.Name)
			this := fmt.Sprintf("%s %d %d", name, e.Inode, e.Size)
			if !slices.Contains(before, this) {
				data, err := host.ReadAtMost(l.files, name, maxFile)
				if err != nil && !errors.Is(err, fs.ErrNotExist) { // else a rewrite has removed it
					return nil, err
				}
				if unwanted(data) {
					names = append(names, name)
					continue
				}
			}
			searched = append(searched, this)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.searched = searched
	return names, nil
}
