package histories

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// model is what the manual says that a sled is like after a history: no zones,
// no files, no ledger, just what an operator may rely on.
type model struct {
	vms    map[string]*vm
	ground ground
	// pulled: an M.2 is out of its slot. After a reboot without it, putting it
	// back is not enough: a pool that was missing then is not imported.
	pulled, lame bool
	torn         bool // a verb was killed: one copy of the ledger may have a line that the other lacks
	cut          bool // a bootstrap was killed: what it was about is open until one is run again
	forgets      bool // its root is on a RAM disk: after a boot no ledger is at hand until it is prepared
	footed       bool // what a step on a VM needs is there after a boot, before bootstrap
	addresses    bool // Propolis' own service makes the address: no step is left for it
	crucible     bool // what its VMs have next to the usual are Crucible disks
	careless     bool // for a test: it thinks that a machine that runs can be given CPUs
	aliens       int  // zones that somebody else has made
}

// ground is whether bootstrap has prepared the sled since it was booted.
type ground string

const (
	prepared ground = "prepared"
	bare     ground = "bare"
	unsure   ground = "unsure" // it was killed during it
)

// each are the instances, and what else they may be.
func (m *model) each() []*vm {
	var all []*vm
	for _, it := range m.vms {
		for ; it != nil; it = it.maybe {
			all = append(all, it)
		}
	}
	return all
}

func (m *model) clone() *model {
	c := *m
	c.vms = map[string]*vm{}
	for name, v := range m.vms {
		c.vms[name] = v.clone()
	}
	return &c
}

// outcomes are the exit codes that a verb may have, and what is so after each.
type outcomes map[int]*model

// same adds an exit code after which nothing has changed.
func (o outcomes) same(m *model, exits ...int) outcomes {
	for _, e := range exits {
		if o[e] == nil {
			o[e] = m
		}
	}
	return o
}

// after is the model with one of its instances changed.
func (m *model) after(name string, change func(*vm)) *model {
	c := m.clone()
	change(c.vms[name])
	return c
}

// expect says what may become of a verb.
func (m *model) expect(v verb) outcomes {
	if v.name == "" || m.vms[v.name].maybe == nil {
		return m.certain(v)
	}
	out := outcomes{}
	for _, is := range m.vms[v.name].all() {
		for exit, after := range m.after(v.name, func(it *vm) { *it = is }).certain(v) {
			switch {
			case v.dry: // the next change may contradict what one copy has
				after = m
			case out[exit] != nil:
				after.vms[v.name] = either(append(out[exit].vms[v.name].all(), after.vms[v.name].all()...))
			}
			out[exit] = after
		}
	}
	return out
}

// blind says whether no ledger may be at hand.
func (m *model) blind() bool { return m.forgets && m.ground != prepared }

func (m *model) certain(v verb) outcomes {
	if m.blind() && m.ground == bare && v.word != "bootstrap" {
		return outcomes{exitRefused: m}
	}
	out := m.healthy(v)
	if m.blind() && v.word != "bootstrap" {
		out.same(m, exitRefused, exitLedger) // one copy of two may be
	}
	if m.pulled || m.lame {
		// "With a copy missing, what changes something refuses."
		out.same(m, exitLedger)
		if m.pulled {
			for exit, after := range out {
				if exit == 0 && !m.equal(after) && !m.open(v) {
					delete(out, exit)
				}
			}
		}
	}
	if after := out[0]; after != nil && m.torn && !v.dry && !m.pulled && !m.lame {
		settled := after.clone() // what changes something brings each copy the same lines first
		settled.torn = false
		out[0] = settled
	}
	if v.dry {
		for exit := range out {
			out[exit] = m
		}
		out.same(m, 0)
		if _, ok := out[exitMissing]; ok && m.torn {
			out.same(m, exitLedger) // a line of one copy may hold it: a reader does not say that it is missing
		}
	}
	return out
}

// open says whether a verb that was killed may have done already what v is to do.
func (m *model) open(v verb) bool {
	for name, it := range m.vms {
		if it.life == unclear && name == cmp.Or(v.name, name) {
			return true
		}
	}
	return false
}

