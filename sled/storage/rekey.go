package storage

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/zfs"
)

// Rekey changes the key of every encrypted dataset to one of the source's latest
// epoch. One that has it already is left alone, so that a run which was
// interrupted is finished by another. Errors: *LockedError for one whose present
// key is not loaded, after all others were tried.
func (s Settings) Rekey(ctx context.Context, env operation.Env, dryRun bool) (operation.Report, error) {
	var left []Difference
	var latest uint64
	report, err := operation.Run(ctx, env, operation.Request[Seen]{
		Verb: "storage rekey", Subject: subject, DryRun: dryRun,
		Look: func(ctx context.Context, h host.Host) (Seen, error) {
			seen, err := s.lookAlone(ctx, h)
			if err != nil {
				return seen, err
			}
			if s.Keys == nil {
				return seen, &LockedError{errNoSource}
			}
			latest, err = s.Keys.Latest(ctx, h)
			seen.Keys = s.ask(ctx, h, rekeyNeeds(seen))
			return seen, err
		},
		Decide: func(_ ledger.View, seen Seen, _ operation.Stamp) (operation.Decision, error) {
			d := operation.Decision{Plan: plan.Plan{Policy: plan.Continue}}
			d.Plan.Actions, left = rekey(seen, latest)
			d.Plan.Actions = append(wipe(seen.Left), d.Plan.Actions...)
			behindWipes(d.Plan.Actions)
			for _, a := range d.Plan.Actions {
				_, name, _ := strings.Cut(a.Object, " ")
				d.Intent.Changes = append(d.Intent.Changes, operation.Object{Kind: "dataset", Name: name, Old: a.Why})
			}
			return d, nil
		},
	})
	if err == nil && len(left) > 0 {
		err = &PartialError{left}
	}
	return report, err
}

// rekeyNeeds are the latest keys of all that is encrypted.
func rekeyNeeds(seen Seen) []need {
	var needs []need
	for _, pool := range externalPools(seen) {
		is, _ := seen.Inv.Dataset(pool + "/" + encrypted)
		needs = append(needs, need{identity: keyID(seen, pool, is), of: latestEpoch})
	}
	return needs
}

// rekey is pure.
func rekey(seen Seen, latest uint64) (actions []plan.Action, left []Difference) {
	for _, pool := range externalPools(seen) {
		is, there := seen.Inv.Dataset(pool + "/" + encrypted)
		if !there || is.Encryption != zfs.Cipher {
			continue
		}
		epoch, told, err := epochOf(is)
		changing := is.User[PropertyNextEpoch].Source == zfs.Local
		if told && epoch == latest && !changing {
			continue
		}
		k, kerr := seen.Keys.latest(keyID(seen, pool, is))
		switch {
		case err != nil:
		case is.Keystatus != zfs.KeyAvailable:
			err = &LockedError{errors.New("its present key must be loaded first")}
		case kerr != nil:
			err = &LockedError{kerr}
		}
		if err != nil {
			left = append(left, Difference{Object: "dataset " + is.Name, Property: "epoch", Is: is.User[PropertyEpoch].Value, Wanted: fmt.Sprint(latest), Err: err})
			continue
		}
		was := "unknown"
		if told {
			was = fmt.Sprint(epoch)
		}
		actions = append(actions, plan.Action{
			ID: "zfs.change-key " + is.Name, Object: "dataset " + is.Name, Change: plan.Modify,
			Why:  fmt.Sprintf("its key is of epoch %s, the latest is %d", was, latest),
			Step: zfs.ChangeKey{Dataset: is.Name, Key: k, Properties: marks(k), Coming: props(PropertyNextEpoch, fmt.Sprint(k.Epoch))},
		})
		if changing {
			actions = append(actions, plan.Action{
				ID: "zfs.inherit " + is.Name + " " + PropertyNextEpoch, Object: "dataset " + is.Name, Change: plan.Modify, After: []string{"zfs.change-key " + is.Name},
				Why: "a change of its key that was interrupted has left it", Step: zfs.Inherit{Dataset: is.Name, Name: PropertyNextEpoch},
			})
		}
	}
	return actions, left
}
