package instance

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/smf"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/migration"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/zone"
)

// Status is what an instance is now: recorded is not observed, so it is made
// from the host each time.
type Status struct {
	State  record.State
	Reason string
}

// Instance is a record with its status.
type Instance struct {
	record.Record
	Status
	Details
}

// Details are what is known of an instance besides its status. What was not looked at is
// not known.
type Details struct {
	Since   time.Time         // when its state began; zero: not known
	Changed []string          // what others have changed of its incarnation
	AtRisk  bool              // a pool that its incarnation uses does not answer
	Busy    *operation.Holder // the run that changes it; nil: none does
	Boot    string            // which boot of the sled this is
	Phase   string            // of its migration; empty: Propolis has published none
}

// conclude is the status and the details that evidence comes to.
func (i *Instance) conclude(g evidence) {
	i.Status = judgeStatus(i.Record, g)
	i.Details = Details{AtRisk: len(g.risks) > 0, Busy: g.holder, Boot: g.boot}
	if i.Migration != nil {
		i.Phase = phaseOf(*i.Migration, g.vm.Migration)
	}
	if g.open == "" { // while a verb is at work, nobody else has changed it
		i.Changed = g.drift
	}
	i.Since = i.since()
}

// since is when the state began, as far as the record and a run that is at work say. A
// state that nobody wanted began at some time after that.
func (i *Instance) since() time.Time {
	switch {
	case i.State == record.Stopped && i.Incarnation == nil, i.State == record.Running && i.Wanted == record.WantedRunning:
		if i.Began.IsZero() {
			return i.Updated
		}
		return i.Began
	case i.Busy != nil && (i.State == record.Stopping || i.State == record.Creating):
		return i.Busy.Since
	}
	return time.Time{}
}

// asked is how many Propolis servers are asked at once.
const asked = 64

// List tells every instance's status: one listing of the zones, of the links and
// of the pools, then a question to each running Propolis, 64 at a time, 1 s each.
// What others have changed of an instance stands in its status's reason.
func (s Settings) List(ctx context.Context, env operation.Env, view ledger.View) ([]Instance, error) {
	records, err := record.All(view)
	if err != nil {
		return nil, err
	}
	return s.ObserveAll(ctx, env, view, records, inventory.Want{Parts: observable()})
}

// Get tells one instance's status, as List does.
func (s Settings) Get(ctx context.Context, env operation.Env, view ledger.View, ref string) (Instance, error) {
	return getStatus(ctx, s, env, view, ref, observable()...)
}

// Summary is Get without what others have changed: for what was looked at just
// now.
func (s Settings) Summary(ctx context.Context, env operation.Env, view ledger.View, ref string) (Instance, error) {
	return getStatus(ctx, s, env, view, ref, inventory.Zones)
}

func getStatus(
	ctx context.Context, s Settings, env operation.Env, view ledger.View, ref string, parts ...inventory.Part,
) (Instance, error) {
	r, err := s.Find(view, ref)
	if err != nil {
		return Instance{}, err
	}
	want := inventory.Want{Parts: parts}
	if r.Incarnation != nil {
		want.OfZones = func(name string) bool { return name == r.Incarnation.Zone }
	}
	all, err := s.ObserveAll(ctx, env, view, []record.Record{r}, want)
	if err != nil {
		return Instance{}, err
	}
	return all[0], nil
}

// observable are the parts of the sled that show what others have changed.
func observable() []inventory.Part {
	return []inventory.Part{inventory.Zones, inventory.Configs, inventory.Links, inventory.Pools}
}

// Observes is what the status of instances is made from, next to their Propolis.
func Observes() inventory.Want { return inventory.Want{Parts: observable()} }

// ObserveAll tells the status of some records, from one look at the host, if one of
// them has an incarnation.
func (s Settings) ObserveAll(
	ctx context.Context, env operation.Env, view ledger.View, records []record.Record, want inventory.Want,
) ([]Instance, error) {
	inv := &inventory.Inventory{}
	if hasRun(records) {
		inv = inventory.Look(ctx, env.Host, want)
	}
	return s.ObserveIn(ctx, env, view, records, inv)
}

