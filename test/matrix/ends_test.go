package matrix

import (
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
)

// laws holds the sled of a case against all of them. Recover is the line that is
// to lead where the verb would have led.
func (s *scene) laws(at string, recover ...string) {
	s.T.Helper()
	s.foreign(at)
	if len(recover) == 0 {
		recover = append([]string{s.line}, s.then...)
	}
	for _, line := range recover {
		done := line == s.line && s.isDone()
		again := s.witness(s.Host())
		if a := s.On(s.T.Context(), again, line); a.Exit != 0 && (a.Exit != s.may || !done) {
			s.T.Fatalf("%s: sledctl %s: exit %d: %s", at, line, a.Exit, a.Errs)
		}
		again.law(s.T, at+": again")
	}
	s.led(at)
}

// led sees that the verb led where it would have led undisturbed, and that all can
// be removed.
func (s *scene) led(at string) {
	s.T.Helper()
	if now := s.settled(); now != s.want {
		s.T.Fatalf("%s: again (-uninterrupted +resumed):\n%s", at, cmp.Diff(strings.Split(s.want, "\n"), strings.Split(now, "\n")))
	}
	s.closed(at + ": again")
	s.alone(at)
	s.over(at)
}

// alone sees that a machine that moves is on one sled, and that nothing of it is
// on the other.
func (s *scene) alone(at string) {
	s.T.Helper()
	if s.There == nil {
		return
	}
	if n := s.RunningMachines() + s.There.RunningMachines(); n != 1 {
		s.T.Fatalf("%s: %d machines run", at, n)
	}
	if out := s.There.Run("reap --dry-run -H --columns kind,name,verdict"); strings.Contains(out, "orphan") || strings.Contains(out, "stale") {
		s.T.Errorf("%s: on the other sled there is %s", at, out)
	}
}

// isDone says whether no intent is open: what was to be done was, and its outcome
// is written down, or it was not begun.
func (s *scene) isDone() bool {
	for key := range s.Ledger() {
		if strings.HasPrefix(key, "intent/") {
			return false
		}
	}
	return len(openBeforeLedger(s.Operator)) == 0
}

// over holds what delete and reap leave against the laws.
func (s *scene) over(at string) {
	s.T.Helper()
	if end := s.finish(at); end != s.end {
		s.T.Fatalf("%s: after delete and reap (-uninterrupted +resumed):\n%s", at, cmp.Diff(strings.Split(s.end, "\n"), strings.Split(end, "\n")))
	}
	s.closed(at + ": in the end")
	s.foreign(at + ": in the end")
}

// finish removes what the verb made, and returns what is on the sled then.
func (s *scene) finish(at string) string {
	s.T.Helper()
	for _, line := range s.ends {
		if a := s.Try(line); a.Exit != 0 && a.Exit != 4 {
			s.T.Fatalf("%s: sledctl %s: exit %d: %s", at, line, a.Exit, a.Errs)
		}
	}
	s.off() // for it two hours are long
	if !s.real {
		time.Sleep(2 * time.Hour) // of the bubble: all that is held is so no more
	}
	s.Run("reap")
	s.named(at)
	return s.settled()
}
