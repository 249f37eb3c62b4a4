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
func (l *Ledger) tidy(p *picture) {
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
		if c.text.Base == newest.Base && !newest.outweighed(l.limit) {
			continue
		}
		if err := l.rewrite(c); err != nil {
			p.warn("%s was not shortened: %v", c.File(), err)
			return
		}
	}
}

func (l *Ledger) mayRewrite(p *picture) bool {
	return len(p.missing) == 0 && p.level()
}

// outweighed is a guess, for its cost: lines that remove something may have to
// stay.
func (t *text) outweighed(limit int) bool {
	x, err := t.facts()
	return err == nil && x.dead > limit && x.dead > len(t.data)/2
}

// rewrite leaves dead lines out of a copy's file, if that halves it.
func (l *Ledger) rewrite(c *copyAt) error {
	kept, left, err := c.text.split()
	if err != nil {
		return broken(c.File(), err)
	}
	if 2*c.text.sizes(left) <= len(c.text.data) {
		return nil
	}
	return l.leaveOut(c, kept, left)
}

// leaveOut writes the copy's file without some lines, and those into a history
// file before.
func (l *Ledger) leaveOut(c *copyAt, kept, left []int) error {
	l.mu.Lock()
	delete(l.seen, c.Directory) // whatever becomes of it, it is read again
	l.mu.Unlock()
	head, leftBytes := c.text.head(), c.text.bytes(left)
	h := c.text.header
	h.Base = base{Seq: head.Seq, Hash: head.Hash, Kept: len(left), Sum: string(newChain().hash(leftBytes))}
	name := path.Join(c.Directory, historyName(head.Seq))
	if err := host.WriteFile(l.files, name, append(h.encode(), leftBytes...), fileMode); err != nil {
		return err
	}
	if err := l.replace(c.Location, c.text.without(kept, left)); err != nil {
		return err
	}
	return prune(l.files, c.Directory)
}

// without is the file with a base at the head, the lines that are kept, and
// those that are left out only counted.
func (t *text) without(kept, left []int) []byte {
	head, keptBytes := t.head(), t.bytes(kept)
	h := t.header
	h.Base = base{
		Seq: head.Seq, Hash: head.Hash,
		Kept: len(kept), Sum: string(newChain().hash(keptBytes)),
		Left: t.Base.Left + len(left), Digest: string(newChain().hash([]byte(t.Base.Digest), t.bytes(left))),
	}
	return append(h.encode(), keptBytes...)
}

// split says which lines must stay: those with a live fact, and those that
// remove a key of which an earlier line that stays still has a value.
func (t *text) split() (kept, left []int, err error) {
	x, err := t.facts()
	if err != nil {
		return nil, nil, err
	}
	removed := map[string]int{} // by key: the line that removed it for good
	for i := range t.lines {
		for key := range t.keys(i) {
			if _, alive := x.get(key); !alive {
				removed[key] = i
			}
		}
	}
	mentioned := map[string]bool{} // by lines that stay
	for i := range t.lines {
		stays := x.live[i] > 0
		for key := range t.keys(i) {
			last, gone := removed[key]
			stays = stays || gone && last == i && mentioned[key]
		}
		if !stays {
			left = append(left, i)
			continue
		}
		kept = append(kept, i)
		for key := range t.keys(i) {
			mentioned[key] = true
		}
	}
	return kept, left, nil
}

// keys is the keys of line i, which has been indexed. The ledger's own is not
// among them.
func (t *text) keys(i int) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		f, _ := cutLine(t.line(i))
		for rest := f.facts; len(rest) > 0; {
			key, _, more, ok := cutFact(rest)
			if rest = more; !ok || string(key) != membersKey && !yield(string(key)) {
				return
			}
		}
	}
}

// bytes is those lines, as they are in the file.
func (t *text) bytes(lines []int) []byte {
	out := make([]byte, 0, t.sizes(lines))
	for _, i := range lines {
		out = append(out, t.data[t.lines[i].start:t.lines[i].end+1]...)
	}
	return out
}

func (t *text) sizes(lines []int) int {
	size := 0
	for _, i := range lines {
		size += t.size(i)
	}
	return size
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
