package record

import (
	"slices"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/illumos/naming"
)

// Written is the record that facts write; a zero one if they forget it.
func Written(facts []ledger.Fact, id string) (r Record, written bool, err error) {
	i := slices.IndexFunc(facts, func(f ledger.Fact) bool { return f.Key == naming.KeyInstance+id })
	if i < 0 || facts[i].Value == nil {
		return Record{}, i >= 0, nil
	}
	r, err = Decode(facts[i].Value)
	return r, true, err
}
