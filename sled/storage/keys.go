package storage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/disk"
	"github.com/sledctl/sledctl/illumos/key"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/zfs"
)

// The user properties of encrypted datasets.
const (
	// PropertyKeyID keeps the text that the key was derived from, so that a disk
	// that gets another name later stays readable.
	PropertyKeyID = "sledctl:key-id"
	// PropertyEpoch keeps the epoch of the secret.
	PropertyEpoch = "sledctl:epoch"
	// PropertyNextEpoch is there while a key is changed on a zfs that cannot set
	// PropertyEpoch with it: the key is of the one or of the other.
	PropertyNextEpoch = "sledctl:next-epoch"
	// propertyAgentEpoch is the sled agent's own (omicron, illumos-utils/src/zfs.rs), which tries
	// the keys of all epochs where it lacks.
	propertyAgentEpoch = "oxide:epoch"
)

var (
	errNoSource   = errors.New("no source of keys is configured")
	errNoIdentity = errors.New("it is on no disk that is known, and keeps no text that its key was derived from")
)

// need is a key that something seen needs: of a text, and of an epoch, or of the
// latest one, or of each.
type need struct {
	identity string
	of       epochs
	epoch    uint64
}

type epochs string

const (
	thatEpoch   epochs = ""
	latestEpoch epochs = "latest"
	everyEpoch  epochs = "every"
)

// Keys are the keys that were asked for, and why others could not be had.
type Keys struct {
	keys   map[need][]key.Key // the newest first
	failed map[need]error
}

func (k Keys) get(n need) ([]key.Key, error) {
	if got, ok := k.keys[n]; ok {
		return got, nil
	}
	if err := k.failed[n]; err != nil {
		return nil, err
	}
	return nil, errNoSource
}

// latest is the key of the latest epoch.
func (k Keys) latest(identity string) (key.Key, error) {
	got, err := k.get(need{identity: identity, of: latestEpoch})
	if err != nil {
		return key.Key{}, err
	}
	return got[0], nil
}

// ask gets the keys from the source. A missing key fails where it is used.
func (s Settings) ask(ctx context.Context, h host.Host, needs []need) Keys {
	got := Keys{keys: map[need][]key.Key{}, failed: map[need]error{}}
	for _, n := range needs {
		if s.Keys == nil {
			got.failed[n] = errNoSource
			continue
		}
		keys, err := s.keys(ctx, h, n)
		if err != nil {
			got.failed[n] = err
			continue
		}
		got.keys[n] = keys
	}
	return got
}

// mostTried bounds the epochs that are tried on a disk that does not record which
// its key is.
//
// Guess at-most-64-epochs: no sled's secret has had more than 64 epochs: of a disk that does not
// say which epoch its key is of, that many are tried, the newest first.
// Check: `sledctl storage list` after a `storage rekey` that was cut short
const mostTried = 64

func (s Settings) keys(ctx context.Context, h host.Host, n need) ([]key.Key, error) {
	if n.identity == "" {
		return nil, errNoIdentity
	}
	epoch := n.epoch
	if n.of != thatEpoch {
		var err error
		if epoch, err = s.Keys.Latest(ctx, h); err != nil {
			return nil, err
		}
	}
	newest, err := s.Keys.Key(ctx, h, epoch, n.identity)
	if err != nil {
		return nil, err
	}
	all := []key.Key{newest}
	for n.of == everyEpoch && epoch > 0 && newest.Epoch-epoch+1 < mostTried {
		epoch--
		k, err := s.Keys.Key(ctx, h, epoch, n.identity)
		switch {
		case err == nil:
			all = append(all, k)
		case !errors.Is(err, key.ErrNoEpoch):
			return nil, err
		}
	}
	return all, nil
}

// needs are the keys that it takes to make and unlock what is missing or locked.
func (s Settings) needs(seen Seen) []need {
	var needs []need
	for _, pool := range externalPools(seen) {
		is, there := seen.Inv.Dataset(pool + "/" + encrypted)
		switch {
		case !there:
			needs = append(needs, need{identity: keyID(seen, pool, is), of: latestEpoch})
		case is.Keystatus == zfs.KeyUnavailable:
			may, _ := mayHave(seen, pool, is)
			needs = append(needs, may...)
		}
	}
	for _, f := range seen.Disks {
		if f.Kind == disk.U2 && f.isBlank() && s.mayFormat(f.Disk) {
			needs = append(needs, need{identity: identity(f.Disk), of: latestEpoch})
		}
	}
	return needs
}

// externalPools are the pools of U.2s that answer.
func externalPools(seen Seen) []string {
	var names []string
	pools, _ := seen.Inv.Pools()
	for _, p := range pools {
		if kind, _ := naming.ParsePool(p.Name); kind == naming.ExternalPool && p.Answers() {
			names = append(names, p.Name)
		}
	}
	return names
}

