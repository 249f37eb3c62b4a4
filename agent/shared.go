package agent

import (
	"context"
	"sync"
	"time"
)

// shared is one look for all clients: one that asks while it lasts, or soon after it
// ended, gets what it saw.
type shared[T any] struct {
	look  func(context.Context) (T, error)
	every time.Duration
	ctx   context.Context // of the agent: who asked first may leave, and others wait for it still
	group *sync.WaitGroup

	mu   sync.Mutex
	last *looked[T]
}

// looked is one look.
type looked[T any] struct {
	done  chan struct{}
	ended time.Time // set before done is closed
	seen  T
	err   error
}

// get is what the last look saw, or the next one if that was too long ago.
func (s *shared[T]) get(ctx context.Context) (T, error) {
	now := s.now()
	select {
	case <-now.done:
		return now.seen, now.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// now is a look that goes on, or is recent.
func (s *shared[T]) now() *looked[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != nil && !s.last.old(s.every) {
		return s.last
	}
	l := &looked[T]{done: make(chan struct{})}
	s.last = l
	s.group.Go(func() {
		defer close(l.done)
		l.seen, l.err = s.look(s.ctx)
		l.ended = time.Now()
	})
	return l
}

func (l *looked[T]) old(than time.Duration) bool {
	select {
	case <-l.done:
		return time.Since(l.ended) >= than
	default:
		return false
	}
}

// outdate makes the next request look again: something has changed. A request that waits already gets what is seen now.
func (s *shared[T]) outdate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = nil
}
