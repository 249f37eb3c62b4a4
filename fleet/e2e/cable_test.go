package e2e

import (
	"context"
	"errors"
	"net"
	"sync"
)

// cable is between a sled and the API server.
type cable struct {
	mu   sync.Mutex
	cut  bool
	held chan struct{} // while nothing flows; closed when it does again
	open map[net.Conn]bool
}

// plugged is a connection through a cable.
type plugged struct {
	net.Conn
	cable *cable
}

// Dial connects, unless the cable is cut.
func (c *cable) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	c.flows()
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && c.cut {
		return nil, errors.Join(errors.New("the cable is cut"), conn.Close())
	}
	if err != nil {
		return nil, err
	}
	if c.open == nil {
		c.open = map[net.Conn]bool{}
	}
	p := &plugged{conn, c}
	c.open[p] = true
	return p, nil
}

// flows waits while nothing does.
func (c *cable) flows() {
	c.mu.Lock()
	held := c.held
	c.mu.Unlock()
	if held != nil {
		<-held
	}
}

// Stall holds up what is sent and received, until Flow.
func (c *cable) Stall() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held == nil {
		c.held = make(chan struct{})
	}
}

// Flow lets through what was held up.
func (c *cable) Flow() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held != nil {
		close(c.held)
		c.held = nil
	}
}

// Read is part of net.Conn.
func (p *plugged) Read(data []byte) (int, error) {
	n, err := p.Conn.Read(data)
	p.cable.flows()
	return n, err
}

// Write is part of net.Conn.
func (p *plugged) Write(data []byte) (int, error) {
	p.cable.flows()
	return p.Conn.Write(data)
}

// Close is part of net.Conn.
func (p *plugged) Close() error {
	p.cable.mu.Lock()
	defer p.cable.mu.Unlock()
	delete(p.cable.open, p)
	return p.Conn.Close()
}

// Cut breaks off what is connected, and lets nothing through until Join.
func (c *cable) Cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = true
	for conn := range c.open {
		_ = conn.(*plugged).Conn.Close() // it may be closed
	}
}

// Join lets a sled connect again.
func (c *cable) Join() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = false
}
