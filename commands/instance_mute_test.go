package commands_test

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/sledtest"
)

// mute is a host on which every server accepts the connection, reads, and does not
// answer.
type mute struct{ host.Host }

func (m mute) Dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, far) }()
	return near, nil
}

// sledctl reports a Propolis that hangs after a second, and answers other questions
// meanwhile. It does not rebuild the VM: it is not known whether that still runs.
func TestAPropolisThatSaysNothingHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]sledtest.Answer{
		"instance list -H --columns name,state": {Exit: 0, Out: "web1\tunknown\nweb2\tunknown\n"},
		"instance get web1 -H --columns state":  {Exit: 0, Out: "unknown\n"},
		"instance ensure web1":                  {Exit: 8, Errs: "instance stop web1"},
		"instance reboot web1":                  {Exit: 5},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := sledtest.New(t, sledtest.Small(), "")
			s.Run("bootstrap")
			s.Run("instance ensure web1")
			s.Run("instance ensure web2")
			began := time.Now()
			a := s.On(t.Context(), mute{s.Host()}, line)
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("%s: %v", line, took)
			}
			if a.Exit != want.Exit || !strings.Contains(a.Out, want.Out) || !strings.Contains(a.Errs, want.Errs) {
				t.Errorf("%s: exit %d: %q %s", line, a.Exit, a.Out, a.Errs)
			}
		})
	}
}
