package ledger

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
)

// View is what the ledger held at one moment. It never changes. The zero View
// holds nothing.
type View struct {
	index    *index
	head     Head
	epoch    Epoch
	members  []Member
	warnings []string
}

// Member is a copy that counts.
type Member struct {
	Seat
	File string // empty if it is missing
	Err  error  // why it is missing, nil if it is present
}

// Get is the value of a key. It lies in the ledger's memory: do not change it.
func (v View) Get(key string) (json.RawMessage, bool) {
	if v.index == nil {
		return nil, false
	}
	at, ok := v.index.facts[key]
	return at.value, ok
}

// All is the keys that open with prefix, sorted, with their values.
func (v View) All(prefix string) iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		if v.index == nil {
			return
		}
		keys := v.index.sorted()
		first, _ := slices.BinarySearch(keys, prefix)
		for _, key := range keys[first:] {
			if !strings.HasPrefix(key, prefix) || !yield(key, v.index.facts[key].value) {
				return
			}
		}
	}
}

// Seq is the number of the last append that the view contains; 0 for the zero
// View.
func (v View) Seq() uint64 { return v.head.Seq }

// Head is the last line that the view contains.
func (v View) Head() Head { return v.head }

// Epoch says since when the same copies count, and who made it so.
func (v View) Epoch() Epoch { return v.epoch }

// Members are the copies that count, the missing ones too.
func (v View) Members() []Member { return slices.Clone(v.members) }

// Warnings are sentences for stderr: members that are missing or were given
// up, copies that are not used.
func (v View) Warnings() []string { return slices.Clone(v.warnings) }

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
