package sim

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"syscall"

	"github.com/sledctl/sledctl/sim/napi"
	"github.com/sledctl/sledctl/sim/propolis"
	"github.com/sledctl/sledctl/sim/web"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/packages"
	"github.com/sledctl/sledctl/sim/world/zones"
)

// Dial opens a connection to a process of the sled that listens on an address,
// from the global zone. Without one the error is that of connect(2): a host
// that does not exist cannot be reached, one that exists refuses. The data
// centre's NAPI and the control plane are reached by the address that each is
// known by, a name or not; so are a web server, and a control plane that is near another sled of the rack.
func (h *simHost) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	var near http.Handler
	if err := h.sled.world.View(ctx, func(tx *world.Tx) error {
		switch {
		case tx.State.NAPI != nil && tx.State.NAPI.Address == address:
			near = napi.Handler(h.sled.world)
		case tx.State.Nexus != nil && tx.State.Nexus.Address == address:
			near = h.sled.planeHandler(h.sled.world)
		case tx.State.Web != nil && tx.State.Web.Address == address:
			near = web.Handler(h.sled.world)
		case address == packages.Server && tx.State.Mode == world.OmniOS:
			near = http.NotFoundHandler()
		}
		return nil
	}); err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	if near == nil {
		plane, err := h.sled.planeOfRack(ctx, address)
		if err != nil {
			return nil, &net.OpError{Op: "dial", Net: network, Err: err}
		}
		near = plane
	}
	if near != nil {
		return h.sled.connect(near, nil), nil
	}
	to, err := netip.ParseAddrPort(address)
	if name, _, serr := net.SplitHostPort(address); err != nil && serr == nil && net.ParseIP(name) == nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}}
	}
	if err != nil || network != "tcp" && network != "tcp4" && network != "tcp6" {
		return nil, &net.OpError{Op: "dial", Net: network, Err: &net.AddrError{Err: "not an IP address and port", Addr: address}}
	}
	at, pid, err := h.sled.reach(ctx, to)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: net.TCPAddrFromAddrPort(to), Err: err}
	}
	return h.sled.connect(h.sled.observed(propolis.Handler(at, pid)), net.TCPAddrFromAddrPort(to)), nil
}

// reach finds the process that a connection to an address reaches, on this sled
// or on one of its neighbours.
func (s *Sled) reach(ctx context.Context, to netip.AddrPort) (at *world.World, pid int, err error) {
	err = s.world.View(ctx, func(tx *world.Tx) (err error) {
		if to.Addr().IsLoopback() && !zones.IsUnderlay(to.Addr()) {
			pid, err = zones.ListenerIn(tx, world.GlobalZone, to)
		} else {
			pid, err = zones.Listener(tx, to)
		}
		return err
	})
	if !errors.Is(err, syscall.EHOSTUNREACH) {
		return s.world, pid, err
	}
	near, nerr := s.world.Neighbours(ctx)
	if nerr != nil {
		return nil, 0, nerr
	}
	for _, n := range near {
		nerr := n.World.View(ctx, func(tx *world.Tx) (err error) { pid, err = zones.Listener(tx, to); return err })
		if !errors.Is(nerr, syscall.EHOSTUNREACH) {
			return n.World, pid, nerr
		}
	}
	return nil, 0, err
}

// connect makes a connection that a handler answers. It may break it
// off, as that of a process that dies does, and Close does.
func (s *Sled) connect(answer http.Handler, to net.Addr) net.Conn {
	client, server := net.Pipe()
	far := &accepted{Conn: server, taken: make(chan struct{}, 1), ended: make(chan struct{})}
	stop := context.AfterFunc(s.ctx, func() { _ = far.Close() })
	srv := &http.Server{
		Handler:     answer,
		BaseContext: func(net.Listener) context.Context { return s.ctx },
	}
	s.left.Go(func() {
		defer stop()
		_ = srv.Serve(oneConn{far})
	})
	return &dialed{Conn: client, remote: to}
}

// accepted is the far end of a connection.
type accepted struct {
	net.Conn
	taken chan struct{} // holds one when it has been accepted
	once  sync.Once
	ended chan struct{}
}

// Close ends the connection, and with it its listener.
func (a *accepted) Close() error {
	a.once.Do(func() { close(a.ended) })
	return a.Conn.Close()
}

// oneConn is a listener that this one connection comes to.
type oneConn struct{ *accepted }

// Accept gives the connection, then waits for its end.
func (l oneConn) Accept() (net.Conn, error) {
	select {
	case l.taken <- struct{}{}:
		return l.accepted, nil
	case <-l.ended:
		return nil, net.ErrClosed
	}
}

func (l oneConn) Addr() net.Addr { return l.LocalAddr() }

// dialed is the near end of a connection.
type dialed struct {
	net.Conn
	remote net.Addr
}

func (d *dialed) RemoteAddr() net.Addr { return cmp.Or(d.remote, d.Conn.RemoteAddr()) }
