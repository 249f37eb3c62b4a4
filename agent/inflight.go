package agent

import (
	"net/http"
	"sync"
)

// inflight counts the requests that are being answered: an agent ends after the
// last of them, and after what is undone because of it.
type inflight struct {
	mu     sync.Mutex
	isShut bool
	inside sync.WaitGroup
}

// before counts requests on their way to a handler.
func (d *inflight) before(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !d.enter() {
			panic(http.ErrAbortHandler) // it closes the connection
		}
		defer d.inside.Done()
		h.ServeHTTP(w, r)
	})
}

func (d *inflight) enter() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.isShut {
		return false
	}
	d.inside.Add(1)
	return true
}

// drain refuses new requests, and returns when the last one has ended.
func (d *inflight) drain() {
	d.mu.Lock()
	d.isShut = true
	d.mu.Unlock()
	d.inside.Wait()
}
