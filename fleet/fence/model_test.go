package fence

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// The model: one VM, up to three sleds, a store and its controller, in ticks. In each tick
// anything may happen in any order, or nothing: a cut network, a killed or paused process
// are what does not happen. It decides by the code that the controller uses. What may not
// occur in any state is two copies of the VM that can write.

const (
	fenceTicks  = 2
	haltTicks   = 1
	marginTicks = 1
	maxSleds    = 3
	maxTerms    = 3
)

type sledState struct {
	run, last    int8 // the generation that runs; the highest that its ledger has
	left         int8 // ticks until the guard halts what runs: of the sled's lease
	asked        int8 // what left becomes once the renewal under way is answered; 0: none is
	committed    bool // the store has that renewal
	beat         beat // that it remembers
	powered      bool
	destroyed    bool // for good
	dying        int8 // ticks until its power is gone, which its BMC was asked for; 0: it was not
	claim, fresh int8 // the generation whose claim it has read; for how many ticks it may start it
	comes        comesState
}

// comesState is a generation that comes to a sled; zero: none does.
type comesState struct {
	gen, source, leaves int8 // it comes from the generation that leaves the source
	asked               bool // the sled has it registered, and the source may let it go
}

type beat struct{ term, n int8 }

type storeState struct {
	gen, place, ended int8
	started, revoked  int8           // generations: that a sled reports to have started; whose claim is revoked
	volumes           volumesState   // under storage
	renewed           [maxSleds]bool // since the controller has read
	chain             [maxTerms]beat
	answers           [maxSleds]answerState
	moving            movingState
	raised            int8           // the highest generation, one that did not come included
	lost              [maxSleds]bool // what a person has stated
	counted           int8           // the term in which every sled was counted after a restore
}

// movingState is a move that is under way; zero: none is.
type movingState struct {
	gen, target  int8
	came, stayed bool // its target reports it
}

type answerState struct {
	term     int8
	restored bool
}

type controllerState struct {
	term, n  int8
	gap      int8 // ticks since it has read
	read     bool
	restored bool
	silence  [maxSleds]silenceState
	off      offState
	decided  int8 // the generation whose end it takes for proven
}

type silenceState struct{ counted int8 }

// offState is what a BMC has answered last.
type offState struct {
	sled, gen    int8 // that it reports off, +1, 0: none; the generation that is to have ended by it
	counted, gap int8 // for how long; ticks since
}

type state struct {
	now        int8
	sleds      [maxSleds]sledState
	store      storeState
	snapshot   storeState
	kept       bool // there is a snapshot
	controller controllerState
	zombie     int8 // what a controller that lost its leadership has decided, and may still write
	kills      int8
	restores   int8
	destroyed  int8
	taken      [2]int8 // the generation with which each volume was opened last
	edits      int8
}

// world is what a run of the model explores.
type world struct {
	policy   Policy
	sleds    int8
	ticks    int8 // where beats are counted
	kills    int8 // of the controller
	restores int8 // of the store; its snapshot is of the beginning, if it is early
	early    bool
	placed   bool // it begins with a generation that is placed, and not started
	maxGen   int8 // the last generation that is explored
	lost     int8 // sleds that may be destroyed
	late     int8 // ticks in which a BMC that was asked reports its sled off, and it may still run
	local    bool // under storage: the VM has a volume on its sled, too
	edits    int8 // under storage: how often the VM is given another volume
	moves    bool // the VM moves between sleds
	moving   bool // it begins with a move, and none begins later; the lease of the source always holds
	rules    rules
}

// rules are what the controller, the nodes and the guards go by. A mutant changes one.
type rules struct {
	decide        func(Run, Evidence) Verdict
	coming        func(Coming, Evidence) (bool, Verdict)
	read          func(Silence, time.Duration, string, time.Duration) Silence
	census        func(string, bool, map[string]Answer) []string
	has           func(Chain, Beat) bool
	guarded       bool // a guard halts
	swap          bool // a raise compares the generation that it was decided for
	refuse        bool // a sled refuses a generation that is not above its last
	recount       bool // without reading, time counts, too
	stale         bool // renewals are read from a cache
	jump          bool // the guard goes by the wall clock
	forget        bool // a restarted guard counts from its start
	old           bool // a claim is started that was read long ago
	keepClaims    bool // a claim that was read before a census is started after it
	early         bool // a BMC is asked before the sled can no longer start the generation
	before        bool // what was seen before a claim was revoked counts
	startLate     bool // a VM is started when the lease of its sled is over
	off           func(Off, time.Duration, time.Duration, bool, time.Duration) Off
	anyOff        bool // a BMC is asked whichever sled it is of
	hasty         bool // a sled is stated to be lost that does not answer
	along         bool // a target that is lost ends the generation on its source, too
	anyLost       bool // a statement is taken to be about any sled
	asked         bool // a BMC that was asked to power its sled off has done it
	deaf          bool // a BMC that does not answer has its sled off
	keepOff       bool // what a BMC has reported counts for later generations, too
	missing       func(run, next []string) string
	opens         func(gen int8) int8 // the generation with which a run opens its volumes
	careless      bool                // the downstairs of volumes compare no generations
	forgiven      bool                // the volumes of a target that was given up do not count
	unkept        bool                // the next generation need not have the volumes of those that may still write
	kept          bool                // only the volumes of the generation before count
	noticeRestore bool                // the controller reads its own beat back
	asArrived     bool                // what is registered to come is reported as what has come
	asStayed      bool                // what is on its way is reported as what has not come
	unmoved       bool                // a VM that moves is decided as one that does not
}

