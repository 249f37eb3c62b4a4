// Package migration is what the two sleds of a live migration know of each other: where
// the VM is, by what both Propolis servers say (VM, Peer), what the target's sledctl is
// told and answers (Send), and what both remember afterwards (Handover).
package migration

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// A live migration has two sleds, each with a record of the instance. Both say
// so before the machine's Propolis is asked for it, and until it is known where
// it ended: an arrival on the target (arrive.go), a departure on the source
// (depart.go). Meanwhile one machine is on two sleds, and nobody boots, stops or
// deletes it: where it runs is asked of both Propolis servers, and never
// guessed. No server can call a migration back: once the target's was asked for
// it, it continues, watched or not.

// MigratingError is a verb on an instance that is being migrated: one machine,
// on two sleds.
type MigratingError struct {
	Name      string
	Migration record.Migration
	Why       string // how it stands, where that is known
}

// Error says where from or where to.
func (e *MigratingError) Error() string {
	way := "to " + e.Migration.Sled()
	if e.Migration.Source != "" {
		way = "from " + e.Migration.Source
	}
	text := fmt.Sprintf("instance %q is being migrated %s (migration %s)", e.Name, way, e.Migration.ID)
	if e.Why != "" {
		text += ": " + e.Why
	}
	return text
}

func (*MigratingError) Kind() fault.Kind { return fault.Refused }

// Unwrap says that it is refused.
func (e *MigratingError) Unwrap() error { return host.ErrRefused }

// Hint says what ends it.
func (e *MigratingError) Hint() string {
	switch {
	case e.Migration.Source == "":
		return "to resume it, run: sledctl instance migrate " + e.Name
	case e.Migration.Offline:
		return "to resume it, run on the source: sledctl instance migrate " + e.Name
	}
	return "to resume it, run on the source: sledctl instance migrate " + e.Name + "; or here: sledctl instance ensure " + e.Name
}

// MovedError is an instance whose machine has been migrated away by somebody
// else: Propolis says so, and the ledger does not know where it is.
type MovedError struct{ Name, Migration string }

// Error names the migration.
func (e *MovedError) Error() string {
	return fmt.Sprintf("instance %q moved to another sled (migration %s); creating it here would run it twice", e.Name, e.Migration)
}

func (*MovedError) Kind() fault.Kind { return fault.Refused }

// Hint says both ways on.
func (e *MovedError) Hint() string {
	return "to drop its record, run: sledctl instance delete " + e.Name + "; if it runs nowhere else, --recreate creates it again"
}

// UnmovableError is a machine that cannot be migrated, with all reasons.
type UnmovableError struct {
	Name     string
	Problems []spec.Problem
}

// Error lists them.
func (e *UnmovableError) Error() string {
	said := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		said[i] = p.String()
	}
	return fmt.Sprintf("instance %q cannot be migrated: %s", e.Name, strings.Join(said, "; "))
}

func (*UnmovableError) Kind() fault.Kind { return fault.Refused }

// Unwrap says that it is refused.
func (e *UnmovableError) Unwrap() error { return host.ErrRefused }

// SourceError is a source of a migration that cannot be asked, or does not have
// the machine.
type SourceError struct {
	Source string
	Err    error
}

// Error says what is the matter with it.
func (e *SourceError) Error() string {
	return fmt.Sprintf("the migration's source, %s: %v", e.Source, e.Err)
}

func (*SourceError) Kind() fault.Kind { return fault.Refused }

// Unwrap gives the cause.
func (e *SourceError) Unwrap() error { return e.Err }

// VM is what Propolis answered about its VM.
type VM struct {
	// State is Propolis' word (Running); empty when it has no machine.
	State      string
	ID         string
	Generation uint64 // of the state
	Migration  propolis.Migrations
	// Err is why it could not be asked. errors.Is(Err, propolis.ErrNoInstance)
	// means that it answered, and has none.
	Err error
}

// Peer is what the Propolis on the other side says.
type Peer struct {
	VM
	Spec *spec.InstanceSpec // nil: not known
}

// AskSource asks the source's Propolis for its machine.
func AskSource(ctx context.Context, versions *propolis.Versions, h host.Host, source string) Peer {
	at, err := netip.ParseAddrPort(source)
	if err != nil {
		return Peer{VM: VM{Err: err}}
	}
	ctx, release := context.WithTimeout(ctx, layout.AskTimeout)
	defer release()
	c := propolis.Client{Host: h, Target: propolis.Target{Name: source, Address: at, Versions: versions}}
	d, err := c.Spec(ctx)
	if err != nil {
		return Peer{VM: VM{Err: err}}
	}
	status, err := c.Monitor(ctx, 0)
	if err != nil {
		return Peer{VM: VM{Err: err}}
	}
	return Peer{VM{State: status.State, ID: d.Properties.ID, Generation: status.Generation, Migration: status.Migration}, d.Spec}
}

// Whereabouts is where the machine of a migration is.
type Whereabouts int

const (
	Unclear Whereabouts = iota // it cannot be determined
	OnTheWay
	AtSource
	AtTarget // it runs there, or did: what befell it since is its own affair
)

