// Package forward gives each client of a listener a connection of its own to
// somewhere else, and carries the bytes both ways.
package forward

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
)

// Listen listens on an address of this machine that nobody else's can reach:
// what is forwarded may ask for no password.
func Listen(ctx context.Context, at netip.AddrPort) (net.Listener, error) {
	if !at.Addr().IsLoopback() {
		return nil, fmt.Errorf("%s is not a loopback address", at)
	}
	return (&net.ListenConfig{}).Listen(ctx, "tcp", at.String())
}

// Serve does so until the context ends, whose cause is its error. A client for
// whom dial has no connection is hung up on, and tell is told why. When Serve
// returns, the listener is closed, and nothing of it runs on.
func Serve(ctx context.Context, l net.Listener, dial func(context.Context) (net.Conn, error), tell func(error)) error {
	var clients sync.WaitGroup
	defer clients.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	for {
		near, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return err
		}
		clients.Go(func() {
			defer near.Close()
			far, err := dial(ctx)
			if err != nil {
				if ctx.Err() == nil {
					tell(fmt.Errorf("a client was turned away: %w", err))
				}
				return
			}
			defer far.Close()
			carry(ctx, near, far)
		})
	}
}

// carry lasts until either side hangs up. What is under way in the other
// direction is cut off then: neither side of what is forwarded here can use the other
// direction alone.
func carry(ctx context.Context, near, far net.Conn) {
	hangUp := func() { _, _ = near.Close(), far.Close() }
	defer context.AfterFunc(ctx, hangUp)()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1]) // its end is that of the connection, however it came
			hangUp()
		})
	}
	both.Wait()
}
