package host

import (
	"net"
	"sync"
)

// crashConn is a connection of a crashing host. Each request that changes
// something is a point. CrashAfter dies when the answer comes: then the server
// has acted.
type crashConn struct {
	net.Conn
	*crash

	mu       sync.Mutex
	requests httpStream
	fate     fate // of the requests so far
}

func newCrashConn(conn net.Conn, c *crash) *crashConn {
	cc := &crashConn{Conn: conn, crash: c}
	cc.requests = httpStream{began: cc.asked, ended: func() {}}
	c.onDeath(func() { conn.Close() })
	return cc
}

func (c *crashConn) asked(h httpHead) bool {
	if !h.safe() {
		if f := c.point(h.first); f != alive {
			c.fate = f
		}
	}
	return h.requestHasBody()
}

func (c *crashConn) Write(p []byte) (int, error) {
	if c.Crashed() {
		return 0, ErrCrashed
	}
	c.mu.Lock()
	c.requests.feed(p)
	fate := c.fate
	c.mu.Unlock()
	if fate == before {
		c.die(fate)
		return 0, ErrCrashed
	}
	n, err := c.Conn.Write(p)
	if fate == during {
		c.die(fate)
	}
	if c.Crashed() {
		return n, ErrCrashed
	}
	return n, err
}

func (c *crashConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	fate := c.fate
	c.mu.Unlock()
	c.die(fate)
	if c.Crashed() {
		return 0, ErrCrashed
	}
	return n, err
}
