package status

import (
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/zone"
)

// unrecorded are the zones of instances, by their names, that nothing recorded accounts
// for: the ledger was lost, or an operation left them. A base without a record may be in
// use: reap says so.
func unrecorded(names naming.Prefixes, view ledger.View, zones []zone.Zone) ([]zone.Zone, error) {
	known, err := recordedZones(view)
	if err != nil {
		return nil, err
	}
	var all []zone.Zone
	for _, z := range zones {
		if _, ours := names.ParseZoneName(z.Name); ours && !known[z.Name] {
			all = append(all, z)
		}
	}
	return all, nil
}

// withoutSpares tells zones that were cloned ahead from the others. One whose configuration
// cannot be read is among the others.
func withoutSpares(files host.Files, zones []zone.Zone) (others, spares []zone.Zone) {
	for _, z := range zones {
		config, err := zone.ReadConfig(files, z.Name)
		if err == nil && layout.IsSpare(config) {
			spares = append(spares, z)
		} else {
			others = append(others, z)
		}
	}
	return others, spares
}

// recordedZones are those of instances and spares, and those that operations which
// have not ended make.
func recordedZones(view ledger.View) (map[string]bool, error) {
	known := map[string]bool{}
	instances, err := record.All(view)
	if err != nil {
		return nil, err
	}
	for _, r := range instances {
		for _, i := range r.Incarnations() {
			known[i.Zone] = true
		}
	}
	spares, err := record.Spares(view)
	if err != nil {
		return nil, err
	}
	for _, s := range spares {
		known[s.Zone] = true
	}
	for _, open := range operation.Open(view) {
		for _, o := range append(open.Makes, open.Removes...) {
			known[o.Name] = true
		}
	}
	return known, nil
}

// strayZones counts the zones in no record: those that run and are no spares may be adopted,
// reap judges the others.
func (j *judge) strayZones() {
	running := 0
	for _, z := range j.Unrecorded {
		if z.State == zone.Running {
			running++
		}
	}
	if running > 0 {
		j.add(Problem{Code: "vm-unrecorded", Severity: Attention, Subject: Subject{Kind: "zones"}, Count: running,
			Text: counted(running, "zone of sledctl runs and is", "zones of sledctl run and are") + " in no record", Next: []string{"sledctl instance adopt --all --dry-run"}})
	}
	if n := len(j.LostSpares); n > 0 {
		j.add(Problem{Code: "reap", Severity: Attention, Subject: Subject{Kind: "zones"}, Count: n,
			Text: counted(n, "spare is", "spares are") + " in no record", Next: []string{"sledctl reap --dry-run"}})
	}
	if rest := len(j.Unrecorded) - running; rest > 0 {
		j.add(Problem{Code: "reap", Severity: Attention, Subject: Subject{Kind: "zones"}, Count: rest,
			Text: counted(rest, "zone of sledctl does not run and is", "zones of sledctl do not run and are") + " in no record", Next: []string{"sledctl reap --dry-run"}})
	}
}
