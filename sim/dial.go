package sim

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"syscall"

	"github.com/sledctl/sledctl/sim/propolis"
	"github.com/sledctl/sledctl/sim/world"
)

// Dial opens a connection to a process of the sled that listens on an address,
// from the global zone. Without one the error is that of connect(2): a host
// that is not there cannot be reached, one that is there refuses.
func (h *simHost) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	to, err := netip.ParseAddrPort(address)
	if err != nil || network != "tcp" && network != "tcp4" && network != "tcp6" {
		return nil, &net.OpError{Op: "dial", Net: network, Err: &net.AddrError{Err: "not an IP address and port", Addr: address}}
	}
	var pid int
	var refusal error
	err = h.sled.world.View(ctx, func(tx *world.Tx) error {
		pid, refusal = listener(tx, to)
		return nil
	})
	if err == nil {
		err = refusal
	}
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: net.TCPAddrFromAddrPort(to), Err: err}
	}
	return h.sled.connect(pid, to), nil
}

// listener finds the process that a connection to an address reaches.
func listener(tx *world.Tx, to netip.AddrPort) (pid int, err error) {
	zone, ok := world.GlobalZone, to.Addr().IsLoopback() && !isUnderlay(to.Addr())
	if !ok {
		zone, ok = tx.AddressOwner(to.Addr())
	}
	if !ok {
		return 0, syscall.EHOSTUNREACH
	}
	for _, p := range tx.State.Processes {
		own, err := netip.ParseAddrPort(p.Listen)
		if err != nil || p.Zone != zone || own.Port() != to.Port() || p.Started.After(tx.Now) {
			continue
		}
		if own.Addr().WithZone("") == to.Addr().WithZone("") || own.Addr().IsUnspecified() {
			return p.PID, nil
		}
	}
	return 0, syscall.ECONNREFUSED
}

// connect makes a connection to a process. Its handler breaks it off when the
// process dies.
func (s *Sled) connect(pid int, to netip.AddrPort) net.Conn {
	client, server := net.Pipe()
	l := &oneConn{conn: server, ended: make(chan struct{})}
	srv := &http.Server{
		Handler:     propolis.Handler(s.world, pid),
		BaseContext: func(net.Listener) context.Context { return s.ctx },
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed || state == http.StateHijacked {
				_ = l.Close()
			}
		},
	}
	stop := context.AfterFunc(s.ctx, func() { _ = srv.Close() })
	s.left.Go(func() {
		defer stop()
		_ = srv.Serve(l)
	})
	return &dialed{Conn: client, remote: net.TCPAddrFromAddrPort(to)}
}

// oneConn is a listener that one connection comes to.
type oneConn struct {
	mu    sync.Mutex
	conn  net.Conn
	once  sync.Once
	ended chan struct{}
}

// Accept gives the connection, then waits for its end.
func (l *oneConn) Accept() (net.Conn, error) {
	l.mu.Lock()
	conn := l.conn
	l.conn = nil
	l.mu.Unlock()
	if conn != nil {
		return conn, nil
	}
	<-l.ended
	return nil, net.ErrClosed
}

func (l *oneConn) Close() error   { l.once.Do(func() { close(l.ended) }); return nil }
func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }

// dialed is the near end of a connection.
type dialed struct {
	net.Conn
	remote net.Addr
}

func (d *dialed) RemoteAddr() net.Addr { return d.remote }

// isUnderlay tells whether an address can be listened on by a stand-in server:
// on Linux all of 127.0.0.0/8 is there without being configured.
func isUnderlay(a netip.Addr) bool { return a.Is4() && a.As4()[0] == 127 && a.As4()[1] == 77 }
