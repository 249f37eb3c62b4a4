// Package comparison sets what is recorded of one instance next to what is observed of it:
// by Propolis, the links, and the zone's configuration.
//
// Look takes one look at the host. What it could not see is in no row, or not judged.
package comparison

import (
	"context"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/illumos/opte"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/ports"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/instance/secrets"
	"github.com/sledctl/sledctl/vnic"
	"github.com/sledctl/sledctl/zone"
)

// Comparison is one instance, wanted and observed.
type Comparison struct {
	instance.Instance
	Rows []Row
	// Zone is the one of its incarnation; nil: it does not exist, or was not seen.
	Zone *zone.Zone
	// Answers is where its Propolis answered; empty: it did not, or was not asked.
	Answers string
}

// Row is one thing that is wanted.
type Row struct {
	Field    string `json:"field"`
	Wanted   string `json:"wanted"`
	Observed string `json:"observed"`
	// Verdict is Same or Differs; empty: it was not seen.
	Verdict string `json:"verdict"`
	// Change is what was added (+) and removed (-), where that is shorter.
	Change string `json:"change,omitempty"`
	// Mendable says that ensure puts it back while the VM runs on.
	Mendable bool `json:"-"`
}

// The verdicts.
const (
	Same    = "same"
	Differs = "differs"
)

// Differing are the rows in which what is observed is not what is wanted.
func (c Comparison) Differing() []Row {
	var all []Row
	for _, r := range c.Rows {
		if r.Verdict == Differs {
			all = append(all, r)
		}
	}
	return all
}

// seen is what a look has found.
type seen struct {
	inv     *inventory.Inventory
	machine *spec.InstanceSpec     // that Propolis has; nil: it did not say
	limits  map[string]vnic.Limits // of the guest VNICs; none where they could not be read
	ports   map[string]opte.Inside // of the guest ports; none where they could not be read
	sent    *spec.InstanceSpec     // that it was given; nil: that is not recorded
	lost    bool                   // the digests of what Propolis has are not those of the record
}

// Look compares the instance that ref means.
func Look(ctx context.Context, s instance.Settings, env operation.Env, view ledger.View, ref string) (Comparison, error) {
	r, err := s.Find(view, ref)
	if err != nil {
		return Comparison{}, err
	}
	want := inventory.Want{Parts: []inventory.Part{inventory.Zones, inventory.Configs, inventory.Links, inventory.Pools}}
	look := seen{inv: &inventory.Inventory{}}
	if r.Incarnation != nil {
		want.OfZones = func(name string) bool { return name == r.Incarnation.Zone }
		look.inv = inventory.Look(ctx, env.Host, want)
	}
	all, err := s.ObserveIn(ctx, env, view, []record.Record{r}, look.inv)
	if err != nil {
		return Comparison{}, err
	}
	c := Comparison{Instance: all[0]}
	if r.Incarnation != nil {
		if z, there := look.inv.Zone(r.Incarnation.Zone); there {
			c.Zone = &z
		}
	}
	if c.Zone != nil && c.Zone.State == zone.Running {
		look.limits = instance.LookLimits(ctx, env.Host, *r.Incarnation)
		look.ports = ports.Ask(ctx, env.Host, *r.Incarnation)
		c.Answers = look.ask(ctx, s.Blueprint(), env, view, r)
	}
	c.Rows = rows(s.Blueprint(), c.Instance, look)
	return c, nil
}

// ask has Propolis say what its VM is. Secrets are digests, as in what was sent.
func (l *seen) ask(ctx context.Context, b layout.Blueprint, env operation.Env, view ledger.View, r record.Record) (at string) {
	ctx, release := context.WithTimeout(ctx, layout.AskTimeout)
	defer release()
	target := layout.OwnTarget(b, r)
	d, err := (propolis.Client{Host: env.Host, Target: target}).Spec(ctx)
	if err != nil {
		return ""
	}
	if d.Spec == nil { // it waits for the source of its migration
		return target.Address.String()
	}
	hide, lost := secrets.Hiding(env.Host.Files(), r)
	machine := hide(*d.Spec)
	l.machine, l.lost = &machine, lost != nil
	sent, known, err := record.LoadSent(view, r.ID)
	if err == nil && known && sent.PropolisID == r.Incarnation.PropolisID && (lost == nil || len(sent.Spec.Sealed()) == 0) {
		l.sent = &sent.Spec
	}
	return target.Address.String()
}
