package instance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/instance/adoption"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/migration"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/instance/secrets"
)

// ListUnrecorded lists the zones that the ledger does not know: those that run, and
// those that an instance's mark is on.
func (s Settings) ListUnrecorded(ctx context.Context, env operation.Env, view ledger.View) ([]adoption.Unrecorded, error) {
	inv := inventory.Look(ctx, env.Host, inventory.Want{
		Parts: []inventory.Part{inventory.Zones, inventory.Configs, inventory.Pools, inventory.Datasets},
		Roots: inventory.ZonePools, User: []string{naming.PropertyInstance, naming.PropertySpec},
	})
	if err := inv.Know(inventory.Zones, inventory.Configs, inventory.Pools, inventory.Datasets); err != nil {
		return nil, err
	}
	return adoption.UnrecordedZones(s.Names, view, inv)
}

// FindUnrecorded picks the unrecorded zone that ref means: a zone, an instance's name or
// id, or a Propolis id. One that says neither is asked for its machine.
func (s Settings) FindUnrecorded(ctx context.Context, env operation.Env, all []adoption.Unrecorded, ref string) (adoption.Unrecorded, error) {
	id := strings.ToLower(ref)
	for _, one := range all {
		propolis, _ := s.Names.ParseZoneName(one.Zone.Name)
		if ref == one.Zone.Name || ref == one.Name || id == one.ID || id == propolis.String() {
			return one, nil
		}
	}
	var silent []error
	for _, one := range all {
		if one.ID != "" {
			continue
		}
		seen, err := adoption.Inspect(ctx, s.Blueprint(), env.Host, one, "")
		if err != nil {
			silent = append(silent, err)
		} else if id == strings.ToLower(seen.Machine.Properties.ID) || ref == seen.Machine.Properties.Name {
			return one, nil
		}
	}
	return adoption.Unrecorded{}, errors.Join(append([]error{&record.NotFoundError{Name: ref}}, silent...)...)
}

// AdoptRequest asks for a record of a zone that the ledger does not know.
type AdoptRequest struct {
	Verb   string
	Name   string // of the instance; empty: as the zone says
	DryRun bool
}

// Adopt makes a record of an unrecorded zone from what can be seen of it: as the one
// that the ledger had, where it was lost. Nothing of the host is changed. With
// c.Name it has that name. Errors: *NotAdoptableError; *ConflictError and those of
// what others have taken; *operation.LockedError.
func (s Settings) Adopt(ctx context.Context, env operation.Env, found adoption.Unrecorded, c AdoptRequest) (Result, error) {
	id, err := identify(ctx, s.Blueprint(), env.Host, found)
	if err != nil {
		return Result{}, err
	}
	var result record.Record
	var seen adoption.Inspection
	report, err := operation.Run(ctx, env, operation.Request[adoption.Inspection]{
		Verb: c.Verb, Subject: record.Subject(id), DryRun: c.DryRun,
		Look: func(ctx context.Context, h host.Host) (adoption.Inspection, error) {
			boot, err := operation.Boot(env)
			if err != nil {
				return adoption.Inspection{}, err
			}
			seen, err = adoption.Inspect(ctx, s.Blueprint(), h, found, boot)
			if err == nil {
				v := secrets.Look(s.SecretDir, env, h.Files(), id, record.Record{}, true, seen.Inv)
				seen.Key, seen.Kept = v.Key, v.Kept
			}
			return seen, err
		},
		Decide: func(view ledger.View, seen adoption.Inspection, at operation.Stamp) (operation.Decision, error) {
			if err := untouched(ctx, env, view, record.Subject(id), found.Zone.Name); err != nil {
				return operation.Decision{}, err
			}
			d, r, err := adoptedRecord(s, view, seen, at, c.Name)
			result = r
			return d, err
		},
	})
	if differs := adoption.SpecDifferences(s.Underlay, seen, result); err == nil && env.Warn != nil && differs != "" {
		env.Warn(fmt.Errorf("instance %q becomes another VM when it is rebuilt: %s", result.Name, differs))
	}
	if err == nil && env.Warn != nil && result.ID != "" && seen.Rests() && result.Wanted == record.WantedStopped {
		env.Warn(adoption.Unsure(seen.Unrecorded, result))
	}
	state := strings.ToLower(seen.Machine.State)
	if seen.Rests() {
		state = record.Stopped
	}
	return Result{Record: result, Report: report, State: state}, err
}

