package instance

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/smf"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/instance/secrets"
	"github.com/sledctl/sledctl/zone"
)

// Whether a recorded incarnation is resumed, or removed and built again: a VM that runs is
// never ended for a difference that nobody has asked for.

// verdict is what is done with the recorded incarnation.
type verdict int

const (
	resume            verdict = iota
	rebuild                   // remove it, and begin another
	rollBack                  // take its zone back to what was cloned, and boot that
	refuseUninspected         // it may have a VM, and cannot be inspected
	refuseChanges             // what is asked for needs a rebuild, which was not asked for
	refuseDrift               // others have changed what its VM runs on
)

// standing is what the verdict on a recorded incarnation depends on.
type standing struct {
	incarnation record.Incarnation
	seen        Observed
	p           progress
	zone        zone.Zone
	zoned       bool // the zone exists
	alive       bool // and has its VM
	changes     []Difference
	step        bool // a single step is asked for
	consent     bool // to a rebuild of what runs
	address     bool // all that is missing is the address of Propolis
	service     string
	doubt       string // why its zone is not proven to be as it was cloned; empty: it is
}

func (s standing) thisBoot() bool { return s.incarnation.Boot == s.seen.Boot }

// earlier reports whether the zone is from an earlier boot, or was being rolled back
// when that was cut short: as it is, it is not what was cloned.
func (s standing) earlier() bool { return !s.thisBoot() || s.incarnation.Rolling }

func (s standing) running() bool { return s.zoned && s.zone.State == zone.Running }

// rule is a verdict, and when it holds. Why is the reason that an operator reads for a
// rebuild.
type rule struct {
	when    func(standing) bool
	verdict verdict
	why     string
}

// rules are in order: the first that applies decides.
func rules() []rule {
	return slices.Concat(uninspectedRules(), changeRules(), missingRules(), runningRules(), haltedRules())
}

func uninspectedRules() []rule {
	return []rule{
		{func(s standing) bool { return s.address && len(s.changes) == 0 }, resume, "only its control address is missing"},
		{
			func(s standing) bool { return s.seen.uninspected() && !s.incarnation.Ensured && !s.step }, rebuild,
			"it cannot be inspected, and has no VM yet",
		},
		{func(s standing) bool { return s.seen.uninspected() && (len(s.changes) == 0 || !s.consent) }, refuseUninspected, ""},
	}
}

func changeRules() []rule {
	return []rule{
		{func(s standing) bool { return len(s.changes) > 0 && s.wouldLose() && !s.consent }, refuseChanges, ""},
		{func(s standing) bool { return len(s.changes) > 0 && s.step }, resume, "what changes is not built yet"},
		{func(s standing) bool { return len(s.changes) > 0 }, rebuild, "its description changes"},
		{func(s standing) bool { return s.alive && !(s.p.installed && s.p.linksThere()) && !s.consent }, refuseDrift, ""},
		{func(s standing) bool { return s.seen.nameTaken(s.incarnation, s.p) }, rebuild, "another link has the name of one of its VNICs"},
	}
}

// missingRules are those for an incarnation without a zone.
func missingRules() []rule {
	return []rule{
		{func(s standing) bool { return !s.zoned && s.incarnation.Ensured }, rebuild, "its zone is missing"},
		{func(s standing) bool { return !s.zoned && !s.thisBoot() }, rebuild, "its zone is missing, and the sled has rebooted since"},
		{func(s standing) bool { return !s.zoned }, resume, "its zone is not created yet"},
	}
}

func runningRules() []rule {
	return []rule{
		{func(s standing) bool { return s.running() && !s.p.installed }, rebuild, "its zone's configuration differs"},
		{func(s standing) bool { return s.running() && !s.p.linksThere() }, rebuild, "its VNICs are missing, or differ"},
		{func(s standing) bool { return s.running() && s.incarnation.Ensured && !s.p.ensured }, rebuild, "its Propolis does not have the VM any longer"},
		{func(s standing) bool { return s.running() && s.ended() }, rebuild, "its VM has ended"},
		{func(s standing) bool { return s.running() && s.service == smf.Maintenance }, rebuild, "its Propolis service is in maintenance"},
		{func(s standing) bool { return s.running() && s.incarnation.Rolling && !s.alive }, rebuild, "it is not known whether its zone was rolled back before it booted"},
		{standing.running, resume, "its zone and VNICs are as recorded"},
	}
}

// rebooted is why a zone from before the boot is rebuilt. What is not proven of it
// follows.
const rebooted = "the sled has rebooted since it was built"

// haltedRules are those for an incarnation whose zone does not run.
func haltedRules() []rule {
	return []rule{
		{func(s standing) bool { return s.earlier() && s.doubt == "" && !s.step }, rollBack, ""},
		{standing.earlier, rebuild, rebooted},
		{func(s standing) bool { return s.incarnation.Ensured }, rebuild, "its zone is not running"},
		{func(s standing) bool { return s.zone.State == zone.Installed && s.p.installed && s.p.dataset }, resume, "its zone is as recorded"},
		{func(s standing) bool { return s.zone.State == zone.Configured && s.p.configured }, resume, "its zone is as recorded"},
		{func(standing) bool { return true }, rebuild, "its zone is incomplete, or differs"},
	}
}

