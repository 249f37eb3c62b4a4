package nicsync

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/zone"
)

// Watched is what a sled is watched by: whatever happens to a VM, by any
// hand, shows in one of these. None costs more than one listing of the zones.
type Watched struct {
	Env   operation.Env
	Zones func(context.Context) ([]zone.Zone, error) // lists them
}

// beat is how often is looked whether anything happened. A kernel's zone leaves
// no file when it runs or stops, and events of the system may be lost
// (sysevent(3SYSEVENT)): so zones are listed.
const beat = time.Second

// Watch tells, until the context ends, that something happened that may change a
// verdict: a zone appeared, runs, stops or went, was configured again, an instance
// was recorded, or the lock file came or went. What happens while the last word was
// not taken is one with it. What cannot be seen has not happened yet.
func (s Settings) Watch(ctx context.Context, w Watched, happened chan<- struct{}) {
	g := watcher{Settings: s, Watched: w}
	g.look(ctx)
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if !g.look(ctx) {
			continue
		}
		select {
		case happened <- struct{}{}:
		default:
		}
	}
}

// watcher knows what was seen last.
type watcher struct {
	Settings
	Watched
	seen glimpse
	seq  uint64 // of the ledger, as far as it was read
}

// glimpse is as much of a sled as tells that it is another by now.
type glimpse struct {
	zones    string
	configs  string // their files: each write replaces one
	recorded [sha256.Size]byte
	lockFile string
}

// look says whether anything is not as it was. What cannot be seen is as it was.
func (w *watcher) look(ctx context.Context) (changed bool) {
	was := w.seen
	if zones, err := w.Zones(ctx); err == nil {
		var b strings.Builder
		for _, z := range zones {
			fmt.Fprintln(&b, z.Name, z.State, z.UUID)
		}
		w.seen.zones = b.String()
	}
	if files, err := w.Env.Host.Files().ReadDir(zone.Dir); err == nil {
		var b strings.Builder
		for _, f := range files {
			fmt.Fprintln(&b, f.Name, f.Inode, f.Size, f.Time.UnixNano())
		}
		w.seen.configs = b.String()
	}
	w.lookAtRecords(ctx)
	w.seen.lockFile = ""
	if err := w.LockFile.Check(w.Env.Host.Files()); err != nil {
		w.seen.lockFile = err.Error()
	}
	return w.seen != was
}

// lookAtRecords reads the instances, if anything was written to the ledger.
func (w *watcher) lookAtRecords(ctx context.Context) {
	if w.Recorded == nil {
		return
	}
	view, err := w.bookOf(w.Env)(ctx)
	if err != nil || view.Seq() == w.seq {
		return
	}
	if vms, err := w.Recorded(view); err == nil {
		all := sha256.New()
		for _, vm := range vms {
			fmt.Fprintf(all, "%+v\n", vm)
		}
		w.seq, w.seen.recorded = view.Seq(), [sha256.Size]byte(all.Sum(nil))
	}
}
