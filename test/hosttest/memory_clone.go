package hosttest

import "github.com/sledctl/sledctl/host"

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
