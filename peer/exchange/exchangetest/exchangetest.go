// Package exchangetest is for tests of who talks HTTP through package exchange:
// servers that nobody listens for.
package exchangetest

import (
	"context"
	"net"
	"net/http"
	"sync"

	"github.com/sledctl/sledctl/host"
)

// Connect gives a connection, at whose other end a handler answers. Nothing of it
// is left when either end has closed it.
func Connect(serve http.Handler) net.Conn {
	ours, theirs := net.Pipe()
	l := &oneConn{conn: theirs, closed: make(chan struct{})}
	server := &http.Server{Handler: serve, ConnState: func(_ net.Conn, s http.ConnState) {
		if s == http.StateClosed || s == http.StateHijacked {
			l.Close()
		}
	}}
	go func() { _ = server.Serve(l) }()
	return ours
}

// Line is a host with one server and nothing else, whatever is dialled.
type Line struct {
	host.Host
	Serve http.Handler
	// Refuse, if set, is asked before each connection: its error is dialling's.
	Refuse func() error
}

// Dial is part of host.Host.
func (l Line) Dial(context.Context, string, string) (net.Conn, error) {
	if l.Refuse != nil {
		if err := l.Refuse(); err != nil {
			return nil, err
		}
	}
	return Connect(l.Serve), nil
}

// oneConn is a listener for one connection.
type oneConn struct {
	conn   net.Conn
	closed chan struct{}
	once   sync.Once
}

// Accept is part of net.Listener.
func (l *oneConn) Accept() (net.Conn, error) {
	if c := l.conn; c != nil {
		l.conn = nil
		return c, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

// Close is part of net.Listener.
func (l *oneConn) Close() error { l.once.Do(func() { close(l.closed) }); return nil }

// Addr is part of net.Listener.
func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }
