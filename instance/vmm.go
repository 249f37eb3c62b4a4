package instance

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/ledger"
	"github.com/sledctl/sledctl/operation"
)

// The control plane speaks of VMs, each a run of an instance under a Propolis id
// that the control plane has chosen. What it asks for takes longer than it waits
// for an answer. So what is accepted is written down first: a registration, a
// power that is wanted, an end that is decided. Whoever finds that afterwards, an
// agent that was killed over it for one, does the rest.

// VMM makes an instance the control plane's: its first run has the id that was
// registered, and when that run ends, the instance goes with it. It is not
// brought up again by anybody who does not name it, since it may run on
// another sled by then.
type VMM struct {
	PropolisID string `json:"propolis_id"`
	Boot       string `json:"boot"` // the sled's boot in which it was registered; it is of no use in another
	SiloID     string `json:"silo_id"`
	ProjectID  string `json:"project_id"`
}

// Ending is the end of a run that is decided, and what its tombstone will say.
type Ending struct {
	PropolisID string `json:"propolis_id"`
	State      State  `json:"state"` // destroyed, failed
	Reason     string `json:"reason,omitempty"`
}

// Owed is what is still to be done of what the control plane was promised.
type Owed string

// What can be owed.
const (
	OwedNothing Owed = ""
	OwedUp      Owed = "up"   // bring it up
	OwedDown    Owed = "down" // take its run away
	OwedLost    Owed = "lost" // say that it failed: it was of an earlier boot of the sled
)

// Owed is what is owed of a record in this boot of the sled.
func (r Record) Owed(boot string) Owed {
	switch {
	case r.Ending != nil:
		return OwedDown
	case r.VMM == nil:
		return OwedNothing
	case r.VMM.Boot != boot:
		return OwedLost
	case r.Wanted == WantedRunning && (r.Run == nil || !r.Run.Ensured):
		return OwedUp
	}
	return OwedNothing
}

// VM is the Propolis id of the VM that the control plane can speak of: that of
// the run, or the one under which a run will be. Empty: there is none.
func (r Record) VM() string {
	switch {
	case r.Run != nil:
		return r.Run.PropolisID
	case r.VMM != nil:
		return r.VMM.PropolisID
	}
	return ""
}

// EndingError is an instance whose end is decided.
type EndingError struct{ Name string }

// Error names it.
func (e *EndingError) Error() string {
	return fmt.Sprintf("instance %q is ending, as the control plane has asked", e.Name)
}

// Registration is a VM that the control plane registers.
type Registration struct {
	Instance, VM  string // ids
	Silo, Project string
	Wanted        Wanted
}

// RegisteredError is an instance that is there already, and not as this VM.
type RegisteredError struct{ Name, VM string }

// Error says what it is.
func (e *RegisteredError) Error() string {
	if e.VM == "" {
		return fmt.Sprintf("instance %q is an operator's, and stopped", e.Name)
	}
	return fmt.Sprintf("instance %q is there as VM %s", e.Name, e.VM)
}

// Register makes the record of an instance that the control plane will run, with
// all that it reserves; nothing is made on the host. One that is registered as
// this VM stays as it is. Errors: those of a decision on the way up;
// *RegisteredError.
func (s Settings) Register(ctx context.Context, env operation.Env, r Registration) (Result, error) {
	var result Record
	report, err := operation.Run(ctx, env, operation.Request[Seen]{
		Verb: "vm register", Subject: Subject(r.Instance),
		Look: func(ctx context.Context, h host.Host) (Seen, error) {
			boot, err := operation.Boot(env)
			if err != nil {
				return Seen{}, err
			}
			return s.Look(ctx, h, Record{}, r.Wanted.apply(Spec{}).Disks, boot)
		},
		Decide: func(view ledger.View, seen Seen, at operation.Moment) (operation.Decision, error) {
			old, known, err := Load(view, r.Instance)
			switch {
			case err != nil:
				return operation.Decision{}, err
			case known && old.VM() == r.VM && old.VMM != nil && old.Ending == nil:
				result = old
				return operation.Decision{}, nil
			case known:
				return operation.Decision{}, &RegisteredError{Name: old.Name, VM: old.VM()}
			}
			var d operation.Decision
			d, result, err = s.registered(view, seen, at, r)
			return d, err
		},
	})
	return Result{Record: result, Report: report}, err
}

