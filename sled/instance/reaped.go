package instance

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// Reaping are the facts that go before a reap takes the zones away that goes picks:
// the runs of this boot to which they belong say that it was sledctl.
func Reaping(records map[string]record.Record, boot string, goes func(zone string) bool) ([]ledger.Fact, error) {
	var facts []ledger.Fact
	for _, id := range slices.Sorted(maps.Keys(records)) {
		r := records[id]
		if r.Run == nil || r.Run.Reaped || r.Run.Boot != boot || !goes(r.Run.Zone) {
			continue
		}
		run := *r.Run
		run.Reaped, r.Run = true, &run
		value, err := json.Marshal(r)
		if err != nil {
			return nil, err
		}
		facts = append(facts, ledger.Fact{Key: record.Subject(id), Value: value})
	}
	return facts, nil
}
