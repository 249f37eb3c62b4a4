// Package secrets keeps the secrets of VM specs outside the ledger: one file per
// instance on the encrypted dataset of its pool, with keyed digests in the record.
//
// Look reads what is kept, Keeping plans the file of a new record, Dropping the removal
// of files that no record names, and Purge moves secrets out of old ledgers.
package secrets

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// The secrets of a machine that was written down whole lie in a file of their
// own, which its record names; in the record stand their digests. The file is
// there before any record names it, and goes when none does any longer: each change
// of the secrets is another file, called by the intent that made it. It holds the
// key of the digests too, which stays the same as long as the instance is
// recorded: so a spec that is given again is known to be the same.

// Vault is what the file of an instance holds.
type Vault struct {
	File string            `json:"-"` // empty: there is none
	Key  []byte            `json:"key"`
	Held map[string]string `json:"secrets"` // by digest
	Err  error             `json:"-"`       // why it cannot be read
	Kept []string          `json:"-"`       // all files of the instance that there are
}

// maxVault bounds a file of secrets: all of them go to Propolis in one request.
const maxVault = 4 * spec.MaxRequest

func Read(files host.Files, file string) Vault {
	if file == "" {
		return Vault{}
	}
	v := Vault{File: file}
	data, err := host.ReadAtMost(files, file, maxVault)
	if err == nil && json.Unmarshal(data, &v) != nil { // what is wrong with it would quote it
		err = errors.New("it is not what sledctl writes there")
	}
	if err != nil {
		return Vault{File: file, Err: err}
	}
	return v
}

// Look reads what is kept of an instance's secrets. A key is drawn where
// there is none and what is asked for has secrets.
func Look(fallback string, env operation.Env, files host.Files, id string, r record.Record, secret bool, inv *inventory.Inventory) Vault {
	v := Read(files, r.Secrets)
	if v.Key == nil && (secret || r.Spec.CloudInit != nil || len(r.Spec.Crucible) > 0) {
		v.Key = []byte(env.NewID() + env.NewID())
	}
	v.Kept = keptSecrets(fallback, files, id, inv)
	return v
}

// File is a file of secrets, and whose it is.
type File struct {
	File, ID string
	Inode    uint64
}

// Files are the files of secrets that there are, wherever such may lie.
func Files(fallback string, files host.Files, inv *inventory.Inventory) (all []File) {
	for _, dir := range secretDirs(fallback, inv) {
		entries, _ := files.ReadDir(dir) // not there: nothing is kept in it
		for _, e := range entries {
			id, _, ok := strings.Cut(e.Name, ".")
			if ok && naming.IsUUID(id) && e.Mode.IsRegular() {
				all = append(all, File{path.Join(dir, e.Name), id, e.Inode})
			}
		}
	}
	return all
}

func keptSecrets(fallback string, files host.Files, id string, inv *inventory.Inventory) (kept []string) {
	for _, f := range Files(fallback, files, inv) {
		if f.ID == id {
			kept = append(kept, f.File)
		}
	}
	return kept
}

// HasOthers reports whether a run that was killed has left other secrets of an
// instance next to those of its record.
func HasOthers(files host.Files, r record.Record) bool { return Others(files)(r) }

// Others is HasOthers of many instances: it reads each directory once.
func Others(files host.Files) func(record.Record) bool {
	read := map[string]map[string][]string{} // names by instance, by directory
	return func(r record.Record) bool {
		if r.Secrets == "" {
			return false
		}
		dir := path.Dir(r.Secrets)
		names, known := read[dir]
		if !known {
			names = map[string][]string{}
			entries, _ := files.ReadDir(dir) // not there: nothing is kept in it
			for _, e := range entries {
				id, _, _ := strings.Cut(e.Name, ".")
				names[id] = append(names[id], e.Name)
			}
			read[dir] = names
		}
		return slices.ContainsFunc(names[r.ID], func(name string) bool { return name != path.Base(r.Secrets) })
	}
}

