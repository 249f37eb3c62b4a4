package host_test

import (
	"context"
	"io/fs"
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/hosttest"
)

// fake is a host of functions, with files in memory and one HTTP server.
type fake struct {
	files *hosttest.MemoryFiles
	run   func(ctx context.Context, c host.Command) (host.Result, error)
	serve http.Handler
	done  sync.WaitGroup // of the server's connections
}

func newFake() *fake {
	return &fake{
		files: hosttest.Memory(),
		run:   func(context.Context, host.Command) (host.Result, error) { return host.Result{}, nil },
	}
}

func (f *fake) Run(ctx context.Context, c host.Command) (host.Result, error) { return f.run(ctx, c) }
func (f *fake) Files() host.Files                                            { return f.files }

// Dial gives one end of a pipe, with the server at the other.
func (f *fake) Dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	l := &oneConn{conn: theirs, closed: make(chan struct{})}
	f.done.Go(func() {
		server := &http.Server{Handler: f.serve, ConnState: func(_ net.Conn, s http.ConnState) {
			if s == http.StateClosed || s == http.StateHijacked {
				l.once.Do(func() { close(l.closed) })
			}
		}}
		_ = server.Serve(l)
	})
	return ours, nil
}

// DeviceVersion is part of host.Host.
func (*fake) DeviceVersion(context.Context, host.Device) (int, error) { return 0, fs.ErrNotExist }

// oneConn is a listener for one connection.
type oneConn struct {
	conn   net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *oneConn) Accept() (net.Conn, error) {
	if c := l.conn; c != nil {
		l.conn = nil
		return c, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}
func (l *oneConn) Close() error   { return nil }
func (l *oneConn) Addr() net.Addr { return &net.UnixAddr{Name: "fake"} }

// client speaks HTTP over the host's connections.
func client(t *testing.T, h host.Host) *http.Client {
	transport := &http.Transport{DialContext: h.Dial}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}
