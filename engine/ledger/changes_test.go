package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/host"
)

// join takes a disk in. Whatever becomes of it, a file that was there is still
// there under some name.
func (l *lab) join(d *disk) error {
	look, err := l.process().look(context.Background())
	if err != nil {
		return l.refusal(err)
	}
	before, there := d.file(path.Base(d.at.File()))
	member := look.member(d.at) != nil
	p := l.process()
	p.Degrade("lab", "join")
	l.ifNot, l.ifUnknown = l.belief, l.belief.changing()
	err = p.Join(context.Background(), []Location{d.at}, "lab", "join")
	switch {
	case err == nil && !member:
		l.changes++
		l.strays = slices.DeleteFunc(slices.Clone(l.strays), func(name string) bool { return name == d.at.Pool })
	case errors.Is(err, ErrWriteFailed):
		l.belief = l.ifUnknown
	}
	if there && !member && !l.keeps(d, before) {
		return fmt.Errorf("a file of %s is gone", d.at.Directory)
	}
	return l.refusal(err)
}

// file is a file in the disk's directory, mounted or not.
func (d *disk) file(name string) ([]byte, bool) {
	data, err := host.ReadFile(d.files, path.Join(strings.TrimPrefix(d.at.Directory, d.mount), name))
	return data, err == nil
}

// keeps says whether some file in the disk's directory is that one.
func (l *lab) keeps(d *disk, data []byte) bool {
	infos, _ := d.files.ReadDir(strings.TrimPrefix(d.at.Directory, d.mount))
	return slices.ContainsFunc(infos, func(info host.Info) bool {
		now, _ := d.file(info.Name)
		return bytes.Equal(now, data)
	})
}

// bargain is what it would cost to keep a copy, and the appends that it holds.
func (p *Ledger) bargain(d *disk) (loss KeepPreview, kept []int, err error) {
	if loss, err = p.previewKeep(context.Background(), d.at.File()); err != nil {
		return KeepPreview{}, nil, err
	}
	before := p.at(d.at).text
	facts, err := before.Facts()
	if err != nil {
		return KeepPreview{}, nil, err
	}
	kept, err = listed(View{facts: facts})
	return loss, kept, err
}

// gone makes disks that a keep does not see disks that nobody brings back: what
// comes in their place is blank. It names their pools. To bring one back is to
// continue with what was given up, which no copy that is there can know.
func (s *sled) gone(loss KeepPreview) []string {
	var pools []string
	for _, d := range s.disks {
		seen := loss.Kept == d.at.File() || slices.ContainsFunc(loss.Others, func(g Discarded) bool { return g.File == d.at.File() })
		if _, there := d.file(path.Base(d.at.File())); there && !(seen && d.mounted) {
			d.format()
			pools = append(pools, d.at.Pool)
		}
	}
	return pools
}

// keep gives all copies up but one.
func (l *lab) keep(d *disk) error {
	ctx := context.Background()
	loss, kept, err := l.clone().process().bargain(d) // what is flushed by looking is no step of the keep
	if errors.Is(err, ErrNoCopy) || errors.Is(err, ErrAbsent) {
		return nil
	}
	if err != nil {
		return err
	}
	l.strays = slices.Concat(l.strays, l.sled.gone(loss))
	l.ifNot, l.ifUnknown = l.belief, l.belief.changing()
	l.ifUnknown.waver(kept)
	if err := l.process().keep(ctx, loss, reason{"lab", "keep"}); err != nil {
		return fmt.Errorf("keep: %w", err)
	}
	l.changes++
	v, err := l.process().Read(ctx)
	if err != nil {
		return fmt.Errorf("after keep: %w", err)
	}
	if err := l.laws.keep(v); err != nil {
		return err
	}
	if _, err := l.process().Update(ctx, func(View) ([]Fact, error) { return nil, nil }); err != nil {
		return fmt.Errorf("after keep: %w", err)
	}
	l.unfinished = 0
	return nil
}

// leave gives one copy up, in good order.
func (l *lab) leave(d *disk) error {
	l.ifNot, l.ifUnknown = l.belief, l.belief.changing()
	err := l.process().Leave(context.Background(), d.at.Directory, "lab", "leave")
	switch {
	case err == nil:
		l.changes++
	case errors.Is(err, ErrWriteFailed):
		l.belief = l.ifUnknown
	case strings.Contains(err.Error(), "only copy"):
		return nil
	}
	return l.refusal(err)
}
