// Package bootstrap prepares the sled. It is an order, and nothing else:
// storage, and on it the ledger; memory; network; reap; base zones; spares.
package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/disk"
	"github.com/sledctl/sledctl/sled/base"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/memory"
	"github.com/sledctl/sledctl/sled/network"
	"github.com/sledctl/sledctl/sled/reap"
	"github.com/sledctl/sledctl/sled/storage"
)

// Settings are those of the domain packages.
type Settings struct {
	Storage storage.Settings
	Memory  memory.Settings
	Network network.Settings
	Reap    reap.Settings
	Base    base.Settings
	// Reread gives the settings again, once the M.2s are there: they may hold
	// configuration. May be nil.
	Reread func() (Settings, error)
	// CreateLedger makes the ledger where there is none; Env.Ledger finds
	// it from then on.
	CreateLedger func(context.Context) error
	// RelocateLedger makes the copies of one that is there lie where they belong,
	// and says what it did; in a dry run, what it would do. May be nil.
	RelocateLedger func(ctx context.Context, dryRun bool) (did string, err error)
	// RefreshWitness tells the witness of the ledger again, once there are more
	// disks to tell. May be nil.
	RefreshWitness func(context.Context) error
	// Pools lists the pools that zones may be put on, once storage is ready.
	Pools func(context.Context, host.Host) ([]string, error)
	// FillSpares makes a pool have as many spares as are wanted, cloned from a base that a
	// dry run may only have planned; may be nil.
	FillSpares func(ctx context.Context, env operation.Env, pool string, from base.Record, dryRun bool) (operation.Report, error)
	Spares     int // wanted on each pool
	// Begin is called with each part before it starts; may be nil.
	Begin func(part string)
}

// Part is the result of one part.
type Part struct {
	Name     string // storage, ledger, memory, network, reap, base <pool>, spares <pool>
	Report   operation.Report
	Findings reap.Findings // of reap
	Base     base.Record   // of base
	Spares   int           // of spares: how many are wanted
	Did      string        // of ledger: copies that were made or given up; of memory: what VMs have now
	Err      error
}

// Run does the parts in order. Ledger, memory and network must succeed for what
// comes after. What one disk, reap or one pool's base cannot do does not keep the
// others from being done, and is reported at the end.
//
// A sled that has been prepared before is first judged by one shared observation for all
// parts, without a lock: nothing to do means that nothing is locked and nothing
// written. Else each part looks again, under its lock: others before it have
// changed what that look has seen.
func (s Settings) Run(ctx context.Context, env operation.Env, dryRun bool) ([]Part, error) {
	r := &run{Settings: s, env: env, dryRun: dryRun}
	whole := r.whole(ctx)
	if !r.check(ctx, whole) {
		return r.parts, errors.Join(r.failed...)
	}
	if dryRun || whole {
		if judged := r.judged(ctx); dryRun || judged.idle() {
			return judged.parts, errors.Join(judged.failed...)
		}
	}
	r.do(ctx)
	return r.parts, errors.Join(r.failed...)
}

// run is one run. Each of its parts says whether the next may begin.
type run struct {
	Settings
	env    operation.Env
	dryRun bool

	parts  []Part
	failed []error
	cloned bool // zones are: the pools need bases
}

func (r *run) begin(name string) {
	if r.Begin != nil {
		r.Begin(name)
	}
}

// end notes the result of a part.
func (r *run) end(p Part) error {
	r.parts = append(r.parts, p)
	if p.Err != nil {
		r.failed = append(r.failed, fmt.Errorf("%s: %w", p.Name, p.Err))
	}
	return p.Err
}

// do does the parts, as far as each lets the next begin.
func (r *run) do(ctx context.Context) {
	for _, part := range []func(context.Context) (more bool){r.storage, r.attest, r.memory, r.network, r.reap, r.bases} {
		if !part(ctx) {
			return
		}
	}
	if err := context.Cause(ctx); err != nil {
		r.failed = append(r.failed, err)
	}
}

// judged is what a dry run finds, which takes one look.
func (r *run) judged(ctx context.Context) *run {
	j := &run{Settings: r.Settings, env: r.env, dryRun: true, cloned: r.cloned}
	j.env.Host = inventory.Prefetch(ctx, r.env.Host, r.Storage.Wants(), r.Network.Wants(), r.Reap.Wants(), r.Base.Wants())
	if !r.dryRun { // nobody sees what it would say and draw
		j.Begin, j.env.NewID = nil, func() string { return "" }
	}
	j.do(ctx)
	return j
}

