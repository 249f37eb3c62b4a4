package sledtest

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/sledctl/sledctl/host"
)

// Moment is when at a command something happens.
type Moment string

const (
	Ahead  Moment = "before"
	Amid   Moment = "while"
	Behind Moment = "after"
)

// Stopping is a host at whose n-th command something happens.
type Stopping struct {
	host.Host
	At   int // 0: never, to count them
	When Moment
	Do   func()

	mu    sync.Mutex
	Count int
	What  string
}

func (s *Stopping) Run(ctx context.Context, c host.Command) (r host.Result, err error) {
	s.mu.Lock()
	s.Count++
	hit := s.Count == s.At
	if hit {
		s.What = strings.Join(append([]string{c.Program}, c.Args...), " ")
	}
	s.mu.Unlock()
	if !hit {
		return s.Host.Run(ctx, c)
	}
	switch s.When {
	case Ahead:
		s.Do()
		r, err = s.Host.Run(ctx, c)
	case Behind:
		r, err = s.Host.Run(ctx, c)
		s.Do()
	case Amid:
		ended := make(chan struct{})
		go func() { r, err = s.Host.Run(ctx, c); close(ended) }()
		time.Sleep(time.Nanosecond) // of the bubble: it runs, where it takes any time
		s.Do()
		<-ended
	}
	return r, err
}
