package commands_test

import (
	"context"
	"net"
	"sync"
	"syscall"

	"github.com/sledctl/sledctl/agent"
)

// lobby is where agents listen without a network, so that time need not be real.
type lobby struct {
	mu   sync.Mutex
	open *desk // nil: nobody listens
}

func (l *lobby) listen(context.Context, agent.Address) (net.Listener, error) {
	d := &desk{lobby: l, come: make(chan net.Conn), closed: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = d // an agent that is killed leaves its socket to the next one
	return d, nil
}

// dial comes to whoever listens now.
func (l *lobby) dial(ctx context.Context, _ string) (net.Conn, error) {
	l.mu.Lock()
	d := l.open
	l.mu.Unlock()
	if d == nil {
		return nil, syscall.ECONNREFUSED
	}
	ours, theirs := net.Pipe()
	select {
	case d.come <- theirs:
		return ours, nil
	case <-d.closed:
		return nil, syscall.ECONNREFUSED
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// desk is one agent's place in the lobby.
type desk struct {
	lobby  *lobby
	come   chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (d *desk) Accept() (net.Conn, error) {
	select {
	case conn := <-d.come:
		return conn, nil
	case <-d.closed:
		return nil, net.ErrClosed
	}
}

func (d *desk) Close() error {
	d.once.Do(func() { close(d.closed) })
	d.lobby.mu.Lock()
	defer d.lobby.mu.Unlock()
	if d.lobby.open == d {
		d.lobby.open = nil
	}
	return nil
}

func (d *desk) Addr() net.Addr { return &net.UnixAddr{Net: "unix", Name: "/agent.sock"} }