const (
	exitPart     = 3
	exitMissing  = 4
	exitConflict = 5
	exitRefused  = 8
	exitLedger   = 9
)

func (m *model) healthy(v verb) outcomes {
	it := m.vms[v.name]
	if it != nil && it.unrecorded() {
		return outcomes{exitRefused: m}
	}
	switch v.word {
	case "ensure":
		return m.ensure(v)
	case "start":
		if !it.recorded {
			return outcomes{exitMissing: m}
		}
		return m.bringUp(v.name, func(*vm) {}, len(steps()))
	case "stop":
		if !it.recorded {
			return outcomes{exitMissing: m}
		}
		return outcomes{0: m.after(v.name, func(it *vm) { it.wanted, it.life = "stopped", none })}
	case "delete":
		if it.recorded && it.protected && !v.yes {
			return outcomes{exitRefused: m}
		}
		return outcomes{0: m.after(v.name, func(it *vm) { *it = vm{life: none} })}
	case "reboot":
		switch {
		case !it.recorded:
			return outcomes{exitMissing: m}
		case it.life == up:
			return outcomes{0: m}
		case it.life == unclear:
			return outcomes{0: m}.same(m, exitConflict, exitMissing)
		}
		return outcomes{exitConflict: m}
	case "ensure --all":
		return m.ensureAll()
	case "stop --all":
		c := m.clone()
		for _, it := range c.each() {
			if it.recorded {
				it.life = none
			}
		}
		return outcomes{0: c}
	case "propolis stop":
		switch {
		case !it.recorded:
			return outcomes{exitMissing: m}
		case it.life == up || it.life == off || it.life == begun && it.steps == len(steps())-1: // a machine that does not run yet is one
			return outcomes{0: m.after(v.name, func(it *vm) { it.life, it.steps = off, 0 })}
		case it.life == unclear:
			return outcomes{0: m}.same(m, exitConflict, exitMissing)
		case it.life == lost: // off, where its Propolis says so
			return outcomes{0: m}.same(m, exitConflict)
		}
		return outcomes{exitConflict: m}
	case "adopt --all":
		return m.adoptAll()
	case "reap", "hold":
		out := outcomes{0: m}
		if v.word == "hold" && m.ground != prepared {
			out.same(m, exitRefused)
		}
		return out
	case "bootstrap":
		c := m.clone()
		c.ground, c.lame, c.cut = prepared, false, false
		out := outcomes{0: c}
		if m.pulled || m.lame {
			half := m.clone() // what it could do is done, or not
			half.lame = true
			if m.ground == bare {
				half.ground = unsure
			}
			out.same(half, exitPart, exitLedger)
		}
		return out
	}
	if at := slices.Index(steps(), v.word); at >= 0 {
		return m.step(v.name, at)
	}
	panic("no verb " + v.word)
}

func (m *model) ensure(v verb) outcomes {
	it := m.vms[v.name]
	asked := func(it *vm) {
		if !it.recorded {
			*it = vm{recorded: true, cpus: usualCPUs}
		}
		if v.cpus != 0 {
			it.cpus = v.cpus
		}
		if v.nics != 0 {
			it.nics = v.nics
		}
		it.extra = it.extra || v.extra
		switch v.protect {
		case "--protect":
			it.protected = true
		case "--no-protect":
			it.protected = false
		}
		it.wanted = "running"
	}
	wanted := it.clone()
	asked(wanted)
	differs := it.recorded && (wanted.cpus != it.cpus || wanted.nics != it.nics || wanted.extra != it.extra)
	switch {
	case differs && it.life == up && !v.recreate && !m.careless:
		return outcomes{exitConflict: m}
	case differs && (it.life == unclear || it.life == begun) && !v.recreate:
		return m.bringUp(v.name, asked, len(steps())).same(m, exitConflict)
	}
	return m.bringUp(v.name, asked, len(steps()))
}

