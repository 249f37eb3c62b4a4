package probe

import (
	"crypto/sha256"
	"math/rand/v2"
	"slices"
	"strconv"
)

// symbol is a step of a word: a character, an octet, a group of an address.
type symbol struct {
	value  int
	lo, hi int // what may replace it; both the value itself: nothing else
}

func fixed(value int) symbol { return symbol{value, value, value} }

// trie replaces words. What replaces two words sorts as they do, and is as alike at its
// beginning: listings stay sorted, networks keep their hosts.
type trie struct {
	root node
	salt []byte
}

// salted lets another salt decide what replaces the words.
func (t *trie) salted(salt []byte) {
	t.salt = salt
	t.root.clear()
}

func (n *node) clear() {
	for _, b := range n.next {
		b.assigned = false
		b.clear()
	}
}

type node struct {
	next map[int]*branch
}

type branch struct {
	symbol
	node
	now      int // what replaces the value
	assigned bool
}

// add notes a word before any is replaced.
func (t *trie) add(word []symbol) {
	n := &t.root
	for _, s := range word {
		if n.next == nil {
			n.next = map[int]*branch{}
		}
		b := n.next[s.value]
		if b == nil {
			b = &branch{symbol: s}
			n.next[s.value] = b
		}
		if s.lo == s.hi {
			b.symbol = s // one word that keeps it is enough
		}
		n = &b.node
	}
}

// replace gives what replaces a word that was added, or the beginning of one.
func (t *trie) replace(word []symbol) ([]int, bool) {
	n, at := &t.root, ""
	now := make([]int, 0, len(word))
	for _, s := range word {
		b := n.next[s.value]
		if b == nil {
			return nil, false
		}
		if !b.assigned {
			t.assign(n, at)
		}
		now = append(now, b.now)
		n, at = &b.node, at+" "+strconv.Itoa(s.value)
	}
	return now, true
}

// assign chooses for all branches of a node at once. A branch that is kept divides those
// before it from those behind it.
func (t *trie) assign(n *node, at string) {
	sum := sha256.Sum256(append(append([]byte{}, t.salt...), at...))
	draw := rand.New(rand.NewChaCha8(sum))
	var all []*branch
	for _, b := range n.next {
		all = append(all, b)
	}
	slices.SortFunc(all, func(a, b *branch) int { return a.value - b.value })
	for i := 0; i < len(all); {
		first := all[i]
		end := i + 1
		if first.lo != first.hi {
			for end < len(all) && all[end].lo == first.lo && all[end].hi == first.hi {
				end++
			}
		}
		group := all[i:end]
		lo, hi := first.lo, first.hi
		if i > 0 {
			lo = max(lo, all[i-1].now+1)
		}
		for _, later := range all[end:] {
			if later.lo == later.hi {
				hi = min(hi, later.value-1)
				break
			}
		}
		chosen := choose(draw, lo, hi, len(group), group[0].value)
		for k, b := range group {
			b.assigned, b.now = true, b.value
			if chosen != nil {
				b.now = chosen[k]
			}
		}
		i = end
	}
}

// choose draws so many different numbers between two, in order; nil: there is no room. A
// single one is not the number that it replaces, if there is another.
func choose(draw *rand.Rand, lo, hi, count, old int) []int {
	room := hi - lo + 1
	if room < count {
		return nil
	}
	seen := map[int]bool{}
	for len(seen) < count {
		n := lo + draw.IntN(room)
		if count > 1 || n != old || room == 1 {
			seen[n] = true
		}
	}
	chosen := make([]int, 0, count)
	for n := range seen {
		chosen = append(chosen, n)
	}
	slices.Sort(chosen)
	return chosen
}
