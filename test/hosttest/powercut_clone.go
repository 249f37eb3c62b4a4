package hosttest

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
)

// Clone returns a copy of the file system as it is, with what is not flushed
// yet; later changes of one do not show in the other. In the clone no lock is
// held.
func (p *PowerCutFiles) Clone() *PowerCutFiles {
	p.tree.mu.Lock()
	defer p.tree.mu.Unlock()
	c := cloner{}
	after := PowerCuts()
	after.tree.inodes = p.tree.inodes
	after.tree.root = c.of(p.tree.root)
	for _, edits := range p.tree.journal.names {
		copied := slices.Clone(edits)
		for i, e := range copied {
			copied[i].dir, copied[i].child = c.of(e.dir), c.of(e.child)
		}
		after.tree.journal.names = append(after.tree.journal.names, copied)
	}
	return after
}

// cloner holds the copies by what they are of: a file may have several names,
// and one that has none yet, or none any more. It is nil where each has one name,
// as all have that no journal is kept of.
type cloner map[*node]*node

func (c cloner) of(n *node) *node {
	if n == nil || c[n] != nil {
		return c[n]
	}
	n.shared = true
	d := &node{mode: n.mode, time: n.time, inode: n.inode, device: n.device, target: n.target, data: n.data, shared: true}
	if c != nil {
		c[n] = d
	}
	d.entries = c.entries(n.entries)
	if n.flushed != nil {
		d.flushed = &flushed{mode: n.flushed.mode, data: slices.Clone(n.flushed.data), patches: slices.Clone(n.flushed.patches), entries: c.entries(n.flushed.entries)}
	}
	return d
}

func (c cloner) entries(of map[string]*node) map[string]*node {
	out := maps.Clone(of)
	for name, n := range out {
		out[name] = c.of(n)
	}
	return out
}

// Describe tells all that a power cut and what comes after it can depend on:
// names and contents, and what of them is certain. Two file systems of which
// it is equal behave alike. Inodes and times are not in it.
func (p *PowerCutFiles) Describe() []byte {
	p.tree.mu.Lock()
	defer p.tree.mu.Unlock()
	d := &description{numbers: map[*node]int{}}
	d.number(p.tree.root)
	for i := 0; i < len(d.nodes); i++ { // it grows
		d.node(d.nodes[i])
	}
	for _, edits := range p.tree.journal.names {
		for _, e := range edits {
			fmt.Fprintf(&d.out, "pending %d %q %d;", d.number(e.dir), e.name, d.number(e.child))
		}
		d.out.WriteByte('\n')
	}
	return d.out.Bytes()
}

type description struct {
	numbers map[*node]int
	nodes   []*node
	out     bytes.Buffer
}

// number is that of a node, given when it is first met; 0 for none.
func (d *description) number(n *node) int {
	if n == nil {
		return 0
	}
	if d.numbers[n] == 0 {
		d.nodes = append(d.nodes, n)
		d.numbers[n] = len(d.nodes)
	}
	return d.numbers[n]
}

func (d *description) node(n *node) {
	fmt.Fprintf(&d.out, "%d: %v %v device %d %q\n", d.number(n), n.mode, n.flushed.mode, n.device, n.target)
	for _, entries := range []map[string]*node{n.entries, n.flushed.entries} {
		for _, name := range sortedNames(entries) {
			fmt.Fprintf(&d.out, "%q %d;", name, d.number(entries[name]))
		}
		d.out.WriteByte('\n')
	}
	if n.mode.IsDir() {
		return
	}
	d.out.Write(n.data)
	if len(n.flushed.patches) == 0 {
		return // what is there is certain
	}
	d.out.WriteString("certain:\n")
	d.out.Write(n.flushed.data)
	for _, p := range n.flushed.patches {
		fmt.Fprintf(&d.out, "patch at %d, empties %v:\n%s\n", p.off, p.empty, p.data)
	}
}
