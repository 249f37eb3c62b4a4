package network

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/vnic"
)

// Hold keeps an object that belongs to no instance yet from being reaped,
// under hold/<kind>/<name>. A step that names the object takes it over.
type Hold struct {
	Kind  string    `json:"kind"`
	Name  string    `json:"name"`
	Over  string    `json:"over,omitempty"`
	MAC   string    `json:"mac,omitempty"`
	VLAN  int       `json:"vlan,omitempty"`
	Until time.Time `json:"until"`
}

// Holds lists what is held, also what has been held too long.
func Holds(view ledger.View) ([]Hold, error) {
	var holds []Hold
	for k, value := range view.All(naming.KeyHold) {
		var h Hold
		if err := json.Unmarshal(value, &h); err != nil {
			return nil, fmt.Errorf("record %s: %w", k, err)
		}
		holds = append(holds, h)
	}
	return holds, nil
}

// VNIC asks for one VNIC.
type VNIC struct {
	Name string // empty: the next free one that sledctl gives
	Over string
	MAC  string // empty: drawn
	VLAN int
	MTU  int
	Hold time.Duration // how long reap leaves it alone
}

// ExistsError is a link that exists.
type ExistsError struct{ Link vnic.Link }

// Error says what it is.
func (e *ExistsError) Error() string {
	return fmt.Sprintf("link %s exists: a %s over %s", e.Link.Name, e.Link.Class, e.Link.Over)
}

func (*ExistsError) Kind() fault.Kind { return fault.Conflict }

// CreateVNIC makes one VNIC that belongs to no instance, and holds it. One that
// it has made before needs nothing.
func (s Settings) CreateVNIC(ctx context.Context, env operation.Env, want VNIC, dryRun, keep bool) (Hold, operation.Report, error) {
	var held Hold
	report, err := operation.Run(ctx, env, operation.Request[seen]{
		Verb: "vnic create", Subject: "vnic", Wait: true, DryRun: dryRun, Keep: keep,
		Look: lookLinks,
		Decide: func(view ledger.View, seen seen, at operation.Stamp) (operation.Decision, error) {
			if h, l, ok := want.there(view, seen); ok {
				held = h
				return held.again(l, want, at)
			}
			var err error
			held, err = s.choose(want, view, seen, at)
			if err != nil {
				return operation.Decision{}, err
			}
			return held.decision(want.MTU)
		},
	})
	return held, report, err
}

// there finds the VNIC that is asked for, made by an earlier run that was asked
// for the same, whether that run saw its end or not.
func (want VNIC) there(view ledger.View, seen seen) (Hold, vnic.Link, bool) {
	var h Hold
	value, held := view.Get(naming.KeyHeldVNIC + want.Name)
	l, there := seen.inv.Link(want.Name)
	if want.Name == "" || !held || !there || json.Unmarshal(value, &h) != nil {
		return Hold{}, vnic.Link{}, false
	}
	made := l.Class == "vnic" && l.Over == h.Over && l.MAC == h.MAC && l.VLAN == h.VLAN
	asked := want.Over == h.Over && want.VLAN == h.VLAN && (want.MAC == "" || want.MAC == h.MAC)
	return h, l, made && asked
}

// again is what is left to do for a VNIC that is there: its MTU, which is set
// after it is made, and a hold that has run out.
func (h *Hold) again(l vnic.Link, want VNIC, at operation.Stamp) (d operation.Decision, err error) {
	if !h.Until.After(at.Now) {
		h.Until = at.Now.Add(want.Hold)
		value, err := json.Marshal(h)
		if err != nil {
			return d, err
		}
		d.OnStart = []ledger.Fact{{Key: h.key(), Value: value}}
	}
	if want.MTU != 0 && l.MTU != want.MTU {
		d.Plan = plan.Plan{Policy: plan.Undo, Actions: []plan.Action{{
			ID: "vnic.set-mtu " + h.Name, Object: "vnic " + h.Name, Why: fmt.Sprintf("mtu is %d, wanted %d", l.MTU, want.MTU), Change: plan.Modify,
			Step: vnic.SetMTU{Name: h.Name, MAC: h.MAC, Over: h.Over, MTU: want.MTU},
		}}}
		d.Intent = operation.Intent{Changes: []operation.Object{{Kind: "vnic", Name: h.Name, Identity: h.MAC, Old: fmt.Sprint("mtu ", l.MTU)}}}
	}
	return d, nil
}