// judgeRecorded is what is done with the recorded incarnation, and why. It is resumed if it is
// of this boot, nothing of it is broken, and nothing that it was built with changes.
// Errors: *NotInspectableError, *ConflictError.
func judgeRecorded(b layout.Blueprint, choose chooser, old, next record.Record, seen Observed, c EnsureRequest) (verdict, string, error) {
	if old.Incarnation == nil {
		return rebuild, "", nil
	}
	s := standingOf(b, old, next, seen, c)
	if s.earlier() {
		s.doubt = choose.doubtOf(old)
	}
	for _, r := range rules() {
		if !r.when(s) {
			continue
		}
		switch r.verdict {
		case refuseUninspected:
			return r.verdict, "", &NotInspectableError{Name: old.Name, Err: seen.why()}
		case refuseChanges:
			return r.verdict, "", &ConflictError{Name: old.Name, Differences: s.changes, Recreate: !s.step}
		case refuseDrift:
			return r.verdict, "", &ConflictError{Name: old.Name, Differences: driftDifferences(b, old, seen, s.p), Recreate: !s.step}
		}
		return r.verdict, s.because(r.why), nil
	}
	return rebuild, "", nil
}

func standingOf(b layout.Blueprint, old, next record.Record, seen Observed, c EnsureRequest) standing {
	s := standing{
		incarnation: *old.Incarnation, seen: seen, p: progressOf(b, old, seen), alive: seen.alive(old), changes: rebuilding(old.Spec, next.Spec, c),
		step: c.Only != "", consent: c.Recreate, service: seen.Inside.Services[layout.ServiceFMRI(b, old)],
	}
	s.zone, s.zoned = seen.Inv.Zone(old.Incarnation.Zone)
	if old.Name != next.Name {
		s.changes = append(s.changes, Difference{Field: "name", Is: old.Name, Wanted: next.Name})
	}
	if id := c.Wanted.PropolisID; id != "" && id != old.Incarnation.PropolisID {
		s.changes = append(s.changes, Difference{Field: "propolis-id", Is: old.Incarnation.PropolisID, Wanted: id})
	}
	s.address = seen.unreachable(*old.Incarnation, s.p)
	return s
}

// rebuilding are the differences for which an incarnation is built again: none, if all that
// differs is what guest NICs are held to. A single step changes no VM that runs.
func rebuilding(is, wanted record.Spec, c EnsureRequest) []Difference {
	all := differences(is, wanted)
	if c.Only == "" && len(all) == 1 && all[0].Field == "nics" && record.NicText(unlimited(is.NICs)) == record.NicText(unlimited(wanted.NICs)) {
		return nil
	}
	return all
}

// unlimited are NICs that are held to nothing but their MAC address, and let through what a port does that
// was told nothing.
func unlimited(nics []record.NIC) []record.NIC {
	nics = slices.Clone(nics)
	for i := range nics {
		nics[i].MaxBW, nics[i].AllowIP, nics[i].Rules, nics[i].Routes = 0, nil, nil, nil
	}
	return nics
}

// wouldLose reports whether the changes are to what exists: a VM that runs, or
// what a single step would have to build again.
func (s standing) wouldLose() bool { return s.alive || s.step && s.p.built(s.changes, s.incarnation) }

// ended reports whether Propolis says that its VM is on its way out, or gone.
func (s standing) ended() bool {
	return slices.Contains([]string{"Stopping", "Stopped", "Failed", "Destroyed"}, s.seen.Inside.VM.State)
}

// because is a rule's reason, with the fields that change.
func (s standing) because(why string) string {
	var fields []string
	for _, d := range s.changes {
		fields = append(fields, d.Field)
	}
	switch {
	case why == rebooted && s.doubt != "":
		return why + ", and " + s.doubt
	case len(fields) == 0:
		return why
	}
	return why + ": " + strings.Join(fields, ", ")
}

// unreachable reports whether Propolis runs, in a zone as it was made, and cannot
// be asked for lack of its address alone: somebody has deleted that. Propolis
// still listens there, so the address is all that must be made again.
//
// Guess listening-outlives-address: Propolis goes on listening while its address is deleted and
// made again, as TCP's sockets do.
// Check: `zlogin ZONE ipadm delete-addr vnic_propolis0/control`; `sledctl instance ensure NAME`
func (s Observed) unreachable(incarnation record.Incarnation, p progress) bool {
	return incarnation.Ensured && !incarnation.Foreign && s.Inside.Err == nil && s.Inside.VM.Err != nil && !IsNoInstance(s.Inside.VM.Err) &&
		p.installed && p.linksThere() && p.online && !p.address
}

