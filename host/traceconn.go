package host

import (
	"net"
	"sync"
	"time"
)

// tracedConn reports the HTTP requests that pass over a connection: from the
// first byte of the request (for the first one: from dialling) to the last
// byte of its answer.
type tracedConn struct {
	net.Conn
	trace *traced

	mu        sync.Mutex
	requests  httpStream
	responses httpStream
	pending   []Event // asked, not answered
	methods   []string
	dialled   time.Time // zero after the first request
	began     time.Time // of the request that is being written
}

func newTracedConn(conn net.Conn, t *traced, dialled time.Time) *tracedConn {
	c := &tracedConn{Conn: conn, trace: t, dialled: dialled}
	c.requests = httpStream{began: c.asked, ended: func() { c.began = time.Time{} }}
	c.responses = httpStream{began: c.answering, ended: func() { c.answered("") }}
	return c
}

func (c *tracedConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	if c.began.IsZero() {
		c.began = time.Now()
		if !c.dialled.IsZero() {
			c.began, c.dialled = c.dialled, time.Time{}
		}
	}
	c.requests.feed(p) // before it is written: the answer may come at once
	c.mu.Unlock()
	return c.Conn.Write(p)
}

func (c *tracedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.responses.feed(p[:n])
	if err != nil && c.responses.state == untilClose {
		c.answered("")
	}
	return n, err
}

func (c *tracedConn) Close() error {
	err := c.Conn.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.pending) > 0 {
		c.answered("closed before the end of the answer")
	}
	return err
}

func (c *tracedConn) asked(h httpHead) bool {
	method, target := h.request()
	line := Line{Kind: LineRequest, Text: method + " " + target}
	if h.safe() {
		line.Kind = LineQuery
	}
	c.pending = append(c.pending, Event{Action: c.trace.action, Line: line, Start: c.began})
	c.methods = append(c.methods, method)
	return h.requestHasBody()
}

// answering notes the status; an interim answer (1xx) is not the answer.
func (c *tracedConn) answering(h httpHead) bool {
	status := h.status()
	if len(c.pending) == 0 {
		return true
	}
	c.pending[0].Status = status
	switch {
	case status/100 == 1, status == 204, status == 304, c.methods[0] == "HEAD":
		return false
	}
	return true
}

func (c *tracedConn) answered(problem string) {
	const switching = 101
	if len(c.pending) == 0 {
		return
	}
	e := c.pending[0]
	switch {
	case problem == "" && e.Status == switching:
		c.requests.state, c.responses.state = opaque, opaque
	case problem == "" && e.Status/100 == 1:
		return
	}
	c.pending, c.methods = c.pending[1:], c.methods[1:]
	e.End, e.Error = time.Now(), problem
	c.trace.tell(e)
}
