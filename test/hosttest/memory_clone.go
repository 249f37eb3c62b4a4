package hosttest

import (
	"errors"
	"io/fs"

	"github.com/sledctl/sledctl/host"
)

// Clone returns a copy of the file system as it is; later changes of one do not
// show in the other. In the clone no lock is held and no fault happens, and it
// is complete, also if m is a view. Contents are shared until one of the two
// changes them.
func (m *MemoryFiles) Clone() *MemoryFiles {
	m.tree.mu.Lock()
	defer m.tree.mu.Unlock()
	if m.tree.journal != nil {
		panic("hosttest: a file system whose power can be cut is cloned by PowerCutFiles.Clone")
	}
	var c cloner
	return &MemoryFiles{tree: &memTree{root: c.of(m.tree.root), inodes: m.tree.inodes}}
}

// CloneFiles is Clone as sim/world takes it.
func (m *MemoryFiles) CloneFiles() host.Files { return m.Clone() }

// ShareFile makes a file with the contents of another, which they share until one of the two
// is changed: the simulated ZFS makes hundreds with each zone. It is errors.ErrUnsupported where
// each operation counts: with faults, or if the power can be cut.
func (m *MemoryFiles) ShareFile(from, to string, mode fs.FileMode) error {
	m.tree.mu.Lock()
	defer m.tree.mu.Unlock()
	if m.tree.journal != nil || m.tree.fault != nil {
		return errors.ErrUnsupported
	}
	p, err := m.find(from, false)
	if err != nil {
		return m.pathError("open", from, err)
	}
	q, err := m.find(to, false)
	switch {
	case err != nil:
		return m.pathError("open", to, err)
	case p.node == nil || !p.node.mode.IsRegular() || q.node != nil:
		return errors.ErrUnsupported // what this comes to, an ordinary copy knows
	}
	n := m.tree.newNode(mode.Perm())
	p.node.shared = true
	n.data, n.shared = p.node.data, true
	m.tree.apply(edit{q.parent(), q.base, n})
	return nil
}
