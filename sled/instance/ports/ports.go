// Package ports makes the guest NICs of an instance that are in a VPC: for each a port of OPTE, with
// its firewall and its routes. The driver keeps none of them over a boot.
package ports

import (
	"context"
	"fmt"
	"slices"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/opte"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// NoUnderlayError is a sled on which no VM can be in a VPC.
type NoUnderlayError struct{}

// Error names the setting.
func (*NoUnderlayError) Error() string {
	return "network.opte_address is not set, by which VMs of VPCs reach those on other sleds"
}

func (*NoUnderlayError) Kind() fault.Kind { return fault.Refused }

// Hint says what sets it.
func (*NoUnderlayError) Hint() string {
	return "set network.opte_address and network.opte_links, then run the same command again"
}

// Observed is what was seen of the ports of an incarnation.
type Observed struct {
	Underlay bool                   // some port is on the sled, so that the links below are set
	Inside   map[string]opte.Inside // by the name of a port that is as recorded
	Rules    map[string][]opte.Rule // those that such a port is recorded with
}

// Look reads what the ports of a record's incarnation were told. Without ports nothing is asked. Errors:
// *inventory.UnknownError, opte.ErrSyntax, a *host.CommandError.
func Look(ctx context.Context, h host.Host, r record.Record, inv *inventory.Inventory) (Observed, error) {
	seen := Observed{Underlay: inv.HasPorts(), Inside: map[string]opte.Inside{}, Rules: map[string][]opte.Rule{}}
	if r.Incarnation == nil {
		return seen, nil
	}
	for _, v := range r.Incarnation.Guests {
		if !v.Port {
			continue
		}
		if err := inv.Know(inventory.Ports); err != nil {
			return seen, err
		}
		if l, there := inv.Link(v.Name); !there || !v.Is(l) {
			continue
		}
		in, err := opte.Look(ctx, h, v.Name)
		if err != nil {
			return seen, fmt.Errorf("look at port %s: %w", v.Name, err)
		}
		seen.Inside[v.Name], seen.Rules[v.Name] = in, r.Spec.NICOf(v.MAC).FirewallOf()
	}
	return seen, nil
}

// Ask reads what the ports of an incarnation were told, by their names. What cannot be read is left out.
func Ask(ctx context.Context, h host.Host, incarnation record.Incarnation) map[string]opte.Inside {
	found := map[string]opte.Inside{}
	for _, v := range incarnation.Guests {
		if !v.Port {
			continue
		}
		if in, err := opte.Look(ctx, h, v.Name); err == nil {
			found[v.Name] = in
		}
	}
	return found
}

// AreAsWanted reports whether the ports of a record's incarnation have the rules and routes that they
// should. Any doubt is a no.
func AreAsWanted(ctx context.Context, h host.Host, r record.Record) bool {
	seen := Ask(ctx, h, *r.Incarnation)
	return !slices.ContainsFunc(r.Incarnation.Guests, func(v record.VNIC) bool {
		in, read := seen[v.Name]
		return v.Port && (!read || Lacks(r, v, in) != "")
	})
}

// Lacks says what a port does not have that it should: its rules, or routes. Empty: nothing.
func Lacks(r record.Record, v record.VNIC, in opte.Inside) string {
	n := r.Spec.NICOf(v.MAC)
	if !in.HasRules(n.FirewallOf()) {
		return "with other firewall rules"
	}
	for _, route := range n.RoutesOf() {
		if !in.HasRoute(route) {
			return "without the route " + route.String()
		}
	}
	return ""
}

// Up lists what is left to do for a port, in order. Of one that exists, rules are put back that another
// program has changed, and routes that are missing. While its NIC is given others, also those routes go
// that it is not to have.
func Up(b layout.Blueprint, r record.Record, v record.VNIC, seen Observed) []plan.Action {
	in, there := seen.Inside[v.Name]
	var all []plan.Action
	if !there {
		all = append(all, create(b, r, v, seen)...)
	}
	why := "what has no route is dropped"
	if r.Incarnation.Limiting {
		why = asked
	}
	if rules := r.Spec.NICOf(v.MAC).FirewallOf(); !in.HasRules(rules) {
		step := opte.SetRules{Port: v.Name, MAC: v.MAC, Rules: rules}
		if there {
			step.Stays, step.Before = true, seen.Rules[v.Name]
		}
		all = append(all, plan.Action{ID: "opte.set-rules " + v.Name, Object: "port " + v.Name, Why: "its firewall", Change: plan.Modify, Step: step})
	}
	return plan.Chain(append(all, reroute(r, v, in, there, why)...)...)
}

// asked is why what runs is changed.
const asked = "as is asked for; the VM runs on"

// reroute gives a port the routes of its NIC.
func reroute(r record.Record, v record.VNIC, in opte.Inside, there bool, why string) (all []plan.Action) {
	wanted := r.Spec.NICOf(v.MAC).RoutesOf()
	remove, add := in.Reroute(wanted)
	if !r.Incarnation.Limiting {
		remove, add = nil, slices.DeleteFunc(wanted, in.HasRoute)
	}
	act := func(step plan.Step, route opte.Route) {
		id := step.Verb() + " " + v.Name + " " + route.String()
		for slices.ContainsFunc(all, func(a plan.Action) bool { return a.ID == id }) { // another program has added it twice
			id += " again"
		}
		all = append(all, plan.Action{ID: id, Object: "port " + v.Name, Why: why, Change: plan.Modify, Step: step})
	}
	for _, route := range remove {
		act(opte.RemoveRoute{Port: v.Name, MAC: v.MAC, Route: route}, route)
	}
	for _, route := range add {
		act(opte.AddRoute{Port: v.Name, MAC: v.MAC, Route: route, Stays: there}, route)
	}
	return all
}

// create makes a port, and sets the links below the first one on the sled.
func create(b layout.Blueprint, r record.Record, v record.VNIC, seen Observed) (all []plan.Action) {
	if len(b.OPTE.Links) == 2 && !seen.Underlay {
		all = append(all, plan.Action{
			ID: "opte.set-underlay " + v.Name, Object: "links below OPTE's ports", Why: "no port is on the sled yet", Change: plan.Modify,
			Step: opte.SetUnderlay{First: b.OPTE.Links[0], Second: b.OPTE.Links[1]},
		})
	}
	if len(b.OPTE.Boundary) > 0 && !seen.Underlay {
		for _, prefix := range []string{"0.0.0.0/0", "::/0"} {
			all = append(all, plan.Action{
				ID: "opte.set-boundary " + v.Name + " " + prefix, Object: "way out of OPTE's ports", Why: "no port is on the sled yet", Change: plan.Modify,
				Step: opte.SetBoundary{Prefix: prefix, Switches: b.OPTE.Boundary},
			})
		}
	}
	step := opte.Create{Name: v.Name, MAC: v.MAC, VNI: r.Spec.NICOf(v.MAC).VNI, Physical: b.OPTE.Address}
	n := r.Spec.NICOf(v.MAC)
	step.IP, step.Subnet, step.Gateway = n.Addresses()
	step.SNAT, step.Ephemeral, step.Floating = n.SNAT, n.Ephemeral, n.Floating
	return append(all, plan.Action{ID: "opte.create " + v.Name, Object: "port " + v.Name, Why: "guest NIC", Change: plan.Create, Step: step})
}
