package nicsync

import (
	"slices"
	"sync"
	"time"
)

// Touched is what something happened to: the NICs that may have to be told
// otherwise.
type Touched struct {
	// All says that it may be any: records may be changed again, or no longer.
	All  bool
	MACs []string
	IDs  []string // of VMs: also of NICs that nothing but a link says they have
	// Seen is when the last of it was noticed: the first of two looks at a VM that
	// is gone.
	Seen time.Time
	// marked are the VMs that another program was moving, and may have moved away by
	// the time that they are looked at.
	marked []VM
}

// add joins what happens until it is looked at.
func (t *Touched) add(more Touched) {
	t.All = t.All || more.All
	t.MACs, t.IDs = sortedSet(append(t.MACs, more.MACs...)), sortedSet(append(t.IDs, more.IDs...))
	t.marked = append(t.marked, more.marked...)
	if more.Seen.After(t.Seen) {
		t.Seen = more.Seen
	}
}

// vms adds VMs that something happened to.
func (t *Touched) vms(all ...VM) {
	for _, vm := range all {
		t.IDs = append(t.IDs, vm.IDs...)
		for _, n := range vm.NICs {
			t.MACs = append(t.MACs, n.MAC)
		}
		if vm.marked != "" {
			t.marked = append(t.marked, vm)
		}
	}
}

// named reports whether anything by name was touched.
func (t Touched) named() bool { return len(t.MACs) > 0 || len(t.IDs) > 0 }

// News keeps what was touched until somebody takes it: none of it is lost. Its
// zero value is ready.
type News struct {
	mu      sync.Mutex
	pending Touched
	once    sync.Once
	some    chan struct{}
}

// Some tells that there is news.
func (n *News) Some() <-chan struct{} {
	n.once.Do(func() { n.some = make(chan struct{}, 1) })
	return n.some
}

// Tell adds to it.
func (n *News) Tell(t Touched) {
	n.Some()
	n.mu.Lock()
	n.pending.add(t)
	n.mu.Unlock()
	select {
	case n.some <- struct{}{}:
	default:
	}
}

// Take is all that was told since it was taken last.
func (n *News) Take() Touched {
	n.mu.Lock()
	defer n.mu.Unlock()
	t := n.pending
	n.pending = Touched{}
	return t
}

// scope is which records a look is at; nil: all.
type scope struct{ macs, ids []string }

// with are the addresses of a scope, those of its VMs included.
func (s scope) with(local Local) []string {
	all := slices.Clone(s.macs)
	for _, id := range s.ids {
		if vm, here := local.vm(id); here {
			for _, n := range vm.NICs {
				all = append(all, n.MAC)
			}
		}
	}
	return sortedSet(all)
}
