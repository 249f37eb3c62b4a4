package sledtest

import (
	"context"
	"net"
	"sync"
	"syscall"

	"github.com/sledctl/sledctl/agent"
)

// Lobby is where agents listen without a network, so that time need not be real.
type Lobby struct {
	mu   sync.Mutex
	open *desk // nil: nobody listens
}

func (l *Lobby) listen(context.Context, agent.Address) (net.Listener, error) {
	d := &desk{lobby: l, come: make(chan net.Conn), closed: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = d // an agent that is killed leaves its socket to the next one
	return d, nil
}

// Dial connects to the agent that listens now.
func (l *Lobby) Dial(ctx context.Context, _ string) (net.Conn, error) {
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

// Come is dial as clients of HTTP have it.
func (l *Lobby) Come(ctx context.Context, _, name string) (net.Conn, error) { return l.Dial(ctx, name) }

// Vanish closes all that an agent has open here, as the system does where its
// process is killed.
func (l *Lobby) Vanish() {
	l.mu.Lock()
	d := l.open
	l.mu.Unlock()
	if d == nil {
		return
	}
	_ = d.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range d.served {
		_ = conn.Close()
	}
}

// desk is one agent's place in the lobby.
type desk struct {
	lobby  *Lobby
	come   chan net.Conn
	served []net.Conn // the lobby's lock is its
	closed chan struct{}
	once   sync.Once
}

func (d *desk) Accept() (net.Conn, error) {
	select {
	case conn := <-d.come:
		d.lobby.mu.Lock()
		defer d.lobby.mu.Unlock()
		d.served = append(d.served, conn)
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
