package ledger

import (
	"crypto/sha256"
	"fmt"
)

// after is what a step leads to: one state, or several where it may be killed
// or the power chooses.
func (l *lab) after(s step, b bounds, then func(*lab)) error {
	next := func(c *lab) {
		if c.unseen {
			c.sled.forgotten()
		}
		then(c)
	}
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
		for at := range kills(f.changes, len(l.sled.disks)+2) {
			next(f.killed(c, at))
		}
	}
	next(c)
	return nil
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
