package instance

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/zone"
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
	way := "to " + e.Migration.Peer()
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
	if e.Migration.Source == "" {
		return "to resume it, run: sledctl instance migrate " + e.Name
	}
	return "to resume it, run on the source: sledctl instance migrate " + e.Name + "; or here: sledctl instance ensure " + e.Name
}

// MovedError is an instance whose machine has been migrated away by somebody
// else: Propolis says so, and the state file does not know where it is.
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

// peer is what the Propolis on the other side says.
type peer struct {
	VM
	Spec *spec.InstanceSpec // nil: not known
}

// askSource asks the source's Propolis for its machine.
func askSource(ctx context.Context, spoken *propolis.Spoken, h host.Host, source string) peer {
	at, err := netip.ParseAddrPort(source)
	if err != nil {
		return peer{VM: VM{Err: err}}
	}
	ctx, release := context.WithTimeout(ctx, AskTimeout)
	defer release()
	c := propolis.Client{Host: h, Target: propolis.Target{Name: source, Address: at, Spoken: spoken}}
	d, err := c.Spec(ctx)
	if err != nil {
		return peer{VM: VM{Err: err}}
	}
	status, err := c.Monitor(ctx, 0)
	if err != nil {
		return peer{VM: VM{Err: err}}
	}
	return peer{VM{State: status.State, ID: d.Properties.ID, Generation: status.Generation, Migration: status.Migration}, d.Spec}
}

// whereabouts is where the machine of a migration is.
type whereabouts int

const (
	unclear whereabouts = iota // it cannot be determined
	onTheWay
	atSource
	atTarget // it runs there, or did: what befell it since is its own affair
)

// outOf reads it from what the source's Propolis says. Without a migration, any
// one counts.
func (vm VM) outOf(id, migration string) whereabouts {
	out := vm.Migration.Out
	switch {
	case vm.Err != nil || vm.ID != id:
		return unclear
	case out != nil && (migration == "" || out.ID == migration) && out.State == phaseFinish && vm.State != propolis.StateMigrating:
		return atTarget
	case vm.State == propolis.StateMigrating:
		return onTheWay
	case propolis.Final(vm.State):
		return unclear // it has ended otherwise, and is nowhere
	}
	return atSource
}

// into reads it from what the target's Propolis says.
func (vm VM) into(id, migration string) whereabouts {
	in := vm.Migration.In
	switch {
	case IsNoInstance(vm.Err), vm.Err == nil && vm.State == "":
		return atSource // as far as the target goes: it has no machine
	case vm.Err != nil || vm.ID != id:
		return unclear
	case in == nil || in.ID != migration, vm.State == propolis.StateFailed && in.State != phaseFinish:
		return atSource
	case vm.State == propolis.StateMigrating, vm.State == propolis.StateCreating:
		return onTheWay
	}
	return atTarget
}

// phaseFinish is the last phase of a migration that has succeeded.
const phaseFinish = "Finish"

// whereArrived says where the machine of an arrival is, by what both sides say.
func whereArrived(r record.Record, seen Observed) whereabouts {
	z, there := zone.Zone{}, false
	if r.Run != nil {
		z, there = seen.Inv.Zone(r.Run.Zone)
	}
	running := there && z.State == zone.Running
	if running && seen.Inside.Err != nil {
		return unclear
	}
	here := atSource
	if running && r.Run.Boot == seen.Boot {
		here = seen.Inside.VM.into(r.ID, r.Migration.ID)
	}
	if here != atSource {
		return here
	}
	// Nothing of it is here: it has not come, or was here and is lost.
	there2 := seen.Source.outOf(r.ID, r.Migration.ID)
	if there2 == onTheWay {
		return atSource // from a target that has no machine, it goes back
	}
	return there2
}

// asSource is VM.outOf of the instance's own Propolis.
func (s Observed) asSource(r record.Record) whereabouts {
	if r.Run == nil {
		return unclear
	}
	z, there := s.Inv.Zone(r.Run.Zone)
	if !there || z.State != zone.Running || s.Inside.Err != nil {
		return unclear
	}
	return s.Inside.VM.outOf(r.ID, "")
}

// left is the migration by which the machine left this sled, if one did of which
// the record does not know.
func (s Observed) left(r record.Record) (migration string, yes bool) {
	vm := s.Inside.VM
	if r.Migration != nil || vm.Migration.Out == nil || vm.outOf(r.ID, "") != atTarget {
		return "", false
	}
	return vm.Migration.Out.ID, true
}

// staying lists what keeps an instance's machine from being migrated. Shared
// says that its files lead to the same data on both sleds.
func staying(underlay netip.Prefix, r record.Record, shared bool) ([]spec.Problem, error) {
	request, err := layout.RequestOf(underlay, r)
	if err != nil {
		return nil, err
	}
	m := *request.Init.Spec
	problems := m.Unmovable()
	if r.VMM != nil || r.Ending != nil {
		problems = append(problems, spec.Problem{What: "it is the control plane's, which moves its VMs itself"})
	}
	for _, key := range m.Components.Keys() {
		if _, crucible := m.Components[key].(spec.CrucibleStorage); crucible {
			problems = append(problems, spec.Problem{Path: spec.Path(key, "request_json"),
				What: "a Crucible volume takes a new generation number to the target, " +
					"and only the control plane knows which"})
		}
	}
	for _, key := range m.Files() {
		file := m.Components[key].(spec.FileStorage)
		_, volume := record.Disk{Path: file.Path}.Volume()
		switch {
		case volume:
			problems = append(
				problems,
				spec.Problem{
					Path: spec.Path(key, "path"),
					What: fmt.Sprintf("%q is a volume of this sled: a migration moves memory, and no disks", file.Path),
				},
			)
		case !shared:
			problems = append(
				problems,
				spec.Problem{
					Path: spec.Path(key, "path"),
					What: fmt.Sprintf(
						"%q is a file: a migration moves no disks, and needs --shared-disks if it is the same file on both sleds (NFS)",
						file.Path,
					),
				},
			)
		}
	}
	return problems, nil
}

// errNoMachine is a source that has another machine, or none that runs.
func errNoMachine(vm VM, id string) error {
	if vm.ID != id {
		return fmt.Errorf("it has another machine, %s", vm.ID)
	}
	return fmt.Errorf("its machine is %s, and must be Running", vm.State)
}

// incoming asks the target's Propolis for what the source's has.
func incoming(underlay netip.Prefix, r record.Record, seen Observed, step *propolis.Arrive) error {
	from := seen.Source
	own, err := layout.RequestOf(underlay, r)
	if err != nil {
		return err
	}
	m := r.Migration
	switch {
	case from.Err != nil:
		return &SourceError{m.Source, from.Err}
	case from.ID != r.ID || from.State != propolis.StateRunning:
		return &SourceError{m.Source, errNoMachine(from.VM, r.ID)}
	case from.Spec == nil:
		return &SourceError{m.Source, errors.New("it does not say what its machine is")}
	}
	theirs, _ := from.Spec.Seal(seen.Vault.Key)
	replace, problems := spec.Replace(theirs, *own.Init.Spec)
	if problems = slices.Concat(from.Spec.Unmovable(), problems); len(problems) > 0 {
		return &UnmovableError{r.Name, problems}
	}
	step.Machine = *own.Init.Spec
	step.Request = spec.EnsureRequest{
		Properties: own.Properties,
		Init:       spec.Init{Migration: &spec.MigrationTarget{ID: m.ID, Source: m.Source, Replace: replace}},
	}
	return nil
}
