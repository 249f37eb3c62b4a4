package fence

import "time"

// Power in the model. A BMC that is asked to power its sled off reports it off from then on, and
// within late ticks it is; one that refuses is one that was not asked. A sled also loses its power
// by itself, and gets it again by hand at any time.

// power is what the controller does with the BMC of the sled that may have the VM.
func (w world) power(s state, add adder) {
	sled, gen, known := w.suspect(s)
	for i := range w.sleds {
		if i != sled && !w.rules.anyOff {
			continue
		}
		if me := s.sleds[i]; me.powered && me.dying == 0 && w.late > 0 {
			to := s
			to.sleds[i].dying = w.late
			if w.rules.asked {
				to.controller.off = offState{sled: sled + 1, gen: gen, counted: w.late}
			}
			add(to, "the BMC of sled %d is asked to power it off", i)
		}
		if known || w.rules.early {
			w.answered(s, i, offState{sled: sled + 1, gen: gen}, add)
		}
	}
}

// suspect is the sled that may have the VM, as which generation, and whether it is known that it has
// had that one or can no longer get it.
func (w world) suspect(s state) (sled, gen int8, known bool) {
	store := s.store
	if m := store.moving; m.gen != 0 && !w.rules.unmoved {
		return m.target, m.gen, store.ended >= store.gen && (store.started >= m.gen || store.revoked >= m.gen)
	}
	return store.place, store.gen, store.started >= store.gen || store.revoked >= store.gen
}

// answered is an answer of the BMC of sled i about the suspect.
func (w world) answered(s state, i int8, suspect offState, add adder) {
	me, old := s.sleds[i], s.controller.off
	off := !me.powered || me.dying > 0 || w.rules.deaf
	was := Off{Counted: time.Duration(old.counted), Reported: old.sled == suspect.sled && old.gen == suspect.gen}
	is := w.rules.off(was, time.Duration(old.gap), time.Duration(old.gap), off, maxTicks)
	to := s
	to.controller.off = offState{}
	if is.Reported {
		to.controller.off, to.controller.off.counted = suspect, int8(min(is.Counted, time.Duration(w.late)))
	}
	add(to, "the BMC of sled %d reports it off: %v", i, off)
}
