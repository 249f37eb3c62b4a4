package commands_test

import (
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
)

// laws holds the sled of a case against all of them. Recover is the line that is
// to lead where the verb would have led.
func (s *scene) laws(at string, recover ...string) {
	s.t.Helper()
	s.foreign(at)
	if len(recover) == 0 {
		recover = append([]string{s.line}, s.then...)
	}
	for _, line := range recover {
		done := line == s.line && s.isDone()
		again := s.witness(s.Host())
		if a := s.on(s.t.Context(), again, line); a.exit != 0 && (a.exit != s.may || !done) {
			s.t.Fatalf("%s: sledctl %s: exit %d: %s", at, line, a.exit, a.errs)
		}
		again.law(s.t, at+": again")
	}
	s.led(at)
}

// led sees that the verb led where it would have led undisturbed, and that all can
// be taken away.
func (s *scene) led(at string) {
	s.t.Helper()
	if now := s.settled(); now != s.want {
		s.t.Fatalf("%s: again (-uninterrupted +resumed):\n%s", at, cmp.Diff(strings.Split(s.want, "\n"), strings.Split(now, "\n")))
	}
	s.closed(at + ": again")
	s.alone(at)
	s.over(at)
}

// alone sees that a machine that moves is on one sled, and that nothing of it is
// on the other.
func (s *scene) alone(at string) {
	s.t.Helper()
	if s.there == nil {
		return
	}
	if n := s.runningMachines() + s.there.runningMachines(); n != 1 {
		s.t.Fatalf("%s: %d machines run", at, n)
	}
	if out := s.there.run("reap --dry-run -H --columns kind,name,verdict"); strings.Contains(out, "orphan") || strings.Contains(out, "stale") {
		s.t.Errorf("%s: on the other sled there is %s", at, out)
	}
}

// isDone says whether no intent is open: what was to be done was, and its outcome
// is written down, or it was not begun.
func (s *scene) isDone() bool {
	for key := range s.ledger() {
		if strings.HasPrefix(key, "intent/") {
			return false
		}
	}
	return len(s.openBeforeLedger()) == 0
}

// over holds what delete and reap leave against the laws.
func (s *scene) over(at string) {
	s.t.Helper()
	if end := s.finish(at); end != s.end {
		s.t.Fatalf("%s: after delete and reap (-uninterrupted +resumed):\n%s", at, cmp.Diff(strings.Split(s.end, "\n"), strings.Split(end, "\n")))
	}
	s.closed(at + ": in the end")
	s.foreign(at + ": in the end")
}

// finish takes away what the verb made, and tells what is then.
func (s *scene) finish(at string) string {
	s.t.Helper()
	for _, line := range s.ends {
		if a := s.try(line); a.exit != 0 && a.exit != 4 {
			s.t.Fatalf("%s: sledctl %s: exit %d: %s", at, line, a.exit, a.errs)
		}
	}
	s.off() // for it two hours are long
	if !s.real {
		time.Sleep(2 * time.Hour) // of the bubble: all that is held is so no more
	}
	s.run("reap")
	s.named(at)
	return s.settled()
}
