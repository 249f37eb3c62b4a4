package fence

import "fmt"

// Volumes in a Crucible in the model. A run opens the one that its pod has, with its generation, and
// one that is refused ends. The downstairs are in no store: a restore leaves them as they are.

// volumesState is what the store has of volumes.
type volumesState struct {
	wanted int8                 // the one that the VM is to have
	of     [maxGenerations]int8 // that the pod of each generation has
	left   [maxGenerations]int8 // where generations were that are taken to have ended, +1, until their sleds report that; 0: they have
}

const maxGenerations = 5

func named(volume int8) []string { return []string{fmt.Sprint("volume ", volume)} }

// opens are the volumes of a generation.
func (s storeState) opens(gen int8) []string { return named(s.volumes.of[gen]) }

// wanted are those that the next one is to have.
func (s storeState) wanted() []string { return named(s.volumes.wanted) }

// edit is a user who gives the VM another volume.
func (w world) edit(s state, add adder) {
	if s.edits < w.edits {
		to := s
		to.edits++
		to.store.volumes.wanted = 1 - s.store.volumes.wanted
		add(to, "the VM is to have volume %d", to.store.volumes.wanted)
	}
}

// leaves reports whether the next generation may be raised by what the earlier ones may still write
// to, and notes where the present one was, if its sled has not reported its end.
func (w world) leaves(s *state, next int8) bool {
	left := s.store.volumes.left
	if s.store.ended < s.store.gen {
		left[s.store.gen] = s.store.place + 1
	}
	for gen, at := range left {
		if at == 0 || w.rules.unkept || w.rules.kept && int8(gen) != s.store.gen {
			continue
		}
		if w.rules.missing(s.store.opens(int8(gen)), s.store.wanted()) != "" {
			return false
		}
	}
	s.store.volumes.left, s.store.volumes.of[next] = left, s.store.volumes.wanted
	return true
}

// leftovers are the reports of a sled about earlier generations that were there, and about one
// whose claim was revoked before it was started.
func (w world) leftovers(s state, i int8, add adder) {
	me := s.sleds[i]
	if gen := s.store.gen; s.store.place == i && s.store.revoked >= gen && me.run != gen && me.claim != gen && s.store.ended < gen {
		to := s
		to.store.ended = gen
		add(to, "sled %d reports that generation %d ended before it was started", i, gen)
	}
	for gen, at := range s.store.volumes.left {
		if at == i+1 && me.run != int8(gen) && me.claim != int8(gen) && me.comes.gen != int8(gen) {
			to := s
			to.store.volumes.left[gen] = 0
			add(to, "sled %d reports the end of generation %d", i, gen)
		}
	}
}

// activate opens the volume of a generation that a sled starts.
func (w world) activate(s *state, i, gen int8) {
	opened := &s.taken[s.store.volumes.of[gen]]
	switch with := w.rules.opens(gen); {
	case w.rules.careless:
	case with <= *opened:
		s.sleds[i].run = 0
	default:
		*opened = with
	}
}

// writes reports whether a run can write.
func (w world) writes(s state, run int8) bool {
	return w.local || w.rules.careless || w.rules.opens(run) == s.taken[s.store.volumes.of[run]]
}