// mayHave are the keys that a pool's encrypted dataset may have, the likeliest
// first: while it is changed, the next one and the one before; where the epoch is
// not told, that of each, as the sled agent tries them (omicron,
// illumos-utils/src/zfs.rs). Errors: *ConflictError for an epoch that is no number.
func mayHave(seen Seen, pool string, is zfs.Dataset) ([]need, error) {
	id := keyID(seen, pool, is)
	next, changing, err := epochIn(is, PropertyNextEpoch)
	if err != nil {
		return nil, err
	}
	epoch, told, err := epochOf(is)
	if err != nil {
		return nil, err
	}
	var may []need
	if changing {
		may = append(may, need{identity: id, epoch: next})
	}
	switch {
	case !told:
		may = append(may, need{identity: id, of: everyEpoch})
	case !changing || epoch != next:
		may = append(may, need{identity: id, epoch: epoch})
	}
	return may, nil
}

// identity is the text that a disk's key is derived from.
func identity(d disk.Disk) string {
	return key.Identity(d.Identity.Vendor, d.Identity.Model, d.Identity.Serial)
}

// keyID is the text that a dataset's key is derived from: what it keeps itself,
// or else its disk's identity; empty if neither is known.
func keyID(seen Seen, pool string, is zfs.Dataset) string {
	if v := is.User[PropertyKeyID]; v.Source == zfs.Local {
		return v.Value
	}
	for _, f := range seen.Disks {
		if f.Pool != nil && f.Pool.Name == pool {
			return identity(f.Disk)
		}
	}
	return ""
}

// epochOf is the epoch of the secret that a dataset's key was derived from, if it
// says so. Errors: *ConflictError.
func epochOf(d zfs.Dataset) (epoch uint64, told bool, err error) {
	if epoch, told, err = epochIn(d, PropertyEpoch); told || err != nil {
		return epoch, told, err
	}
	return epochIn(d, propertyAgentEpoch)
}

func epochIn(d zfs.Dataset, property string) (epoch uint64, told bool, err error) {
	v := d.User[property]
	if v.Source != zfs.Local {
		return 0, false, nil
	}
	if epoch, err = strconv.ParseUint(v.Value, 10, 64); err != nil {
		return 0, false, &ConflictError{Object: "dataset " + d.Name, Property: property, Is: strconv.Quote(v.Value), Wanted: "a number"}
	}
	return epoch, true, nil
}

// marks are the properties that say which key it is; the sled agent's is among them, as it may
// get the disk back, and derives keys in the same way.
func marks(k key.Key) []zfs.Property {
	epoch := fmt.Sprint(k.Epoch)
	return props(PropertyKeyID, k.Identity(), PropertyEpoch, epoch, propertyAgentEpoch, epoch)
}

// unlock loads the key of an encrypted dataset that is there, or finds out which
// it is.
func (c *comparison) unlock(want Expected, is zfs.Dataset) (plan.Action, error) {
	may, err := mayHave(c.seen, want.Pool, is)
	if err != nil {
		return plan.Action{}, err
	}
	find := zfs.FindKey{Dataset: want.Dataset}
	if is.User[PropertyNextEpoch].Source == zfs.Local {
		find.Drop = []string{PropertyNextEpoch}
	}
	var failed []error
	for _, n := range may {
		keys, err := c.seen.Keys.get(n)
		if err != nil {
			failed = append(failed, err)
		}
		for _, k := range keys {
			find.Keys = append(find.Keys, zfs.Candidate{Key: k, Properties: marks(k)})
		}
	}
	if len(find.Keys) == 0 {
		return plan.Action{}, failed[0]
	}
	if len(may) == 1 && may[0].of == thatEpoch && find.Drop == nil {
		return plan.Action{ID: "zfs.load-key " + want.Dataset, Why: "is locked", Step: zfs.LoadKey{Dataset: want.Dataset, Key: find.Keys[0].Key}}, nil
	}
	return plan.Action{ID: "zfs.find-key " + want.Dataset, Why: "is locked, and does not say for sure which key it has", Step: find}, nil
}

// createRoot makes an encrypted dataset, on a disk that is known or, where the pool
// is to be made first, coming.
func (c *comparison) createRoot(want Expected, properties []zfs.Property) (plan.Step, error) {
	id := keyID(c.seen, want.Pool, zfs.Dataset{})
	if d, coming := c.coming[want.Pool]; coming {
		id = identity(d)
	}
	k, err := c.seen.Keys.latest(id)
	if err != nil {
		return nil, err
	}
	return zfs.Create{Dataset: want.Dataset, Properties: slices.Concat(properties, marks(k)), Key: k}, nil
}

// wipe removes key files that a killed operation has left.
func wipe(left []string) []plan.Action {
	var actions []plan.Action
	for _, name := range left {
		actions = append(actions, plan.Action{ID: "key.wipe " + name, Object: "file " + name, Why: "a run that was killed has left it",
			Change: plan.Remove, Step: key.Wipe{File: name}})
	}
	return actions
}

// behindWipes lets what uses a key wait until files that were left are gone: one
// of them may be its own.
func behindWipes(actions []plan.Action) {
	var wipes []string
	for _, a := range actions {
		if _, ok := a.Step.(key.Wipe); ok {
			wipes = append(wipes, a.ID)
		}
	}
	for i, a := range actions {
		uses := false
		switch step := a.Step.(type) {
		case zfs.LoadKey, zfs.FindKey, zfs.ChangeKey:
			uses = true
		case zfs.Create:
			uses = step.Key != nil
		}
		if uses {
			actions[i].After = slices.Concat(a.After, wipes)
		}
	}
}
