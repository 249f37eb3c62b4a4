package exchangetest

import (
	"context"
	"io"
	"net"

	"github.com/sledctl/sledctl/host"
)

// Raw is a host with one peer and nothing else, whatever is dialled: the peer
// hears what it is sent, says what it says, byte by byte HTTP or not, and hangs up.
type Raw struct {
	host.Host
	Says []byte
	// Hangs has it say nothing more, and not hang up.
	Hangs bool
	// Endless has it say the same again and again.
	Endless bool
}

// Dial is part of host.Host.
func (r Raw) Dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, theirs) }() // until either end has closed it
	go func() {
		_, err := theirs.Write(r.Says)
		for r.Endless && len(r.Says) > 0 && err == nil {
			_, err = theirs.Write(r.Says)
		}
		if !r.Hangs || err != nil {
			_ = theirs.Close()
		}
	}()
	return ours, nil
}
