// Package reconciler keeps a sled's disks and datasets as its control plane wants them.
package reconciler

import (
	"context"
	"sync"
	"time"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/sled/storage"
)

// Settings are those of one sled.
type Settings struct {
	// Assign keeps what is wanted, by the rules of storage.Assign.
	Assign func(context.Context, storage.Assignment) error
	// Apply makes it so as far as can be, and says what became so; false: nothing is wanted.
	Apply func(context.Context) (a storage.Assignment, there bool, is storage.Applied, err error)
	Warn  func(error)
}

// again is when what could not be made so is tried again.
const again = time.Minute

// Reconciler applies what is wanted: when it begins, when something else is wanted, and again
// as long as something is not so.
type Reconciler struct {
	Settings
	changed chan struct{}

	mu        sync.Mutex
	started   time.Time
	completed time.Time // zero: it never was
	took      time.Duration
	last      *api.Reconciliation
}

// New is one that has not begun.
func New(s Settings) *Reconciler { return &Reconciler{Settings: s, changed: make(chan struct{}, 1)} }

// Put keeps what is wanted, and has it applied. It does not wait for that.
func (r *Reconciler) Put(ctx context.Context, c api.SledConfig) error {
	a, err := c.Assignment()
	if err == nil {
		err = r.Assign(ctx, a)
	}
	if err != nil {
		return err
	}
	select {
	case r.changed <- struct{}{}:
	default: // it will be applied in any case
	}
	return nil
}

// Run applies until ctx ends.
func (r *Reconciler) Run(ctx context.Context) {
	for {
		pause := (<-chan time.Time)(nil)
		if !r.once(ctx) {
			pause = time.After(again)
		}
		select {
		case <-r.changed:
		case <-pause:
		case <-ctx.Done():
			return
		}
	}
}

// once applies, and says whether all is as it is wanted.
func (r *Reconciler) once(ctx context.Context) bool {
	began := time.Now()
	r.mu.Lock()
	r.started = began
	r.mu.Unlock()
	a, there, is, err := r.Apply(ctx)
	var done *api.Reconciliation
	if err == nil && there {
		done, err = api.Reconciled(a, is)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.started = time.Time{}
	if err != nil {
		if ctx.Err() == nil {
			r.Warn(err)
		}
		return false
	}
	if !there {
		return true
	}
	r.last, r.completed, r.took = done, time.Now(), time.Since(began)
	for _, all := range []map[string]api.ReconciledResult{done.Disks, done.Datasets} {
		for _, result := range all {
			if result.Result != "ok" {
				return false
			}
		}
	}
	return true
}

// Report writes how far it is, with the configuration that is wanted now.
func (r *Reconciler) Report(i *api.Inventory, wanted *api.SledConfig) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i.Config, i.Reconciled = wanted, r.last
	switch {
	case wanted != nil && !r.started.IsZero():
		started := r.started.UTC()
		i.Reconciler = api.InventoryReconciler{Status: "running", Config: wanted, Started: &started, Running: spanOf(time.Since(r.started))}
	case r.last != nil:
		completed := r.completed.UTC()
		i.Reconciler = api.InventoryReconciler{Status: "idle", Completed: &completed, Ran: spanOf(r.took)}
	}
}

func spanOf(d time.Duration) *api.InventoryTime {
	return &api.InventoryTime{Seconds: uint64(d / time.Second), Nanoseconds: uint32(d % time.Second)}
}
