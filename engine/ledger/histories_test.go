package ledger

import (
	"flag"
	"os"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// everyday is what happens to healthy disks: afterwards nothing may be refused.
func (m *model) everyday() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"read":   func(*rapid.T) { m.read() },
		"update": func(*rapid.T) { _ = m.update() },
		"write a lot": func(*rapid.T) {
			for m.update() == nil && rapid.Bool().Draw(m.T, "more") {
			}
		},
		"killed":  func(*rapid.T) { m.faulty(func() { _ = m.update() }) },
		"restart": func(*rapid.T) { m.restart() },
		"power": func(*rapid.T) {
			m.sled.powerCut(m.choose)
			m.restart()
		},
		"power while writing": func(*rapid.T) {
			m.faulty(func() { _ = m.update() })
			m.sled.powerCut(m.choose)
		},
		"mount or unmount": func(*rapid.T) {
			d := m.disk("mounted or not")
			d.mounted = !d.mounted
		},
		"lose power of one": func(*rapid.T) {
			d := m.disk("pulled")
			d.files = d.files.Cut(m.choose)
		},
	}
}

// drastic is what else operators and disks do.
func (m *model) drastic() map[string]func(*rapid.T) {
	m.changing = true
	steps := m.everyday()
	for name, step := range map[string]func(*rapid.T){
		"go ahead alone":         func(*rapid.T) { m.dropMissing() },
		"go ahead alone, killed": func(*rapid.T) { m.faulty(m.dropMissing) },
		"pull one, go ahead alone": func(*rapid.T) {
			m.disk("pulled").mounted = false
			m.dropMissing()
		},
		"pull one while writing, go ahead alone": func(*rapid.T) {
			m.faulty(func() { _ = m.update() })
			m.disk("pulled").mounted = false
			m.dropMissing()
		},
		"the other disks": func(*rapid.T) {
			for _, d := range m.sled.disks {
				d.mounted = !d.mounted
			}
		},
		"join":          func(*rapid.T) { m.join() },
		"join, killed":  func(*rapid.T) { m.faulty(m.join) },
		"leave":         func(*rapid.T) { m.leave() },
		"leave, killed": func(*rapid.T) { m.faulty(m.leave) },
		"keep": func(*rapid.T) {
			if m.pick(4, "rarely") == 0 {
				m.keepAtLast()
			}
		},
		"replace a disk, go ahead alone, join": func(*rapid.T) { m.replace() },
		"mount all": func(*rapid.T) {
			for _, d := range m.sled.disks {
				d.mounted = true
			}
		},
	} {
		steps[name] = step
	}
	return steps
}

// run is one history.
func (m *model) run(steps map[string]func(*rapid.T)) {
	m.laws.facts = func(n int) []Fact { return m.appends[n] }
	m.sled = newSled(m, 1+m.pick(3, "disks"), rapid.Bool().Draw(m.T, "plain"))
	m.limit = []int{0, 0, 300, 1 << 20}[m.pick(4, "limit")]
	m.worth = []int{1, worthKeeping}[m.pick(2, "index")]
	try(m, Create(m.Context(), m.sled, m.sled.places(), Creation{Who: "model"}))
	names := make([]string, 0, len(steps))
	for name := range steps {
		names = append(names, name)
	}
	slices.Sort(names)
	for range 5 + m.pick(30, "steps") {
		name := names[m.pick(len(names), "bits of the step")]
		m.Log(name)
		steps[name](m.T)
	}
	for _, d := range m.sled.disks {
		d.mounted = true
	}
	m.restart()
	m.tally.histories++
	for _, d := range m.sled.disks {
		if all, err := histories(m.sled, d.at.Directory); err == nil && len(all) > 0 {
			m.tally.rewrote++
		}
	}
}

// manyHistories runs count of them, unless -rapid.checks says how many: rapid
// itself takes a fifth with -short, and a soak is longer.
func manyHistories(t *testing.T, count int, one func(*model)) tally {
	if os.Getenv("SLEDCTL_SOAK") != "" {
		count *= 100
	}
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		try(t, f.Value.Set(strconv.Itoa(count)))
		t.Cleanup(func() { _ = f.Value.Set(f.DefValue) })
	}
	var sum tally
	rapid.Check(t, func(r *rapid.T) { one(&model{T: r, tally: &sum}) })
	t.Logf("%d histories: %d appends acknowledged, %d unknown, %d refused; %d views, of these %d of later epochs, %d of degraded ones, "+
		"%d next to a dead tail; %d refusals of forked copies; %d copies kept alone; %d copies rewritten", sum.histories, sum.acknowledged,
		sum.unknown, sum.refused, sum.shown, sum.epochs, sum.degraded, sum.tails, sum.forked, sum.kept, sum.rewrote)
	return sum
}

// Kills, power cuts and disks that come and go never need an operator: once
// all disks are there, everything goes on.
func TestHistoriesOfHealthyDisks(t *testing.T) {
	sum := manyHistories(t, 500, func(m *model) {
		m.run(m.everyday())
		if err := m.update(); err != nil {
			m.Fatalf("with all disks there: %v", err)
		}
	})
	if sum.unknown == 0 || sum.refused == 0 || sum.rewrote == 0 || sum.forked > 0 {
		t.Errorf("%+v", sum)
	}
}

// With operators who go ahead alone, join and leave at any time, a history may end
// in a refusal. It never loses anything.
func TestHistoriesOfChangingMembers(t *testing.T) {
	sum := manyHistories(t, 1000, func(m *model) {
		m.run(m.drastic())
		_ = m.update()
		m.read()
	})
	if sum.acknowledged < sum.histories || sum.unknown == 0 || sum.degraded == 0 || sum.kept == 0 {
		t.Errorf("%+v", sum)
	}
	if rare := sum.histories >= 10000; rare && (sum.tails == 0 || sum.forked == 0) {
		t.Errorf("nothing rare happened: %+v", sum)
	}
}
