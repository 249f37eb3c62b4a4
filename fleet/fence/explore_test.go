package fence

import (
	"fmt"
	"strings"
	"time"
)

// control is what the controller does, and one that has lost its leadership.
func (w world) control(s state, add adder) {
	c := s.controller
	if !c.read || c.gap > 0 {
		add(w.reads(s, s.store.renewed), "the controller reads the store")
		if w.rules.stale && c.read {
			add(w.reads(s, [maxSleds]bool{}), "the controller reads its cache")
		}
	}
	if w.rules.recount && c.read {
		add(w.decides(s), "the controller decides without reading")
	}
	if c.decided != 0 {
		for to := range w.sleds {
			after := w.raises(s, c.decided, to)
			after.controller.decided = 0
			add(after, "the controller raises generation %d, for sled %d", c.decided, to)
		}
	}
	if s.zombie != 0 {
		for to := range w.sleds {
			after := w.raises(s, s.zombie, to)
			after.zombie = 0
			add(after, "an earlier controller raises generation %d, for sled %d", s.zombie, to)
		}
	}
	if w.moves {
		w.begins(s, add)
	}
	if s.kills < w.kills && c.term < maxTerms {
		to := s
		to.kills++
		to.zombie = max(s.zombie, c.decided)
		to.controller = controllerState{term: c.term + 1}
		add(to, "another controller leads")
	}
	if store := s.store; w.policy != Hold && store.started < store.gen && store.revoked < store.gen {
		to := s
		to.store.revoked = store.gen
		if !w.rules.before {
			to.controller.silence, to.controller.off, to.controller.read, to.controller.decided = [maxSleds]silenceState{}, offState{}, false, 0
		}
		add(to, "the claim of generation %d is revoked", store.gen)
	}
	if w.policy == Power {
		w.power(s, add)
	}
	if m := s.store.moving.gen; (w.policy == Power || w.policy == Lease) && m != 0 && s.store.started < m && s.store.revoked < m {
		to := s
		to.store.revoked = m
		to.controller.silence, to.controller.off, to.controller.read, to.controller.decided = [maxSleds]silenceState{}, offState{}, false, 0
		add(to, "the claim of generation %d is revoked", m)
	}
	if w.policy == Storage {
		w.edit(s, add)
	}
}

// maxTicks is how far apart two reads may be for the time between them to count.
const maxTicks = 2

// reads is a controller that reads its beat, the answers and the lease, writes its next
// beat, and decides.
func (w world) reads(s state, renewed [maxSleds]bool) state {
	c := &s.controller
	if w.restores > 0 {
		if w.rules.noticeRestore && c.n > 0 && !s.store.beats().Has(beat{c.term, c.n}.exported()) && c.term < maxTerms {
			*c = controllerState{term: c.term + 1, restored: true}
		}
		next := s.store.beats().Next(string('0' + rune(c.term)))
		s.store.chain = [maxTerms]beat{}
		for i, b := range next {
			s.store.chain[i] = imported(b)
		}
		c.n = imported(next.Last()).n
		if c.restored || w.anyRestored(s) {
			if len(w.rules.census(string('0'+rune(c.term)), true, w.answers(s))) == 0 {
				s.store.counted = c.term
			}
		}
	}
	for i, news := range renewed[:w.sleds] {
		old := &c.silence[i]
		if w.steady(int8(i)) {
			continue
		}
		is := w.rules.read(Silence{Renewal: "false", Counted: time.Duration(old.counted), read: c.read}, time.Duration(c.gap), fmt.Sprint(news), maxTicks)
		*old = silenceState{counted: int8(min(is.Counted, fenceTicks+haltTicks+marginTicks))}
	}
	c.gap, c.read, s.store.renewed = 0, true, [maxSleds]bool{}
	return w.decides(s)
}

func (w world) anyRestored(s state) bool {
	for i := range w.sleds {
		if a := s.store.answers[i]; a.term == s.controller.term && a.restored {
			return true
		}
	}
	return false
}

func (w world) answers(s state) map[string]Answer {
	all := make(map[string]Answer, w.sleds)
	for i := range w.sleds {
		a := s.store.answers[i]
		all[fmt.Sprint(i)] = Answer{Term: string('0' + rune(a.term)), Restored: a.restored}
	}
	return all
}