func sound() rules {
	return rules{decide: Decide, coming: DecideComing, read: Silence.Read, census: Census, has: Chain.Has, off: Off.Read, missing: Missing, opens: func(gen int8) int8 { return gen }, guarded: true, swap: true, refuse: true, noticeRestore: true}
}

func (w world) first() state {
	s := state{controller: controllerState{term: 1}}
	for i := range w.sleds {
		s.sleds[i].powered = true
		if w.policy == Lease {
			s.sleds[i].left = fenceTicks
		}
	}
	s.sleds[0].run, s.sleds[0].last = 1, 1
	s.store = storeState{gen: 1, place: 0, started: 1, raised: 1}
	s.taken[0] = 1
	if w.placed {
		s.store.gen, s.store.raised, s.store.place, s.store.ended, s.sleds[0].run = 2, 2, 1, 1, 0
	}
	for i := range w.sleds { // the fleet has been running for a while
		s.store.answers[i].term = 1
		s.sleds[i].beat = beat{1, 1}
	}
	s.store.chain[0], s.controller.n = beat{1, 1}, 1
	if s.kept = w.early; w.early {
		s.snapshot = s.store
	}
	if w.moving {
		s.store.moving, s.store.raised = movingState{gen: 2, target: 1}, 2
	}
	return s
}

type move struct {
	what string
	to   state
}

// next lists what may happen in a state.
func (w world) next(s state) []move {
	var out []move
	add := func(to state, format string, args ...any) {
		if to != s {
			out = append(out, move{fmt.Sprintf(format, args...), to})
		}
	}
	w.tick(s, add)
	for i := range w.sleds {
		w.sled(s, i, add)
	}
	w.control(s, add)
	w.disaster(s, add)
	return out
}

type adder func(to state, format string, args ...any)

func (w world) tick(s state, add adder) {
	to := s
	if w.restores > 0 { // beats have numbers without end
		if s.now == w.ticks {
			return
		}
		to.now++
	}
	if to.controller.read {
		to.controller.gap = min(to.controller.gap+1, maxTicks+1)
	}
	if off := &to.controller.off; off.sled > 0 {
		off.gap = min(off.gap+1, maxTicks+1)
	}
	for i := range w.sleds {
		c := &to.sleds[i]
		if c.dying > 0 {
			if c.dying--; c.dying == 0 {
				*c = c.powerless()
			}
		}
		if c.fresh > 0 && w.policy == Lease && !w.rules.old {
			if c.fresh--; c.fresh == 0 {
				c.claim = 0
			}
		}
		if c.asked > 0 {
			if c.asked--; c.asked == 0 {
				c.committed = false // too late to matter
			}
		}
		if w.policy != Lease || w.steady(i) {
			continue
		}
		if w.rules.guarded && c.run != 0 && c.left <= -haltTicks+1 {
			return // halting takes that long at most: it comes first
		}
		c.left = max(c.left-1, -haltTicks)
		if w.rules.recount && to.controller.read {
			to.controller.silence[i].counted = min(to.controller.silence[i].counted+1, fenceTicks+haltTicks+marginTicks)
		}
	}
	add(to, "a tick")
}

func (w world) sled(s state, i int8, add adder) {
	me := s.sleds[i]
	w.loses(s, i, add)
	if me.destroyed {
		return
	}
	if !me.powered {
		to := s
		to.sleds[i].powered = true
		add(to, "sled %d has power again", i)
		return
	}
	if me.run != 0 {
		to := s
		to.sleds[i] = me.ends()
		add(to, "the VM on sled %d ends", i)
	}
	if w.policy == Lease && !w.steady(i) && (me.run != 0 || s.store.place == i || me.comes.gen != 0 || s.store.moving.gen != 0 && s.store.moving.target == i) { // the lease of another sled matters to no VM
		w.renew(s, i, add)
	}
	w.claim(s, i, add)
	if w.moves {
		w.comes(s, i, add)
	}
	if w.restores > 0 {
		w.answer(s, i, add)
	}
	if w.policy == Power {
		to := s
		to.sleds[i] = me.powerless()
		add(to, "sled %d loses its power", i)
	}
}

// steady reports whether the lease of a sled always holds.
func (w world) steady(i int8) bool { return w.moving && i == 0 }

func (c sledState) ends() sledState {
	c.run = 0
	return c
}

