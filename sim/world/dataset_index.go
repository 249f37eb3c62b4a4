package world

import (
	"slices"
	"sort"
	"strings"
	"sync"
)

// datasetIndex is the datasets in the order of their names, and by where they are mounted. A sled
// has more of them than of all else, and most commands ask for a few. It is brought up
// to date by the names that were touched.
type datasetIndex struct {
	mu     sync.Mutex // those who view the sled share it
	stale  map[string]bool
	known  map[string]indexed
	sorted []*Dataset          // in the order of CompareNames
	dirs   []string            // on which something is mounted, sorted
	at     map[string]*Dataset // by these
	guids  map[uint64]*Dataset
	set    []*Dataset // those that have a mountpoint of their own, in the order of sorted
}

// indexed is what the index has of a dataset.
type indexed struct {
	d       *Dataset
	guid    uint64
	created uint64
	mounted string
	set     bool
}

func indexOf(d *Dataset) indexed {
	return indexed{d, d.GUID, d.Created, d.Mounted, strings.HasPrefix(d.Local["mountpoint"], "/")}
}

func (c *datasetIndex) touch(name string) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil {
		return // nothing is indexed yet
	}
	if c.stale == nil {
		c.stale = map[string]bool{}
	}
	c.stale[name] = true
}

// settle forgets what was touched, once it is seen: a transaction begins.
func (c *datasetIndex) settle(s *State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refresh(s)
	clear(c.stale)
}

// refresh brings the index up to date. What is touched stays so: it is noted before it is
// done.
func (c *datasetIndex) refresh(s *State) {
	var moved []string
	for name := range c.stale {
		now, was := s.Datasets[name], c.known[name]
		if now != was.d || now != nil && indexOf(now) != was {
			moved = append(moved, name)
		}
	}
	if c.known != nil {
		for _, name := range moved { // all, before one that has another name now is entered
			c.remove(name)
		}
		for _, name := range moved {
			c.enter(name, s.Datasets[name])
		}
	}
	if len(c.known) != len(s.Datasets) || c.known == nil {
		c.build(s)
	}
}

// build makes the index from nothing.
func (c *datasetIndex) build(s *State) {
	c.known, c.at = make(map[string]indexed, len(s.Datasets)), map[string]*Dataset{}
	c.guids = make(map[uint64]*Dataset, len(s.Datasets))
	c.sorted, c.dirs, c.set = make([]*Dataset, 0, len(s.Datasets)), nil, nil
	for name, d := range s.Datasets {
		is := indexOf(d)
		c.guids[d.GUID] = d
		if c.known[name] = is; is.set {
			c.set = append(c.set, d)
		}
		c.sorted = append(c.sorted, d)
		if d.Mounted != "" {
			c.at[d.Mounted] = d
			c.dirs = append(c.dirs, d.Mounted)
		}
	}
	sortByName(c.sorted)
	slices.SortFunc(c.set, CompareNames)
	slices.Sort(c.dirs)
	c.dirs = slices.Compact(c.dirs)
}

// remove takes a dataset out.
func (c *datasetIndex) remove(name string) {
	was, known := c.known[name]
	if !known {
		return
	}
	delete(c.known, name)
	if c.guids[was.guid] == was.d {
		delete(c.guids, was.guid)
	}
	c.sorted = slices.DeleteFunc(slices.Clone(c.sorted), func(d *Dataset) bool { return d == was.d })
	if was.set {
		c.set = slices.DeleteFunc(slices.Clone(c.set), func(d *Dataset) bool { return d == was.d })
	}
	if c.at[was.mounted] == was.d && was.mounted != "" {
		delete(c.at, was.mounted)
		i := sort.SearchStrings(c.dirs, was.mounted)
		c.dirs = slices.Delete(c.dirs, i, i+1)
	}
}

