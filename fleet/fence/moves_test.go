package fence

import (
	"fmt"
	"time"
)

// Moves in the model. Memory goes from one sled to the other in one step, as Propolis cares for;
// whether it does, and when, is open once the target has asked.

// begins is the write of a controller that has a VM move: a later generation is to come to a
// sled, while the present one runs on. It fails where the store is not what was read.
func (w world) begins(s state, add adder) {
	store := s.store
	if w.moving || store.moving.gen != 0 || store.started < store.gen || store.ended >= store.gen || store.raised >= w.maxGen {
		return
	}
	if w.restores > 0 && len(w.rules.census(string('0'+rune(s.controller.term)), s.controller.restored, w.answers(s))) > 0 {
		return
	}
	for target := range w.sleds {
		if target == store.place {
			continue
		}
		to := s
		to.store.raised = store.raised + 1
		to.store.moving = movingState{gen: to.store.raised, target: target}
		if w.policy == Storage {
			to.store.volumes.of[to.store.raised] = store.volumes.wanted
		}
		add(to, "generation %d is to come from sled %d to sled %d", to.store.raised, store.place, target)
	}
}

// comes is what the target of a move does: its node reads the claim and asks, its agent has the
// VM come or has it not, and both are reported.
func (w world) comes(s state, i int8, add adder) {
	w.asks(s, i, add)
	me, m, to := s.sleds[i], s.store.moving, s
	if me.comes.asked {
		to.sleds[i].comes = comesState{}
		add(to, "generation %d does not come to sled %d", me.comes.gen, i)
		if from := s.sleds[me.comes.source]; from.run == me.comes.leaves && me.run == 0 {
			to.sleds[i].run = me.comes.gen
			to.sleds[me.comes.source] = from.ends()
			if w.policy == Storage { // once its source has let it go
				w.activate(&to, i, me.comes.gen)
			}
			add(to, "generation %d leaves sled %d: it is generation %d on sled %d", from.run, me.comes.source, me.comes.gen, i)
		}
	}
	if m.gen == 0 || m.target != i {
		return
	}
	if to = s; me.run == m.gen || me.comes.asked && me.comes.gen == m.gen {
		to.store.started = m.gen
		add(to, "sled %d reports that generation %d comes", i, m.gen)
	}
	if to = s; me.run == m.gen || w.rules.asArrived && me.comes.asked {
		to.store.moving.came = true
		add(to, "sled %d reports that generation %d has come", i, m.gen)
	}
	if to = s; me.last >= m.gen && me.run == 0 && (!me.comes.asked || w.rules.asStayed) {
		to.store.moving.stayed = true
		add(to, "sled %d reports that generation %d has not come", i, m.gen)
	}
}

// asks is what the node of the target does, in two steps between which anything may happen.
func (w world) asks(s state, i int8, add adder) {
	me, m, to := s.sleds[i], s.store.moving, s
	if m.gen != 0 && m.target == i && me.run == 0 && me.comes.gen == 0 && me.last < m.gen && s.store.revoked < m.gen {
		to.sleds[i].comes = comesState{gen: m.gen, source: s.store.place, leaves: s.store.gen}
		to.sleds[i].fresh = fenceTicks
		add(to, "sled %d reads its claim of generation %d, which comes", i, m.gen)
	}
	if me.comes.gen == 0 || me.comes.asked {
		return
	}
	to = s
	to.sleds[i].comes = comesState{}
	add(to, "sled %d forgets its claim", i)
	if to = s; me.last < me.comes.gen && (w.policy != Lease || me.left > 0 && me.fresh > 0) {
		to.sleds[i].comes.asked, to.sleds[i].last, to.sleds[i].fresh = true, me.comes.gen, 0
		add(to, "sled %d asks for generation %d", i, me.comes.gen)
	}
}

// settles is the controller's decision about a move, and its write.
func (w world) settles(s state, e Evidence) state {
	m := s.store.moving
	e.Confirmed, e.Revoked, e.Silent = 0, s.store.revoked >= m.gen, time.Duration(s.controller.silence[m.target].counted)
	run := Run{
		Generation: int64(m.gen), Sled: fmt.Sprint(m.target), Policy: w.policy,
		Terms: Terms{Fence: fenceTicks, Halt: haltTicks, Margin: marginTicks, Settle: time.Duration(w.late)}, Started: s.store.started >= m.gen,
		Local: w.local, Crucible: w.policy == Storage && w.rules.missing(s.store.opens(m.gen), s.store.wanted()) == "",
	}
	if e.Lost = ""; w.isLost(s, m.target) {
		e.Lost = run.Sled
	}
	came, v := w.rules.coming(Coming{Run: run, Came: m.came, Stayed: m.stayed, Emptied: s.store.ended >= s.store.gen}, e)
	switch {
	case came:
		s.store.gen, s.store.place, s.store.ended, s.store.moving = m.gen, m.target, max(s.store.ended, m.gen-1), movingState{}
	case v.Proven():
		s.store.moving = movingState{}
		if v.Proof == Volumes && !w.rules.forgiven { // it may be there, and write until the next one opens its volumes
			s.store.volumes.left[m.gen] = m.target + 1
		}
		if w.rules.along && v.Proof == Stated {
			s.store.ended = s.store.gen
		}
	}
	return s
}

// reported is the generation of which a sled says that it has it.
func (w world) reported(me sledState) int8 {
	switch {
	case !w.moves:
		return me.last
	case w.rules.asArrived && me.comes.asked:
		return me.comes.gen
	}
	return me.run // one that did not come is none that ran
}
