package zonecfg

// revert goes back to what is saved.
func (s *cfgSession) revert(st cfgStatement) {
	o := s.options(st, "?F")
	if o == nil || s.readOnly() {
		return
	}
	switch _, forced := o['F']; {
	case !s.global:
		s.fail("You can only use revert in the global scope.\nUse 'cancel' to cancel changes to a resource specification.")
		return
	case s.config == nil:
		s.fail("No changes to revert.")
		return
	case !forced:
		s.ask()
		s.die("Input not from terminal and -F not specified:\nrevert command ignored, exiting.")
		return
	}
	c, problem := s.load(s.saved)
	s.config = c
	if problem != "" {
		s.got = false
		if problem == NoZone {
			s.fail("%s: no such saved zone to revert to.", s.saved)
		} else {
			s.fail("%s: %s", s.zone, problem)
		}
	}
	s.zone = s.saved
}

// cancel leaves a resource as it was.
func (s *cfgSession) cancel(st cfgStatement) {
	if s.options(st, "?") == nil {
		return
	}
	if s.global {
		s.scopeUsage(st.name)
	}
	s.global, s.work, s.old = true, nil, nil
}
