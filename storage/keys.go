package storage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/sledctl/sledctl/disk"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/key"
	"github.com/sledctl/sledctl/plan"
	"github.com/sledctl/sledctl/sled"
	"github.com/sledctl/sledctl/zfs"
)

// The user properties of encrypted datasets.
const (
	// PropertyKeyID keeps the text that the key was derived from, so that a disk
	// that is called otherwise later stays readable.
	PropertyKeyID = "sledctl:key-id"
	// PropertyEpoch keeps the epoch of the secret.
	PropertyEpoch = "sledctl:epoch"
	// propertyAgentEpoch is the sled agent's own (omicron, illumos-utils/src/zfs.rs).
	propertyAgentEpoch = "oxide:epoch"
)

// cipher is what a U.2's crypt is encrypted with (omicron,
// sled-storage/src/dataset.rs).
const cipher = "aes-256-gcm"

var (
	errNoSource   = errors.New("no source of keys is configured")
	errNoIdentity = errors.New("it is on no disk that is known, and keeps no text that its key was derived from")
)

// need is a key that something seen needs: of a text, and of an epoch, or of the
// latest one.
type need struct {
	identity string
	epoch    uint64
	latest   bool
}

// Keys are the keys that were asked for, and why others could not be had.
type Keys struct {
	keys   map[need]key.Key
	failed map[need]error
}

func (k Keys) get(n need) (key.Key, error) {
	if got, ok := k.keys[n]; ok {
		return got, nil
	}
	if err := k.failed[n]; err != nil {
		return key.Key{}, err
	}
	return key.Key{}, errNoSource
}

// ask gets the keys from the source. What cannot be had fails where it is used.
func (s Settings) ask(ctx context.Context, h host.Host, needs []need) Keys {
	got := Keys{keys: map[need]key.Key{}, failed: map[need]error{}}
	for _, n := range needs {
		if s.Keys == nil {
			got.failed[n] = errNoSource
			continue
		}
		k, err := s.key(ctx, h, n)
		if err != nil {
			got.failed[n] = err
			continue
		}
		got.keys[n] = k
	}
	return got
}

func (s Settings) key(ctx context.Context, h host.Host, n need) (k key.Key, err error) {
	epoch := n.epoch
	if n.identity == "" {
		return k, errNoIdentity
	}
	if n.latest {
		if epoch, err = s.Keys.Latest(ctx, h); err != nil {
			return k, err
		}
	}
	return s.Keys.Key(ctx, h, epoch, n.identity)
}

// needs are the keys that it takes to make and unlock what is missing or locked.
func (s Settings) needs(seen Seen) []need {
	var needs []need
	for _, pool := range externalPools(seen) {
		is, there := seen.Inv.Dataset(pool + "/" + encrypted)
		if !there || is.Keystatus == zfs.KeyUnavailable {
			needs = append(needs, needOf(seen, pool, is))
		}
	}
	for _, f := range seen.Disks {
		if f.Kind == disk.U2 && f.isBlank() && s.mayFormat(f.Disk) {
			needs = append(needs, need{identity: identity(f.Disk), latest: true})
		}
	}
	return needs
}

// externalPools are the pools of U.2s that answer.
func externalPools(seen Seen) []string {
	var names []string
	pools, _ := seen.Inv.Pools()
	for _, p := range pools {
		if kind, _ := sled.ParsePool(p.Name); kind == sled.ExternalPool && p.Answers() {
			names = append(names, p.Name)
		}
	}
	return names
}

// needOf is the key of a pool's encrypted dataset, which may not be there yet.
func needOf(seen Seen, pool string, is zfs.Dataset) need {
	n := need{identity: keyID(seen, pool, is), latest: true}
	if epoch, ok := epochOf(is); ok {
		n.epoch, n.latest = epoch, false
	}
	return n
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

// epochOf is the epoch of the secret that a dataset's key was derived from.
func epochOf(d zfs.Dataset) (uint64, bool) {
	for _, name := range []string{PropertyEpoch, propertyAgentEpoch} {
		if v := d.User[name]; v.Source == zfs.Local {
			epoch, err := strconv.ParseUint(v.Value, 10, 64)
			return epoch, err == nil
		}
	}
	return 0, false
}

// marks are the properties that say which key it is.
func marks(k key.Key) []zfs.Property {
	return props(PropertyKeyID, k.Identity(), PropertyEpoch, fmt.Sprint(k.Epoch))
}

// unlock loads the key of an encrypted dataset that is there.
func (c *comparison) unlock(want Expected, is zfs.Dataset) (plan.Action, error) {
	k, err := c.seen.Keys.get(needOf(c.seen, want.Pool, is))
	if err != nil {
		return plan.Action{}, err
	}
	return plan.Action{ID: "zfs.load-key " + want.Dataset, Why: "is locked", Step: zfs.LoadKey{Dataset: want.Dataset, Key: k}}, nil
}

// createRoot makes an encrypted dataset. disk is set where the pool is to be
// made first.
func (c *comparison) createRoot(want Expected, properties []zfs.Property) (plan.Step, error) {
	n := needOf(c.seen, want.Pool, zfs.Dataset{})
	if d, coming := c.coming[want.Pool]; coming {
		n.identity = identity(d)
	}
	k, err := c.seen.Keys.get(n)
	if err != nil {
		return nil, err
	}
	return zfs.Create{Dataset: want.Dataset, Properties: slices.Concat(properties, marks(k)), Key: k}, nil
}

// wipe takes away key files that a killed run has left.
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
		case zfs.LoadKey, zfs.ChangeKey:
			uses = true
		case zfs.Create:
			uses = step.Key != nil
		}
		if uses {
			actions[i].After = slices.Concat(a.After, wipes)
		}
	}
}
