// Package peers makes the servers that a sled talks to misbehave: its Propolis servers,
// NAPI, the control plane, the agent. It is a host in front of the real ones: it takes
// each request and answers it in some way instead, and asks the real server only where
// a part of its answer is passed on.
package peers

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/sledctl/sledctl/host"
)

// Peer is somebody whom sledctl talks to.
type Peer string

// The peers.
const (
	Propolis Peer = "Propolis"
	NAPI     Peer = "NAPI"
	Nexus    Peer = "Nexus"
	Agent    Peer = "agent"
)

// Dial opens a connection.
type Dial = func(ctx context.Context, network, address string) (net.Conn, error)

// Host is a host one of whose peers misbehaves. Its time is the test's bubble's.
type Host struct {
	host.Host
	Way Way
	// Is says whether the peer is at an address; others answer as they do.
	Is func(address string) bool
	// Ours are the ids that Another replaces where the peer has the data of another VM or sled.
	Ours []string
	// Limit is how much may be read of one answer, in bytes. Behind it, the connection is
	// closed, and Fault says so.
	Limit int
	// From is the first request, from 0, that is answered so.
	From int

	mu    sync.Mutex
	fault error
	asked int
	cured bool
}

// Asked is how often the peer was asked.
func (h *Host) Asked() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.asked
}

// Fault is what was done that must not be.
func (h *Host) Fault() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.fault
}

func (h *Host) wrong(err error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fault = errors.Join(h.fault, err)
	return err
}

// Cure has the peer answer as it does.
func (h *Host) Cure() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cured = true
}

// next counts a request, and says whether it is answered well.
func (h *Host) next() (well bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked++
	return h.cured || h.asked <= h.From
}

// Dial is part of host.Host.
func (h *Host) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return h.Misdial(h.Host.Dial)(ctx, network, address)
}

// Misdial is a way to the peer that leads to what answers in its place.
func (h *Host) Misdial(dial Dial) Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		switch {
		case address == Elsewhere:
			return nil, h.wrong(errors.New("it was sent elsewhere, and went"))
		case !h.Is(address) || h.next():
			return dial(ctx, network, address)
		}
		ours, theirs := net.Pipe()
		l := &line{host: h, conn: theirs, gone: make(chan struct{})}
		l.to = &bounded{l, h.Limit}
		l.dial = func(ctx context.Context) (net.Conn, error) { return dial(ctx, network, address) }
		go l.serve()
		return ours, nil
	}
}

// line is a connection to the peer.
type line struct {
	host    *Host
	conn    net.Conn
	to      io.Writer
	dial    func(context.Context) (net.Conn, error)
	request *http.Request
	gone    chan struct{} // closed when who asked has hung up
}

// serve takes a request, and answers it.
func (l *line) serve() {
	defer l.conn.Close()
	in := bufio.NewReader(l.conn)
	r, err := http.ReadRequest(in)
	if err != nil {
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	l.request = r
	go func() {
		_, _ = io.Copy(io.Discard, in)
		close(l.gone)
	}()
	_ = l.host.Way.answer(l)
}

// hang says nothing until who asked has hung up.
func (l *line) hang() error {
	<-l.gone
	return net.ErrClosed
}

// pause waits for a second; false if who asked has hung up.
func (l *line) pause() bool {
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.gone:
		return false
	}
}

// real is what the peer itself answers, its head and its body.
func (l *line) real() ([]byte, []byte, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-l.gone:
			cancel()
		case <-ctx.Done():
		}
	}()
	conn, err := l.dial(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if l.request.Header.Get("Upgrade") == "" {
		l.request.Close = true
	}
	if err := l.request.Write(conn); err != nil {
		return nil, nil, err
	}
	reply, err := http.ReadResponse(bufio.NewReader(conn), l.request)
	if err != nil {
		return nil, nil, err
	}
	defer reply.Body.Close()
	if reply.StatusCode == http.StatusSwitchingProtocols {
		return head(reply, 0), nil, nil
	}
	body, err := io.ReadAll(reply.Body)
	return head(reply, len(body)), body, err
}

// bounded is a line of which only so much may be taken.
type bounded struct {
	*line
	left int
}

// Write is part of io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, b.host.wrong(errors.New("more was taken of an answer than any can be"))
	}
	return b.conn.Write(p)
}
