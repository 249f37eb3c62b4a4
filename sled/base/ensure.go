package base

import (
	"context"
	"crypto/sha256"
	_ "embed" // the service's files
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/illumos/smf"
	"github.com/sledctl/sledctl/propolis/packaging"
	"github.com/sledctl/sledctl/zfs"
	"github.com/sledctl/sledctl/zone"
)

// Settings are the configuration of base zones.
type Settings struct {
	Names naming.Prefixes
	Brand string // sparse
	// Packaging is how Propolis must come into zones.
	Packaging packaging.Settings
}

// FMRI is Propolis' service in a zone.
const FMRI = "svc:/site/sledctl/propolis-server:default"

// manifestDirectory is where the service's files lie in a zone. A manifest
// elsewhere would be imported too, but manifest-import deletes services whose
// file is missing, so it must stay in the clone's own file system.
const manifestDirectory = "/var/svc/manifest/site/sledctl"

// systemManifests is where the zone's own manifests lie.
const systemManifests = "/lib/svc/manifest"

// format is raised when what a base holds changes in a way that its other
// ingredients do not show.
const format = 1

//go:embed service/propolis-server.xml
var manifest []byte

//go:embed service/propolis-server
var method []byte

// Look is what was seen for the bases of a sled.
type Look struct {
	Inv  *inventory.Inventory
	Mark string // what a base made now would carry
	// Packaging is what the host lacks for each way.
	Packaging packaging.Observed
}

// Needed says whether zones are cloned on this host: where they are installed
// from images, there are no bases. Its error is a *packaging.MissingError where
// no zone can be made.
func (s Settings) Needed(files host.Files) (bool, error) {
	seen, err := s.Packaging.Look(files)
	if err != nil {
		return false, err
	}
	kind, err := s.Packaging.Decide(seen)
	return kind == packaging.Lofs, err
}

// Wants is what bases are judged by.
func (s Settings) Wants() inventory.Want {
	return inventory.Want{
		Parts: []inventory.Part{inventory.Zones, inventory.Configs, inventory.Pools, inventory.Datasets},
		Roots: inventory.ZonePools, User: []string{naming.PropertyBase},
	}
}

// look lists zones and datasets and works out the mark of this system.
func (s Settings) look(ctx context.Context, h host.Host) (Look, error) {
	return s.lookFor(ctx, h, s.Wants())
}

// lookAlone is look for a change: it refuses next to another owner.
func (s Settings) lookAlone(ctx context.Context, h host.Host) (Look, error) {
	want := s.Wants()
	want.Parts = append(want.Parts, inventory.Rival)
	return s.lookFor(ctx, h, want)
}

func (s Settings) lookFor(ctx context.Context, h host.Host, want inventory.Want) (Look, error) {
	got := Look{Inv: inventory.Look(ctx, h, want)}
	if err := got.Inv.Know(want.Parts...); err != nil {
		return Look{}, err
	}
	var err error
	if got.Packaging, err = s.Packaging.Look(h.Files()); err != nil {
		return Look{}, err
	}
	got.Mark, err = s.mark(ctx, h)
	return got, err
}

