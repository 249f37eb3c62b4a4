package node

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// lastChange is when the VMs of the sled may have changed last. A look at them starts a dozen programs on the sled:
// as long as the agent reports each change, and reports none, they are looked at rarely.
type lastChange struct {
	mu      sync.Mutex
	follows bool // changes are reported
	last    time.Time
}

// note notes a change.
func (s *lastChange) note() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = time.Now()
}

// reports notes that changes are reported from now on, or no longer.
func (s *lastChange) reports(is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.follows, s.last = is, time.Now()
}

// since reports whether the VMs may have changed after a time.
func (s *lastChange) since(then time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.follows || !s.last.Before(then)
}

// follow has the agent report changes until the context ends.
func (n *Node) follow(ctx context.Context) {
	for ctx.Err() == nil {
		err := n.Sled.Changes(ctx, func() { n.lastChange.reports(true) }, n.lastChange.note)
		n.lastChange.reports(false)
		n.Log.Debug("the agent reports no changes: the VMs are looked at instead", "cause", err)
		select {
		case <-ctx.Done():
		case <-time.After(pollEvery):
		}
	}
}

// What a look at the VMs waits for, as long as the agent reports changes.
const (
	lookRarely  = 30 * time.Second
	changeLasts = 2 * time.Second // after a change: the next one may follow from it
)

// looks reports whether the VMs are to be looked at that were looked at then.
func (n *Node) looks(then time.Time) bool {
	return time.Since(then) >= lookRarely || n.lastChange.since(then.Add(-changeLasts))
}

// Changes reads the events of the agent.
func (a *Agent) Changes(ctx context.Context, begun, changed func()) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.base+"/events", nil)
	if err != nil {
		return err
	}
	reply, err := a.http.Do(r)
	if err != nil {
		return fmt.Errorf("ask the agent: %w", err)
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return &answerError{status: reply.StatusCode, message: "no events"}
	}
	begun()
	for lines := bufio.NewReader(reply.Body); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return fmt.Errorf("read the events of the agent: %w", err)
		}
		if strings.HasPrefix(line, "data:") {
			changed()
		}
	}
}

// Answers asks whether the agent answers.
func (a *Agent) Answers(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.base+"/healthz", nil)
	if err != nil {
		return err
	}
	reply, err := a.http.Do(r)
	if err != nil {
		return fmt.Errorf("ask the agent: %w", err)
	}
	defer reply.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(reply.Body, maxAnswer)) // so that the connection is used again
	if reply.StatusCode != http.StatusOK {
		return &answerError{status: reply.StatusCode, message: "it is not well"}
	}
	return nil
}
