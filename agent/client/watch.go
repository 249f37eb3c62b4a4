package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/instance/watch"
)

// What lasts goes on where the agent is restarted. It is asked again until it
// answers, and what was told before is not told again.

// Await waits until all of the instances are in a state, one of instance.Goals, and
// gives them as they are then. An agent that goes away meanwhile is asked again
// until ctx ends, whose cause it returns.
func (c *Client) Await(ctx context.Context, refs []string, goal record.State) ([]api.Instance, error) {
	var all api.Instances
	query := url.Values{"for": {goal}, "instances": {strings.Join(refs, ",")}}
	err := c.persist(ctx, func(began func()) error {
		var health api.Health
		if err := c.do(ctx, http.MethodGet, "/healthz", nil, nil, "status", &health); err != nil {
			return err
		}
		began()
		return c.do(ctx, http.MethodGet, "/instances", query, nil, "items", &all)
	})
	return all.Items, err
}

// Watch tells the instances, of no names all, as they are, and each change, until
// ctx ends, whose cause it returns, tell fails, or the agent can tell no more. An
// agent that goes away is asked again, and what has changed meanwhile is told then.
func (c *Client) Watch(ctx context.Context, refs []string, tell func(api.Instance) error) error {
	w := &watched{tell: tell, last: map[string]api.Instance{}}
	query := url.Values{"instances": {strings.Join(refs, ",")}}
	return c.persist(ctx, func(began func()) error {
		if w.known && len(refs) > 0 { // other instances may have their names by now
			query = url.Values{"ids": {strings.Join(slices.Sorted(maps.Keys(w.last)), ",")}}
		}
		return c.events(ctx, "/instance-events", query, func() {
			began()
			w.here = map[string]bool{}
		}, w.take)
	})
}

// watched is what the agents have reported about instances.
type watched struct {
	tell  func(api.Instance) error
	last  map[string]api.Instance // by id, as they were reported last
	here  map[string]bool         // those that this agent has reported
	known bool                    // every existing instance was reported once
}

// hear takes an agent's report about one instance.
func (w *watched) hear(one api.Instance) error {
	w.here[one.ID] = true
	before, told := w.last[one.ID]
	w.last[one.ID] = one
	if told && before.State == one.State && before.Reason == one.Reason {
		return nil
	}
	return w.tell(one)
}

// whole notes that an agent has reported all existing instances: any other one
// was deleted while no agent was running.
func (w *watched) whole() error {
	w.known = true
	for _, id := range slices.Sorted(maps.Keys(w.last)) {
		if w.here[id] {
			continue
		}
		one := w.last[id]
		one.State, one.Reason = record.Absent, watch.ReasonDeleted
		one.PropolisID, one.Zone, one.VNICs = "", "", []api.VNIC{}
		if err := w.hear(one); err != nil {
			return err
		}
	}
	return nil
}

// take takes an event.
func (w *watched) take(event string, data []byte) error {
	if event == "whole" {
		return w.whole()
	}
	var one api.Instance
	if err := json.Unmarshal(data, &one); err != nil {
		return fmt.Errorf("an event of the agent's: %w", err)
	}
	return w.hear(one)
}

// Pauses between attempts to reach an agent that has gone away: twice as long each
// time.
const (
	firstPause   = 250 * time.Millisecond
	longestPause = 5 * time.Second
)

// persist asks, again where an agent that has begun to answer goes away, until ctx
// ends, whose cause it returns.
func (c *Client) persist(ctx context.Context, ask func(began func()) error) error {
	reached, away, pause := false, false, firstPause
	for {
		err := ask(func() { reached, away, pause = true, false, firstPause })
		switch {
		case ctx.Err() != nil && !reached:
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !reached || !gone(err):
			return err
		case !away && c.Unreachable != nil:
			c.Unreachable(fmt.Errorf("%w: it is asked again until it answers", err))
		}
		away = true
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		pause = min(2*pause, longestPause)
	}
}

// unreachableError is an agent that does not answer, or not to the end.
type unreachableError struct {
	what string
	err  error
}

func (e *unreachableError) Error() string { return e.what + ": " + e.err.Error() }
func (e *unreachableError) Unwrap() error { return e.err }

// gone says whether an agent has gone away, and may come back.
func gone(err error) bool {
	if _, away := errors.AsType[*unreachableError](err); !away {
		return false
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return true
	}
	for _, cut := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, cut) {
			return true
		}
	}
	return false
}
