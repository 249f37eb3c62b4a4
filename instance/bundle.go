package instance

import (
	"cmp"

	"github.com/sledctl/sledctl/bundle"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/inventory"
	"github.com/sledctl/sledctl/operation"
	"github.com/sledctl/sledctl/plan"
	"github.com/sledctl/sledctl/zone"
)

// evidence takes a bundle of a run's zone before the zone goes, where something
// went wrong with it: nobody asks what a healthy instance's logs said that is
// stopped. It is a courtesy: a bundle that cannot be taken keeps no zone.
func (s Settings) evidence(r Record, seen Seen, at operation.Moment) []plan.Action {
	z, there := seen.Inv.Zone(r.Run.Zone)
	status := s.status(r, seen)
	cause := bundle.Failed
	if r.Run.Boot != seen.Boot && z.State != zone.Running {
		cause = bundle.StaleZone
	}
	if !there || cause == bundle.Failed && status.State != Failed {
		return nil
	}
	step, ok := s.Bundles.Of(seen.Places, z, cause, cmp.Or(status.Reason, "the instance is "+status.State), at.Now, at.ID)
	if !ok {
		return nil
	}
	return []plan.Action{{
		ID: step.Verb() + " " + z.Name, Object: "bundle " + step.ID, Why: "of zone " + z.Name + ", before it goes", Change: plan.Create, Courtesy: true, Step: step,
	}}
}

// places are where bundles can be written; none if there is no place.
func (s Settings) places(f host.Files, inv *inventory.Inventory) []bundle.Place {
	pools, err := inv.Pools()
	if err != nil {
		return nil
	}
	var names []string
	for _, p := range pools {
		if p.Answers() {
			names = append(names, p.Name)
		}
	}
	ready, _ := s.Bundles.Ready(f, names) // nowhere: reap tells it
	return ready
}