func lookLinks(ctx context.Context, h host.Host) (seen, error) {
	got := seen{inv: inventory.Look(ctx, h, inventory.Want{Parts: []inventory.Part{inventory.Links}})}
	return got, got.inv.Know(inventory.Links)
}

func lookLinksAndAddresses(ctx context.Context, h host.Host) (seen, error) {
	parts := []inventory.Part{inventory.Links, inventory.Addresses}
	got := seen{inv: inventory.Look(ctx, h, inventory.Want{Parts: parts})}
	return got, got.inv.Know(parts...)
}

// heldAs is the hold on a VNIC; nil if there is none.
func heldAs(view ledger.View, name string) (*Hold, error) {
	h := Hold{Kind: "vnic", Name: name}
	value, held := view.Get(h.key())
	if !held {
		return nil, nil
	}
	if err := json.Unmarshal(value, &h); err != nil {
		return nil, fmt.Errorf("record %s: %w", h.key(), err)
	}
	return &h, nil
}

// taken says whether a link has the name, or a record keeps it for a VNIC that
// somebody else has made since the links were listed, or is making.
func taken(view ledger.View, seen seen, name string) bool {
	_, there := seen.inv.Link(name)
	_, used := view.Get(naming.KeyVNIC + name)
	_, held := view.Get(naming.KeyHeldVNIC + name)
	return there || used || held
}

func (s Settings) choose(want VNIC, view ledger.View, seen seen, at operation.Stamp) (Hold, error) {
	if err := checkLink(seen.inv, want.Over); err != nil {
		return Hold{}, err
	}
	for n := 0; want.Name == ""; n++ {
		if name := s.Names.ControlVNIC(n); !taken(view, seen, name) {
			want.Name = name
		}
	}
	if l, there := seen.inv.Link(want.Name); there {
		return Hold{}, &ExistsError{Link: l}
	}
	if want.MAC == "" {
		want.MAC = drawMAC(seen.inv, at.ID, want.Name)
	}
	if err := checkMAC(seen.inv, want.MAC); err != nil {
		return Hold{}, err
	}
	return Hold{Kind: "vnic", Name: want.Name, Over: want.Over, MAC: want.MAC, VLAN: want.VLAN, Until: at.Now.Add(want.Hold)}, nil
}

// LinkError is a link that no VNIC can lie over.
type LinkError struct {
	Link  string
	There bool
	Links []string // that would do
}

// Error says what would be right.
func (e *LinkError) Error() string {
	what := "does not exist"
	if e.There {
		what = "is a VNIC itself"
	}
	return fmt.Sprintf("link %q %s; links of this sled: %s", e.Link, what, strings.Join(e.Links, ", "))
}

// Kind separates a link that cannot be used from one that does not exist.
func (e *LinkError) Kind() fault.Kind {
	if e.There {
		return fault.Usage
	}
	return fault.NotFound
}

func checkLink(inv *inventory.Inventory, name string) error {
	l, there := inv.Link(name)
	if there && l.Class != "vnic" {
		return nil
	}
	links, _ := inv.Links()
	e := &LinkError{Link: name, There: there}
	for _, l := range links {
		if l.Class != "vnic" {
			e.Links = append(e.Links, l.Name)
		}
	}
	return e
}

// MACError is a MAC address that a link of the sled has.
type MACError struct{ MAC, Link string }

// Error names the link.
func (e *MACError) Error() string { return fmt.Sprintf("MAC %s is in use by link %s", e.MAC, e.Link) }

func (*MACError) Kind() fault.Kind { return fault.Conflict }

// drawMAC is a MAC address that no link of the sled has.
func drawMAC(inv *inventory.Inventory, intent, name string) string {
	mac := operation.DeriveMAC(intent, name)
	for try := 1; checkMAC(inv, mac) != nil; try++ {
		mac = operation.DeriveMAC(intent, fmt.Sprintf("%s %d", name, try))
	}
	return mac
}

func checkMAC(inv *inventory.Inventory, mac string) error {
	links, _ := inv.Links()
	for _, l := range links {
		if l.MAC == mac {
			return &MACError{MAC: mac, Link: l.Name}
		}
	}
	return nil
}