// idle says whether a dry run has found all as it must be, but for disks about
// which nothing can be done.
func (r *run) idle() bool {
	told := 0
	for _, p := range r.parts {
		if p.Err != nil {
			told++
		}
		if !p.Report.Idle || p.Err != nil && !errors.As(p.Err, new(*storage.PartialError)) {
			return false
		}
	}
	return told == len(r.failed)
}

// check refuses at once what will fail at the end. What the sled is configured
// to be may stand on an M.2, and no ledger without all its copies says that
// they are there: then they are imported first.
func (r *run) check(ctx context.Context, whole bool) bool {
	var err error
	if !r.dryRun {
		err = errors.Join(host.Privileged(r.env.Host), host.Lookup(r.env.Host, programs()...))
	}
	if err == nil && r.Reread != nil && !whole && !r.dryRun {
		if !r.importAll(ctx, disk.M2) {
			return false
		}
		var again Settings
		if again, err = r.Reread(); err == nil {
			r.Settings = again
		}
	}
	if err == nil {
		r.cloned, err = r.Base.Needed(r.env.Host.Files())
	}
	if err != nil {
		r.failed = append(r.failed, err)
	}
	return err == nil
}

// storage prepares the disks, and the ledger on them. Where the ledger is
// not there with all its copies, the disks come first that it lies on: U.2s are
// prepared once what is done to them can be written down, and with a key source
// that may lie on an M.2 itself.
func (r *run) storage(ctx context.Context) bool {
	if r.whole(ctx) {
		return r.prepare(ctx, disk.M2, disk.U2) && r.keep(ctx)
	}
	if r.dryRun { // all that is known: without a ledger, it ends here
		return r.prepare(ctx, disk.M2, disk.U2) && r.keep(ctx)
	}
	if !r.prepare(ctx, disk.M2) || !r.askWitness(ctx) || !r.keep(ctx) {
		return false
	}
	r.failed = nil // what is wrong with an M.2 is seen again
	return r.prepare(ctx, disk.M2, disk.U2)
}

// attest tells pools that do not know it which ledger the sled has: those that
// were just made, and those that were not known then. A sled on which nothing
// is to be done is not asked.
func (r *run) attest(ctx context.Context) bool {
	if r.RefreshWitness == nil || r.dryRun {
		return true
	}
	if err := r.RefreshWitness(ctx); err != nil {
		return r.end(Part{Name: "ledger", Err: err}) == nil
	}
	return true
}

// askWitness imports the pools of U.2s where there is no ledger: they know
// whether there was one.
func (r *run) askWitness(ctx context.Context) bool {
	if _, err := r.env.Ledger(ctx); !errors.Is(err, ledger.ErrAbsent) {
		return true
	}
	return r.importAll(ctx, disk.U2)
}

// importAll imports the pools of disks of a kind, and does no more. What fails on
// one disk is told by who prepares it.
func (r *run) importAll(ctx context.Context, kind disk.Kind) bool {
	report, err := r.Storage.Import(ctx, r.env, []disk.Kind{kind})
	if kind == disk.M2 && len(report.Outcome.Failed) > 0 && ctx.Err() == nil {
		err = nil
	}
	if err != nil || !report.Plan.Empty() {
		err = r.end(Part{Name: "storage", Report: report, Err: err})
	}
	return err == nil
}

// ready are the bases that are as they must be: most often all are.
func (r *run) ready(ctx context.Context, pools []string) (map[string]base.Record, error) {
	view, err := r.read(ctx)
	if err != nil {
		return nil, err
	}
	return r.Base.Ready(ctx, r.env.Host, view, pools)
}

func (r *run) read(ctx context.Context) (ledger.View, error) {
	l, err := r.env.Ledger(ctx)
	if err != nil {
		return ledger.View{}, err
	}
	return l.Read(ctx)
}

// keep sees to the ledger.
func (r *run) keep(ctx context.Context) bool {
	r.begin("ledger")
	did, stop, err := r.ledger(ctx)
	if err != nil || stop {
		_ = r.end(Part{Name: "ledger", Err: err})
		return false
	}
	if did != "" {
		_ = r.end(Part{Name: "ledger", Did: did})
	}
	return true
}

// prepare brings disks of these kinds up to date. Disks that are locked, faulted or
// foreign do not stop what comes after.
func (r *run) prepare(ctx context.Context, kinds ...disk.Kind) bool {
	r.begin("storage")
	reports, err := r.Storage.Ensure(ctx, r.env, kinds, r.dryRun)
	for i, report := range reports {
		p := Part{Name: "storage", Report: report}
		if i == len(reports)-1 {
			p.Err = err
		}
		_ = r.end(p)
	}
	return ctx.Err() == nil && (err == nil || errors.As(err, new(*storage.PartialError)))
}

