// Package base installs and retires base zones, which instances are cloned from. A
// clone is instant only within a pool, so each pool that holds zones has one
// of its own. Its SMF repository is seeded, which makes a clone boot in a
// third of the time, and it carries Propolis' service, disabled.
//
// A base is never repaired. It is valid or not; when it is not, the next
// generation is made next to it, and the old one is retired once nothing is
// cloned from it.
package base

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/illumos/naming"
)

// Record is what the ledger keeps of a base, under base/<pool>/<generation>.
type Record struct {
	Pool       string `json:"pool"`
	Generation int    `json:"generation"`
	Zone       string `json:"zone"`
	Zonepath   string `json:"zonepath"`
	Dataset    string `json:"dataset"`
	Brand      string `json:"brand"`
	Mark       string `json:"mark"`
	UUID       string `json:"uuid,omitempty"` // of the installation; empty until it is finished
	GUID       string `json:"guid,omitempty"` // of the dataset
}

// Forget is the fact that takes a base out of the ledger.
func Forget(r Record) ledger.Fact { return ledger.Fact{Key: r.key()} }

func (r Record) key() string { return key(r.Pool, r.Generation) }

// Key is the key of a base's record in the ledger.
func Key(r Record) string { return r.key() }

func key(pool string, generation int) string {
	return naming.KeyBase + pool + "/" + strconv.Itoa(generation)
}

// All reads every record, by pool and generation.
func All(view ledger.View) ([]Record, error) { return below(view, naming.KeyBase) }

// of reads the records of a pool, by generation.
func of(view ledger.View, pool string) ([]Record, error) { return below(view, Subject(pool)+"/") }

func below(view ledger.View, prefix string) ([]Record, error) {
	var records []Record
	for k, value := range view.All(prefix) {
		var r Record
		if err := json.Unmarshal(value, &r); err != nil {
			return nil, fmt.Errorf("record %s: %w", k, err)
		}
		records = append(records, r)
	}
	slices.SortFunc(records, func(a, b Record) int {
		return cmp.Or(strings.Compare(a.Pool, b.Pool), cmp.Compare(a.Generation, b.Generation))
	})
	return records, nil
}

// Current is the newest finished base of a pool, as recorded.
func Current(view ledger.View, pool string) (Record, bool) {
	all, err := of(view, pool)
	if err != nil {
		return Record{}, false
	}
	for _, r := range slices.Backward(all) {
		if r.UUID != "" {
			return r, true
		}
	}
	return Record{}, false
}

// Subject is what the bases of a pool are locked as. Who clones from one locks
// it shared.
func Subject(pool string) string { return naming.KeyBase + pool }

func (s Settings) record(pool string, generation int, mark string) Record {
	zone := s.Names.BaseName(pool, generation)
	at, _ := naming.Zone(pool, zone)
	return Record{
		Pool: pool, Generation: generation, Zone: zone, Mark: mark, Brand: s.Brand,
		Zonepath: at.Mountpoint, Dataset: at.Dataset,
	}
}
