package fence

import "slices"

// Beat is one write of a controller: the n-th of its term. A term is one controller's
// leadership, and its name is random.
type Beat struct {
	Term string `json:"term"`
	N    int64  `json:"n"`
}

// Chain is what the store keeps of the beats: the last one of each term, oldest first. A
// store that was restored from a snapshot lacks beats that others remember, whatever was
// written to it since. That is how it is known.
type Chain []Beat

// longest bounds a chain. A sled that was cut off for more terms than that takes the store
// for restored, and has to be counted.
const longest = 256

// Next is the chain with one more beat of a term.
func (c Chain) Next(term string) Chain {
	next := slices.Clone(c)
	if last := len(next) - 1; last >= 0 && next[last].Term == term {
		next[last].N++
		return next
	}
	next = append(next, Beat{Term: term, N: 1})
	return next[max(0, len(next)-longest):]
}

// Last is the newest beat; the zero Beat if there is none.
func (c Chain) Last() Beat {
	if len(c) == 0 {
		return Beat{}
	}
	return c[len(c)-1]
}

// Has reports whether a chain goes back to a beat that somebody remembers. One who
// remembers none can miss none.
func (c Chain) Has(b Beat) bool {
	return b == Beat{} || slices.ContainsFunc(c, func(kept Beat) bool { return kept.Term == b.Term && kept.N >= b.N })
}

// Answer is what a sled says to the controller of a term: whether the chain lacks a beat
// that it remembers, once it has reported everything that it runs.
type Answer struct {
	Term     string `json:"term"`
	Restored bool   `json:"restored,omitempty"`
}

// Answer is what a sled answers to the term of the last beat: remembered is the chain that it has
// seen last, said its last answer, and counted the term in which every sled was counted,
// as the store has it. What is counted clears a store that lacks a beat only if the sled has answered that
// term, and the term began after the restore: a restored store also has the count of before.
func (c Chain) Answer(remembered Chain, said Answer, counted string) Answer {
	a := Answer{Term: c.Last().Term, Restored: !c.Has(remembered.Last())}
	if a.Restored && counted == a.Term && said.Term == a.Term && !remembered.knows(a.Term) {
		a.Restored = false
	}
	return a
}

// knows says whether a chain has a beat of a term.
func (c Chain) knows(term string) bool {
	return slices.ContainsFunc(c, func(b Beat) bool { return b.Term == term })
}

// Census lists the sleds that have to report before any generation may start.
// In a store that is known to be restored these are all that have not answered the term,
// as each may run a generation that the store has forgotten. Otherwise a majority is enough
// to know that it is not restored, and the list is empty once there is one.
// Answers have an entry for each sled, the zero Answer for one that has not answered.
func Census(term string, restored bool, answers map[string]Answer) []string {
	var missing []string
	for sled, a := range answers {
		if a.Term != term {
			missing = append(missing, sled)
		} else if a.Restored {
			restored = true
		}
	}
	slices.Sort(missing)
	if !restored && len(missing)*2 < len(answers) {
		return nil
	}
	return missing
}
