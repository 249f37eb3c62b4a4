package ledger

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/sledctl/sledctl/host"
)

// step is something that may happen to a sled.
type step struct {
	name  string
	do    func(*lab) error
	kills bool // it is a process, which may be killed at each of its changes
	// cut is set instead of do for what has several outcomes: choose picks them.
	cut func(l *lab, choose func(int) int)
}

// bounds are what an exploration tries.
type bounds struct {
	lines  uint64 // no more are written
	places bool   // torn writes are cut in three places, not in one
	faults bool   // disks that fail or are full
	stray  int    // so many disks are replaced, or made copies of others
	asides int    // so many files may have been set aside on a disk before a join
	only   string // names of steps, with commas, if not all: "join", "unmount 0"
	kills  string // names of those that are killed, if only is set; else all are
}

// has says whether a step is to be tried.
func (b bounds) has(s step) bool {
	name, _, _ := strings.Cut(s.name, " ")
	some := strings.Split(b.only, ", ")
	return b.only == "" || slices.Contains(some, name) || slices.Contains(some, s.name)
}

// steps lists what may happen next.
func (l *lab) steps(b bounds) []step {
	list := []step{
		{name: "read", do: (*lab).read},
		{name: "create", do: (*lab).create},
		{name: "power", cut: func(l *lab, choose func(int) int) { l.sled.powerCut(choose) }},
	}
	if l.seq() < b.lines {
		list = append(list,
			step{name: "update", kills: true, do: func(l *lab) error { return l.update(l.process(), false, nil) }},
			step{name: "late", do: (*lab).late},
			step{name: "two", do: func(l *lab) error { return l.update(l.process(), false, l.meanwhile) }})
		if l.away() || len(l.stray) > 0 {
			list = append(list, step{name: "alone", kills: true, do: func(l *lab) error { return l.update(l.process(), true, nil) }})
		}
	}
	for i := range l.sled.disks {
		list = append(list, l.stepsOf(i, b)...)
	}
	for i, s := range list {
		name, _, _ := strings.Cut(s.name, " ")
		list[i].kills = s.kills && (b.only == "" || slices.Contains(strings.Fields(b.kills), name))
	}
	return slices.DeleteFunc(list, func(s step) bool { return !b.has(s) })
}

// stepsOf lists what may happen to one disk.
func (l *lab) stepsOf(i int, b bounds) []step {
	d := l.sled.disks[i]
	on := func(do func(l *lab, d *disk) error) func(*lab) error {
		return func(l *lab) error { return do(l, l.sled.disks[i]) }
	}
	named := func(name string) string { return fmt.Sprintf("%s %d", name, i) }
	join := step{name: named("join"), kills: true, do: on((*lab).join)}
	if !d.mounted {
		list := []step{{name: named("mount"), do: on(func(_ *lab, d *disk) error { d.mounted = true; return nil })}}
		if l.seq() < b.lines && l.asides(d) <= b.asides {
			list = append(list, join) // it must not be done
		}
		return list
	}
	list := []step{
		{name: named("unmount"), do: on(func(_ *lab, d *disk) error { d.flush(); d.mounted = false; return nil })},
		{name: named("pull"), cut: func(l *lab, choose func(int) int) {
			d := l.sled.disks[i]
			d.files, d.mounted = d.files.Cut(choose), false
		}},
	}
	if d.at.Pool == "" {
		list = nil // a directory of the root is there as long as the sled is
	}
	if l.seq() > 1 {
		list = append(list, step{name: named("tidy"), kills: true, do: on((*lab).tidy)})
	}
	if l.seq() < b.lines {
		if l.asides(d) <= b.asides {
			list = append(list, join)
		}
		if d.at.Pool == "" {
			list = append(list, step{name: named("leave"), kills: true, do: on((*lab).leave)})
		}
	}
	if len(l.stray) < b.stray && d.at.Pool != "" {
		list = append(list, step{name: named("replace"), do: on(func(l *lab, d *disk) error {
			d.format()
			l.stray = slices.Concat(l.stray, []string{d.at.Pool})
			return nil
		})}, step{name: named("twin"), do: on((*lab).twin)})
	}
	if l.seq() >= b.lines {
		return list
	}
	if b.faults {
		for n := 2; n < 4; n++ { // behind the flushes of what is there
			list = append(list, step{name: named("fail"), do: on(func(l *lab, d *disk) error { return l.fail(d, n, false) })})
		}
		list = append(list, step{name: named("half"), do: on(func(l *lab, d *disk) error { return l.fail(d, 2, true) })})
	}
	if l.unfinished > 0 || b.has(step{name: "keep"}) && b.only != "" {
		list = append(list, step{name: named("keep"), kills: true, do: on((*lab).keep)})
	}
	return list
}

