package volume

import (
	"context"
	"strings"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/zfs"
)

// Adopt records the volumes that carry a mark and that the ledger does not know: a ledger that was
// lost knew them. They lie where sledctl puts volumes, and have the names that it gives; one whose
// name or id another volume has stays as it is. Nothing is asked of the host but to look.
func (s Settings) Adopt(ctx context.Context, env operation.Env, dryRun bool) ([]Record, operation.Report, error) {
	var adopted []Record
	report, err := operation.Run(ctx, env, operation.Request[[]zfs.Dataset]{
		Verb: "volume adopt", Subject: "volume", Wait: true, DryRun: dryRun,
		Look: func(ctx context.Context, h host.Host) ([]zfs.Dataset, error) { return marked(ctx, h) },
		Decide: func(view ledger.View, found []zfs.Dataset, at operation.Stamp) (d operation.Decision, err error) {
			adopted = adopted[:0]
			making := map[string]bool{}
			for _, open := range operation.Open(view) {
				for _, o := range open.Makes {
					making[o.Name] = true
				}
			}
			for _, is := range found {
				r, fits := recordOf(view, is, at)
				if !fits || making[is.Name] {
					continue
				}
				f, err := r.fact()
				if err != nil {
					return d, err
				}
				adopted, d.OnSuccess = append(adopted, r), append(d.OnSuccess, f)
			}
			d.Plan.Why = wouldRecord(adopted)
			return d, nil
		},
	})
	return adopted, report, err
}

// wouldRecord is what a dry run prints, as nothing is done on the host; empty: nothing is recorded.
func wouldRecord(all []Record) string {
	var names []string
	for _, r := range all {
		names = append(names, r.Name)
	}
	if len(names) == 0 {
		return ""
	}
	return "would record these volumes: " + strings.Join(names, ", ")
}

// marked are the volumes that carry a mark, with all that a record needs.
func marked(ctx context.Context, h host.Host) ([]zfs.Dataset, error) {
	want := Wants()
	want.User = append(want.User, "volblocksize", "refreservation")
	inv, err := lookAloneFor(ctx, h, want)
	if err != nil {
		return nil, err
	}
	datasets, _ := inv.Datasets()
	var all []zfs.Dataset
	for _, d := range datasets {
		if mark(d) != "" {
			all = append(all, d)
		}
	}
	return all, nil
}

// recordOf is the record of a marked volume that has none; false: it has one, or cannot be recorded.
func recordOf(view ledger.View, is zfs.Dataset, at operation.Stamp) (Record, bool) {
	pool, name, ok := naming.ParseVolume(is.Name)
	r := Record{ID: mark(is), Name: name, Pool: pool, Dataset: is.Name, GUID: is.GUID, Size: is.Volsize, Block: is.Volblocksize, Thin: is.Refreservation == 0, Created: at.Now}
	_, named := Find(view, name)
	_, known := BySubject(view, Subject(r.ID))
	return r, ok && naming.IsUUID(r.ID) && named != nil && !known
}
