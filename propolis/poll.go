package propolis

import (
	"context"
	"encoding/json"
	"net/http"
	"net/netip"

	"github.com/sledctl/sledctl/peer/dropshot"
	"github.com/sledctl/sledctl/propolis/spec"
)

// Poll is what Monitor waits for, under way: for callers that wait for the states of
// 10,000 VMs, each with its own goroutine. What lies on a stack while it waits, and
// what has lain there, is most of what a VM costs.
type Poll struct {
	dropshot.Pending
	generation uint64
	address    netip.AddrPort
	version    spec.Version
}

// Poll is the first part of Monitor: it asks. Polled must follow; a caller that
// calls the Poll's Await first waits there, and not in Polled.
func (c Client) Poll(ctx context.Context, generation uint64) (*Poll, error) {
	target, err := c.Target.at(ctx, c.Host)
	if err != nil {
		return nil, err
	}
	return c.poll(ctx, target, target.Versions.first(target.Address, spec.Oldest), generation)
}

// poll asks in one version.
func (c Client) poll(ctx context.Context, target Target, v spec.Version, generation uint64) (*Poll, error) {
	body, err := json.Marshal(map[string]uint64{"gen": generation})
	if err != nil {
		return nil, err
	}
	p := &Poll{generation: generation, address: target.Address, version: v}
	p.Pending, err = dropshot.Begin(ctx, c.Host, target.request(v, http.MethodGet, pathMonitor, body))
	return p, c.failed(ctx, target, http.MethodGet, err)
}

// Polled is the last part of Monitor.
func (c Client) Polled(ctx context.Context, p *Poll) (Status, error) {
	target := c.Target
	target.Address = p.address
	for {
		data, err := p.Body(ctx)
		if err == nil {
			target.Versions.took(target.Address, p.version)
			s, err := decodeStatus(data, p.generation)
			return s, c.replyError(http.MethodGet, pathMonitor, err)
		}
		err = c.failed(ctx, target, http.MethodGet, err)
		if p.version > spec.Oldest && tooNew(err) {
			p, err = c.poll(ctx, target, p.version-1, p.generation)
		}
		if err != nil {
			return Status{}, err
		}
	}
}
