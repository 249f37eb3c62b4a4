package commands_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/sledtest"
)

// halting is a host on which the first command with that word blocks until it is
// released.
type halting struct {
	host.Host
	word    string
	at, let chan struct{}
	stood   atomic.Bool
}

func (h *halting) Run(ctx context.Context, c host.Command) (host.Result, error) {
	if slices.Contains(c.Args, h.word) && h.stood.CompareAndSwap(false, true) {
		close(h.at)
		<-h.let
	}
	return h.Host.Run(ctx, c)
}

// While reap removes the zone of an instance, every command on that instance refuses
// and names the reap. Afterwards it does what it always does.
func TestAnInstanceThatIsBeingReapedIsLeftToTheReap(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"instance ensure web1 --cpus 4 --recreate", "instance stop web1", "instance delete web1"} {
		synctest.Test(t, func(t *testing.T) {
			s := sledtest.New(t, sledtest.Small(), "")
			s.Run("bootstrap")
			s.Run("instance ensure web1")
			h := &halting{Host: s.Host(), word: "halt", at: make(chan struct{}), let: make(chan struct{})}
			reaped := make(chan sledtest.Answer, 1)
			go func() { reaped <- s.On(t.Context(), h, "reap --all --yes") }()
			<-h.at
			if a := s.Try(line); a.Exit != 6 || !strings.Contains(a.Errs, "reap is being worked on by ") {
				t.Errorf("%s: exit %d: %s", line, a.Exit, a.Errs)
			}
			close(h.let)
			if a := <-reaped; a.Exit != 0 {
				t.Errorf("reap next to %s: exit %d: %s", line, a.Exit, a.Errs)
			}
			s.Run("base ensure")
			s.Run(line)
		})
	}
}