// enter puts a dataset where it belongs; nil: it is gone.
func (c *datasetIndex) enter(name string, now *Dataset) {
	if now == nil {
		return
	}
	is := indexOf(now)
	c.known[name], c.guids[now.GUID] = is, now
	c.sorted = inserted(c.sorted, now)
	if is.set {
		c.set = inserted(c.set, now)
	}
	if now.Mounted == "" {
		return
	}
	if i := sort.SearchStrings(c.dirs, now.Mounted); i == len(c.dirs) || c.dirs[i] != now.Mounted {
		c.dirs = slices.Insert(c.dirs, i, now.Mounted)
	}
	c.at[now.Mounted] = now
}

// sortByName is SortFunc with CompareNames, which looks for the snapshot in each name once.
func sortByName(all []*Dataset) {
	type cut struct {
		head string
		d    *Dataset
	}
	names := make([]cut, len(all))
	for i, d := range all {
		head, _, _ := strings.Cut(d.Name, "@")
		names[i] = cut{head, d}
	}
	slices.SortFunc(names, func(a, b cut) int {
		if order := strings.Compare(a.head, b.head); order != 0 {
			return order
		}
		return CompareNames(a.d, b.d)
	})
	for i, name := range names {
		all[i] = name.d
	}
}

// inserted is a list with one more: a copy, as somebody may be going through what there was.
func inserted(sorted []*Dataset, d *Dataset) []*Dataset {
	i, _ := slices.BinarySearchFunc(sorted, d, CompareNames)
	return slices.Insert(slices.Clip(sorted), i, d)
}

// CompareNames orders datasets as zfs list does when it is not told
// otherwise: by name, snapshots after what they are of and by age (zfs_compare
// in usr/src/cmd/zfs/zfs_iter.c).
func CompareNames(a, b *Dataset) int {
	aHead, aSnap, aIs := strings.Cut(a.Name, "@")
	bHead, bSnap, bIs := strings.Cut(b.Name, "@")
	switch order := strings.Compare(aHead, bHead); {
	case order != 0:
		return order
	case aIs && bIs && a.Created < b.Created:
		return -1
	case aIs && bIs && a.Created > b.Created:
		return 1
	}
	return strings.Compare(aSnap, bSnap)
}

func (tx *Tx) datasets() *datasetIndex {
	c := tx.State.datasets
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refresh(tx.State)
	if !tx.Write {
		clear(c.stale)
	}
	return c
}

// Datasets are all datasets in the order of CompareNames, those that are parked too. The
// slice is not to be changed.
func (tx *Tx) Datasets() []*Dataset { return tx.datasets().sorted }

// WithMountpoint are those that have a mountpoint of their own, in the order of CompareNames.
// The slice is not to be changed.
func (tx *Tx) WithMountpoint() []*Dataset { return tx.datasets().set }

// DatasetsOf are a dataset with its snapshots, and those below it with theirs, in the order
// of CompareNames.
func (tx *Tx) DatasetsOf(name string) (own, below []*Dataset) {
	all := tx.Datasets()
	from := func(text string) int {
		return sort.Search(len(all), func(i int) bool {
			head, _, _ := strings.Cut(all[i].Name, "@")
			return head >= text
		})
	}
	return all[from(name):from(name+"\x00")], all[from(name+"/"):from(name+"0")] // 0 follows /
}

// WithGUID is the dataset with this GUID, or nil.
func (tx *Tx) WithGUID(guid uint64) *Dataset { return tx.datasets().guids[guid] }

// MountedAt is the dataset that is mounted on exactly this directory, or nil.
func (tx *Tx) MountedAt(dir string) *Dataset { return tx.datasets().at[dir] }

// MountsBelow are the datasets mounted strictly below a directory, by directory.
func (tx *Tx) MountsBelow(dir string) []*Dataset {
	c := tx.datasets()
	from, to := dir+"/", dir+"0"
	if dir == "/" {
		from, to = "/\x00", "0"
	}
	var found []*Dataset
	for _, name := range c.dirs[sort.SearchStrings(c.dirs, from):sort.SearchStrings(c.dirs, to)] {
		found = append(found, c.at[name])
	}
	return found
}