func secretDirs(fallback string, inv *inventory.Inventory) (dirs []string) {
	datasets, _ := inv.Datasets()
	var last string // a pool's stand together
	var at naming.Location
	var ok bool
	for _, d := range datasets {
		pool, _, _ := strings.Cut(d.Name, "/")
		if pool != last {
			last = pool
			at, ok = naming.Secrets(pool)
		}
		if ok && d.Name == at.Dataset && d.Mounted {
			dirs = append(dirs, secretDir(at.Mountpoint))
		}
	}
	if fallback != "" {
		dirs = append(dirs, fallback)
	}
	return dirs
}

func secretDir(mountpoint string) string { return path.Join(mountpoint, "sledctl") }

// secretPlace is the directory for the secrets of an instance on a pool: on its
// encrypted dataset, or, where it has none, next to the ledger.
func secretPlace(fallback string, pool string, inv *inventory.Inventory) (string, error) {
	at, ok := naming.Secrets(pool)
	if d, there := inv.Dataset(at.Dataset); ok && there {
		if !d.Mounted {
			return "", fmt.Errorf("dataset %s, where secrets are kept, is not mounted: %w", at.Dataset, host.ErrRefused)
		}
		return secretDir(at.Mountpoint), nil
	}
	if fallback == "" {
		return "", fmt.Errorf("there is no place for the secrets of a machine on pool %s: want paths.ledger: %w", pool, host.ErrRefused)
	}
	return fallback, nil
}

// LostError is a machine whose secrets are not where they were kept.
type LostError struct {
	Name, File string
	Err        error // nil: the file has others
	Guest      bool  // all of them are cloud-init data
	Keys       bool  // there are keys of volumes in a Crucible
}

func lostOf(r record.Record, err error) *LostError {
	return &LostError{Name: r.Name, File: r.Secrets, Err: err, Guest: r.Spec.Machine == nil, Keys: len(r.Spec.Crucible) > 0}
}

// Error names the file.
func (e *LostError) Error() string {
	why := "it has not those of its spec"
	if e.Err != nil {
		why = e.Err.Error()
	}
	return fmt.Sprintf("the secrets of instance %q cannot be read from %s: %s", e.Name, e.File, why)
}

func (*LostError) Kind() fault.Kind { return fault.Refused }

// Unwrap gives the cause.
func (e *LostError) Unwrap() error { return e.Err }

// Hint says what gives them back.
func (e *LostError) Hint() string {
	return "to supply them again, run: sledctl instance ensure " + e.Name + e.flags() + "; the ledger has only their digests"
}

func (e *LostError) flags() string {
	if e.Keys {
		return " --file FILE"
	}
	if e.Guest {
		return " --cloud-init FILE --network-config FILE"
	}
	return " --spec FILE"
}

// Keeping says where the secrets of a record lie, and what puts them there.
func Keeping(
	fallback string, next record.Record, had Vault, inv *inventory.Inventory, fresh map[string]string, at operation.Stamp,
) (record.Record, []plan.Action, error) {
	digests := next.Digests()
	if len(digests) == 0 {
		next.Secrets = ""
		return next, nil, nil
	}
	same := len(had.Held) == len(digests)
	file := Vault{Key: had.Key, Held: map[string]string{}}
	for _, digest := range digests {
		secret, kept := had.Held[digest]
		again, given := fresh[digest]
		if !kept && !given { // a process that needs it says so
			return next, nil, nil
		}
		file.Held[digest], same = cmp.Or(secret, again), same && kept
	}
	dir, err := secretPlace(fallback, next.Spec.Pool, inv)
	if err != nil {
		return next, nil, err
	}
	if same && had.File == next.Secrets && path.Dir(next.Secrets) == dir {
		return next, nil, nil
	}
	data, err := json.Marshal(file)
	next.Secrets = path.Join(dir, next.ID+"."+at.ID)
	return next, []plan.Action{{
		ID: "secret.keep " + next.Name, Object: "secrets of " + next.Name, Why: "the ledger has only their digests", Change: plan.Create,
		Step: keepSecrets{File: next.Secrets, Name: next.Name, data: data},
	}}, err
}

