// Package bootstrap prepares the sled. It is an order, and nothing else:
// storage, and on it the ledger; memory; network; reap; base zones.
package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/sledctl/sledctl/base"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/ledger"
	"github.com/sledctl/sledctl/memory"
	"github.com/sledctl/sledctl/network"
	"github.com/sledctl/sledctl/operation"
	"github.com/sledctl/sledctl/reap"
	"github.com/sledctl/sledctl/storage"
)

// Settings are those of the nouns.
type Settings struct {
	Memory  memory.Settings
	Network network.Settings
	Reap    reap.Settings
	Base    base.Settings
	// CreateLedger makes the state file where there is none; Env.Ledger finds
	// it from then on.
	CreateLedger func(context.Context) error
	// SettleLedger makes the copies of one that is there lie where they belong,
	// and says what it did; in a dry run, what it would do. May be nil.
	SettleLedger func(ctx context.Context, dryRun bool) (did string, err error)
	// Pools lists the pools that zones may be put on, once storage is ready.
	Pools func(context.Context) ([]string, error)
	// Begin is told of each part before it starts; may be nil.
	Begin func(part string)
}

// Part is what became of one part.
type Part struct {
	Name     string // storage, ledger, memory, network, reap, base <pool>
	Report   operation.Report
	Findings reap.Findings // of reap
	Base     base.Record   // of base
	Did      string        // of ledger: copies that were made or given up
	Err      error
}

// Run does the parts in order. Storage, ledger and network must succeed for
// what comes after; what reap or one pool's base cannot do does not keep the
// others from being done, and is told at the end.
func (s Settings) Run(ctx context.Context, env operation.Env, dryRun bool) ([]Part, error) {
	var parts []Part
	begin := func(name string) {
		if s.Begin != nil {
			s.Begin(name)
		}
	}
	end := func(p Part) error {
		parts = append(parts, p)
		if p.Err != nil {
			return fmt.Errorf("%s: %w", p.Name, p.Err)
		}
		return nil
	}

	// What will fail at the end must not begin.
	lacks := errors.Join(host.Privileged(env.Host), host.Lookup(env.Host, programs()...))
	if dryRun {
		lacks = nil
	}
	if err := errors.Join(lacks, s.Base.Check(env.Host.Files())); err != nil {
		return nil, err
	}
	if err := s.finish(ctx, env, dryRun); err != nil {
		return nil, err
	}
	begin("storage")
	report, err := storage.Ensure(ctx, env, dryRun)
	if err := end(Part{Name: "storage", Report: report, Err: err}); err != nil {
		return parts, err
	}
	begin("ledger")
	did, stop, err := s.ledger(ctx, env, dryRun)
	if err != nil || stop {
		return parts, end(Part{Name: "ledger", Err: err})
	}
	if did != "" {
		parts = append(parts, Part{Name: "ledger", Did: did})
	}
	if s.Memory != (memory.Settings{}) {
		begin("memory")
		report, err := s.Memory.Ensure(ctx, env, dryRun)
		if err := end(Part{Name: "memory", Report: report, Err: err}); err != nil {
			return parts, err
		}
	}
	begin("network")
	report, err = s.Network.Ensure(ctx, env, dryRun)
	if err := end(Part{Name: "network", Report: report, Err: err}); err != nil {
		return parts, err
	}
	begin("reap")
	findings, report, err := s.Reap.Reap(ctx, env, dryRun)
	failed := []error{end(Part{Name: "reap", Report: report, Findings: findings, Err: err})}
	if ctx.Err() != nil {
		return parts, errors.Join(failed...)
	}
	pools, err := s.Pools(ctx)
	if err != nil {
		return parts, errors.Join(append(failed, err)...)
	}
	if len(pools) > 0 {
		begin("base zones")
	}
	for _, p := range s.bases(ctx, env, pools, dryRun) {
		failed = append(failed, end(p))
	}
	return parts, errors.Join(append(failed, context.Cause(ctx))...)
}

// programs are those of the host that the parts need, on one sled or another.
func programs() []string {
	return []string{"dladm", "ipadm", "route", "svccfg", "uname", "zfs", "zoneadm", "zonecfg", "zpool"}
}

// bases makes the base zones side by side: they have nothing in common but the
// time that an installation takes.
func (s Settings) bases(ctx context.Context, env operation.Env, pools []string, dryRun bool) []Part {
	parts := make([]Part, len(pools))
	var wg sync.WaitGroup
	for i, pool := range pools {
		wg.Go(func() {
			record, report, err := s.Base.Ensure(ctx, env, pool, dryRun, false)
			parts[i] = Part{Name: "base " + pool, Report: report, Base: record, Err: err}
		})
	}
	wg.Wait()
	return parts
}

// finish ends a creation of the state file that was interrupted: until then a
// copy is missing, and not even storage can be looked after. Where there is no
// copy yet, storage comes first.
func (s Settings) finish(ctx context.Context, env operation.Env, dryRun bool) error {
	_, err := env.Ledger(ctx)
	if dryRun || err != nil && !errors.Is(err, ledger.ErrMissing) {
		return nil
	}
	if err := s.CreateLedger(ctx); !errors.Is(err, ledger.ErrExists) {
		return err
	}
	return nil
}

// ledger makes the state file if there is none, finishes a creation that was
// interrupted, and makes copies where some belong. A dry run on a sled that has
// none ends here: what follows needs what would have been made.
func (s Settings) ledger(ctx context.Context, env operation.Env, dryRun bool) (did string, stop bool, err error) {
	if !dryRun {
		if err := s.CreateLedger(ctx); !errors.Is(err, ledger.ErrExists) {
			return "", false, err
		}
	}
	_, err = env.Ledger(ctx)
	if dryRun && errors.Is(err, ledger.ErrAbsent) {
		return "", true, nil
	}
	if err == nil && s.SettleLedger != nil {
		did, err = s.SettleLedger(ctx, dryRun)
	}
	return did, false, err
}
