package status

import (
	"context"
	"fmt"
	"slices"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/query"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/system"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/network"
	"github.com/sledctl/sledctl/sled/status"
)

// looked is a status, with why it lacks what the ledger says.
type looked struct {
	status.Status
	noLedger error
}

// Look is what -o json prints, for an agent.
func Look(ctx context.Context, e *cli.Env) (api.Status, error) {
	s, err := look(ctx, e)
	return api.Status{APIVersion: terminal.APIVersion, Kind: kind, Status: s.Status}, err
}

// errNoLedger is what an agent says with its verdict: its problems say why.
var errNoLedger = fault.New(fault.Ledger, "the agent cannot read the sled's ledger")

// look looks at the sled, or has its agent do so.
func (f flags) look(ctx context.Context, e *cli.Env) (looked, error) {
	l, err := f.seen(ctx, e)
	for i := range l.Problems {
		l.Problems[i].Next = e.Afar.Each(l.Problems[i].Next)
	}
	return l, err
}

func (f flags) seen(ctx context.Context, e *cli.Env) (looked, error) {
	if !f.far.Is() {
		return look(ctx, e)
	}
	c, err := f.far.Client(e, cli.Mutation{})
	if err != nil {
		return looked{}, err
	}
	s, err := c.Status(ctx)
	l := looked{Status: s.Status}
	if err == nil && s.Verdict == status.IsUnknown {
		l.noLedger = errNoLedger
	}
	return l, err
}

// look looks at the sled as it is configured.
func look(ctx context.Context, e *cli.Env) (looked, error) {
	c, env, err := e.Operation()
	if err != nil {
		return looked{}, err
	}
	s := status.Settings{}
	if s.Storage, err = cli.StorageSettings(c); err != nil {
		return looked{}, err
	}
	if s.Sled.Name, err = cli.SledName(c, env.Host.Files()); err != nil {
		return looked{}, err
	}
	if _, s.Places, err = e.Places(); err != nil {
		return looked{}, err
	}
	s.Base, s.Nexus = cli.BaseSettings(c), c.Nexus.URL
	s.DevelopmentKey = s.Storage.Keys != nil && s.Storage.Keys.Source().Warning() != ""
	if s.Faults, s.Sled.Simulated, err = faults(ctx, e); err != nil {
		return looked{}, err
	}
	s.View, s.NoLedger = e.View(ctx)
	if s.Ledgerless, err = e.LedgerWithoutBootstrap(ctx, false); s.Ledgerless {
		s.NoLedger = nil
	}
	if err != nil {
		return looked{}, err
	}
	if instances, _, err := e.Instances(ctx); err == nil {
		s.Instance = &instances
	} else if _, prepared, _ := network.Load(s.View); prepared {
		s.NoInstance = err
	}
	s.Sled.Time, s.Sled.Release = e.Now(), release(env.Host.Files())
	seen := s.Look(ctx, env)
	if ctx.Err() != nil {
		return looked{}, context.Cause(ctx)
	}
	seen.Instances = inOrder(seen.Instances)
	return looked{status.Judge(seen), s.NoLedger}, nil
}

// release is what /etc/release calls the system; empty: it says nothing.
func release(files host.Files) string {
	text, err := system.Release(files)
	if err != nil {
		return ""
	}
	return terminal.Printable(text)
}

// inOrder sorts instances as people count. Only their places are moved while it sorts:
// an instance is large.
func inOrder(all []instance.Instance) []instance.Instance {
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return query.Natural(all[a].Name, all[b].Name) })
	sorted := make([]instance.Instance, len(all))
	for i, at := range order {
		sorted[i] = all[at]
	}
	return sorted
}

// faults are those that are armed, if the sled is a simulated one.
func faults(ctx context.Context, e *cli.Env) (armed []string, simulated bool, err error) {
	if e.Sled == nil {
		return nil, false, nil
	}
	err = e.Sled.World().View(ctx, func(tx *world.Tx) error {
		for _, f := range tx.State.Faults {
			armed = append(armed, fmt.Sprintf("%s %q", f.Name, f.Match))
		}
		return nil
	})
	return armed, true, err
}
