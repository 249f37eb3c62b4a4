package format

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
)

// index is where the values of a text lie. It is never changed: that of a
// longer text shares its layers, so that an append costs what it holds and not
// what the ledger holds.
type index struct {
	// layers hold the facts, oldest first; the newest that has a key counts.
	// Each is more than twice as large as the next, so there are few of them.
	layers []table
	keys   *crc32.Table // by which keys are hashed
	live   []int32      // by line: facts that are the last of their key
	dead   int          // bytes of lines without such a fact
}

// get is where the last value of a key lies in data, the bytes of the text.
func (x *index) get(data []byte, key string) (place, bool) {
	name := []byte(key)
	if at := find(data, x.layers, x.hash(name), name); at != nil {
		return *at, at.length > 0
	}
	return place{}, false
}

func (x *index) hash(key []byte) uint32 { return crc32.Checksum(key, x.keys) }

// find is the place of a key in the newest layer that has it, or nil.
func find(data []byte, layers []table, hash uint32, key []byte) *place {
	for n := len(layers) - 1; n >= 0; n-- {
		if at := layers[n].find(data, hash, key); at != nil {
			return at
		}
	}
	return nil
}

// ranked is a place with the bytes of its key that tell most keys apart: the first
// ones behind the prefix that was asked for.
type ranked struct {
	first uint64
	place
}

// under is all whose keys open with prefix, by key.
func (x *index) under(data []byte, prefix string) []ranked {
	var found []ranked
	for n, layer := range x.layers {
		newer := x.layers[n+1:]
		for _, at := range layer.places {
			key := at.name(data)
			rest, ok := bytes.CutPrefix(key, []byte(prefix))
			if !ok || at.length == 0 || len(newer) > 0 && find(data, newer, x.hash(key), key) != nil {
				continue
			}
			var first [8]byte
			copy(first[:], rest)
			found = append(found, ranked{binary.BigEndian.Uint64(first[:]), at})
		}
	}
	slices.SortFunc(found, func(a, b ranked) int {
		if a.first != b.first {
			return cmp.Compare(a.first, b.first)
		}
		return bytes.Compare(a.name(data), b.name(data))
	})
	return found
}

// indexed is the index of t, made once.
func (t *Text) indexed() (*index, error) {
	if x := t.index.Load(); x != nil {
		return x, nil
	}
	x := &index{live: make([]int32, 0, len(t.lines)), keys: newKeys()}
	if t.before != nil {
		x.layers, x.dead = slices.Clone(t.before.layers), t.before.dead
		x.live = append(x.live, t.before.live...)
	}
	x.layers = append(x.layers, table{})
	for i := len(x.live); i < len(t.lines); i++ {
		if err := x.add(t, i); err != nil {
			return nil, err
		}
	}
	x.settle(t.data)
	t.index.Store(x)
	return x, nil
}

// settle puts layers together until each is more than twice as large as the
// next. Those that were there before may be others' too.
func (x *index) settle(data []byte) {
	for n := len(x.layers); n > 1 && len(x.layers[n-2].places) <= 2*len(x.layers[n-1].places); n-- {
		x.join(data)
	}
}

// flat is x with one layer.
func (x *index) flat(data []byte) *index {
	y := *x
	y.layers = slices.Clone(x.layers)
	for len(y.layers) > 1 {
		y.join(data)
	}
	return &y
}

// join makes one layer of the two newest.
func (x *index) join(data []byte) {
	above, below := x.layers[len(x.layers)-1], x.layers[len(x.layers)-2]
	var both table
	bottom := len(x.layers) == 2 // where what is removed need not be known
	for _, at := range below.places {
		key := at.name(data)
		if hash := x.hash(key); (at.length > 0 || !bottom) && above.find(data, hash, key) == nil {
			both.put(data, hash, at)
		}
	}
	for _, at := range above.places {
		if at.length > 0 || !bottom {
			both.put(data, x.hash(at.name(data)), at)
		}
	}
	x.layers = append(x.layers[:len(x.layers)-2], both)
}

// add enters the facts of line i in the newest layer.
func (x *index) add(t *Text, i int) error {
	newest := &x.layers[len(x.layers)-1]
	f, _ := cutLine(t.Line(i))
	x.live = append(x.live, 0)
	end := t.lines[i].end - len("]}")
	for rest := f.facts; len(rest) > 0; {
		var name, value []byte
		var ok bool
		start := end - len(rest) + len(openKey) + len(openValue)
		if name, value, rest, ok = cutFact(rest); !ok {
			return &Damage{Line: i + 2, Reason: fmt.Sprintf("the facts of line %d are not written as facts", f.seq)}
		}
		if string(name) == MembersKey {
			x.live[i]++
			continue
		}
		at, hash := place{start + len(name), int32(len(value)), int32(len(name)), int32(i)}, x.hash(name)
		old := find(t.data, x.layers, hash, name)
		had := old != nil && old.length > 0
		if had {
			x.drop(t, old.line, i)
		}
		switch {
		case string(value) != "null":
			newest.put(t.data, hash, at)
			x.live[i]++
		case had:
			at.length = 0
			newest.put(t.data, hash, at)
		}
	}
	if x.live[i] == 0 {
		x.dead += t.size(i)
	}
	return nil
}

// drop takes one live fact from a line, while line adding is being added.
func (x *index) drop(t *Text, line int32, adding int) {
	x.live[line]--
	if x.live[line] == 0 && int(line) != adding {
		x.dead += t.size(int(line))
	}
}

// size is a line's length with its newline.
func (t *Text) size(i int) int { return t.lines[i].end + 1 - t.lines[i].start }
