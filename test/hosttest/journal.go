package hosttest

import (
	"io/fs"
	"slices"
)

// journal is what a power cut may take back: the changes of directories that
// no SyncDir has made durable, in their order. Each is atomic, a rename too.
type journal struct {
	names [][]edit
}

// flushed is what of a node lies safely on the disk, and the changes of its
// contents that do not.
type flushed struct {
	mode    fs.FileMode
	data    []byte
	patches []patch
	entries map[string]*node
}

// sync makes the contents and the mode of a file durable, not its name.
func (t *memTree) sync(n *node) {
	if t.journal == nil {
		return
	}
	for _, p := range n.flushed.patches {
		n.flushed.data = p.on(n.flushed.data)
	}
	n.flushed.patches = nil
	n.flushed.mode = n.mode
}

// syncDir makes the changes of a directory durable, and those before them that
// they rest on.
func (t *memTree) syncDir(dir *node) {
	if t.journal == nil {
		return
	}
	dir.flushed.mode = dir.mode
	chosen := make([]bool, len(t.journal.names))
	for i, edits := range t.journal.names {
		chosen[i] = slices.ContainsFunc(edits, func(e edit) bool { return e.dir == dir })
	}
	t.journal.close(chosen)
	var rest [][]edit
	for i, edits := range t.journal.names {
		if !chosen[i] {
			rest = append(rest, edits)
			continue
		}
		for _, e := range edits {
			e.put(e.dir.flushed.entries)
		}
	}
	t.journal.names = rest
}

// close adds to the chosen changes the earlier ones without which they could
// not have happened.
func (j *journal) close(chosen []bool) {
	for later := len(chosen) - 1; later >= 0; later-- {
		if !chosen[later] {
			continue
		}
		for earlier := range later {
			chosen[earlier] = chosen[earlier] || restsOn(j.names[later], j.names[earlier])
		}
	}
}

// restsOn says whether a change needs an earlier one: both are about one name,
// or the later one removes a directory that the earlier one emptied.
func restsOn(later, earlier []edit) bool {
	for _, l := range later {
		for _, e := range earlier {
			removed := len(later) == 1 && l.child == nil && l.dir.flushed.entries[l.name] == e.dir
			if removed || l.dir == e.dir && l.name == e.name {
				return true
			}
		}
	}
	return false
}
