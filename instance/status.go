package instance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/inventory"
	"github.com/sledctl/sledctl/ledger"
	"github.com/sledctl/sledctl/operation"
	"github.com/sledctl/sledctl/zone"
)

// State is Propolis' word for an instance in lower case, or absent or unknown.
type State = string

// The states that are not Propolis' own, and those that are decided on.
const (
	Absent   State = "absent"
	Unknown  State = "unknown"
	Creating State = "creating"
	Running  State = "running"
	Stopped  State = "stopped"
	Failed   State = "failed"
)

// Status is what an instance is now: recorded is not observed, so it is made
// anew from the host each time.
type Status struct {
	State  State
	Reason string
}

// Instance is a record with its status.
type Instance struct {
	Record
	Status
}

// asked is how many Propolis servers are asked at once.
const asked = 64

// List tells every instance's status: one listing of the zones, then a
// question to each running Propolis, 64 at a time, 1 s each.
func (s Settings) List(ctx context.Context, env operation.Env, view ledger.View) ([]Instance, error) {
	records, err := All(view)
	if err != nil {
		return nil, err
	}
	return s.observe(ctx, env, view, records)
}

// Get tells one instance's status.
func (s Settings) Get(ctx context.Context, env operation.Env, view ledger.View, ref string) (Instance, error) {
	r, err := s.Find(view, ref)
	if err != nil {
		return Instance{}, err
	}
	all, err := s.observe(ctx, env, view, []Record{r})
	if err != nil {
		return Instance{}, err
	}
	return all[0], nil
}

func (s Settings) observe(ctx context.Context, env operation.Env, view ledger.View, records []Record) ([]Instance, error) {
	boot, err := operation.Boot(env)
	if err != nil {
		return nil, err
	}
	inv := &inventory.Inventory{}
	if hasRun(records) {
		inv = inventory.Look(ctx, env.Host, inventory.Want{Parts: []inventory.Part{inventory.Zones}})
	}
	busy := map[string]bool{}
	for _, open := range operation.Open(view) {
		busy[open.Subject] = true
	}
	all := make([]Instance, len(records))
	gate := make(chan struct{}, asked)
	var wg sync.WaitGroup
	for i, r := range records {
		all[i].Record = r
		look := glance{boot: boot, open: busy[Subject(r.ID)]}
		if r.Run != nil {
			look.zones = inv.Know(inventory.Zones)
			look.zone, look.there = inv.Zone(r.Run.Zone)
		}
		if look.zone.State != zone.Running {
			all[i].Status = s.judge(r, look)
			continue
		}
		one, look := &all[i], look // most are not asked: their own need not outlive this round
		wg.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			look.vm = s.ask(ctx, env.Host, one.Record)
			one.Status = s.judge(one.Record, look)
		})
	}
	wg.Wait()
	return all, nil
}

func hasRun(records []Record) bool {
	for _, r := range records {
		if r.Run != nil {
			return true
		}
	}
	return false
}

// quickLook asks only whether the recorded zone runs and what its Propolis says.
func (s Settings) quickLook(ctx context.Context, h host.Host, r Record) (VM, error) {
	inv := inventory.Look(ctx, h, inventory.Want{Parts: []inventory.Part{inventory.Zones}})
	if err := inv.Know(inventory.Zones); err != nil {
		return VM{}, err
	}
	if z, there := inv.Zone(r.Run.Zone); !there || z.State != zone.Running {
		return VM{}, nil
	}
	vm := s.ask(ctx, h, r)
	return vm, vm.Err
}

// glance is what a status is judged by.
type glance struct {
	zones error // why the zones could not be listed
	zone  zone.Zone
	there bool
	vm    VM
	boot  string
	open  bool // an intent on the instance has no outcome yet
}

func (s Settings) status(r Record, seen Seen) Status {
	g := glance{boot: seen.Boot, vm: seen.Inside.VM}
	if g.vm == (VM{}) {
		g.vm.Err = errNotServing
	}
	if r.Run != nil {
		g.zone, g.there = seen.Inv.Zone(r.Run.Zone)
	}
	return s.judge(r, g)
}

// errNotServing is why a Propolis was not asked.
var errNotServing = errors.New("its service is not online")

// judge joins what is recorded with what is seen.
func (s Settings) judge(r Record, g glance) Status {
	run := r.Run
	switch {
	case run == nil && r.Wanted == WantedStopped:
		return Status{State: Stopped}
	case run == nil:
		return Status{State: Absent, Reason: "nothing of it is on the host"}
	case g.zones != nil:
		return Status{State: Unknown, Reason: g.zones.Error()}
	case !g.there && run.Boot != g.boot:
		return Status{State: Absent, Reason: "sled was rebooted; zone is gone"}
	case !g.there && !run.Ensured:
		return Status{State: Creating, Reason: creating(g, "its zone is not made yet")}
	case !g.there:
		return Status{State: Absent, Reason: "its zone " + run.Zone + " was removed by someone else"}
	case g.zone.State != zone.Running && run.Boot != g.boot:
		return Status{State: Absent, Reason: "sled was rebooted; zone is of the earlier boot"}
	case g.zone.State != zone.Running && !run.Ensured:
		return Status{State: Creating, Reason: creating(g, "its zone is "+string(g.zone.State))}
	case g.zone.State != zone.Running:
		return Status{State: Failed, Reason: "its zone is " + string(g.zone.State) + ", not running"}
	}
	return judgeVM(r, g)
}

func creating(g glance, how string) string {
	if g.open {
		return how + "; begun and not ended"
	}
	return how
}

func judgeVM(r Record, g glance) Status {
	switch {
	case g.vm.Err == nil && g.vm.ID != r.ID:
		return Status{State: Failed, Reason: fmt.Sprintf("Propolis has another machine, %s", g.vm.ID)}
	case g.vm.Err == nil:
		return Status{State: strings.ToLower(g.vm.State)}
	case !r.Run.Ensured:
		return Status{State: Creating, Reason: creating(g, "Propolis has no machine yet")}
	case isNoInstance(g.vm.Err):
		return Status{State: Failed, Reason: "Propolis restarted and has lost its machine"}
	case errors.Is(g.vm.Err, context.DeadlineExceeded):
		return Status{State: Unknown, Reason: "Propolis did not answer within " + askTimeout.String()}
	}
	return Status{State: Unknown, Reason: "Propolis cannot be asked: " + g.vm.Err.Error()}
}
