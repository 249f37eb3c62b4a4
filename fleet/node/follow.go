package node

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// lastChange is when the VMs of the sled may have changed last. A look at them starts a dozen programs on the sled:
// as long as the agent reports each change, and reports none of a settled VM, they are looked at rarely.
type lastChange struct {
	mu      sync.Mutex
	follows bool // changes are reported
	last    time.Time
	settled time.Time            // of a VM that is settled
	by      map[string]time.Time // by Propolis id
}

// changes are how many VMs are remembered whose last changes were reported: those that start at once are fewer.
const changes = 4 * maxRuns

// note notes a change of a VM, or of any if it names none.
func (l *lastChange) note(propolis string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = time.Now()
	if len(l.by) >= changes {
		l.by, l.settled = nil, l.last // what is forgotten may be about one that settles now
	}
	if l.by == nil {
		l.by = map[string]time.Time{}
	}
	l.by[propolis] = l.last
}

// noteSettled notes that a settled VM may have changed.
func (l *lastChange) noteSettled() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settled = time.Now()
}

// reports notes that changes are reported from now on, or no longer.
func (l *lastChange) reports(is bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.follows, l.last, l.settled = is, now, now
}

// since reports whether any VM may have changed after a time.
func (l *lastChange) since(then time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.follows || !l.last.Before(then)
}

// ofSettled reports whether a settled VM may have changed after a time.
func (l *lastChange) ofSettled(then time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.follows || !l.settled.Before(then)
}

// of reports whether a VM may have changed after a time.
func (l *lastChange) of(propolis string, then time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.follows || !l.by[propolis].Before(then)
}

// change notes a change that the agent reports. It is noted before it is asked whether the VM is settled, and
// settle asks in the other order: one of the two has the VM looked at.
func (n *Node) change(propolis string) {
	n.lastChange.note(propolis)
	if n.settled.has(propolis) {
		n.lastChange.noteSettled()
	}
}

// settle has a pod be settled whose VM was looked at after a time, and says when to read the pod again.
func (n *Node) settle(pod *corev1.Pod, here Run, looked time.Time) time.Duration {
	again := n.settled.keep(pod, here)
	if n.lastChange.of(here.PropolisID, looked) {
		n.lastChange.noteSettled()
	}
	return again
}

// follow has the agent report changes until the context ends.
func (n *Node) follow(ctx context.Context) {
	for ctx.Err() == nil {
		err := n.Sled.Changes(ctx, func() { n.lastChange.reports(true) }, n.change)
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
	return time.Since(then) >= lookRarely || n.lastChange.ofSettled(then.Add(-changeLasts))
}

// Changes reads the events of the agent.
func (a *Agent) Changes(ctx context.Context, begun func(), changed func(propolis string)) error {
	reply, err := a.send(ctx, http.MethodGet, "/events", nil)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	begun()
	for lines := bufio.NewReader(reply.Body); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return fmt.Errorf("read the events of the agent: %w", err)
		}
		if data, is := strings.CutPrefix(line, "data:"); is {
			var vm struct {
				PropolisID string `json:"propolis_id"`
			}
			if err := json.Unmarshal([]byte(data), &vm); err != nil {
				return fmt.Errorf("read the events of the agent: %w", err)
			}
			changed(vm.PropolisID)
		}
	}
}

// Answers asks whether the agent answers.
func (a *Agent) Answers(ctx context.Context) error {
	return a.do(ctx, http.MethodGet, "/healthz", nil, nil)
}
