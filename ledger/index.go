package ledger

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// index is where the values of a text lie. It is never changed.
type index struct {
	facts map[string]place
	live  []int32 // by line: facts that are the last of their key
	dead  int     // bytes of lines without such a fact

	once sync.Once
	keys []string
}

// place is where a value lies.
type place struct {
	value json.RawMessage
	line  int32
}

func (x *index) sorted() []string {
	x.once.Do(func() { x.keys = slices.Sorted(maps.Keys(x.facts)) })
	return x.keys
}

// facts is the index of t, made once.
func (t *text) facts() (*index, error) {
	if x := t.index.Load(); x != nil {
		return x, nil
	}
	x := &index{live: make([]int32, 0, len(t.lines))}
	if t.before == nil {
		x.facts = make(map[string]place, len(t.lines))
	} else {
		x.facts, x.dead = maps.Clone(t.before.facts), t.before.dead
		x.live = append(x.live, t.before.live...)
	}
	for i := len(x.live); i < len(t.lines); i++ {
		if err := x.add(t, i); err != nil {
			return nil, err
		}
	}
	t.index.Store(x)
	return x, nil
}

// add enters the facts of line i.
func (x *index) add(t *text, i int) error {
	f, _ := cutLine(t.line(i))
	x.live = append(x.live, 0)
	for rest := f.facts; len(rest) > 0; {
		var key, value []byte
		var ok bool
		if key, value, rest, ok = cutFact(rest); !ok {
			return &fault{i + 2, fmt.Sprintf("the facts of line %d are not written as facts", f.seq)}
		}
		if string(key) == membersKey {
			x.live[i]++
			continue
		}
		old, had := x.facts[string(key)]
		if had {
			x.drop(t, old.line, i)
		}
		switch {
		case string(value) != "null":
			x.facts[string(key)] = place{value, int32(i)}
			x.live[i]++
		case had:
			delete(x.facts, string(key))
		}
	}
	if x.live[i] == 0 {
		x.dead += t.size(i)
	}
	return nil
}

// drop takes one live fact from a line, while line adding is being added.
func (x *index) drop(t *text, line int32, adding int) {
	x.live[line]--
	if x.live[line] == 0 && int(line) != adding {
		x.dead += t.size(int(line))
	}
}

// size is a line's length with its newline.
func (t *text) size(i int) int { return t.lines[i].end + 1 - t.lines[i].start }
