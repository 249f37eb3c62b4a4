package host

// Clone is the file system as it is: each of the two goes on by itself. Nobody
// holds a lock in the clone, no fault happens to it, and it is the whole, also of a
// view. Contents are shared until one of the two changes them.
func (m *MemoryFiles) Clone() *MemoryFiles {
	m.tree.mu.Lock()
	defer m.tree.mu.Unlock()
	if m.tree.journal != nil {
		panic("host: a file system whose power can be cut is cloned by PowerCutFiles.Clone")
	}
	var c cloner
	return &MemoryFiles{tree: &memTree{root: c.of(m.tree.root), inodes: m.tree.inodes}}
}