// after is what a step leads to: one state, or several where it may be killed
// or the power chooses.
func (l *lab) after(s step, b bounds, next func(*lab)) error {
	if s.cut != nil {
		return l.cuts(s, b, next)
	}
	c := l.clone()
	var f film
	c.ifNot, c.ifUnknown = c.belief, c.belief
	if s.kills {
		f.of(c)
	}
	if err := s.do(c); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	c.ifNot, c.ifUnknown = belief{}, belief{}
	if s.kills {
		f.end(c)
		for at := range kills(f.changes, len(l.sled.disks)+1) {
			next(f.killed(c, at))
		}
	}
	next(c)
	return nil
}

// film is what a process does, change by change. Where it is killed, what it
// would have done later is not there: since disks do not know of each other,
// that is each disk as it was after so many of its changes.
type film struct {
	mu      sync.Mutex
	changes []change
	beliefs []belief // before each change
	disks   [][]frame
	marks   []*Mark
	ram     []*host.PowerCutFiles // before each change
}

// frame is a disk between two changes.
type frame struct {
	files *host.PowerCutFiles
	told  []byte // its description
}

// change is one of a film: which disk, or the witness; and whether it is one of
// several that are made side by side.
type change struct {
	disk   int
	beside bool
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
		note(change{len(l.sled.disks), false})
		f.marks = append(f.marks, l.sled.witness.mark)
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
	l.sled.witness.note = nil
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
			if !changes[i].beside {
				if !yield(point{i, slices.Clone(done)}) {
					return
				}
				done[changes[i].disk]++
				i++
				continue
			}
			first, each := i, make([]int, disks)
			for ; i < len(changes) && changes[i].beside; i++ {
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

// cuts tries all that a power cut may choose.
func (l *lab) cuts(s step, b bounds, next func(*lab)) error {
	var script, ways []int
	for {
		c, at := l.clone(), 0
		s.cut(c, func(n int) int {
			options := min(n, 4)
			if n > 4 {
				options = 1
				if b.places {
					options = 3
				}
			}
			if at == len(script) {
				script, ways = append(script, 0), append(ways, options)
			}
			pick := script[at]
			at++
			if n <= 4 {
				return pick
			}
			return []int{n / 2, 1, n - 2}[pick]
		})
		next(c)
		if script, ways = following(script[:at], ways[:at]); script == nil {
			return nil
		}
	}
}

// following is the script behind one; nil behind the last.
func following(script, ways []int) ([]int, []int) {
	for i := len(script) - 1; i >= 0; i-- {
		if script[i]+1 < ways[i] {
			script[i]++
			return script[:i+1], ways[:i+1]
		}
	}
	return nil, nil
}

// explored is how far an exploration came.
type explored struct {
	states, steps int
	whole         bool // every state within the bounds was reached
	depth         int  // steps from the beginning to the last states
}

// explore goes through all states breadth first, until it has seen that many,
// and returns the first broken law with the way to it.
func explore(from *lab, b bounds, limit int) (explored, error) {
	type visit struct {
		state *lab
		way   *way
	}
	seen := map[[sha256.Size]byte]bool{from.key(): true}
	queue := []visit{{from, nil}}
	x := explored{states: 1}
	for len(queue) > 0 {
		at := queue[0]
		queue[0] = visit{}
		queue = queue[1:]
		x.depth = at.way.length()
		for _, s := range at.state.steps(b) {
			err := at.state.after(s, b, func(c *lab) {
				x.steps++
				if key := c.key(); !seen[key] && len(seen) < limit {
					seen[key] = true
					queue = append(queue, visit{c, &way{at.way, s.name}})
				}
			})
			if err != nil {
				x.states = len(seen)
				return x, fmt.Errorf("after %v: %w", at.way, err)
			}
		}
	}
	x.states, x.whole = len(seen), len(seen) < limit
	return x, nil
}

// way is how a state was reached.
type way struct {
	before *way
	name   string
}

func (w *way) length() int {
	n := 0
	for ; w != nil; w = w.before {
		n++
	}
	return n
}

func (w *way) String() string {
	if w == nil {
		return "creation"
	}
	return w.before.String() + ", " + w.name
}