// mark names all that a base is made from: the release, the kernel's build,
// the service's files, the brand, and the format. A base with another mark is
// of another system and is no longer cloned.
func (s Settings) mark(ctx context.Context, h host.Host) (string, error) {
	release, err := host.ReadFile(h.Files(), "/etc/release")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	uname := host.Command{Program: "uname", Args: []string{"-v"}, ReadOnly: true}
	result, err := h.Run(ctx, uname)
	if err != nil {
		return "", err
	}
	if result.Exit != 0 {
		return "", &host.CommandError{Command: uname, Result: result}
	}
	sum := sha256.New()
	for _, part := range [][]byte{release, result.Stdout, manifest, method, []byte(s.Brand)} {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	return fmt.Sprintf("%d:%s", format, hex.EncodeToString(sum.Sum(nil))[:16]), nil
}

// valid says whether a recorded base is what a clone may be made from, and if
// not, why.
func (r Record) valid(seen Look) (bool, string) {
	d, exists := seen.Inv.Dataset(r.Dataset)
	mark := d.User[naming.PropertyBase]
	if ok, reason := r.installed(seen); !ok {
		return false, reason
	}
	switch {
	case !exists && seen.silent(r.Dataset) != "":
		return false, seen.silent(r.Dataset)
	case !exists || mark.Source != "local":
		return false, "its dataset carries no mark"
	case mark.Value != seen.Mark:
		return false, ofAnotherRelease
	}
	return true, ""
}

// installed says whether the zone of a base is the one that was installed.
func (r Record) installed(seen Look) (bool, string) {
	z, there := seen.Inv.Zone(r.Zone)
	switch {
	case r.UUID == "":
		return false, "was never finished"
	case !there:
		return false, "its zone is gone"
	case z.State != zone.Installed:
		return false, "its zone is " + string(z.State)
	case z.UUID != r.UUID:
		return false, "its zone was reinstalled"
	}
	return true, ""
}

// Invalid lists of each pool the newest base that was finished, if it is not valid, as far as a listing of the
// zones shows it: datasets are not looked at.
func (s Settings) Invalid(ctx context.Context, h host.Host, view ledger.View) ([]Status, error) {
	records, err := All(view)
	if err != nil || len(records) == 0 {
		return nil, err
	}
	got := Look{Inv: inventory.Look(ctx, h, inventory.Want{Parts: []inventory.Part{inventory.Zones}})}
	if err := got.Inv.Know(inventory.Zones); err != nil {
		return nil, err
	}
	if got.Mark, err = s.mark(ctx, h); err != nil {
		return nil, err
	}
	newest := map[string]Record{}
	for _, r := range records {
		if _, known := newest[r.Pool]; !known || r.UUID != "" { // they are in the order of their generations
			newest[r.Pool] = r
		}
	}
	var all []Status
	for _, pool := range slices.Sorted(maps.Keys(newest)) {
		r := newest[pool]
		if ok, reason := r.installed(got); !ok {
			all = append(all, Status{Record: r, Reason: reason})
		} else if r.Mark != got.Mark {
			all = append(all, Status{Record: r, Reason: ofAnotherRelease})
		}
	}
	return all, nil
}

const ofAnotherRelease = "it is of another system release"

// silent is why a dataset cannot be seen; empty: its pool answers.
func (l Look) silent(dataset string) string {
	pools, _ := l.Inv.Pools()
	name, _, _ := strings.Cut(dataset, "/")
	for _, p := range pools {
		if p.Name == name && !p.Answers() {
			return "pool " + p.Name + " is " + p.Health + ": its dataset cannot be seen"
		}
	}
	return ""
}

// Ensure makes the pool have a valid base.
func (s Settings) Ensure(ctx context.Context, env operation.Env, pool string, dryRun, keep bool) (Record, operation.Report, error) {
	var result Record
	report, err := operation.Run(ctx, env, operation.Request[Look]{
		Verb: "base ensure", Subject: Subject(pool), DryRun: dryRun, Keep: keep,
		Look: s.lookAlone,
		Decide: func(view ledger.View, seen Look, at operation.Stamp) (operation.Decision, error) {
			d, r, err := s.decide(view, seen, pool)
			result = r
			return d, err
		},
		Seal: func(ctx context.Context, h host.Host) ([]ledger.Fact, error) { return s.seal(ctx, h, &result) },
	})
	return result, report, err
}

// Ready gives the bases of those pools about which nothing is to be done, by one
// look for all of them, and without a lock.
func (s Settings) Ready(ctx context.Context, h host.Host, view ledger.View, pools []string) (map[string]Record, error) {
	seen, err := s.look(ctx, h)
	if err != nil {
		return nil, err
	}
	busy := map[string]bool{}
	for _, open := range operation.Open(view) {
		busy[open.Subject] = true
	}
	ready := map[string]Record{}
	for _, pool := range pools {
		d, r, err := s.decide(view, seen, pool)
		if err == nil && d.Plan.Empty() && len(d.OnStart)+len(d.OnSuccess) == 0 && !busy[Subject(pool)] {
			ready[pool] = r
		}
	}
	return ready, nil
}

// seal writes down the identities that the host chose.
func (s Settings) seal(ctx context.Context, h host.Host, r *Record) ([]ledger.Fact, error) {
	seen, err := s.look(ctx, h)
	if err != nil {
		return nil, err
	}
	z, _ := seen.Inv.Zone(r.Zone)
	d, _ := seen.Inv.Dataset(r.Dataset)
	r.UUID, r.GUID = z.UUID, d.GUID
	value, err := json.Marshal(r)
	return []ledger.Fact{{Key: r.key(), Value: value}}, err
}

// decide is pure: the newest valid base stands, else the next generation is
// made. What a dead run left of one that was never finished is cleared away
// first, and its number is taken again.
func (s Settings) decide(view ledger.View, seen Look, pool string) (operation.Decision, Record, error) {
	all, err := of(view, pool)
	if err != nil {
		return operation.Decision{}, Record{}, err
	}
	if err := prepared(seen, pool); err != nil {
		return operation.Decision{}, Record{}, err
	}
	d := operation.Decision{Plan: plan.Plan{Policy: plan.Undo}}
	why, generation := "the pool has none", 0
	for _, r := range slices.Backward(all) {
		ok, reason := r.valid(seen)
		switch {
		case ok:
			return operation.Decision{}, r, nil
		case r.UUID == "" && !r.leaving(view):
			removal := r.removal(seen, Ahead{})
			d.Plan.Actions = append(d.Plan.Actions, removal.Plan.Actions...)
			d.Intent.Removes = append(d.Intent.Removes, removal.Intent.Removes...)
			d.OnStart = append(d.OnStart, removal.OnSuccess...)
			why = reason
		case generation == 0:
			why, generation = fmt.Sprintf("generation %d %s", r.Generation, reason), r.Generation
		}
	}
	kind, err := s.Packaging.Decide(seen.Packaging)
	if err == nil && kind == packaging.Image {
		err = &UselessError{Pool: pool}
	}
	if err != nil {
		return operation.Decision{}, Record{}, err
	}
	r := s.record(pool, s.free(seen, pool, generation+1, d.Intent.Removes), seen.Mark)
	value, err := json.Marshal(r)
	if err != nil {
		return operation.Decision{}, Record{}, err
	}
	d.Plan.Actions = plan.Chain(append(d.Plan.Actions, s.actions(r, why)...)...)
	d.OnStart = append(d.OnStart, ledger.Fact{Key: r.key(), Value: value})
	d.OnUndo = []ledger.Fact{{Key: r.key()}}
	d.Intent.Makes = []operation.Object{{Kind: "zone", Name: r.Zone}, {Kind: "dataset", Name: r.Dataset}}
	return d, r, nil
}

// leaving says whether another operation, a reap, is removing the base.
func (r Record) leaving(view ledger.View) bool {
	for _, open := range operation.Open(view) {
		removed := slices.ContainsFunc(open.Removes, func(o operation.Object) bool { return o.Name == r.Zone || o.Name == r.Dataset })
		if open.Subject != Subject(r.Pool) && removed {
			return true
		}
	}
	return false
}

// free is the first generation from n on whose zone and dataset do not exist,
// or are removed first.
func (s Settings) free(seen Look, pool string, n int, leaving []operation.Object) int {
	leaves := func(kind, name string) bool {
		return slices.ContainsFunc(leaving, func(o operation.Object) bool { return o.Kind == kind && o.Name == name })
	}
	for ; ; n++ {
		r := s.record(pool, n, "")
		_, zoned := seen.Inv.Zone(r.Zone)
		_, exists := seen.Inv.Dataset(r.Dataset)
		if (!zoned || leaves("zone", r.Zone)) && (!exists || leaves("dataset", r.Dataset)) {
			return n
		}
	}
}

// NotPreparedError is a pool that has no place for zones.
type NotPreparedError struct{ Pool, Dataset string }

// Error names what is missing.
func (e *NotPreparedError) Error() string {
	return fmt.Sprintf("pool %s is not prepared for zones: %s is missing or not mounted", e.Pool, e.Dataset)
}

func (*NotPreparedError) Kind() fault.Kind { return fault.Refused }

// UselessError is a base that nothing would be cloned from: zones are installed
// from images on this host.
type UselessError struct{ Pool string }

// Error says so.
func (e *UselessError) Error() string {
	return fmt.Sprintf("pool %s needs no base zone: on this host zones are installed from images (propolis.packaging)", e.Pool)
}

func (*UselessError) Kind() fault.Kind { return fault.Refused }

// Hint says what would make bases of use.
func (e *UselessError) Hint() string {
	return "to clone zones from bases, on a host with the sparse brand, set propolis.packaging to \"lofs\""
}

func prepared(seen Look, pool string) error {
	parent, holds := naming.ZoneParent(pool)
	if d, ok := seen.Inv.Dataset(parent.Dataset); !holds || !ok || !d.Mounted {
		return &NotPreparedError{Pool: pool, Dataset: parent.Dataset}
	}
	return nil
}

// actions makes a base: dataset, zone, install, our service, the seeded
// repository, and the mark last of all.
func (s Settings) actions(r Record, why string) []plan.Action {
	root := path.Join(r.Zonepath, "root")
	act := func(change plan.Change, object, why string, step plan.Step) plan.Action {
		return plan.Action{ID: step.Verb() + " " + r.Zone, Object: object, Why: why, Change: change, Step: step}
	}
	zoned, dataset := "zone "+r.Zone, "dataset "+r.Dataset
	actions := []plan.Action{
		act(plan.Create, dataset, why, zfs.Create{Dataset: r.Dataset, Mountpoint: r.Zonepath, Mode: 0o700,
			Properties: []zfs.Property{{Name: naming.PropertyBase, Value: "unfinished"}}}),
		act(plan.Create, zoned, why, zone.Configure{Name: r.Zone, Config: s.config(r)}),
		act(plan.Modify, zoned, "what Propolis needs and little else", zone.Install{Name: r.Zone, Zonepath: r.Zonepath}),
		act(plan.Modify, zoned, "Propolis' start method", smf.WriteMethod{Root: root, Name: manifestDirectory + "/propolis-server", Content: method}),
		act(plan.Modify, zoned, "Propolis' service, disabled", smf.WriteManifest{Root: root, Name: manifestDirectory + "/propolis-server.xml", Content: manifest}),
		act(plan.Modify, zoned, "clones boot in a third of the time", smf.Seed{Root: root, Manifests: []string{systemManifests, manifestDirectory}}),
		act(plan.Modify, dataset, "finished", zfs.Set{Dataset: r.Dataset, Name: naming.PropertyBase, Value: r.Mark, Old: "unfinished"}),
	}
	return plan.Chain(actions...)
}

// config is as bare as can be: a base is never booted, and what it shared with
// its clones, zoneadm would warn of at each.
func (s Settings) config(r Record) zone.Config {
	return zone.Config{
		Brand: r.Brand, Zonepath: r.Zonepath, IPType: "exclusive",
		Attrs: []zone.Attr{{Name: naming.AttrBase, Type: "string", Value: fmt.Sprint(r.Generation)}},
	}
}