func (w world) decides(s state) state {
	c := &s.controller
	run := Run{
		Generation: int64(s.store.gen), Sled: fmt.Sprint(s.store.place), Policy: w.policy,
		Terms: Terms{Fence: fenceTicks, Halt: haltTicks, Margin: marginTicks, Settle: time.Duration(w.late)}, Started: s.store.started >= s.store.gen,
		Local: w.local, Crucible: w.policy == Storage && (w.rules.missing(s.store.opens(s.store.gen), s.store.wanted()) == ""),
	}
	e := Evidence{Revoked: s.store.revoked >= s.store.gen, Confirmed: int64(s.store.ended), Silent: time.Duration(c.silence[s.store.place].counted)}
	if _, gen, _ := w.suspect(s); c.off.sled > 0 && (c.off.gen == gen || w.rules.keepOff) {
		e.Off, e.OffFor = fmt.Sprint(c.off.sled-1), time.Duration(c.off.counted)
	}
	if w.restores > 0 {
		e.Uncounted = w.rules.census(string('0'+rune(c.term)), c.restored, w.answers(s))
	}
	if w.isLost(s, s.store.place) {
		e.Lost = run.Sled
	}
	c.decided = 0
	if s.store.moving.gen != 0 && !w.rules.unmoved {
		return w.settles(s, e)
	}
	if s.store.raised < w.maxGen && w.rules.decide(run, e).Proven() {
		c.decided = s.store.gen
	}
	return s
}

// raises is a write of the next generation, which fails if another one was faster.
func (w world) raises(s state, decided, to int8) state {
	if w.rules.swap && (s.store.gen != decided || s.store.moving.gen != 0 && !w.rules.unmoved) {
		return s
	}
	next := decided + 1
	if w.rules.swap {
		next = s.store.raised + 1
	}
	if w.policy == Storage && !w.leaves(&s, next) {
		return s
	}
	s.store.gen, s.store.place, s.store.moving, s.store.raised = next, to, movingState{}, next
	if !w.rules.keepOff {
		s.controller.off = offState{} // it is of no use
	}
	return s
}

// disaster is a snapshot of the store, and its restoration.
func (w world) disaster(s state, add adder) {
	if w.restores == 0 {
		return
	}
	if !s.kept {
		to := s
		to.kept, to.snapshot = true, s.store
		add(to, "a snapshot is taken")
		return
	}
	if s.restores == w.restores || !w.older(s) {
		return
	}
	to := s
	to.restores++
	to.store = s.snapshot
	to.controller.decided, to.zombie = 0, 0 // the manual has the controllers stopped
	add(to, "the store is restored from the snapshot")
}

// older reports whether the controller and most sleds have seen a beat that the snapshot
// lacks, which is what the rule needs to be true.
func (w world) older(s state) bool {
	chain := s.snapshot.beats()
	if c := s.controller; c.n > 0 && chain.Has(beat{c.term, c.n}.exported()) {
		return false
	}
	seen := int8(0)
	for i := range w.sleds {
		if !chain.Has(s.sleds[i].beat.exported()) {
			seen++
		}
	}
	return seen*2 > w.sleds
}

// twice says which two sleds have a copy that can write, if there are two.
func (w world) twice(s state) string {
	var all []string
	for i := range w.sleds {
		if run := s.sleds[i].run; run != 0 && (w.policy != Storage || w.writes(s, run)) {
			all = append(all, fmt.Sprintf("sled %d runs generation %d", i, run))
		}
	}
	if len(all) < 2 {
		return ""
	}
	return strings.Join(all, ", ")
}

// explored is what a run of the model found.
type explored struct {
	states int
	most   int8   // the highest generation that was started
	story  string // how it came to two copies; empty: it never did
}

// explore visits every state, the nearest first, so that a story is a shortest one.
func (w world) explore(limit int) (explored, error) {
	type origin struct {
		from int32
		what string
	}
	all := []state{w.first()}
	origins := []origin{{-1, ""}}
	known := map[state]struct{}{all[0]: {}}
	found := explored{}
	for at := 0; at < len(all); at++ {
		for _, m := range w.next(all[at]) {
			if _, seen := known[m.to]; seen {
				continue
			}
			if len(all) == limit {
				return found, fmt.Errorf("more than %d states", limit)
			}
			known[m.to] = struct{}{}
			all, origins = append(all, m.to), append(origins, origin{int32(at), m.what})
			for i := range w.sleds {
				found.most = max(found.most, m.to.sleds[i].run)
			}
			if two := w.twice(m.to); two != "" {
				story := []string{two}
				for i := len(all) - 1; origins[i].from >= 0; i = int(origins[i].from) {
					story = append(story, origins[i].what)
				}
				for i, j := 0, len(story)-1; i < j; i, j = i+1, j-1 {
					story[i], story[j] = story[j], story[i]
				}
				found.states, found.story = len(all), strings.Join(story, "\n")
				return found, nil
			}
		}
	}
	found.states = len(all)
	return found, nil
}
