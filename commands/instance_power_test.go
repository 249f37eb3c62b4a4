package commands_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/sledtest"
)

// A change of power that was requested continues if the wait for it fails: sledctl
// reports what is left, and the same command again only waits for the change.
func TestAPowerChangeWhoseEndIsNotSeenIsLeftAndFinished(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"instance reboot web1", "propolis stop --instance web1"} {
		synctest.Test(t, func(t *testing.T) {
			s := sledtest.New(t, sledtest.Small(), "")
			s.Run("bootstrap")
			s.Run("instance ensure web1")
			left := 0
			for call := 1; ; call++ {
				a := s.On(t.Context(), &sledtest.Failing{Host: s.Host(), At: call, How: sledtest.Silent}, line+" -o json")
				told := sledtest.LeftOf(t, a)
				open := strings.Contains(fmt.Sprint(s.Ledger()), `"verb":"`+strings.Join(strings.Fields(line)[:2], " "))
				if (a.Exit == 3) != (len(told) > 0) || open != (a.Exit == 3) {
					t.Errorf("%s, silent from call %d: exit %d, left %q, its intent is open: %v", line, call, a.Exit, told, open)
				}
				if a.Exit == 0 {
					break
				}
				left += len(told)
				before := machinesOf(s, "web1")
				again := traced(s, line)
				asked := 0
				for _, e := range again.events {
					if e.Line.Kind == host.LineRequest && strings.Contains(e.Line.Text, "PUT") {
						asked++
					}
				}
				if again.Exit != 0 || asked != 1-min(len(told), 1) {
					t.Errorf("%s, again after call %d from %s: exit %d, asked %d times: %s", line, call, before, again.Exit, asked, again.Errs)
				}
				if strings.HasPrefix(line, "propolis") {
					s.Run("instance ensure web1")
				}
			}
			if left == 0 {
				t.Errorf("%s: nothing was ever left", line)
			}
		})
	}
}

// A step that succeeded has not failed if its result cannot be read.
func TestAStepWhoseEndCannotBeLookedAtIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sledtest.New(t, sledtest.Small(), "")
		s.Run("bootstrap")
		s.Run("instance ensure web1")
		for _, line := range []string{"propolis ensure --instance web1", "propolis run --instance web1"} {
			calls := &sledtest.Failing{Host: s.Host()}
			s.On(t.Context(), calls, line)
			a := s.On(t.Context(), &sledtest.Failing{Host: s.Host(), At: calls.Count[sledtest.AtCall], How: sledtest.Silent}, line+" -H --columns instance,state")
			if a.Exit != 0 || a.Out != "web1\tunknown\n" || !strings.Contains(a.Errs, "the request succeeded, but its result cannot be read") {
				t.Errorf("%s: exit %d: %q %s", line, a.Exit, a.Out, a.Errs)
			}
		}
	})
}
