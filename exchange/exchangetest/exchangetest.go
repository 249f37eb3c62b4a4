// Package exchangetest is for tests of who talks HTTP through package exchange:
// servers that nobody listens for.
package exchangetest

import (
	"net"
	"net/http"
	"sync"
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
