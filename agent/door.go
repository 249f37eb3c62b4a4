package agent

import (
	"net/http"
	"sync"
)

// door is where requests come in: an agent has not ended before the last of them
// has, with what is taken back because of it.
type door struct {
	mu     sync.Mutex
	isShut bool
	inside sync.WaitGroup
}

// before has requests pass it on their way to a handler.
func (d *door) before(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !d.enter() {
			panic(http.ErrAbortHandler) // it is hung up on
		}
		defer d.inside.Done()
		h.ServeHTTP(w, r)
	})
}

func (d *door) enter() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.isShut {
		return false
	}
	d.inside.Add(1)
	return true
}

// shut lets nobody in any more, and returns when the last one has gone.
func (d *door) shut() {
	d.mu.Lock()
	d.isShut = true
	d.mu.Unlock()
	d.inside.Wait()
}