// Dropping takes all files of an instance's secrets away but the one that stays.
func Dropping(name, stays string, files ...string) []plan.Action {
	slices.Sort(files)
	files = slices.DeleteFunc(slices.Compact(files), func(f string) bool { return f == stays || f == "" })
	if len(files) == 0 {
		return nil
	}
	return []plan.Action{{
		ID: "secret.drop " + name, Object: "secrets of " + name, Why: "no record needs them", Change: plan.Remove,
		Step: Drop{Files: files},
	}}
}

// Check refuses a plan that would send a machine whose secrets are not all
// known, and one that Propolis would refuse for them.
func Check(underlay netip.Prefix, next record.Record, had Vault, fresh map[string]string, actions []plan.Action) error {
	digests := next.Digests()
	if len(digests) == 0 || !slices.ContainsFunc(actions, func(a plan.Action) bool { _, sent := record.SentBy(a.Step); return sent }) {
		return nil
	}
	all := map[string]string{}
	for _, digest := range digests {
		for _, from := range []map[string]string{had.Held, fresh} {
			if secret, ok := from[digest]; ok {
				all[digest] = secret
			}
		}
		if _, ok := all[digest]; !ok {
			return lostOf(next, had.Err)
		}
	}
	_, err := layout.RequestOf(underlay, next.Unseal(all))
	return err
}

// Unsealed is a record with its secrets in their places. The error is a
// *SecretsLostError.
func Unsealed(files host.Files, r record.Record) (record.Record, error) {
	if digests := r.Digests(); len(digests) > 0 {
		v := Read(files, r.Secrets)
		if err := v.has(r); err != nil {
			return r, err
		}
		r = r.Unseal(v.Held)
	}
	return r, nil
}

// has reports whether it holds the secrets of a record, all of them.
func (v Vault) has(r record.Record) error {
	for _, digest := range r.Digests() {
		if _, ok := v.Held[digest]; !ok {
			return lostOf(r, v.Err)
		}
	}
	return nil
}

// Opener reads the secrets of a record's machine when it is sent.
func Opener(r record.Record) propolis.Secrets {
	if len(r.Digests()) == 0 {
		return nil
	}
	return func(files host.Files, request spec.EnsureRequest) (spec.EnsureRequest, error) {
		v := Read(files, r.Secrets)
		return request.Unseal(v.Held), v.has(r)
	}
}

// DropUnrecorded removes the secrets that are left of an instance without a record: of
// a run that was killed when its record was gone.
func DropUnrecorded(ctx context.Context, fallback string, env operation.Env, verb, ref, id string) {
	_, err := operation.Run(ctx, env, operation.Request[[]string]{
		Verb: verb, Subject: record.Subject(id),
		Look: func(ctx context.Context, h host.Host) ([]string, error) {
			inv := inventory.Look(ctx, h, inventory.Want{Parts: []inventory.Part{inventory.Pools, inventory.Datasets}, Roots: inventory.ZonePools})
			return keptSecrets(fallback, h.Files(), id, inv), inv.Know(inventory.Datasets)
		},
		Decide: func(view ledger.View, kept []string, _ operation.Stamp) (d operation.Decision, err error) {
			if _, known, err := record.Load(view, id); known || err != nil {
				return d, err
			}
			d.Behind = Dropping(ref, "", kept...)
			return d, nil
		},
	})
	if err != nil && env.Warn != nil {
		env.Warn(err)
	}
}

// Hide puts digests in the places of a machine's secrets.
type Hide func(spec.InstanceSpec) spec.InstanceSpec

// Hiding hides secrets as the record of the instance has them. The error says why
// the same secrets have other digests than there.
func Hiding(files host.Files, r record.Record) (Hide, error) {
	v, err := Read(files, r.Secrets), error(nil)
	if v.Key == nil {
		v.Key = []byte(uuid.NewString() + uuid.NewString())
		err = lostOf(r, v.Err)
	}
	return func(m spec.InstanceSpec) spec.InstanceSpec {
		sealed, _ := m.Seal(v.Key)
		return sealed
	}, err
}
