package ledger

import (
	"bytes"
	"slices"
	"sync"

	"github.com/sledctl/sledctl/test/hosttest"
)

// film is what a process does, change by change. Where it is killed, what it
// would have done later is absent: since disks do not know of each other,
// that is each disk as it was after so many of its changes.
type film struct {
	mu      sync.Mutex
	changes []change
	beliefs []belief // before each change
	disks   [][]frame
	marks   []*EpochTag
	ram     []*hosttest.PowerCutFiles // before each change
}

// frame is a disk between two changes.
type frame struct {
	files *hosttest.PowerCutFiles
	told  []byte // its description
}

// change is one of a film: which disk, or the witness; and whether it is one of
// several that are made side by side.
type change struct {
	disk      int
	alongside bool
}

// of begins to film.
func (f *film) of(l *lab) {
	f.disks = make([][]frame, len(l.sled.disks))
	appended := false
	note := func(c change) {
		now := l.ifNot
		if appended {
			now = l.ifUnknown
		}
		f.changes, f.beliefs, f.ram = append(f.changes, c), append(f.beliefs, now), append(f.ram, l.sled.ram.Clone())
	}
	for i, d := range l.sled.disks {
		d.note = func(op string) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.settle(i, d)
			f.disks[i] = append(f.disks[i], frame{d.files.Clone(), d.files.Describe()})
			note(change{i, op == "sync" || op == "syncdir"})
			appended = appended || op == "append"
		}
	}
	l.sled.witness.note = func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		note(change{len(l.sled.disks), false})
		f.marks = append(f.marks, l.sled.witness.mark)
	}
	l.sled.note = func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		note(change{len(l.sled.disks) + 1, false})
	}
}

// settle takes the disk's last change back if it has changed nothing: most
// flushes do not.
func (f *film) settle(i int, d *disk) {
	n := len(f.disks[i])
	if n == 0 || !bytes.Equal(f.disks[i][n-1].told, d.files.Describe()) {
		return
	}
	f.disks[i] = f.disks[i][:n-1]
	for at, c := range slices.Backward(f.changes) {
		if c.disk == i {
			f.changes, f.beliefs, f.ram = slices.Delete(f.changes, at, at+1), slices.Delete(f.beliefs, at, at+1), slices.Delete(f.ram, at, at+1)
			return
		}
	}
}

func (f *film) end(l *lab) {
	for i, d := range l.sled.disks {
		f.settle(i, d)
		d.note = nil
	}
	l.sled.witness.note, l.sled.note = nil, nil
}

// killed is the state in which each disk, and at last the witness, has seen so
// many changes and the process is no more.
func (f *film) killed(end *lab, at point) *lab {
	c := *end
	c.belief = f.beliefs[at.change]
	c.sled = &sled{ram: f.ram[at.change], witness: &memoryWitness{mark: end.sled.witness.mark, forgets: end.sled.witness.forgets}}
	for i, d := range end.sled.disks {
		now := frame{files: d.files}
		if at.done[i] < len(f.disks[i]) {
			now = f.disks[i][at.done[i]]
		}
		c.sled.disks = append(c.sled.disks, &disk{
			at: d.at, mount: d.mount, files: now.files, told: now.told, mounted: d.mounted, device: d.device, budget: -1,
		})
	}
	if n := at.done[len(end.sled.disks)]; n < len(f.marks) {
		c.sled.witness.mark = f.marks[n]
	}
	return &c
}

// point is one at which a process can be killed.
type point struct {
	change int   // that was not made, or the first of those that were under way
	done   []int // changes that each disk has seen
}

// kills gives each point at which a process can be killed. Where flushes are
// under way side by side, any of them may be done.
func kills(changes []change, disks int) func(yield func(point) bool) {
	return func(yield func(point) bool) {
		done := make([]int, disks)
		for i := 0; i < len(changes); {
			if !changes[i].alongside {
				if !yield(point{i, slices.Clone(done)}) {
					return
				}
				done[changes[i].disk]++
				i++
				continue
			}
			first, each := i, make([]int, disks)
			for ; i < len(changes) && changes[i].alongside; i++ {
				each[changes[i].disk]++
			}
			if !partly(point{first, done}, each, yield) {
				return
			}
			for disk, n := range each {
				done[disk] += n
			}
		}
	}
}

// partly yields all ways in which some of each disk's changes are done, but not
// all of all.
func partly(from point, each []int, yield func(point) bool) bool {
	ways := 1
	for _, n := range each {
		ways *= n + 1
	}
	for way := range ways - 1 {
		at := point{from.change, slices.Clone(from.done)}
		for disk, n := range each {
			at.done[disk] += way % (n + 1)
			way /= n + 1
		}
		if !yield(at) {
			return false
		}
	}
	return true
}