// identify is the id of the instance that an unrecorded zone is.
func identify(ctx context.Context, b layout.Blueprint, h host.Host, found adoption.Unrecorded) (string, error) {
	if found.ID != "" {
		return found.ID, nil
	}
	seen, err := adoption.Inspect(ctx, b, h, found, "")
	if err != nil {
		return "", err
	}
	id, err := uuid.Parse(seen.Machine.Properties.ID)
	if err != nil {
		return "", &adoption.NotAdoptableError{Zone: found.Zone.Name, Reason: fmt.Sprintf("its machine has the id %q", seen.Machine.Properties.ID)}
	}
	return id.String(), nil
}

// adoptedRecord is pure.
func adoptedRecord(s Settings, view ledger.View, seen adoption.Inspection, at operation.Stamp, name string) (operation.Decision, record.Record, error) {
	propolisID, named := s.Names.ParseZoneName(seen.Zone.Name)
	if !named {
		propolisID = uuid.NewSHA1(uuid.NameSpaceOID, []byte(at.ID+" propolis"))
	}
	id := cmp.Or(strings.ToLower(seen.Machine.Properties.ID), seen.ID)
	name = cmp.Or(name, seen.Name, seen.Machine.Properties.Name)
	if record.ValidateName(name) != nil {
		name = "vm-" + id
	}
	r, err := adoption.InspectedRecord(s.Blueprint(), seen, name, propolisID)
	if seen.Rests() {
		defaults := adoption.Defaults{CPUs: s.CPUs, Memory: s.Memory, GuestLink: s.GuestLink, ControlLink: s.ControlLink, Blueprint: s.Blueprint()}
		r, err = adoption.Recall(defaults, newChooser(s, view, seen.Inv, at.ID, id), seen, name, propolisID)
	}
	if err != nil {
		return operation.Decision{}, record.Record{}, err
	}
	old, known, err := record.Load(view, r.ID)
	switch {
	case err != nil:
		return operation.Decision{}, record.Record{}, err
	case known && old.HasZone(seen.Zone.Name):
		return operation.Decision{}, old, nil
	case known && len(old.Incarnations()) > 0:
		twice := Difference{Field: "zone", Is: old.Incarnations()[0].Zone, Wanted: seen.Zone.Name}
		return operation.Decision{}, old, &ConflictError{Name: old.Name, Differences: []Difference{twice}}
	}
	if err := Unreserved(view, r); err != nil {
		return operation.Decision{}, record.Record{}, err
	}
	r.Generation, r.Updated, r.Protected = old.Generation+1, at.Now, old.Protected
	if known {
		r.Spec.StartOrder = old.Spec.StartOrder
	}
	var d operation.Decision
	if r, d.Ahead, err = sealed(s, r, seen, at); err != nil {
		return operation.Decision{}, record.Record{}, err
	}
	if r.Secrets != "" { // else those that there are may be all that is left
		d.Behind = secrets.Dropping(r.Name, r.Secrets, seen.Kept...)
	}
	d.OnSuccess, err = r.Replaces(old)
	d.OnSuccess = append(d.OnSuccess, migration.Returned(view, r.ID)...)
	return d, r, err
}

// sealed is a record with the secrets of its cloud-init data in a file of their own.
func sealed(s Settings, r record.Record, seen adoption.Inspection, at operation.Stamp) (record.Record, []plan.Action, error) {
	fresh := map[string]string{}
	r.Spec.CloudInit = r.Spec.CloudInit.Sealed(seen.Key, fresh)
	return secrets.Keeping(s.SecretDir, r, secrets.Vault{Key: seen.Key}, seen.Inv, fresh, at)
}

// Unreserved refuses a record that would take what another instance has.
func Unreserved(view ledger.View, r record.Record) error {
	for _, d := range r.Spec.Disks {
		other, err := record.DiskOwner(view, d)
		if err != nil {
			return err
		}
		if !d.ReadOnly && other != "" && other != r.ID {
			return &DiskTakenError{Path: d.Path, By: called(view, other)}
		}
	}
	for _, key := range r.Reserves() {
		other := record.Owner(view, key)
		if other == "" || other == r.ID {
			continue
		}
		by := called(view, other)
		kind, thing, _ := strings.Cut(key, "/")
		switch kind + "/" {
		case naming.KeyName:
			return &NameTakenError{Name: r.Name, ID: r.ID, Owner: other}
		case naming.KeyAddress:
			return &AddressTakenError{Address: r.Spec.Address.Prefix.Addr(), By: by}
		case naming.KeyNIC:
			return &MACTakenError{MAC: thing, By: by}
		}
		return &ConflictError{Name: r.Name, Differences: []Difference{{Field: key, Is: "of " + by, Wanted: "its own"}}}
	}
	return nil
}
