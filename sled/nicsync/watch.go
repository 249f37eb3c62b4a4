package nicsync

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/vnic"
	"github.com/sledctl/sledctl/zone"
)

// Watched is what a sled is watched by: whatever happens to a VM, by any
// hand, shows in one of these. As long as nothing happens, none costs more than one
// listing of the zones.
type Watched struct {
	Env   operation.Env
	Zones func(context.Context) ([]zone.Zone, error) // lists them
}

// beat is how often is looked whether anything happened. A kernel's zone leaves
// no file when it runs or stops, and events of the system may be lost
// (sysevent(3SYSEVENT)): so zones are listed.
const beat = time.Second

// Watch tells, until the context ends, what something happened to that may change a
// verdict: a zone appeared, runs, stops or went, was configured again, an instance
// was recorded, or the lock file came or went. What cannot be seen has not happened
// yet.
func (s Settings) Watch(ctx context.Context, w Watched, news *News) {
	g := watcher{Settings: s, Watched: w, configs: map[string]kept{}}
	g.look(ctx)
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if touched, some := g.look(ctx); some {
			touched.Seen = time.Now()
			news.Tell(touched)
		}
	}
}

// watcher knows what was seen last.
type watcher struct {
	Settings
	Watched
	zones    []zone.Zone
	listed   string          // the zones, to compare
	configs  map[string]kept // by zone
	recorded []VM
	links    []vnic.Link
	seq      uint64 // of the ledger, as far as it was read
	lockFile string
	seen     map[string]VM // the VMs, by all that is known of each
}

// kept is a configuration, as long as its file is the same: each write replaces it.
type kept struct {
	file   string
	config zone.Config
}

// look says what is not as it was. What cannot be seen is as it was.
func (w *watcher) look(ctx context.Context) (t Touched, some bool) {
	listed := w.lookAtZones(ctx)
	rewritten := w.lookAtConfigs()
	recorded := w.lookAtRecords(ctx)
	lockFile := ""
	if err := w.LockFile.Check(w.Env.Host.Files()); err != nil {
		lockFile = err.Error()
	}
	t.All = lockFile != w.lockFile
	w.lockFile = lockFile
	if listed || len(rewritten) > 0 || recorded || w.seen == nil {
		some = w.compare(ctx, &t, rewritten)
	}
	return t, some || t.All
}

// compare says which VMs are not as they were: only these are asked about.
func (w *watcher) compare(ctx context.Context, t *Touched, rewritten []string) (some bool) {
	// Links are listed only now: one that is made or removed by itself is no event.
	h := host.ReadOnly(w.Env.Host)
	if links, err := linksOf(ctx, h, inventory.Look(ctx, h, inventory.Want{Parts: []inventory.Part{inventory.Links}})); err == nil {
		w.links = links
	}
	configs := make(map[string]zone.Config, len(w.configs))
	for name, k := range w.configs {
		configs[name] = k.config
	}
	local := here(w.Names, w.zones, configs, w.links, w.recorded)
	now := make(map[string]VM, len(local.VMs)+len(w.recorded))
	for _, vm := range slices.Concat(local.VMs, w.recorded) { // those that departed are not here
		now[fmt.Sprintf("%+v", vm)] = vm
	}
	for is, vm := range now {
		if _, was := w.seen[is]; !was || slices.ContainsFunc(vm.zones, func(z string) bool { return slices.Contains(rewritten, z) }) {
			t.vms(vm)
			some = true
		}
	}
	for was, vm := range w.seen {
		if _, is := now[was]; !is {
			t.vms(vm)
			some = true
		}
	}
	w.seen = now
	return some
}

func (w *watcher) lookAtZones(ctx context.Context) (changed bool) {
	zones, err := w.Zones(ctx)
	if err != nil {
		return false
	}
	var b strings.Builder
	for _, z := range zones {
		fmt.Fprintln(&b, z.Name, z.State, z.UUID)
	}
	was := w.listed
	w.zones, w.listed = zones, b.String()
	return w.listed != was
}

// lookAtConfigs reads those that were written again, and returns their zones, and
// those whose configuration is gone.
func (w *watcher) lookAtConfigs() (rewritten []string) {
	files, err := w.Env.Host.Files().ReadDir(zone.Dir)
	if err != nil {
		return nil
	}
	there := make(map[string]bool, len(files))
	for _, f := range files {
		name, is := strings.CutSuffix(f.Name, suffix)
		if !is {
			continue
		}
		there[name] = true
		file := fmt.Sprintln(f.Inode, f.Size, f.Time.UnixNano())
		if w.configs[name].file == file {
			continue
		}
		// What cannot be read as a configuration is as it was, until it is written again.
		c, err := config(w.Env.Host.Files(), f.Name)
		if err != nil {
			c = w.configs[name].config
		}
		w.configs[name] = kept{file, c}
		rewritten = append(rewritten, name)
	}
	for name := range w.configs {
		if !there[name] {
			delete(w.configs, name)
			rewritten = append(rewritten, name)
		}
	}
	return rewritten
}

// lookAtRecords reads the instances, if anything was written to the ledger.
func (w *watcher) lookAtRecords(ctx context.Context) (read bool) {
	if w.Recorded == nil {
		return false
	}
	view, err := w.bookOf(w.Env)(ctx)
	if err != nil || view.Seq() == w.seq {
		return false
	}
	vms, err := w.Recorded(view)
	if err != nil {
		return false
	}
	w.seq, w.recorded = view.Seq(), vms
	return true
}