// built reports whether an incarnation already has what one of the changes would change:
// VNICs and the zonepath are chosen with the incarnation, disks, the address and the cap are in
// the zone's configuration and profile, CPUs and memory go to Propolis.
func (p progress) built(changes []Difference, incarnation record.Incarnation) bool {
	return slices.ContainsFunc(changes, func(d Difference) bool {
		switch d.Field {
		case "cpus", "memory":
			return incarnation.Ensured
		case "disks", "address", "cpu-cap":
			return p.configured
		}
		return true
	})
}

// alive reports whether the instance's machine is there and has not ended. It is
// not powered off for a difference unless the operator says so.
func (s Observed) alive(r record.Record) bool {
	ended := []string{"", "Stopping", "Stopped", "Failed", "Destroyed"}
	return s.Inside.VM.ID == r.ID && !slices.Contains(ended, s.Inside.VM.State)
}

// driftDifferences lists what somebody else has changed of an incarnation.
func driftDifferences(b layout.Blueprint, r record.Record, seen Observed, p progress) []Difference {
	var all []Difference
	config, _ := seen.Inv.Config(r.Incarnation.Zone)
	for _, d := range zone.Compare(layout.ZoneConfig(b, r), config) {
		all = append(all, Difference{Field: "zone's " + d.Property, Is: cmp.Or(d.Found, "none"), Wanted: cmp.Or(d.Wanted, "none")})
	}
	for _, v := range r.Incarnation.VNICs() {
		if !p.vnics[v.Name] {
			all = append(all, Difference{Field: v.Noun() + " " + v.Name, Is: "gone or another", Wanted: linkText(v)})
		}
	}
	return all
}

// linkText is a VNIC as it was made.
func linkText(v record.VNIC) string {
	if v.Port {
		return "opte,mac=" + v.MAC
	}
	return "over=" + v.Over + ",mac=" + v.MAC
}

// nameTaken reports whether another link has the name of one of the incarnation's VNICs.
func (s Observed) nameTaken(incarnation record.Incarnation, p progress) bool {
	return slices.ContainsFunc(incarnation.VNICs(), func(v record.VNIC) bool {
		_, there := s.Inv.Link(v.Name)
		return there && !p.vnics[v.Name]
	})
}

func (p progress) linksThere() bool {
	for _, there := range p.vnics {
		if !there {
			return false
		}
	}
	return true
}

// NotInspectableError is a running zone into which one could not look: nothing that
// may be running is rebuilt on a guess.
type NotInspectableError struct {
	Name string
	Err  error
}

// Error says why.
func (e *NotInspectableError) Error() string {
	return fmt.Sprintf("instance %q is running, but its zone cannot be inspected: %v", e.Name, e.Err)
}

func (*NotInspectableError) Kind() fault.Kind { return fault.Refused }

// Unwrap gives the cause.
func (e *NotInspectableError) Unwrap() error { return e.Err }

// Hint says what makes it sure.
func (e *NotInspectableError) Hint() string {
	return "to rebuild it, run: sledctl instance stop " + e.Name + " && sledctl instance start " + e.Name + " (this powers the VM off)"
}

// BrokenError is a single step on an instance that was complete and is not any
// more: no step of it repairs that.
type BrokenError struct {
	Name   string
	Status Status
}

// Error says in what state it is.
func (e *BrokenError) Error() string {
	if e.Status.Reason == "" {
		return fmt.Sprintf("instance %q is %s", e.Name, e.Status.State)
	}
	return fmt.Sprintf("instance %q is %s: %s", e.Name, e.Status.State, e.Status.Reason)
}

func (*BrokenError) Kind() fault.Kind { return fault.Conflict }

// Hint says what rebuilds it.
func (e *BrokenError) Hint() string { return "to rebuild it, run: sledctl instance ensure " + e.Name }

// checkRebuild refuses a single step on what is broken, and a second run next to
// one that is half built under an id of the control plane's.
func checkRebuild(b layout.Blueprint, old record.Record, seen Observed, c EnsureRequest) error {
	switch {
	case old.Incarnation == nil:
		return nil
	case c.Only != "" && old.Incarnation.Ensured:
		return &BrokenError{Name: old.Name, Status: statusIn(b, old, seen)}
	case old.VMM != nil && !old.Incarnation.Ensured:
		return &IncompleteBuildError{Name: old.Name}
	}
	return nil
}

// opens has the volumes in a Crucible opened with another generation, if the next incarnation is a
// new one. The facts count it.
func opens(
	s Settings, choose chooser, old, next record.Record, seen Observed, fresh map[string]string, c EnsureRequest,
) (record.Record, []ledger.Fact, error) {
	if len(next.Spec.Crucible) == 0 {
		return next, nil, nil
	}
	v, _, err := judgeRecorded(s.Blueprint(), choose, old, next, seen, c)
	if err != nil || v == resume {
		return next, nil, nil // the plan has the same error
	}
	generation, counted, err := record.NextGeneration(choose.view, next)
	if err == nil {
		next, err = secrets.WithRequests(old, next, seen.Vault, fresh, generation)
	}
	return next, counted, err
}