// registered is pure.
func (s Settings) registered(view ledger.View, seen Seen, at operation.Moment, r Registration) (operation.Decision, Record, error) {
	c := Change{Verb: "vm register", Wanted: r.Wanted}
	choose, name, err := s.begin(view, seen, at, r.Instance, c)
	if err != nil {
		return operation.Decision{}, Record{}, err
	}
	next, err := s.next(choose, seen, Record{}, false, r.Instance, name, c)
	if err == nil {
		err = seen.checkDisks(next.Spec.Disks)
	}
	if err != nil {
		return operation.Decision{}, Record{}, err
	}
	next.Wanted, next.Generation, next.Updated = WantedStopped, 1, at.Now
	next.VMM = &VMM{PropolisID: r.VM, Boot: seen.Boot, SiloID: r.Silo, ProjectID: r.Project}
	var d operation.Decision
	d.After, err = next.replaces(Record{})
	d.After = append(d.After, back(view, next.ID)...)
	return d, next, err
}

// write is an operation on one recorded instance that changes its record and
// nothing else.
func (s Settings) write(ctx context.Context, env operation.Env, verb, id string, change func(Record) (Record, error)) (Result, error) {
	var result Record
	report, err := operation.Run(ctx, env, operation.Request[struct{}]{
		Verb: verb, Subject: Subject(id),
		Look: func(context.Context, host.Host) (struct{}, error) { return struct{}{}, nil },
		Decide: func(view ledger.View, _ struct{}, at operation.Moment) (operation.Decision, error) {
			old, err := recordOf(view, id, id)
			if err != nil {
				return operation.Decision{}, err
			}
			result, err = change(old)
			if err != nil || result.Generation == old.Generation {
				return operation.Decision{}, err
			}
			result.Updated = at.Now
			var d operation.Decision
			d.After, err = result.replaces(old)
			return d, err
		},
	})
	return Result{Record: result, Report: report}, err
}

// Want writes down that the VM of an instance is to run. Errors: *NotFoundError,
// also where the instance has another VM by now; *EndingError.
func (s Settings) Want(ctx context.Context, env operation.Env, id, vm string) (Result, error) {
	return s.write(ctx, env, "vm run", id, func(r Record) (Record, error) {
		switch {
		case r.VM() != vm:
			return r, &NotFoundError{Name: vm}
		case r.Ending != nil:
			return r, &EndingError{Name: r.Name}
		case r.Wanted != WantedRunning:
			r.Wanted, r.Generation = WantedRunning, r.Generation+1
		}
		return r, nil
	})
}

// Condemn writes down how a run ends, before anything of it is taken away. An
// end that was decided before stands. Errors: *NotFoundError, also where the
// instance has another VM by now.
func (s Settings) Condemn(ctx context.Context, env operation.Env, id string, e Ending) (Result, error) {
	return s.write(ctx, env, "vm end", id, func(r Record) (Record, error) {
		if r.VM() != e.PropolisID {
			return r, &NotFoundError{Name: e.PropolisID}
		}
		if r.Ending == nil {
			r.Ending, r.Generation = &e, r.Generation+1
		}
		return r, nil
	})
}

// End takes the run away whose end is decided. The record of what is the control
// plane's goes with it, unless an operator protects it; any other stays, stopped.
// An instance whose end nobody has decided is left alone. The grace is what its
// machine is given to power off.
func (s Settings) End(ctx context.Context, env operation.Env, id string, grace time.Duration) (Result, error) {
	return s.takeDown(ctx, env, Change{Verb: "vm end", Wanted: Wanted{Ref: id}, Grace: &grace}, func(old Record, at operation.Moment) (Record, error) {
		switch {
		case old.Ending == nil:
			return old, &NotFoundError{Name: id}
		case old.VMM != nil && !old.Protected:
			return Record{}, nil
		}
		return old.stopped(at), nil
	})
}

// stopped is the record of an instance whose run is gone, and that is to stay so.
func (r Record) stopped(at operation.Moment) Record {
	r.Run, r.Leaving, r.VMM, r.Ending, r.Wanted = nil, nil, nil, nil, WantedStopped
	r.Generation, r.Updated = r.Generation+1, at.Now
	return r
}

// chosen is the id that the control plane has chosen for the next run; empty if
// it has not, or a run had it already.
func (r Record) chosen() string {
	if r.VMM == nil || slices.ContainsFunc(r.Runs(), func(run Run) bool { return run.PropolisID == r.VMM.PropolisID }) {
		return ""
	}
	return r.VMM.PropolisID
}

// UnmadeError is a run under an id that the control plane has chosen, whose
// making was cut short and cannot be gone on with. There can be no other beside
// it: all that it is made of is called by that id.
type UnmadeError struct{ Name string }

// Error names it.
func (e *UnmadeError) Error() string {
	return fmt.Sprintf("instance %q: what was made of it must go before it can be made again", e.Name)
}

// clear takes such a run away, so that it can be made again.
func (s Settings) clear(ctx context.Context, env operation.Env, c Change) (Result, error) {
	return s.takeDown(ctx, env, c, func(old Record, at operation.Moment) (Record, error) {
		old.Run, old.Leaving = nil, nil
		old.Generation, old.Updated = old.Generation+1, at.Now
		return old, nil
	})
}
