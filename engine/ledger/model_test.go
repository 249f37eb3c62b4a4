package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// model is a random history, held to the laws.
type model struct {
	*rapid.T
	sled     *sled
	handle   *Ledger
	limit    int
	worth    int
	changing bool // members do

	laws
	appends [][]Fact // by number
	tally   *tally
}

// tally is what happened in all histories.
type tally struct {
	histories                                int
	acknowledged, unknown, refused, shown    int // appends, and views
	forked, tails, epochs, degraded, rewrote int // views that met these, or refusals
	kept                                     int // copies, the others given up
}

// check is called with every view that anyone sees.
func (m *model) check(v View) {
	m.count(v)
	before := len(m.shown)
	if err := m.see(v, !m.changing); err != nil {
		m.Fatal(err)
	}
	if len(m.shown) > before {
		m.tally.shown++
	}
}

// count notes what a view has met.
func (m *model) count(v View) {
	count := func(n *int, met bool) {
		if met {
			*n++
		}
	}
	count(&m.tally.tails, warned(v, "never acknowledged"))
	count(&m.tally.epochs, v.Epoch().N > 1)
	count(&m.tally.degraded, len(v.Epoch().Lost) > 0)
}

// ledger is the handle of the process that runs now.
func (m *model) ledger() *Ledger {
	if m.handle == nil {
		l, err := unopened(m.sled, m.sled.places())
		try(m, err)
		l.limit, l.worth = m.limit, m.worth
		if _, err = l.Read(m.Context()); m.refusal(err) {
			return nil
		}
		m.handle = l
	}
	return m.handle
}

// refusal says whether err is one, and fails if it is of no known kind.
func (m *model) refusal(err error) bool {
	switch {
	case err == nil:
		return false
	case errors.Is(err, ErrForked):
		m.tally.forked++
	case errors.Is(err, ErrAbsent), errors.Is(err, ErrMissing), errors.Is(err, ErrSuperseded), errors.Is(err, ErrWriteFailed), errors.Is(err, ErrRewound):
	case errors.Is(err, errKilled), errors.Is(err, ErrNotMounted), errors.Is(err, ErrNoCopy), errors.Is(err, ErrChanged):
	default:
		m.Fatalf("unexpected: %v", err)
	}
	return true
}

// read looks as a reader does.
func (m *model) read() {
	if l := m.ledger(); l != nil {
		if v, err := l.Read(m.Context()); !m.refusal(err) {
			m.check(v)
		}
	}
}

// update appends something as a writer does.
func (m *model) update() error {
	l := m.ledger()
	if l == nil {
		return ErrAbsent
	}
	n := len(m.appends)
	m.appends = append(m.appends, m.drawn(n))
	before := m.maybe
	v, err := l.Update(m.Context(), func(v View) ([]Fact, error) {
		m.check(v)
		return m.decide(n, v)
	})
	w, _ := errors.AsType[*WriteError](err)
	switch {
	case err == nil:
		m.check(v)
		if err := m.acknowledged(n); err != nil {
			m.Fatal(err)
		}
		m.tally.acknowledged++
	case w != nil && w.Unknown:
		m.tally.unknown++
	default:
		m.refusal(err)
		m.refused, m.maybe = slices.Concat(m.refused, []int{n}), before
		m.tally.refused++
	}
	return err
}

func (m *model) drawn(n int) []Fact {
	var facts []Fact
	for range m.pick(3, "facts") {
		f := gone(fmt.Sprint("k", m.pick(4, "key")))
		if m.pick(4, "remove") > 0 {
			f.Value = json.RawMessage(fmt.Sprint(n))
		}
		facts = append(facts, f)
	}
	return facts
}

// pick draws one of n, each as often as any other: rapid's own integers are
// mostly small ones.
func (m *model) pick(n int, label string) int {
	x := 0
	for bit := 1; bit < 4*n; bit *= 2 {
		if rapid.Bool().Draw(m.T, label) {
			x += bit
		}
	}
	return x % n
}

func (m *model) disk(label string) *disk { return m.sled.disks[m.pick(len(m.sled.disks), label)] }

// choose draws what a power cut leaves.
func (m *model) choose(n int) int { return m.pick(n, "cut") }

// restart is the end of the process that runs now.
func (m *model) restart() {
	m.handle = nil
	m.sled.revive()
}

// faulty lets a disk fail soon, does something, and ends the process.
func (m *model) faulty(do func()) {
	if m.ledger() == nil {
		return
	}
	for range 1 + m.pick(2, "failing disks") {
		m.disk("failing").failing(m.pick(12, "after"), errKilled, rapid.Bool().Draw(m.T, "done first"))
	}
	do()
	m.restart()
}

func (m *model) dropMissing() {
	if l := m.ledger(); l != nil {
		l.Degrade("model", "random")
		_ = m.update()
	}
}

func (m *model) join() {
	if l := m.ledger(); l != nil {
		m.refusal(l.Join(m.Context(), []Location{m.disk("joining").at}, "model", "random"))
		m.handle = nil
	}
}

func (m *model) leave() {
	if l := m.ledger(); l != nil {
		err := l.Leave(m.Context(), m.disk("leaving").at.Directory, "model", "random")
		if err != nil && !strings.Contains(err.Error(), "only copy") {
			m.refusal(err)
		}
		m.handle = nil
	}
}

// keepAtLast is an operator who may have to do it again until it is done.
func (m *model) keepAtLast() {
	d := m.disk("kept")
	if rapid.Bool().Draw(m.T, "killed") {
		m.faulty(func() { m.keep(d) })
		if rapid.Bool().Draw(m.T, "power") {
			m.sled.powerCut(m.choose)
		}
	}
	m.keep(d)
}

// keep gives all copies up but one. Those that cannot be read then are gone for
// good.
func (m *model) keep(d *disk) {
	l, err := unopened(m.sled, m.sled.places())
	try(m, err)
	loss, kept, err := l.bargain(d)
	if m.refusal(err) {
		return
	}
	m.sled.gone(loss)
	m.handle = nil
	if m.refusal(l.keep(m.Context(), loss, reason{"model", "random"})) {
		m.waver(kept)
		return
	}
	m.tally.kept++
	if v, err := l.Read(m.Context()); !m.refusal(err) {
		try(m, m.laws.keep(v))
	}
}

// replace loses a disk for good, but not the last that holds what was shown.
func (m *model) replace() {
	if m.update() != nil {
		return
	}
	v, err := m.ledger().Read(m.Context())
	if m.refusal(err) || len(v.Members()) < 2 {
		return
	}
	d := m.disk("replaced")
	d.format()
	d.mounted = true
	m.restart()
	if l := m.ledger(); l != nil {
		l.Degrade("model", "disk broken")
		m.refusal(l.Join(m.Context(), []Location{d.at}, "model", "disk replaced"))
	}
	m.restart()
}