// whole says whether the ledger is there with all its copies.
func (r *run) whole(ctx context.Context) bool {
	view, err := r.read(ctx)
	return err == nil && !slices.ContainsFunc(view.Members(), func(m ledger.Member) bool { return m.Err != nil })
}

func (r *run) memory(ctx context.Context) bool {
	if r.Memory == (memory.Settings{}) {
		return true
	}
	r.begin("memory")
	report, err := r.Memory.Ensure(ctx, r.env, r.dryRun)
	return r.end(Part{Name: "memory", Report: report, Did: memory.Did(report), Err: err}) == nil
}

func (r *run) network(ctx context.Context) bool {
	r.begin("network")
	report, err := r.Network.Ensure(ctx, r.env, r.dryRun)
	return r.end(Part{Name: "network", Report: report, Err: err}) == nil
}

func (r *run) reap(ctx context.Context) bool {
	r.begin("reap")
	findings, report, err := r.Reap.Reap(ctx, r.env, r.dryRun)
	_ = r.end(Part{Name: "reap", Report: report, Findings: findings, Err: err})
	return ctx.Err() == nil
}

// bases makes the base zones side by side: they have nothing in common but the
// time that an installation takes.
func (r *run) bases(ctx context.Context) bool {
	if !r.cloned {
		return true
	}
	pools, err := r.Pools(ctx, r.env.Host)
	if err != nil {
		r.failed = append(r.failed, err)
		return false
	}
	if len(pools) > 0 {
		r.begin("base zones")
	}
	ready, err := r.ready(ctx, pools)
	if err != nil {
		r.failed = append(r.failed, err)
		return false
	}
	parts := make([]Part, len(pools))
	var wg sync.WaitGroup
	for i, pool := range pools {
		if record, ok := ready[pool]; ok {
			parts[i] = Part{Name: "base " + pool, Report: operation.Report{Verb: "base ensure", Subject: base.Subject(pool), Idle: true}, Base: record}
			continue
		}
		wg.Go(func() {
			record, report, err := r.Base.Ensure(ctx, r.env, pool, r.dryRun, false)
			parts[i] = Part{Name: "base " + pool, Report: report, Base: record, Err: err}
		})
	}
	wg.Wait()
	for _, p := range parts {
		_ = r.end(p)
	}
	return r.spares(ctx, parts)
}

// spares fills up the spares of the pools that have a base, side by side. A sled on which
// none are wanted, and none are recorded, is not looked at for them.
func (r *run) spares(ctx context.Context, bases []Part) bool {
	recorded, err := r.sparePools(ctx)
	if err != nil {
		r.failed = append(r.failed, err)
		return false
	}
	var parts []*Part
	var wg sync.WaitGroup
	for _, b := range bases {
		pool := strings.TrimPrefix(b.Name, "base ")
		if r.FillSpares == nil || b.Err != nil || r.Spares == 0 && !recorded[pool] {
			continue
		}
		if len(parts) == 0 {
			r.begin("spares")
		}
		p := &Part{Name: "spares " + pool, Spares: r.Spares}
		parts = append(parts, p)
		wg.Go(func() { p.Report, p.Err = r.FillSpares(ctx, r.env, pool, b.Base, r.dryRun) })
	}
	wg.Wait()
	for _, p := range parts {
		_ = r.end(*p)
	}
	return true
}

// sparePools are the pools of which spares are recorded.
func (r *run) sparePools(ctx context.Context) (map[string]bool, error) {
	view, err := r.read(ctx)
	if err != nil {
		return nil, err
	}
	all, err := record.Spares(view)
	pools := map[string]bool{}
	for _, spare := range all {
		pools[spare.Pool] = true
	}
	return pools, err
}

// ledger makes the ledger if there is none, finishes a creation that was
// interrupted, and makes copies where some belong. A dry run on a sled that has
// none ends here: what follows needs what would have been made.
func (r *run) ledger(ctx context.Context) (did string, stop bool, err error) {
	if !r.dryRun {
		if err := r.CreateLedger(ctx); !errors.Is(err, ledger.ErrExists) {
			return "", false, err
		}
	}
	_, err = r.env.Ledger(ctx)
	if r.dryRun && errors.Is(err, ledger.ErrAbsent) {
		return "", true, nil
	}
	if err == nil && r.RelocateLedger != nil {
		did, err = r.RelocateLedger(ctx, r.dryRun)
	}
	return did, false, err
}

// programs are those of the host that the parts need, on one sled or another.
func programs() []string {
	return []string{"dladm", "ipadm", "route", "svccfg", "uname", "zfs", "zoneadm", "zonecfg", "zpool"}
}
