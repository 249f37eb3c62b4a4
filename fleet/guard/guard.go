package guard

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/zone"
)

// Guard is the process.
type Guard struct {
	File string // that the node writes
	Host host.Host
	Now  func() int64 // the machine's monotonic clock
	Log  *slog.Logger
}

// lookEvery is how often the guard looks. It is part of how long halting takes.
const lookEvery = 200 * time.Millisecond

// Run halts what has to be halted until the context ends.
func (g *Guard) Run(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var last Lease // that could be read: a file that cannot be read saves no VM
	for {
		l, there, err := Read(g.File)
		switch {
		case err != nil:
			g.Log.Error("using the lease that was read before", "cause", err)
		case there:
			last = l
		}
		if last.Over(g.Now()) {
			if err := g.halt(ctx, last.VMs); err != nil && ctx.Err() == nil {
				g.Log.Error("could not halt every VM: trying again", "cause", err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// halt halts the zones of VMs that are up, side by side.
func (g *Guard) halt(ctx context.Context, vms []string) error {
	zones, err := zone.List(ctx, g.Host)
	incomplete := new(zone.IncompleteError)
	if err != nil && !errors.As(err, &incomplete) {
		return err
	}
	errs := make([]error, len(zones))
	var all sync.WaitGroup
	for i, z := range zones {
		if !up(z) || !slices.ContainsFunc(vms, func(id string) bool { return strings.HasSuffix(z.Name, "_"+id) }) {
			continue
		}
		all.Go(func() {
			if errs[i] = (zone.Halt{Name: z.Name}).Do(ctx, g.Host); errs[i] == nil {
				g.Log.Warn("halted: the lease of the sled is over", "zone", z.Name)
			}
		})
	}
	all.Wait()
	return errors.Join(append(errs, err)...)
}

// up reports whether a guest may run in a zone.
func up(z zone.Zone) bool {
	return !slices.Contains([]zone.State{zone.Configured, zone.Incomplete, zone.Installed}, z.State)
}
