package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// watcher looks at all sleds, again and again, for two copies of a VM.
type watcher struct {
	mu    sync.Mutex
	two   string
	looks int
	done  context.CancelFunc
	over  sync.WaitGroup
}

func (w *watcher) found() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.two
}

func (w *watcher) stop() int {
	w.done()
	w.over.Wait()
	return w.looks
}

// watch looks every 20 ms. The sleds are looked at one after the other, so that two copies are two only
// if what was seen first is seen again after the second.
func (f *Fleet) watch(vms ...string) *watcher {
	ctx, done := context.WithCancel(context.Background())
	w := &watcher{done: done}
	f.t.Cleanup(func() { w.stop() })
	w.over.Go(func() {
		for ctx.Err() == nil {
			first := f.everywhere(ctx)
			if slices.ContainsFunc(vms, func(vm string) bool { return len(first[vm]) > 1 }) {
				w.compare(first, f.everywhere(ctx), vms)
			}
			w.looks++
			time.Sleep(20 * time.Millisecond)
		}
	})
	return w
}

// compare notes a VM that was on two sleds at both looks.
func (w *watcher) compare(first, again map[string][]string, vms []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, vm := range vms {
		both := slices.DeleteFunc(again[vm], func(sled string) bool { return !slices.Contains(first[vm], sled) })
		if len(both) > 1 && w.two == "" {
			w.two = fmt.Sprintf("%s runs on %v", vm, both)
		}
	}
}

// everywhere are the sleds on which each VM runs and can write, by its name. One without a volume in a
// Crucible can wherever it runs.
func (f *Fleet) everywhere(ctx context.Context) map[string][]string {
	on := map[string][]string{}
	for name, s := range f.sleds {
		runs, err := s.Writes(ctx)
		if err != nil {
			continue
		}
		for _, run := range runs {
			vm, _, _ := strings.Cut(run, ".")
			on[vm] = append(on[vm], name)
		}
	}
	return on
}
