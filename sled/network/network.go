// Package network prepares what instances are connected to: the link or
// etherstub that their control VNICs lie over, the global zone's own VNIC and
// address there, and VNICs made one by one.
package network

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/ipadm"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/vnic"
)

// Settings are the configuration of the sled's network.
type Settings struct {
	Names       naming.Prefixes
	ControlLink string       // empty: the etherstub, else the link of the default route
	GuestLink   string       // under guests' VNICs that do not say; empty: none, or the control link
	Etherstub   string       // empty: none
	GZVNIC      string       // the global zone's VNIC on the control link; empty: none
	GZAddress   netip.Prefix // its address; invalid: none
	MTU         int
}

// Record is what was decided, under the key "network".
type Record struct {
	ControlLink string `json:"control_link"`
	Etherstub   string `json:"etherstub,omitempty"`
	GZVNIC      string `json:"gz_vnic,omitempty"`
	GZMAC       string `json:"gz_mac,omitempty"`
	GZAddress   string `json:"gz_address,omitempty"`
	// Former are links that an earlier configuration had: reap removes them
	// once nothing needs them.
	Former []Former `json:"former,omitempty"`
}

// Former is a link of sledctl that is no longer configured.
type Former struct {
	Kind string `json:"kind"` // etherstub, vnic
	Name string `json:"name"`
	MAC  string `json:"mac,omitempty"` // of a VNIC
}

// FormerVNIC says whether a VNIC was the global zone's own.
func (r Record) FormerVNIC(name, mac string) bool {
	return slices.Contains(r.Former, Former{Kind: "vnic", Name: name, MAC: mac})
}

// FormerEtherstub says whether an etherstub lay under the control VNICs.
func (r Record) FormerEtherstub(name string) bool {
	return slices.Contains(r.Former, Former{Kind: "etherstub", Name: name})
}

// Under are the links that control VNICs lie over, or have lain over before the
// network was reconfigured.
func (r Record) Under() []string {
	links := []string{r.ControlLink, r.Etherstub}
	for _, f := range r.Former {
		if f.Kind == "etherstub" {
			links = append(links, f.Name)
		}
	}
	return slices.DeleteFunc(links, func(name string) bool { return name == "" })
}

// Under are the links that VNICs lie over by the configuration.
func (s Settings) Under() []string {
	return slices.DeleteFunc([]string{s.ControlLink, s.Etherstub, s.GuestLink}, func(name string) bool { return name == "" })
}

// Forgetting is the fact that takes former links out of the record.
func (r Record) Forgetting(gone func(Former) bool) (ledger.Fact, error) {
	r.Former = slices.DeleteFunc(slices.Clone(r.Former), gone)
	value, err := json.Marshal(r)
	return ledger.Fact{Key: key, Value: value}, err
}

// leaves are the former links of the next record: those of the old one, and
// what it had itself and the next has not.
func (r Record) leaves(next Record) []Former {
	had := slices.Clone(r.Former)
	if r.Etherstub != "" {
		had = append(had, Former{Kind: "etherstub", Name: r.Etherstub})
	}
	if r.GZVNIC != "" {
		had = append(had, Former{Kind: "vnic", Name: r.GZVNIC, MAC: r.GZMAC})
	}
	var former []Former
	for _, f := range had {
		if f.Name != next.Etherstub && f.Name != next.GZVNIC && !slices.Contains(former, f) {
			former = append(former, f)
		}
	}
	return former
}

const key = naming.KeyNetwork

// Load reads the record; false if the network was never prepared.
func Load(view ledger.View) (Record, bool, error) {
	value, ok := view.Get(key)
	if !ok {
		return Record{}, false, nil
	}
	var r Record
	if err := json.Unmarshal(value, &r); err != nil {
		return Record{}, false, fmt.Errorf("record of the network: %w", err)
	}
	return r, true, nil
}

// NoLinkError is a sled on which no control link can be determined.
type NoLinkError struct{ Candidates []string }

