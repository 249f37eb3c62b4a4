package hosttest

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/lock"
)

// memTree is a file system in memory: what Memory, its views and PowerCuts
// share. All of it is guarded by mu.
type memTree struct {
	mu      sync.Mutex
	root    *node
	inodes  uint64
	fault   func(op, name string) error
	journal *journal // nil: the power is never cut
}

// node is a file, a directory (entries is not nil) or a link (target is set).
type node struct {
	mode    fs.FileMode
	time    time.Time
	inode   uint64
	device  uint64 // 0: its parent's
	data    []byte
	shared  bool // data is also a clone's
	entries map[string]*node
	target  string
	lock    lock.Fair // on the file

	flushed *flushed // only with a journal
}

// errEscapes is what os.Root says too.
var errEscapes = errors.New("path escapes from parent")

// rootMode is the mode of "/".
const rootMode = fs.ModeDir | 0o755

// maxLinks is how many links a name may lead through.
const maxLinks = 40

func newMemTree() *memTree {
	t := &memTree{}
	t.root = t.newNode(rootMode)
	t.root.device = 1
	return t
}

func (t *memTree) newNode(mode fs.FileMode) *node {
	t.inodes++
	n := &node{mode: mode, time: time.Now(), inode: t.inodes}
	if mode.IsDir() {
		n.entries = map[string]*node{}
	}
	if t.journal != nil {
		n.flushed = &flushed{mode: mode, entries: map[string]*node{}}
	}
	return n
}

// place is where a name leads: the directories down to its last element, that
// element, and the node there, nil if there is none.
type place struct {
	dirs []*node
	base string
	node *node
}

func (p place) parent() *node { return p.dirs[len(p.dirs)-1] }

// device is the node's: that of the nearest mountpoint above or at it.
func (p place) device() uint64 {
	if p.node != nil && p.node.device != 0 {
		return p.node.device
	}
	return p.parentDevice()
}

func (p place) parentDevice() uint64 {
	for i := len(p.dirs) - 1; i >= 0; i-- {
		if d := p.dirs[i].device; d != 0 {
			return d
		}
	}
	return 0
}

func (p place) info(name string) host.Info {
	n := p.node
	size := len(n.data)
	if n.target != "" {
		size = len(n.target)
	}
	return host.Info{Name: name, Size: int64(size), Mode: n.mode, Time: n.time, Device: p.device(), Inode: n.inode}
}

// absolute is a name from the top, clean.
func absolute(name string) string {
	if !strings.HasPrefix(name, "/") {
		name = "/" + name
	}
	return path.Clean(name)
}

// baseOf is the last element of a name.
func baseOf(name string) string {
	base := name[strings.LastIndexByte(name, '/')+1:]
	if base == "" || base == "." || base == ".." {
		return path.Base(absolute(name))
	}
	return base
}

// find walks from the last of dirs, which cannot be left. In a view (confined)
// links that would leave it are errors.
func find(dirs []*node, confined bool, name string, follow bool) (place, error) {
	floor := len(dirs)
	dirs = append(make([]*node, 0, floor+8), dirs...)
	todo, links := absolute(name), 0
	for more := true; more; {
		at := dirs[len(dirs)-1]
		var step string
		step, todo, more = strings.Cut(todo, "/")
		switch {
		case step == "" || step == ".":
			continue
		case at.entries == nil:
			return place{}, syscall.ENOTDIR
		case step == "..":
			if len(dirs) > floor {
				dirs = dirs[:len(dirs)-1]
			} else if confined {
				return place{}, errEscapes
			}
			continue
		}
		next, last := at.entries[step], !more
		switch {
		case next != nil && next.target != "" && (follow || !last):
			if links++; links > maxLinks {
				return place{}, syscall.ELOOP
			}
			if path.IsAbs(next.target) {
				if confined {
					return place{}, errEscapes
				}
				dirs = dirs[:1]
			}
			if more {
				todo = "/" + todo
			}
			todo, more = next.target+todo, true
		case last:
			return place{dirs: dirs, base: step, node: next}, nil
		case next == nil:
			return place{}, syscall.ENOENT
		default:
			dirs = append(dirs, next)
		}
	}
	top := len(dirs) - 1
	return place{dirs: dirs[:max(top, 1)], base: ".", node: dirs[top]}, nil
}

// edit is one name of a directory that is set or removed.
type edit struct {
	dir   *node
	name  string
	child *node // nil: the name is removed
}

// apply makes edits that belong together: for a power cut they are one change.
func (t *memTree) apply(edits ...edit) {
	for _, e := range edits {
		e.put(e.dir.entries)
		e.dir.time = time.Now()
	}
	if t.journal != nil {
		t.journal.names = append(t.journal.names, edits)
	}
}

func (e edit) put(entries map[string]*node) {
	if e.child == nil {
		delete(entries, e.name)
	} else {
		entries[e.name] = e.child
	}
}

// write puts data at an offset, and truncate empties the file.
func (t *memTree) write(n *node, off int, data []byte) {
	n.change(t.journal != nil, patch{off: off, data: data})
}

func (t *memTree) truncate(n *node) {
	if len(n.data) > 0 {
		n.change(t.journal != nil, patch{empty: true})
	}
}

// patch is one change of a file's contents.
type patch struct {
	off   int
	data  []byte
	empty bool // cut the file to nothing instead
}

func (n *node) change(keep bool, p patch) {
	if n.shared {
		n.data, n.shared = bytes.Clone(n.data), false
	}
	n.data = p.on(n.data)
	n.time = time.Now()
	if keep {
		p.data = append([]byte(nil), p.data...)
		n.flushed.patches = append(n.flushed.patches, p)
	}
}

// on returns the contents with the patch; a gap is filled with zeros.
func (p patch) on(data []byte) []byte {
	if p.empty {
		return nil
	}
	if gap := p.off - len(data); gap > 0 {
		data = append(data, make([]byte, gap)...)
	}
	n := copy(data[p.off:], p.data)
	return append(data, p.data[n:]...)
}