// ObserveIn is ObserveAll with an inventory that exists.
func (s Settings) ObserveIn(
	ctx context.Context, env operation.Env, view ledger.View, records []record.Record, inv *inventory.Inventory,
) ([]Instance, error) {
	boot, err := operation.Boot(env)
	if err != nil {
		return nil, err
	}
	b, work, lost := s.Blueprint(), atWork(view), s.lostPools(view, inv)
	still := sync.OnceValue(func() map[string]bool { return openNow(ctx, env) })
	all := make([]Instance, len(records))
	gate := make(chan struct{}, asked)
	var wg sync.WaitGroup
	for i := range records {
		all[i].Record = records[i]
		one := &all[i] // not a copy: it is large
		if one.Incarnation == nil && len(work.busy) == 0 {
			one.conclude(evidence{boot: boot})
			continue
		}
		r, look := one.Record, evidence{boot: boot}
		if open, isOpen := work.on(r); isOpen {
			look.open = open.Verb
			if holder, alive := operation.Alive(ctx, env, open.Subject); alive {
				look.atWork, look.holder = true, &holder
			} else if now := still(); now != nil && !now[open.ID] { // it has ended since the ledger was read
				look.atWork = true
			}
		}
		if r.Incarnation != nil {
			look.zones = inv.Know(inventory.Zones)
			look.zone, look.there = inv.Zone(r.Incarnation.Zone)
			look.risks = silentPools(r, lost)
			look.drift = driftOf(b, env.Host.Files(), r, inv)
		}
		if look.zone.State != zone.Running {
			one.conclude(look)
			continue
		}
		seen := look // most are not asked: their own need not outlive this round
		wg.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			seen.vm = askVM(ctx, b, env.Host, one.Record)
			if one.Migration != nil && seen.vm.Err == nil { // few are: for the phase
				seen.vm.Migration = vmStatus(ctx, b, env.Host, one.Record).Migration
			}
			if one.Incarnation.Ensured && unreachable(seen.vm.Err) {
				seen.service, _ = smf.State(ctx, env.Host, one.Incarnation.Zone, layout.ServiceFMRI(b, one.Record)) // empty: not known
			}
			one.conclude(seen)
		})
	}
	wg.Wait()
	return all, nil
}

// openNow are the ids of the intents that are open by now; nil: they could not be read.
func openNow(ctx context.Context, env operation.Env) map[string]bool {
	view, err := operation.Decided(ctx, env, true)
	if err != nil {
		return nil
	}
	open := map[string]bool{}
	for _, intent := range operation.Open(view) {
		open[intent.ID] = true
	}
	return open
}

// opened are the open intents, by what they are about.
type opened struct {
	busy  map[string]operation.OpenIntent // by instance
	going map[string]operation.OpenIntent // by zone
}

func atWork(view ledger.View) opened {
	o := opened{map[string]operation.OpenIntent{}, map[string]operation.OpenIntent{}}
	for _, open := range operation.Open(view) {
		o.busy[open.Subject] = open
		for _, object := range open.Removes {
			if object.Kind == "zone" {
				o.going[object.Name] = open
			}
		}
	}
	return o
}

// on is the open intent that is about an instance.
func (o opened) on(r record.Record) (operation.OpenIntent, bool) {
	open, is := o.busy[record.Subject(r.ID)]
	if !is && r.Incarnation != nil {
		open, is = o.going[r.Incarnation.Zone]
	}
	return open, is
}

func hasRun(records []record.Record) bool {
	for _, r := range records {
		if r.Incarnation != nil {
			return true
		}
	}
	return false
}

// quickLook asks only whether the recorded zone runs and what its Propolis says.
func quickLook(ctx context.Context, b layout.Blueprint, h host.Host, r record.Record) (migration.VM, error) {
	inv := inventory.Look(ctx, h, inventory.Want{Parts: []inventory.Part{inventory.Zones}})
	if err := inv.Know(inventory.Zones); err != nil {
		return migration.VM{}, err
	}
	if z, there := inv.Zone(r.Incarnation.Zone); !there || z.State != zone.Running {
		return migration.VM{}, nil
	}
	vm := askVM(ctx, b, h, r)
	return vm, vm.Err
}

// evidence is what a status is judged by.
type evidence struct {
	zones error // why the zones could not be listed
	zone  zone.Zone
	there bool
	vm    migration.VM
	boot  string
	// service is the state of Propolis' service, asked where Propolis itself
	// could not be reached; empty: not known.
	service string
	open    string            // the verb of an intent on the instance that has no outcome yet
	atWork  bool              // that verb's run, or its last command, holds the lock still
	drift   []string          // what others have changed of the incarnation
	risks   []string          // its pools that do not answer
	holder  *operation.Holder // of the lock; nil: nobody is known
}

func statusIn(b layout.Blueprint, r record.Record, seen Observed) Status {
	g := evidence{boot: seen.Boot, vm: seen.Inside.VM}
	if g.vm == (migration.VM{}) {
		g.vm.Err = errNotServing
	}
	if r.Incarnation != nil {
		g.zone, g.there = seen.Inv.Zone(r.Incarnation.Zone)
		g.drift = driftIn(b, r, seen.Inv)
	}
	return judgeStatus(r, g)
}

// errNotServing is why a Propolis was not asked.
var errNotServing = errors.New("its service is not online")

// judgeStatus joins what is recorded with what is seen. What a verb that is at work
// takes down has not failed: it is stopping.
func judgeStatus(r record.Record, g evidence) Status {
	status := judgeRun(r, g)
	if down := status.State == record.Failed || status.State == record.Absent && r.Incarnation != nil; g.atWork && down && r.Incarnation.Boot == g.boot {
		status = Status{State: record.Stopping, Reason: g.open + " is running"}
	}
	if r.Migration != nil {
		going := Moving(*r.Migration, phaseOf(*r.Migration, g.vm.Migration))
		status.Reason = strings.Join(slices.DeleteFunc([]string{going, status.Reason}, func(s string) bool { return s == "" }), "; ")
	}
	return status
}