// Error lists the candidates.
func (e *NoLinkError) Error() string {
	return "no control link is configured and there is no default route; candidates: " + strings.Join(e.Candidates, ", ")
}

func (*NoLinkError) Kind() fault.Kind { return fault.Refused }

type seen struct {
	inv   *inventory.Inventory
	route string // link of the default route
}

// addressObject is the address object of the global zone's own VNIC.
func (s Settings) addressObject() string { return s.GZVNIC + "/control" }

// Ensure prepares the network: etherstub, the global zone's VNIC, its address.
// What is there and right stays.
func (s Settings) Ensure(ctx context.Context, env operation.Env, dryRun bool) (operation.Report, error) {
	return operation.Run(ctx, env, operation.Request[seen]{
		Verb: "bootstrap network", Subject: "sled", DryRun: dryRun,
		Look: s.look,
		Decide: func(view ledger.View, seen seen, at operation.Stamp) (operation.Decision, error) {
			old, _, err := Load(view)
			if err != nil {
				return operation.Decision{}, err
			}
			return s.decide(old, seen, at)
		},
	})
}

// Wants is what Ensure looks at.
func (s Settings) Wants() inventory.Want {
	want := inventory.Want{Parts: []inventory.Part{inventory.Links}}
	if s.GZAddress.IsValid() {
		want.Parts = append(want.Parts, inventory.Addresses)
	}
	return want
}

func (s Settings) look(ctx context.Context, h host.Host) (seen, error) {
	got := seen{inv: inventory.Look(ctx, h, s.Wants())}
	if err := got.inv.Know(s.Wants().Parts...); err != nil {
		return seen{}, err
	}
	var err error
	if s.ControlLink == "" && s.Etherstub == "" {
		got.route, err = ipadm.DefaultLink(ctx, h)
		if errors.Is(err, host.ErrNotFound) {
			err = nil
		}
	}
	return got, err
}

// decide is pure: wanted, recorded and seen to a plan.
func (s Settings) decide(old Record, seen seen, at operation.Stamp) (operation.Decision, error) {
	next := Record{ControlLink: s.ControlLink, Etherstub: s.Etherstub}
	if next.ControlLink == "" {
		next.ControlLink = s.Etherstub
	}
	if next.ControlLink == "" {
		next.ControlLink = seen.route
	}
	if next.ControlLink == "" {
		return operation.Decision{}, &NoLinkError{Candidates: physical(seen.inv)}
	}
	d := operation.Decision{Plan: plan.Plan{Policy: plan.Stop}}
	var err error
	if d.Plan.Actions, err = s.actions(old, &next, seen, at); err != nil {
		return operation.Decision{}, err
	}
	for _, a := range d.Plan.Actions {
		kind, name, _ := strings.Cut(a.Object, " ")
		d.Intent.Makes = append(d.Intent.Makes, operation.Object{Kind: kind, Name: name})
	}
	next.Former = old.leaves(next)
	if !reflect.DeepEqual(next, old) {
		value, err := json.Marshal(next)
		if err != nil {
			return operation.Decision{}, err
		}
		// What is decided stands before it is made: a MAC is drawn once.
		d.OnStart = []ledger.Fact{{Key: key, Value: value}}
	}
	return d, nil
}

