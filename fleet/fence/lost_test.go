package fence

// loses is a sled that is destroyed, and a person who states that it is.
func (w world) loses(s state, i int8, add adder) {
	if w.lost == 0 {
		return
	}
	if s.destroyed < w.lost && !s.sleds[i].destroyed {
		to := s
		to.destroyed++
		to.sleds[i] = s.sleds[i].powerless()
		to.sleds[i].destroyed = true
		add(to, "sled %d is destroyed", i)
	}
	if s.sleds[i].destroyed || w.rules.hasty {
		to := s
		to.store.lost[i] = true
		add(to, "a person states that sled %d is lost", i)
	}
}

// isLost reports whether a sled is stated to be lost.
func (w world) isLost(s state, i int8) bool {
	if w.rules.anyLost {
		return s.store.lost != [maxSleds]bool{}
	}
	return s.store.lost[i]
}