// Forget is the fact that ends a hold.
func Forget(h Hold) ledger.Fact { return ledger.Fact{Key: h.key()} }

func (h Hold) key() string { return naming.KeyHold + h.Kind + "/" + h.Name }

func (h Hold) decision(mtu int) (operation.Decision, error) {
	value, err := json.Marshal(h)
	if err != nil {
		return operation.Decision{}, err
	}
	return operation.Decision{
		Plan: plan.Plan{Policy: plan.Undo, Actions: []plan.Action{{
			ID: "vnic.create " + h.Name, Object: "vnic " + h.Name, Why: "held until " + h.Until.Format(time.RFC3339), Change: plan.Create,
			Step: vnic.Create{Name: h.Name, Over: h.Over, MAC: h.MAC, VLAN: h.VLAN, MTU: mtu},
		}}},
		Intent: operation.Intent{Makes: []operation.Object{{Kind: "vnic", Name: h.Name, Identity: h.MAC}}},
		// It is held before it is made: a VNIC whose making was killed goes
		// when its time is up, whatever its name.
		OnStart: []ledger.Fact{{Key: h.key(), Value: value}},
		OnUndo:  []ledger.Fact{Forget(h)},
	}, nil
}

// ForeignError is a VNIC that is not sledctl's own.
type ForeignError struct{ Name, Why string }

// Error names it.
func (e *ForeignError) Error() string {
	return fmt.Sprintf("VNIC %s is not sledctl's own: %s", e.Name, e.Why)
}

func (*ForeignError) Kind() fault.Kind { return fault.Refused }

// foreign says why a VNIC is not sledctl's to remove; nothing if it is.
func (s Settings) foreign(view ledger.View, seen seen, l vnic.Link, held *Hold) string {
	if held != nil {
		if !held.Is(l) {
			return "one of its name was made by it, with another MAC or link below"
		}
		return ""
	}
	net, _, err := Load(view)
	if err != nil {
		return err.Error()
	}
	owner := s.Names.OwnerOfVNIC(naming.VNIC{Name: l.Name, Over: l.Over, Addresses: seen.inv.AddressesOn(l.Name)}, append(s.Under(), net.Under()...))
	switch {
	case l.Class != "vnic":
		return "it is a " + l.Class
	case owner.Ours():
		return ""
	case owner.Doubt != "":
		return owner.Doubt
	}
	return "it has no name that sledctl gives"
}

// Is says whether a link is the one that is held.
func (h Hold) Is(l vnic.Link) bool {
	return h.MAC == "" || l.Class == "vnic" && l.MAC == h.MAC && l.Over == h.Over
}

// DeleteVNIC removes a VNIC that is held, or that is sledctl's and not needed. For one
// that does not exist it does nothing: gone is false then.
func (s Settings) DeleteVNIC(ctx context.Context, env operation.Env, name string, inUse func(ledger.View, string) error, dryRun bool) (gone bool, report operation.Report, err error) {
	report, err = operation.Run(ctx, env, operation.Request[seen]{
		Verb: "vnic delete", Subject: "vnic", Wait: true, DryRun: dryRun,
		Look: lookLinksAndAddresses,
		Decide: func(view ledger.View, seen seen, _ operation.Stamp) (operation.Decision, error) {
			var d operation.Decision
			held, err := heldAs(view, name)
			if err != nil {
				return d, err
			}
			if held != nil {
				d.OnSuccess = []ledger.Fact{Forget(*held)}
			}
			l, there := seen.inv.Link(name)
			gone = there
			if !there {
				return d, nil
			}
			if err := inUse(view, name); err != nil {
				return operation.Decision{}, err
			}
			if why := s.foreign(view, seen, l, held); why != "" {
				return operation.Decision{}, &ForeignError{Name: name, Why: why}
			}
			d.Plan = plan.Plan{Policy: plan.Stop, Actions: []plan.Action{{
				ID: "vnic.delete " + name, Object: "vnic " + name, Change: plan.Remove,
				Step: vnic.Delete{Name: name, MAC: l.MAC, Over: l.Over},
			}}}
			d.Intent = operation.Intent{Removes: []operation.Object{{Kind: "vnic", Name: name, Identity: l.MAC}}}
			return d, nil
		},
	})
	return gone, report, err
}
