package commands_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sledctl/sledctl/host"
)

// A change of power that was asked for goes on, whatever becomes of the wait for
// it: what is left is told, and the same again waits for it and no more.
func TestAPowerChangeWhoseEndIsNotSeenIsLeftAndFinished(t *testing.T) {
	for _, line := range []string{"instance reboot web1", "propolis stop --instance web1"} {
		synctest.Test(t, func(t *testing.T) {
			s := newSled(t, small(), "")
			s.run("bootstrap")
			s.run("instance ensure web1")
			left := 0
			for call := 1; ; call++ {
				a := s.on(t.Context(), &failing{Host: s.Host(), at: call, how: silent}, line+" -o json")
				told := leftOf(t, a)
				open := strings.Contains(fmt.Sprint(s.ledger()), `"verb":"`+strings.Join(strings.Fields(line)[:2], " "))
				if (a.exit == 3) != (len(told) > 0) || open != (a.exit == 3) {
					t.Errorf("%s, silent from call %d: exit %d, left %q, its intent is open: %v", line, call, a.exit, told, open)
				}
				if a.exit == 0 {
					break
				}
				left += len(told)
				before := s.machines("web1")
				again := s.traced(line)
				asked := 0
				for _, e := range again.events {
					if e.Line.Kind == host.LineRequest && strings.Contains(e.Line.Text, "PUT") {
						asked++
					}
				}
				if again.exit != 0 || asked != 1-min(len(told), 1) {
					t.Errorf("%s, again after call %d from %s: exit %d, asked %d times: %s", line, call, before, again.exit, asked, again.errs)
				}
				if strings.HasPrefix(line, "propolis") {
					s.run("instance ensure web1")
				}
			}
			if left == 0 {
				t.Errorf("%s: nothing was ever left", line)
			}
		})
	}
}

// A step that was done has not failed because nobody can look at what came of it.
func TestAStepWhoseEndCannotBeLookedAtIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSled(t, small(), "")
		s.run("bootstrap")
		s.run("instance ensure web1")
		for _, line := range []string{"propolis ensure --instance web1", "propolis run --instance web1"} {
			calls := &failing{Host: s.Host()}
			s.on(t.Context(), calls, line)
			a := s.on(t.Context(), &failing{Host: s.Host(), at: calls.count[call], how: silent}, line+" -H --columns instance,state")
			if a.exit != 0 || a.out != "web1\tunknown\n" || !strings.Contains(a.errs, "the request succeeded, but its result cannot be read") {
				t.Errorf("%s: exit %d: %q %s", line, a.exit, a.out, a.errs)
			}
		}
	})
}