// powerless is a sled whose power is gone, and with it all that it has not written down.
func (c sledState) powerless() sledState {
	c.run, c.powered, c.dying, c.claim, c.fresh, c.comes = 0, false, 0, 0, 0, comesState{}
	return c
}

func (w world) renew(s state, i int8, add adder) {
	me := s.sleds[i]
	to := s
	switch {
	case me.asked == 0 && me.left < fenceTicks:
		to.sleds[i].asked = fenceTicks
		add(to, "sled %d asks to renew its lease", i)
	case me.asked > 0 && !me.committed:
		to.sleds[i].committed = true
		to.store.renewed[i] = true
		add(to, "the store takes the renewal of sled %d", i)
	case me.committed:
		to.sleds[i].left, to.sleds[i].asked, to.sleds[i].committed = max(me.left, me.asked), 0, false
		add(to, "sled %d learns of its renewal", i)
	}
	if w.rules.jump && me.left < fenceTicks {
		to := s
		to.sleds[i].left += 2
		add(to, "the clock of sled %d is set back", i)
	}
	if w.rules.forget && me.left < fenceTicks {
		to := s
		to.sleds[i].left = fenceTicks
		add(to, "the guard of sled %d is restarted", i)
	}
}

// claim is what the node of the sled does with the pod that is bound to it. Between reading
// the pod and starting the VM anything may happen.
func (w world) claim(s state, i int8, add adder) {
	me, store, to := s.sleds[i], s.store, s
	mine := store.place == i && me.comes.gen == 0
	if mine && me.run == 0 && me.claim != store.gen && store.revoked < store.gen && (me.last < store.gen || !w.rules.refuse) {
		to.sleds[i].claim, to.sleds[i].fresh = store.gen, fenceTicks
		add(to, "sled %d reads its claim", i)
	}
	if to = s; me.run == 0 && me.comes.gen == 0 && me.claim != 0 && (me.last < me.claim || !w.rules.refuse) && (w.policy != Lease || me.left > 0 || w.rules.startLate) {
		to.sleds[i].run, to.sleds[i].last, to.sleds[i].claim, to.sleds[i].fresh = me.claim, max(me.last, me.claim), 0, 0
		if w.policy == Storage {
			w.activate(&to, i, me.claim)
		}
		if w.rules.startLate {
			to.sleds[i].left = fenceTicks
		}
		add(to, "sled %d starts generation %d", i, me.claim)
	}
	if to = s; mine && me.run == store.gen {
		to.store.started = store.gen
		add(to, "sled %d reports that it runs generation %d", i, store.gen)
	}
	if w.policy == Storage {
		w.leftovers(s, i, add)
	}
	if to = s; mine && me.run == 0 && me.last >= store.gen && store.ended < store.gen {
		to.store.ended = store.gen
		if store.moving.gen != 0 && !w.rules.before { // the target's silence counts from here
			to.controller.silence, to.controller.off, to.controller.read, to.controller.decided = [maxSleds]silenceState{}, offState{}, false, 0
		}
		add(to, "sled %d reports the end of generation %d", i, store.gen)
	}
}

// answer is the part of a sled in a census. It reports what it runs before it answers.
func (w world) answer(s state, i int8, add adder) {
	me, to := s.sleds[i], s
	chain := s.store.beats()
	here := &to.sleds[i]
	if !w.rules.keepClaims {
		here.claim, here.fresh = 0, 0 // what it has read before, it reads again
		if !here.comes.asked {
			here.comes = comesState{}
		}
	}
	switch {
	case w.rules.has(chain, me.beat.exported()):
		here.beat = imported(chain.Last())
		to.store.answers[i] = answerState{term: here.beat.term}
	case s.store.counted == s.controller.term && s.store.answers[i].term == s.controller.term:
		here.beat = imported(chain.Last())
	default:
		to.store.answers[i] = answerState{term: imported(chain.Last()).term, restored: true}
	}
	if me.comes.asked && me.comes.gen > s.store.raised && !w.rules.asArrived {
		to.store.moving, to.store.raised = movingState{gen: me.comes.gen, target: i}, me.comes.gen
	}
	if reported := w.reported(me); reported > s.store.gen {
		to.store.moving, to.store.raised = movingState{}, max(s.store.raised, reported)
		me.last = reported
		to.store.gen, to.store.place, to.store.ended, to.store.started = me.last, i, 0, me.last
		if me.run == 0 {
			to.store.ended = me.last
		}
	}
	add(to, "sled %d answers the census", i)
}

func (s storeState) beats() (all Chain) {
	for _, b := range s.chain {
		if b != (beat{}) {
			all = append(all, b.exported())
		}
	}
	slices.SortFunc(all, func(a, b Beat) int { return strings.Compare(a.Term, b.Term) })
	return all
}

func (b beat) exported() Beat {
	if b == (beat{}) {
		return Beat{}
	}
	return Beat{Term: string('0' + rune(b.term)), N: int64(b.n)}
}

func imported(b Beat) beat {
	if b == (Beat{}) {
		return beat{}
	}
	return beat{term: int8(b.Term[0] - '0'), n: int8(b.N)}
}
