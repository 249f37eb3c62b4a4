package instance

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"syscall"

	"github.com/sledctl/sledctl/engine/bundle"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/illumos/smf"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/zone"
)

// keepEvidence takes a bundle of an incarnation's zone before the zone goes, where something
// went wrong with it: nobody asks what a healthy instance's logs said that is
// stopped. It is a best effort: if a bundle cannot be taken, the zone is removed anyway.
func keepEvidence(s Settings, r record.Record, seen Observed, at operation.Stamp, when string) []plan.Action {
	cause, reason := wentWrong(s.Blueprint(), r, seen)
	if cause == "" {
		return nil
	}
	z, _ := seen.Inv.Zone(r.Incarnation.Zone)
	step, ok := s.Bundles.Of(seen.Places, z, cause, reason, at.Now, at.ID)
	if !ok {
		return nil
	}
	return []plan.Action{bundleOf(step, when)}
}

// addEvidence has those steps of a start that fail inside the zone tell why: the
// zone's logs are quoted, and a bundle of it is kept before it is removed. A
// machine's server says what it does in the log of its service.
func addEvidence(s Settings, r record.Record, stages map[Stage][]plan.Action, seen Observed, at operation.Stamp) {
	incarnation, server := *r.Incarnation, smf.LogFile(layout.ServiceFMRI(s.Blueprint(), r))
	for stage, log := range map[Stage]string{StageBoot: smf.LogDir, StageStart: server, StageEnsure: server, StageRun: server} {
		for i := range stages[stage] {
			a := &stages[stage][i]
			a.Evidence = &plan.Evidence{Root: path.Join(incarnation.Zonepath, "root"), Log: log}
			running := a.Step.Verb() != zone.Boot{}.Verb()
			if step, ok := s.Bundles.OfStart(seen.Places, incarnation.Zone, incarnation.Zonepath, r.ID, running, at.Now); ok {
				a.Evidence.Keep = []plan.Action{bundleOf(step, "before it is removed")}
			}
		}
	}
}

func bundleOf(step bundle.Take, when string) plan.Action {
	return plan.Action{
		ID: step.Verb() + " " + step.Zone, Object: "bundle " + step.ID, Why: "of zone " + step.Zone + ", " + when,
		Change: plan.Create, BestEffort: true, Step: step,
	}
}

// teardownWarnings says what a teardown removes without keeping or asking it.
func teardownWarnings(b layout.Blueprint, r record.Record, seen Observed) []error {
	return append(unkept(b, r, seen), unasked(r, seen)...)
}

// unasked says that a machine is not asked to stop, since nobody who can be believed
// answers for it: it ends with its zone.
func unasked(r record.Record, seen Observed) []error {
	err := seen.Inside.VM.Err
	if err == nil || r.Incarnation == nil || !r.Incarnation.Ensured || r.Migration != nil ||
		IsNoInstance(err) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EHOSTUNREACH) {
		return nil
	}
	return []error{fmt.Errorf("did not ask the VM of %s to stop; it ends with its zone: %w", r.Name, err)}
}

// unkept says that there is no place for what a zone that goes could tell.
func unkept(b layout.Blueprint, r record.Record, seen Observed) []error {
	if cause, _ := wentWrong(b, r, seen); cause == "" || seen.Nowhere == nil {
		return nil
	}
	return []error{fmt.Errorf("could not keep a bundle of zone %s: %w", r.Incarnation.Zone, seen.Nowhere)}
}

// wentWrong is why a bundle of an incarnation's zone is worth its room; no cause: it is
// not, or there is no zone that was ever installed.
func wentWrong(b layout.Blueprint, r record.Record, seen Observed) (bundle.Cause, string) {
	if r.Incarnation == nil {
		return "", ""
	}
	z, there := seen.Inv.Zone(r.Incarnation.Zone)
	status := statusIn(b, r, seen)
	reason := cmp.Or(status.Reason, "the instance is "+status.State)
	switch {
	case !there, z.State == zone.Configured:
		return "", ""
	case r.Incarnation.Boot != seen.Boot && z.State != zone.Running:
		return bundle.StaleZone, reason
	case status.State == record.Failed, r.Incarnation.Ensured && down(seen.Inside.Services[layout.ServiceFMRI(b, r)]):
		return bundle.Failed, reason
	}
	return "", ""
}

// down reports whether a service was seen, and does not run.
func down(state string) bool { return state != "" && state != smf.Online }
