package histories

// steps are those of the bring-up, in their order.
func steps() []string {
	return []string{"vnic create", "zone create", "zone boot", "zone address", "propolis start", "propolis ensure", "propolis run"}
}

// step is one of the bring-up. It begins again where nothing is left of the last
// run, and what it needs comes first.
func (m *model) step(name string, at int) outcomes {
	it := m.vms[name]
	next := 0
	switch it.life {
	case begun:
		next = it.steps
	case up:
		next = len(steps())
	case unclear:
		all := outcomes{exitMissing: m, exitConflict: m, exitRefused: m}
		return all.same(m.after(name, func(it *vm) { it.wanted = "running" }), 0)
	case outlived:
		switch {
		case m.footed:
		case m.ground == bare:
			return outcomes{exitRefused: m}
		case m.ground == unsure:
			return outcomes{exitRefused: m, exitConflict: m}
		}
		return outcomes{exitConflict: m}
	case halted, lost, removed, off:
		return outcomes{exitConflict: m}
	}
	switch {
	case at < next:
		return outcomes{0: m}
	case at > next && m.ground == prepared:
		return outcomes{exitMissing: m}
	case at > next:
		return outcomes{exitMissing: m, exitRefused: m}
	}
	return m.bringUp(name, func(it *vm) {
		if !it.recorded {
			*it = vm{recorded: true, cpus: usualCPUs}
		}
	}, at+1)
}
