package histories

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/lattice"
)

// act is one step of a history: a sledctl command, or a change by hand.
type act struct {
	verb verb   // if hand is empty
	hand string // see hands
	name string // on which instance
}

// verb is a command line of sledctl.
type verb struct {
	word string // ensure, start, stop, delete, reboot, ensure --all, stop --all, adopt --all, reap, bootstrap, hold, propolis stop, and the steps
	name string // the instance, if it is about one

	cpus, nics int
	extra      bool // with the disks or the spec of the sled's row
	protect    string
	recreate   bool
	yes        bool
	dry        bool

	crash int // at which change it is killed; 0: never
	how   host.CrashMode
}

// line is the command line without the program's name, on a plain sled.
func (v verb) line() string { return v.on(plain(), "") }

// on is the command line on the sled of a row.
func (v verb) on(row lattice.Row, pool string) string {
	words := []string{"instance", v.word, v.name}
	if v.word == "propolis stop" || slices.Contains(steps(), v.word) {
		words = []string{v.word, "--instance", v.name}
	}
	switch v.word {
	case "reap", "bootstrap":
		words = []string{v.word}
	case "hold":
		words = strings.Fields("vnic create --over net1 --hold 1ns")
	}
	add := func(is bool, flag string) {
		if is {
			words = append(words, flag)
		}
	}
	add(v.cpus != 0, fmt.Sprint("--cpus ", v.cpus))
	for n := range v.nics {
		words = append(words, row.NIC(v.name, n))
	}
	if v.extra {
		flags, _ := row.Extras(v.name, pool)
		words = append(words, flags)
	}
	add(v.protect != "", v.protect)
	add(v.recreate, "--recreate")
	add(v.yes, "--yes")
	add(v.dry, "--dry-run")
	if v.crash != 0 {
		words = append(words, fmt.Sprintf("--crash-at %d:%s", v.crash, map[host.CrashMode]string{host.CrashBefore: "before", host.CrashAfter: "after", host.CrashDuring: "after"}[v.how]))
	}
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
}

func names() []string { return []string{"a", "b", "c"} }

// draw draws one of several, each as often as its weight says.
func draw[T comparable](r *rand.Rand, weights []weight[T]) T {
	total := 0
	for _, w := range weights {
		total += w.often
	}
	at := r.IntN(total)
	for _, w := range weights {
		if at -= w.often; at < 0 {
			return w.what
		}
	}
	panic("unreachable")
}

type weight[T any] struct {
	what  T
	often int
}

// drawActs draws what happens next on the sled of a row: one thing, some steps of
// a bring-up, or a power cycle in which somebody meddles with a zone, and the morning.
func drawActs(r *rand.Rand, m *model, row lattice.Row) []act {
	a := drawAct(r, row)
	if a.hand == "power" && r.IntN(2) == 0 {
		runs := slices.DeleteFunc(names(), func(name string) bool { return m.vms[name].life != up })
		if len(runs) > 0 {
			return []act{a, {hand: "tamper", name: runs[r.IntN(len(runs))]}, {verb: verb{word: "bootstrap"}}, {verb: verb{word: "ensure --all"}}}
		}
	}
	at := slices.Index(steps(), a.verb.word)
	it := m.vms[a.verb.name]
	if at < 0 || it.life != none && it.life != begun && it.life != stale {
		return []act{a}
	}
	var acts []act
	for n := it.steps; n < at; n++ {
		acts = append(acts, act{verb: verb{word: steps()[n], name: a.verb.name}})
	}
	return append(acts, a)
}

func drawAct(r *rand.Rand, row lattice.Row) act {
	name := draw(r, []weight[string]{{"a", 5}, {"b", 3}, {"c", 1}})
	hand := draw(r, []weight[string]{
		{"", 70}, {"halt", 6}, {"remove", 4}, {"unlink", 4}, {"destroy", 4}, {"restart", 4}, {"alien", 1}, {"lose", 1}, {"power", 5}, {"pull", 2}, {"insert", 3},
	})
	if (hand == "pull" || hand == "insert") && row.Is(lattice.Disks) != lattice.TwoM2s {
		hand = "" // there is no second one, with which the sled could go on
	}
	if hand != "" {
		return act{hand: hand, name: name}
	}
	v := verb{name: name, word: draw(r, []weight[string]{
		{"ensure", 24}, {"start", 8}, {"stop", 9}, {"delete", 9}, {"reboot", 3}, {"ensure --all", 5}, {"stop --all", 3}, {"adopt --all", 4}, {"step", 5}, {"propolis stop", 3}, {"reap", 7}, {"bootstrap", 6}, {"hold", 2},
	})}
	if v.word == "step" {
		v.word = steps()[r.IntN(len(steps()))]
	}
	some := func(n int) bool { return r.IntN(n) == 0 }
	switch v.word {
	case "ensure":
		v.cpus = draw(r, []weight[int]{{0, 3}, {2, 1}, {4, 2}, {row.CPUs(), 1}})
		v.nics = draw(r, []weight[int]{{0, 3}, {row.NICs(), 3}, {min(2, row.NICs()), 1}})
		if !row.Has(lattice.VMDisks, lattice.None, lattice.Made, lattice.Cloned, lattice.Remote) { // the model has no volumes, nor how a VM with one in a Crucible is adopted
			v.extra = some(2)
		}
		if row.Is(lattice.VMDisks) == lattice.Crucible { // a spec says how many there are
			v.nics = 0
			if v.extra {
				v.cpus, v.nics = max(v.cpus, 1), row.NICs()
			}
		}
		v.protect = draw(r, []weight[string]{{"", 8}, {"--protect", 1}, {"--no-protect", 1}})
		v.recreate = some(4)
	case "delete":
		v.yes = some(2)
	default:
		if !slices.Contains(onInstances, v.word) {
			v.name = ""
		}
	}
	v.dry = v.word != "reboot" && v.word != "hold" && v.word != "bootstrap" && some(16)
	if !v.dry && some(3) {
		v.crash, v.how = 1+min(r.IntN(24), r.IntN(24)), host.CrashMode(r.IntN(3)) // more of the early ones: not every way is long
	}
	return act{verb: v}
}
