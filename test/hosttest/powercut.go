package hosttest

import (
	"maps"
	"slices"
)

// PowerCutFiles is a file system in memory that separates what was flushed from
// what was not. It promises as little as POSIX does: Sync makes the contents
// and the mode of a file durable, SyncDir the names in a directory, and
// nothing else is, in whatever order it was done.
type PowerCutFiles struct{ *MemoryFiles }

// PowerCuts is an empty file system whose power can be cut.
func PowerCuts() *PowerCutFiles {
	t := &memTree{journal: &journal{}}
	t.root = t.newNode(rootMode)
	t.root.device = 1
	return &PowerCutFiles{&MemoryFiles{tree: t}}
}

// Settle makes everything durable, as sync(8) does.
func (p *PowerCutFiles) Settle() {
	p.tree.mu.Lock()
	defer p.tree.mu.Unlock()
	for _, edits := range p.tree.journal.names {
		for _, e := range edits {
			e.put(e.dir.flushed.entries)
		}
	}
	p.tree.journal.names = nil
	settle(p.tree, p.tree.root)
}

func settle(t *memTree, n *node) {
	t.sync(n)
	for _, child := range n.entries {
		settle(t, child)
	}
}

// Cut returns the file system as it may be after the power failed now: what
// was not flushed is there, is not, or, of a write, is there up to any byte: ZFS
// grows a file with what is written into it, never before. Choose picks one of n, from 0 to n-1,
// as (*rand.Rand).IntN does; always 0 gives what is certain and nothing else,
// always n-1 everything. Nobody holds a lock there. The file system itself
// goes on, so it can be cut again in other ways.
func (p *PowerCutFiles) Cut(choose func(n int) int) *PowerCutFiles {
	p.tree.mu.Lock()
	defer p.tree.mu.Unlock()

	chosen := make([]bool, len(p.tree.journal.names))
	for i := range chosen {
		chosen[i] = choose(2) == 1
	}
	p.tree.journal.close(chosen)

	c := &cut{choose: choose, entries: map[*node]map[string]*node{}}
	for i, edits := range p.tree.journal.names {
		if chosen[i] {
			for _, e := range edits {
				e.put(c.of(e.dir))
			}
		}
	}
	after := PowerCuts()
	after.tree.inodes = p.tree.inodes
	after.tree.root = c.survivor(p.tree.root)
	return after
}

// cut makes the nodes that survive one.
type cut struct {
	choose  func(n int) int
	entries map[*node]map[string]*node // of directories with chosen changes
}

func (c *cut) of(dir *node) map[string]*node {
	if c.entries[dir] == nil {
		c.entries[dir] = maps.Clone(dir.flushed.entries)
	}
	return c.entries[dir]
}

// survivor is a copy of the node, with all that it holds durable.
func (c *cut) survivor(n *node) *node {
	s := &node{
		mode: n.flushed.mode, time: n.time, inode: n.inode, device: n.device, target: n.target,
		flushed: &flushed{},
	}
	if s.mode != n.mode && c.choose(2) == 1 {
		s.mode = n.mode
	}
	s.flushed.mode = s.mode
	if n.mode.IsDir() {
		s.entries, s.flushed.entries = map[string]*node{}, map[string]*node{}
		for _, name := range sortedNames(c.of(n)) {
			child := c.survivor(c.of(n)[name])
			s.entries[name], s.flushed.entries[name] = child, child
		}
		return s
	}
	s.data = append([]byte(nil), n.flushed.data...)
	for _, p := range n.flushed.patches {
		s.data = c.partOf(p).on(s.data)
	}
	s.flushed.data = append([]byte(nil), s.data...)
	return s
}

// partOf chooses what of an unflushed write got to the disk.
func (c *cut) partOf(p patch) patch {
	const none, torn, ways = 0, 1, 3
	switch c.choose(ways) {
	case none:
		return patch{}
	case torn:
		return patch{off: p.off, data: p.data[:c.choose(len(p.data)+1)], empty: p.empty}
	}
	return p
}

// sortedNames makes the order of choices, and so a cut, reproducible.
func sortedNames(entries map[string]*node) []string {
	return slices.Sorted(maps.Keys(entries))
}
