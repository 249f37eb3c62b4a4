package format

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// index is where the values of a text lie. It is never changed: that of a
// longer text shares its layers, so that an append costs what it holds and not
// what the ledger holds.
type index struct {
	// layers hold the facts, oldest first; the newest that has a key counts.
	// Each is more than twice as large as the next, so there are few of them.
	layers []map[string]place
	live   []int32 // by line: facts that are the last of their key
	dead   int     // bytes of lines without such a fact
}

// place is where a value lies in the text: no bytes of it, so that those of a text
// that was too short for the next line are not kept. In a layer above others, no
// length means removed.
type place struct {
	start        int
	length, line int32
}

// get is where the last value of a key lies.
func (x *index) get(key string) (place, bool) {
	for _, layer := range slices.Backward(x.layers) {
		if at, ok := layer[key]; ok {
			return at, at.length > 0
		}
	}
	return place{}, false
}

// keyed is a value's place with its key.
type keyed struct {
	key string
	place
}

// under is all that opens with prefix, by key.
func (x *index) under(prefix string) []keyed {
	var found []keyed
	for n, layer := range x.layers {
		for key, at := range layer {
			if at.length > 0 && strings.HasPrefix(key, prefix) && !covered(key, x.layers[n+1:]) {
				found = append(found, keyed{key, at})
			}
		}
	}
	slices.SortFunc(found, func(a, b keyed) int { return strings.Compare(a.key, b.key) })
	return found
}

// covered reports whether one of these layers has the key too.
func covered(key string, layers []map[string]place) bool {
	for _, layer := range layers {
		if _, ok := layer[key]; ok {
			return true
		}
	}
	return false
}

// indexed is the index of t, made once.
func (t *Text) indexed() (*index, error) {
	if x := t.index.Load(); x != nil {
		return x, nil
	}
	x := &index{}
	if t.before != nil {
		x.layers, x.dead = slices.Clone(t.before.layers), t.before.dead
		x.live = append(make([]int32, 0, len(t.lines)), t.before.live...)
	}
	x.layers = append(x.layers, make(map[string]place, t.mentioned(len(x.live))))
	for i := len(x.live); i < len(t.lines); i++ {
		if err := x.add(t, i); err != nil {
			return nil, err
		}
	}
	x.settle()
	t.index.Store(x)
	return x, nil
}

// mentioned is how many facts the lines from i on hold, at most.
func (t *Text) mentioned(i int) int {
	if i == len(t.lines) {
		return 0
	}
	return bytes.Count(t.data[t.lines[i].start:], []byte(openKey))
}

// settle puts layers together until each is more than twice as large as the
// next. Those that were there before may be others' too.
func (x *index) settle() {
	for len(x.layers) > 1 {
		above, below := x.layers[len(x.layers)-1], x.layers[len(x.layers)-2]
		if len(below) > 2*len(above) {
			return
		}
		both, bottom := maps.Clone(below), len(x.layers) == 2
		for key, at := range above {
			if bottom && at.length == 0 {
				delete(both, key)
			} else {
				both[key] = at
			}
		}
		x.layers = append(x.layers[:len(x.layers)-2], both)
	}
}

// add enters the facts of line i in the newest layer.
func (x *index) add(t *Text, i int) error {
	newest := x.layers[len(x.layers)-1]
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
		key := string(name)
		if key == MembersKey {
			x.live[i]++
			continue
		}
		old, had := x.get(key)
		if had {
			x.drop(t, old.line, i)
		}
		switch {
		case string(value) != "null":
			newest[key] = place{start + len(name), int32(len(value)), int32(i)}
			x.live[i]++
		case had && len(x.layers) > 1:
			newest[key] = place{}
		case had:
			delete(newest, key)
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