// bringUp is ensure where nothing is in its way, or the first of its steps.
func (m *model) bringUp(name string, asked func(*vm), to int) outcomes {
	out := outcomes{}
	if m.ground != prepared {
		out.same(m, exitRefused) // no machine outlives a reboot, so there is something to do
	}
	if m.ground == bare {
		return out
	}
	return out.same(m.after(name, func(it *vm) {
		asked(it)
		it.wanted, it.life, it.steps = "running", up, 0
		if to == slices.Index(steps(), "zone address") && m.addresses {
			to++
		}
		if to < len(steps()) {
			it.life, it.steps = begun, to
		}
	}), 0)
}

func (m *model) ensureAll() outcomes {
	c := m.clone()
	todo := false
	for _, it := range c.each() {
		if it.recorded && it.wanted == "running" {
			todo = true
			it.life, it.steps = up, 0
		}
	}
	if m.ground == bare && todo {
		out := outcomes{exitRefused: m, exitPart: m}
		if !m.certainly("running") {
			out.same(m, 0) // what was killed may not have come to that
		}
		return out
	}
	out := outcomes{0: c}
	if m.ground == unsure {
		out.same(m, exitRefused, exitPart)
	}
	if m.pulled {
		out.same(m, exitPart)
	}
	return out
}

// adoptAll makes records of the unrecorded zones that have a machine which can be made
// again.
func (m *model) adoptAll() outcomes {
	c, out := m.clone(), outcomes{}
	for _, it := range c.each() {
		switch {
		case it.unrecorded() && it.life == up && !m.unfit(it):
			it.recorded, it.wanted = true, "running"
		case it.unrecorded() && it.life == outlived:
			it.recorded, it.wanted = true, "running"
			if m.unfit(it) { // no mark has a machine that was written down
				it.wanted, it.extra = "stopped", false
			}
		case it.unrecorded():
			out.same(c, exitPart, exitConflict) // of all, and for one cause: with its code
		}
	}
	if len(out) == 0 || slices.ContainsFunc(slices.Collect(maps.Values(c.vms)), func(it *vm) bool { return it.maybe != nil }) {
		out[0] = c
	}
	return out
}

// unfit says whether an unrecorded zone has what cannot be made again: a Crucible disk.
func (m *model) unfit(it *vm) bool { return m.crucible && it.extra }

// lost is what is so once the ledger is, and another was begun: what does not
// run is forgotten.
func (m *model) lost() *model {
	c := m.clone()
	for _, it := range c.vms {
		if it.life == up || it.life == lost {
			*it = vm{life: it.life, cpus: it.cpus, nics: it.nics, extra: it.extra}
		} else {
			*it = vm{life: none}
		}
	}
	return c
}

// certainly says whether an instance is recorded and wanted so, whatever a verb
// that was killed has made of it.
func (m *model) certainly(wanted string) bool {
	for _, it := range m.vms {
		if !slices.ContainsFunc(it.all(), func(v vm) bool { return !v.recorded || v.wanted != wanted }) {
			return true
		}
	}
	return false
}

// equal says whether two models promise the same.
func (m *model) equal(other *model) bool { return m.String() == other.String() }

func (m *model) String() string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(m.vms)) {
		lines = append(lines, name+": "+m.vms[name].String())
	}
	return strings.Join(lines, "\n")
}

// killed is what may be so after a verb was killed: what was before, or what
// was to be, of each instance by itself; and what of it is on the sled is open.
func (m *model) killed(v verb) *model {
	c := m.clone()
	c.torn = true
	outcomes := m.expect(v)
	for name, it := range c.vms {
		all := it.all()
		for _, exit := range exits(outcomes) {
			if v.name == "" || v.name == name {
				all = append(all, outcomes[exit].vms[name].all()...)
			}
		}
		changes := either(all).maybe != nil || name == v.name && slices.Contains(onInstances, v.word)
		for i := range all {
			if changes && all[i].recorded {
				all[i].life = unclear // a bring-up and a teardown may end where they began
			}
		}
		c.vms[name] = either(all)
	}
	if v.word == "bootstrap" {
		c.cut = true
		if m.ground == bare {
			c.ground = unsure
		}
	}
	return c
}

// onInstances are the verbs that are about one.
var onInstances = append([]string{"ensure", "start", "stop", "delete", "reboot", "propolis stop"}, steps()...)
