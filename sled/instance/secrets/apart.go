package secrets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// An earlier sledctl kept the secrets of machines in the ledger. A process that writes
// next puts them apart, and leaves no byte of them there.

// Apart puts the secrets apart that stand in the ledger. Where none do,
// nothing is written, and little is read.
func Apart(ctx context.Context, fallback string, env operation.Env) error {
	book, err := env.Ledger(ctx)
	if err != nil {
		return err
	}
	err = book.Purge(ctx, spec.Exposes, func(view ledger.View) ([]ledger.Fact, error) {
		inv := inventory.Look(
			ctx, env.Host,
			inventory.Want{Parts: []inventory.Part{inventory.Pools, inventory.Datasets}, Roots: inventory.ZonePools},
		)
		if err := inv.Know(inventory.Datasets); err != nil {
			return nil, err
		}
		var facts []ledger.Fact
		for _, id := range exposed(view) {
			own, err := sealRecord(ctx, fallback, env, view, inv, id)
			if err != nil {
				return nil, err
			}
			facts = append(facts, own...)
		}
		return facts, nil
	})
	if err != nil {
		return fmt.Errorf("secrets of VMs are still in the ledger: %w", err)
	}
	return nil
}

// Purge is Apart for who is about to change something else.
func Purge(ctx context.Context, fallback string, env operation.Env, dryRun bool) {
	if dryRun || host.Privileged(env.Host) != nil {
		return
	}
	if _, err := env.Ledger(ctx); err != nil {
		return // the change says so
	}
	if err := Apart(ctx, fallback, env); err != nil && env.Warn != nil {
		env.Warn(err)
	}
}

// exposed are the instances whose facts have secrets.
func exposed(view ledger.View) []string {
	ids := map[string]bool{}
	for _, prefix := range []string{naming.KeyInstance, naming.KeySent} {
		for key, value := range view.All(prefix) {
			if spec.Exposes(value) {
				ids[key[len(prefix):]] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(ids))
}

// sealRecord writes the secrets of an instance into a file, and gives the facts that
// have their digests.
func sealRecord(
	ctx context.Context, fallback string, env operation.Env, view ledger.View, inv *inventory.Inventory, id string,
) ([]ledger.Fact, error) {
	r, known, err := record.Load(view, id)
	if err != nil {
		return nil, err
	}
	sent, was, err := record.LoadSent(view, id)
	if err != nil {
		return nil, err
	}
	v := Read(env.Host.Files(), r.Secrets)
	if v.Key == nil {
		v.Key = []byte(env.NewID() + env.NewID())
	}
	var facts []ledger.Fact
	if was {
		sent.Spec, _ = sent.Spec.Seal(v.Key)
		value, err := json.Marshal(sent)
		if err != nil {
			return nil, err
		}
		facts = append(facts, ledger.Fact{Key: naming.KeySent + id, Value: value})
	}
	if !known || r.Spec.Machine == nil || !r.Spec.Machine.Open() {
		return facts, nil
	}
	machine, secrets := r.Spec.Machine.Unseal(v.Held).Seal(v.Key)
	r.Spec.Machine = &machine
	r, ahead, err := Keeping(fallback, r, v, inv, secrets, operation.Stamp{ID: env.NewID()})
	for _, a := range ahead {
		err = errors.Join(err, a.Step.Do(ctx, env.Host))
	}
	value, merr := json.Marshal(r)
	return append(facts, ledger.Fact{Key: naming.KeyInstance + id, Value: value}), errors.Join(err, merr)
}