// Moving says which way a VM goes, and how far it has come.
func Moving(m record.Migration, phase string) string {
	if phase == "" {
		return m.Direction()
	}
	return m.Direction() + ": " + phase
}

// phaseOf is the phase of a migration, if Propolis has published one of it.
func phaseOf(m record.Migration, at propolis.Migrations) string {
	for _, one := range []*propolis.Migration{at.Out, at.In} {
		if one != nil && one.ID == m.ID {
			return one.State
		}
	}
	return ""
}

func judgeRun(r record.Record, g evidence) Status {
	incarnation := r.Incarnation
	switch {
	case incarnation == nil && r.Wanted == record.WantedStopped:
		return Status{State: record.Stopped}
	case incarnation == nil:
		return Status{State: record.Absent, Reason: "nothing of it is on the host; it is wanted running"}
	case g.zones != nil:
		return Status{State: record.Unknown, Reason: g.zones.Error()}
	case g.there && g.zone.State == zone.Running:
		return judgeVM(r, g)
	case incarnation.Boot != g.boot:
		return Status{State: record.Absent, Reason: g.rebooted(incarnation)}
	case !g.there && !incarnation.Ensured:
		return Status{State: record.Creating, Reason: g.begun("its zone is not created yet")}
	case !g.there && g.open != "":
		return Status{State: record.Absent, Reason: g.begun("its zone is missing")}
	case !g.there && incarnation.Reaped:
		return Status{State: record.Absent, Reason: "its zone " + incarnation.Zone + " was removed by sledctl reap"}
	case !g.there:
		return Status{State: record.Absent, Reason: "its zone " + incarnation.Zone + " was removed by another program"}
	case !incarnation.Ensured:
		return Status{State: record.Creating, Reason: g.begun("its zone is " + string(g.zone.State))}
	}
	return Status{State: record.Failed, Reason: g.end("its zone is " + string(g.zone.State) + ", not running")}
}

// rebooted says what the sled's reboot met.
func (g evidence) rebooted(incarnation *record.Incarnation) string {
	did, what := "while it ran", "its zone is missing"
	if !incarnation.Ensured {
		did = "while it was being created"
	}
	if g.there {
		what = "its zone is from before the reboot"
	}
	return "sled was rebooted " + did + "; " + what
}

// begun adds the operation that is running, or that was killed.
func (g evidence) begun(how string) string {
	switch {
	case g.atWork:
		return how + "; " + g.open + " is running"
	case g.open != "":
		return how + "; " + g.open + " started and did not finish"
	}
	return how
}

// end is how it ended, or why it cannot be asked: a verb that is at work, or has
// been killed, or other programs, may have caused it.
func (g evidence) end(how string) string { return g.with(g.begun(how)) }

// with adds what others have changed. While a verb is at work, nobody else has.
func (g evidence) with(how string) string {
	if g.open != "" {
		return how
	}
	parts := slices.Concat([]string{how}, g.risks, g.drift)
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}

// unreachable reports whether an error is that nobody answers at the address at
// all: then its service tells more. Where the address is gone, the sled may also
// wait in vain for somebody to have it.
func unreachable(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, context.DeadlineExceeded)
}

// said is what asking a Propolis came to, without whose it is.
func said(err error) string {
	if asked, ok := errors.AsType[*propolis.AskedError](err); ok {
		err = asked.Err
	}
	return err.Error()
}

func judgeVM(r record.Record, g evidence) Status {
	switch {
	case g.vm.Err == nil:
		return Status{State: strings.ToLower(g.vm.State), Reason: g.with("")}
	case !r.Incarnation.Ensured:
		return Status{State: record.Creating, Reason: g.begun("Propolis has no VM yet")}
	case IsNoInstance(g.vm.Err):
		return Status{State: record.Failed, Reason: g.end("Propolis restarted and lost the VM")}
	case g.service != "" && g.service != smf.Online:
		return Status{State: record.Failed, Reason: g.end("its Propolis does not run: the service is " + in(g.service))}
	case errors.Is(g.vm.Err, syscall.ECONNREFUSED):
		return Status{State: record.Failed, Reason: g.end("its Propolis does not run: no process listens on its address")}
	case errors.Is(g.vm.Err, syscall.EHOSTUNREACH):
		return Status{State: record.Unknown, Reason: g.end("Propolis cannot be reached: its address or the route to it is missing")}
	case errors.Is(g.vm.Err, context.DeadlineExceeded):
		return Status{State: record.Unknown, Reason: g.end("Propolis did not answer within " + layout.AskTimeout.String())}
	}
	return Status{State: record.Unknown, Reason: g.end("Propolis cannot be asked: " + said(g.vm.Err))}
}

// String is the state with its reason.
func (s Status) String() string {
	if s.Reason == "" {
		return s.State
	}
	return s.State + " (" + s.Reason + ")"
}

// in is the state of a service as one says it.
func in(service string) string {
	if service == smf.Maintenance {
		return "in " + service
	}
	return service
}
