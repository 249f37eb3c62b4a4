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
)

// mute is a host on which whoever is dialled takes the connection, reads, and says
// nothing.
type mute struct{ host.Host }

func (m mute) Dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, far) }()
	return near, nil
}

// A Propolis that hangs is told as such after a second, and holds up no other
// question: what it runs is not known, and is not built again.
func TestAPropolisThatSaysNothingHoldsNobodyUp(t *testing.T) {
	for line, want := range map[string]answer{
		"instance list -H --columns name,state": {exit: 0, out: "web1\tunknown\nweb2\tunknown\n"},
		"instance get web1 -H --columns state":  {exit: 0, out: "unknown\n"},
		"instance ensure web1":                  {exit: 8, errs: "instance stop web1"},
		"instance reboot web1":                  {exit: 5},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newSled(t, small(), "")
			s.run("bootstrap")
			s.run("instance ensure web1")
			s.run("instance ensure web2")
			began := time.Now()
			a := s.on(t.Context(), mute{s.Host()}, line)
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("%s: %v", line, took)
			}
			if a.exit != want.exit || !strings.Contains(a.out, want.out) || !strings.Contains(a.errs, want.errs) {
				t.Errorf("%s: exit %d: %q %s", line, a.exit, a.out, a.errs)
			}
		})
	}
}
