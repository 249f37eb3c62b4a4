package agent

import (
	"context"
	"net/http"
	"slices"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/agent/api"
)

// lane holds the requests of one VM.
type lane struct {
	turn    chan struct{} // held by the request that has its turn
	waiting int           // requests that have their turn or wait for it
	job     *job          // the last that was begun; nil: nothing is being done
}

// job is one thing that is done to a VM, behind those that were begun before.
type job struct {
	kind    kind
	cancel  context.CancelFunc
	done    chan struct{}
	earlier *job // nil: there is none, or it is done
}

// kind is what a job is for.
type kind int

// maxWaiting is how many requests may wait for one VM, as omicron's sled agent
// has it (QUEUE_SIZE of sled-agent/src/instance.rs).
const maxWaiting = 32

// enter waits for a request's turn with a VM. A full queue is 503.
func (w *work) enter(ctx context.Context, vm uuid.UUID, urgent bool) (leave func(), refused *api.Error) {
	w.mu.Lock()
	l := w.lane(vm)
	if l.waiting >= maxWaiting && !urgent {
		w.mu.Unlock()
		return nil, api.StatusOnly(http.StatusServiceUnavailable, api.CodeChannelFull, nil)
	}
	l.waiting++
	w.mu.Unlock()
	gone := func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		l.waiting--
		w.forget(vm, l)
	}
	select {
	case l.turn <- struct{}{}:
		return func() { <-l.turn; gone() }, nil
	case <-ctx.Done():
		gone()
		return nil, answer(context.Cause(ctx))
	}
}

// lane gives the lane of a VM. The lock is held.
func (w *work) lane(vm uuid.UUID) *lane {
	l := w.lanes[vm]
	if l == nil {
		l = &lane{turn: make(chan struct{}, 1)}
		w.lanes[vm] = l
	}
	return l
}

// forget drops a lane that nobody uses. The lock is held.
func (w *work) forget(vm uuid.UUID, l *lane) {
	if l.waiting == 0 && l.job == nil {
		delete(w.lanes, vm)
	}
}

// begin does something to a VM, once what is being done to it has ended.
func (w *work) begin(vm uuid.UUID, k kind, do func(context.Context)) *job {
	ctx, cancel := context.WithCancel(w.ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.lane(vm)
	earlier := l.job
	j := &job{kind: k, cancel: cancel, done: make(chan struct{}), earlier: earlier}
	l.job = j
	w.group.Go(func() {
		defer cancel()
		if earlier != nil {
			<-earlier.done
		}
		if ctx.Err() == nil {
			do(ctx)
		}
		w.over(vm, l, j)
	})
	return j
}

// over ends a job.
func (w *work) over(vm uuid.UUID, l *lane, j *job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	j.earlier = nil
	if l.job == j {
		l.job = nil
	}
	close(j.done)
	w.forget(vm, l)
}

// interrupt ends what is being done to a VM, of these kinds, and waits for it.
func (w *work) interrupt(ctx context.Context, vm uuid.UUID, kinds ...kind) error {
	for _, j := range w.jobs(vm) {
		if !slices.Contains(kinds, j.kind) {
			continue
		}
		j.cancel()
		select {
		case <-j.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// jobs is what is being done to a VM, in the order in which it was begun.
func (w *work) jobs(vm uuid.UUID) []*job {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []*job
	if l := w.lanes[vm]; l != nil {
		for j := l.job; j != nil; j = j.earlier {
			all = append(all, j)
		}
	}
	slices.Reverse(all)
	return all
}

// busy says whether something is being done to a VM.
func (w *work) busy(vm uuid.UUID) bool { return len(w.jobs(vm)) > 0 }

const (
	rising kind = iota // there is no sense in it once an end is decided
	ending             // it does what was decided
)
