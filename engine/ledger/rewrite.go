package ledger

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/host"
)

// keptHistories is how many files of left-out lines stay next to a copy.
const keptHistories = 10

// tidy rewrites copies whose dead lines outweigh the live ones, if all members
// are present and equal: they stay so, since a rewrite does not change a head.
// It follows an append, which is acknowledged, so a failure is a warning.
func (l *Ledger) tidy(p *survey) {
	if !l.mayRewrite(p) {
		return
	}
	newest := p.members[0].text
	for _, c := range p.members {
		if c.text.Base.Seq > newest.Base.Seq {
			newest = c.text
		}
	}
	for _, c := range p.members {
		if c.text.Base == newest.Base && !newest.Outweighed(l.limit) {
			continue
		}
		if err := l.rewrite(c); err != nil {
			p.warn("%s was not shortened: %v", c.File(), err)
			return
		}
	}
}

func (l *Ledger) mayRewrite(p *survey) bool {
	return len(p.missing) == 0 && p.level()
}

// rewrite leaves dead lines out of a copy's file, if that halves it.
func (l *Ledger) rewrite(c *copyAt) error {
	kept, left, err := c.text.Split()
	if err != nil {
		return broken(c.File(), err)
	}
	if 2*c.text.Size(left) <= len(c.text.Data()) {
		return nil
	}
	return l.leaveOut(c, kept, left)
}

// leaveOut writes the copy's file without some lines, and those into a history
// file before.
func (l *Ledger) leaveOut(c *copyAt, kept, left []int) error {
	l.mu.Lock()
	delete(l.seen, c.Directory) // in any case, it is read again
	l.mu.Unlock()
	name := path.Join(c.Directory, historyName(c.text.Head().Seq))
	if err := host.WriteFile(l.files, name, c.text.History(left), fileMode); err != nil {
		return err
	}
	if err := l.replace(c.Location, c.text.Without(kept, left)); err != nil {
		return err
	}
	return prune(l.files, c.Directory)
}

func historyName(seq uint64) string { return fmt.Sprintf("history-%d.jsonl", seq) }

// historySeq is the number in a history file's name.
func historySeq(name string) (uint64, bool) {
	digits, ok := strings.CutPrefix(name, "history-")
	if digits, found := strings.CutSuffix(digits, ".jsonl"); ok && found {
		seq, err := strconv.ParseUint(digits, 10, 64)
		return seq, err == nil
	}
	return 0, false
}

// histories is the numbers of a directory's history files, oldest first.
func histories(files host.Files, directory string) ([]uint64, error) {
	all, err := files.ReadDir(directory)
	if err != nil {
		return nil, err
	}
	var out []uint64
	for _, info := range all {
		if seq, ok := historySeq(info.Name); ok {
			out = append(out, seq)
		}
	}
	slices.Sort(out)
	return out, nil
}

// prune removes all but the newest history files.
func prune(files host.Files, directory string) error {
	all, err := histories(files, directory)
	if err != nil {
		return err
	}
	for _, seq := range all[:max(0, len(all)-keptHistories)] {
		if err := files.Remove(path.Join(directory, historyName(seq))); err != nil {
			return err
		}
	}
	return nil
}