// OutOf reads it from what the source's Propolis says. Without a migration, any
// one counts.
//
// Guess source-names-its-migration: a migration's source names it in `migration_out` until its
// process ends, also when its machine is destroyed.
// Check: `sledctl propolis get --instance NAME` on the source, right after the target runs, with
// the source's sledctl killed
func (vm VM) OutOf(id, migration string) Whereabouts {
	out := vm.Migration.Out
	switch {
	case vm.Err != nil || vm.ID != id:
		return Unclear
	case out != nil && (migration == "" || out.ID == migration) && out.State == PhaseFinish && vm.State != propolis.StateMigrating:
		return AtTarget
	case vm.State == propolis.StateMigrating:
		return OnTheWay
	case propolis.Final(vm.State):
		return Unclear // it has ended otherwise, and is nowhere
	}
	return AtSource
}

// Into reads it from what the target's Propolis says.
//
// Guess both-sides-have-one-id: the source and the target of a migration have the same id in their
// Propolis' properties, the instance's.
// Check: let a control plane move a VM between a sled of omicron's agent and one that sledctl
// manages
func (vm VM) Into(id, migration string) Whereabouts {
	in := vm.Migration.In
	switch {
	case errors.Is(vm.Err, propolis.ErrNoInstance), vm.Err == nil && vm.State == "":
		return AtSource // as far as the target goes: it has no machine
	case vm.Err != nil || vm.ID != id:
		return Unclear
	case in == nil || in.ID != migration, vm.State == propolis.StateFailed && in.State != PhaseFinish:
		return AtSource
	case vm.State == propolis.StateMigrating, vm.State == propolis.StateCreating:
		return OnTheWay
	}
	return AtTarget
}

// Left returns the migration by which the VM of a record left this sled, if it left by
// one of which the record does not know.
func (vm VM) Left(r record.Record) (migration string, yes bool) {
	if r.Migration != nil || vm.Migration.Out == nil || vm.OutOf(r.ID, "") != AtTarget {
		return "", false
	}
	return vm.Migration.Out.ID, true
}

// PhaseFinish is the last phase of a migration that has succeeded.
const PhaseFinish = "Finish"

// Obstacles lists what keeps an instance's machine from being migrated. Shared
// says that its files lead to the same data on both sleds.
func Obstacles(underlay netip.Prefix, r record.Record, shared bool) ([]spec.Problem, error) {
	request, err := layout.RequestOf(underlay, r)
	if err != nil {
		return nil, err
	}
	m := *request.Init.Spec
	problems := m.Unmovable()
	if r.VMM != nil || r.Ending != nil {
		problems = append(problems, spec.Problem{What: "it is the control plane's, which moves its VMs itself"})
	}
	if r.Later != nil {
		problems = append(problems, spec.Problem{What: "its disks change with its next bring-up: stop and start it first"})
	}
	for _, key := range m.Components.Keys() {
		if _, crucible := m.Components[key].(spec.CrucibleStorage); crucible && r.Spec.Machine != nil {
			problems = append(problems, spec.Problem{Path: spec.Path(key, "request_json"),
				What: "a Crucible volume in a spec takes a new generation number to the target, " +
					"and only the spec's author knows which: describe it by crucible instead"})
		}
	}
	for _, key := range m.Files() {
		if what := diskObstacle(m.Components[key].(spec.FileStorage).Path, shared, "--shared-disks"); what != "" {
			problems = append(problems, spec.Problem{Path: spec.Path(key, "path"), What: what})
		}
	}
	return problems, nil
}

// DiskObstacles lists the disks of a VM that keep it from coming here by a migration which a
// request asks for. Shared is as in Obstacles.
func DiskObstacles(s record.Spec, shared bool) (problems []spec.Problem) {
	for _, d := range s.Disks {
		if what := diskObstacle(d.Path, shared, "shared_disks"); what != "" {
			problems = append(problems, spec.Problem{What: what})
		}
	}
	return problems
}

// diskObstacle says why a disk keeps its VM from being migrated; empty: it does not. Consent is
// what says that it is shared.
func diskObstacle(file string, shared bool, consent string) string {
	if _, volume := (record.Disk{Path: file}).Volume(); volume {
		return fmt.Sprintf("%q is a volume of this sled: a migration moves memory, and no disks", file)
	}
	if shared {
		return ""
	}
	return fmt.Sprintf("%q is a file: a migration moves no disks, and needs %s if it is the same file on both sleds (NFS)", file, consent)
}

// UnknownOutcomeError is a migration whose outcome is not known: on which sled the VM is.
// The machine runs on one of them.
type UnknownOutcomeError struct {
	Name string
	Err  error // what the target said last
	Why  string
}

// Error says what is known.
func (e *UnknownOutcomeError) Error() string {
	return fmt.Sprintf("cannot determine which sled runs instance %q: %s: %v", e.Name, e.Why, e.Err)
}

func (*UnknownOutcomeError) Kind() fault.Kind { return fault.Failed }

// Unwrap gives what the target said, and that something is left.
func (e *UnknownOutcomeError) Unwrap() []error {
	return []error{e.Err, &host.LeftoverError{Cause: e.Err, Err: errors.New(e.Why)}}
}

// Hint says what finds out.
func (e *UnknownOutcomeError) Hint() string {
	return "to finish it, run: sledctl instance migrate " + e.Name + "; if the target will never return, add --cancel --yes"
}