func (s Settings) actions(old Record, next *Record, seen seen, at operation.Stamp) ([]plan.Action, error) {
	var actions []plan.Action
	add := func(a plan.Action) { actions = plan.Chain(append(actions, a)...) }
	if s.Etherstub != "" {
		if err := vnic.ValidateName(s.Etherstub); err != nil {
			return nil, fmt.Errorf("network.etherstub: %w", err)
		}
		l, there := seen.inv.Link(s.Etherstub)
		if there && l.Class != "etherstub" {
			return nil, &ConflictError{Object: "link " + s.Etherstub, Is: "a " + l.Class, Wanted: "an etherstub"}
		}
		if !there {
			add(plan.Action{ID: "vnic.create-etherstub " + s.Etherstub, Object: "etherstub " + s.Etherstub, Why: "control VNICs lie over it", Change: plan.Create,
				Step: vnic.CreateEtherstub{Name: s.Etherstub}})
		}
	} else if _, there := seen.inv.Link(next.ControlLink); !there {
		return nil, &NoLinkError{Candidates: physical(seen.inv)}
	}
	if s.GZVNIC == "" {
		return actions, nil
	}
	next.GZVNIC, next.GZMAC = s.GZVNIC, old.GZMAC
	if next.GZMAC == "" || old.GZVNIC != s.GZVNIC {
		next.GZMAC = operation.DeriveMAC(at.ID, "global zone")
	}
	l, there := seen.inv.Link(s.GZVNIC)
	switch {
	case !there:
		add(plan.Action{ID: "vnic.create " + s.GZVNIC, Object: "vnic " + s.GZVNIC, Why: "the global zone's own", Change: plan.Create,
			Step: vnic.Create{Name: s.GZVNIC, Over: next.ControlLink, MAC: next.GZMAC, MTU: s.MTU}})
	case l.Over != next.ControlLink:
		return nil, &ConflictError{Object: "vnic " + s.GZVNIC, Is: "over " + l.Over, Wanted: "over " + next.ControlLink}
	default:
		next.GZMAC = l.MAC
		if s.MTU != 0 && l.MTU != s.MTU {
			add(plan.Action{ID: "vnic.set-mtu " + s.GZVNIC, Object: "vnic " + s.GZVNIC, Why: fmt.Sprintf("MTU is %d, wanted %d", l.MTU, s.MTU), Change: plan.Modify,
				Step: vnic.SetMTU{Name: s.GZVNIC, Over: l.Over, MAC: l.MAC, MTU: s.MTU}})
		}
	}
	err := s.address(next, seen, add)
	return actions, err
}

// address gives the global zone's VNIC its address. illumos configures no
// static IPv6 address on an interface that has no link-local one.
func (s Settings) address(next *Record, seen seen, add func(plan.Action)) error {
	if !s.GZAddress.IsValid() {
		return nil
	}
	next.GZAddress = s.GZAddress.String()
	object, linkLocal := s.addressObject(), s.GZVNIC+"/ll"
	is, there := seen.address(object)
	switch _, scoped := seen.address(linkLocal); {
	case there && is.Address != s.GZAddress:
		return &ConflictError{Object: "address " + object, Is: is.Address.String(), Wanted: s.GZAddress.String()}
	case there && is.State == ipadm.OK:
		return nil
	case !there && !scoped && s.GZAddress.Addr().Is6():
		add(createAddress(ipadm.CreateAddress{Object: linkLocal, Type: ipadm.Addrconf}, "a static IPv6 address needs a link-local one"))
	}
	if !there {
		add(createAddress(ipadm.CreateAddress{Object: object, Type: ipadm.Static, Address: s.GZAddress.String()}, "how the global zone reaches Propolis"))
	}
	add(plan.Action{ID: "ipadm.await-address " + object, Object: "address " + object, Change: plan.Wait, Step: ipadm.AwaitAddress{Object: object}})
	return nil
}

func createAddress(step ipadm.CreateAddress, why string) plan.Action {
	return plan.Action{ID: step.Verb() + " " + step.Object, Object: "address " + step.Object, Why: why, Change: plan.Create, Step: step}
}

func (s seen) address(object string) (ipadm.Address, bool) {
	addresses, _ := s.inv.Addresses()
	for _, a := range addresses {
		if a.Object == object {
			return a, true
		}
	}
	return ipadm.Address{}, false
}

// ConflictError is something that is there and is different from what is configured.
type ConflictError struct{ Object, Is, Wanted string }

// Error shows both.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("%s is %s, wanted %s", e.Object, e.Is, e.Wanted)
}

func (*ConflictError) Kind() fault.Kind { return fault.Conflict }

func physical(inv *inventory.Inventory) []string {
	links, _ := inv.Links()
	var names []string
	for _, l := range links {
		if l.Class == "phys" || l.Class == "aggr" {
			names = append(names, l.Name)
		}
	}
	return names
}
