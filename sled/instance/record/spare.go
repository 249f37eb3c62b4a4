package record

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/illumos/naming"
)

// Spare is what the ledger keeps of a zone that is cloned ahead, under
// spare/<propolis id>: an incarnation takes the zone with that id, and removes this
// record in the commit that writes its own.
type Spare struct {
	PropolisID string `json:"propolis_id"`
	Pool       string `json:"pool"`
	Zone       string `json:"zone"`
	Zonepath   string `json:"zonepath"`
	Dataset    string `json:"dataset"` // of the zonepath
	Base       string `json:"base"`    // the zone that was cloned
	// BaseDataset is the base's zonepath dataset: clones leave snapshots there.
	BaseDataset string `json:"base_dataset"`
	Brand       string `json:"brand"`
	Boot        string `json:"boot"`           // the sled's boot in which it was made
	GUID        string `json:"guid,omitempty"` // of the dataset; empty until it is finished
	// Clean is what the zone was when it was finished, as a digest
	// (layout.SpareFingerprint); empty: it is not finished, or is not to be used.
	Clean string `json:"clean,omitempty"`
	// BootedIn is the sled's boot in which sledctl booted it, and ZoneID the kernel's number of the
	// zone once it had reached the milestone; 0: it has not.
	BootedIn string `json:"booted_in,omitempty"`
	ZoneID   int    `json:"zone_id,omitempty"`
	// Unfit is why no VM may take it: one could not use it, or it is being removed.
	Unfit string `json:"unfit,omitempty"`
}

// Key is the key of the record in the ledger.
func (s Spare) Key() string { return naming.KeySpare + s.PropolisID }

// Fact writes the record.
func (s Spare) Fact() (ledger.Fact, error) {
	value, err := json.Marshal(s)
	return ledger.Fact{Key: s.Key(), Value: value}, err
}

// Forget is the fact that takes the record out of the ledger.
func (s Spare) Forget() ledger.Fact { return ledger.Fact{Key: s.Key()} }

// Objects lists what a spare is made of, for an intent.
func (s Spare) Objects() []operation.Object {
	return []operation.Object{{Kind: "zone", Name: s.Zone}, {Kind: "dataset", Name: s.Dataset, Identity: s.GUID}}
}

// Incarnation is what of a spare an incarnation takes over.
func (s Spare) Incarnation() Incarnation {
	return Incarnation{
		PropolisID: s.PropolisID, Zone: s.Zone, Zonepath: s.Zonepath, Dataset: s.Dataset, Base: s.Base, BaseDataset: s.BaseDataset,
		Brand: s.Brand, Guests: []VNIC{}, Spare: true, Rolling: true,
	}
}

// Spares reads every record of a spare, ordered by id.
func Spares(view ledger.View) ([]Spare, error) {
	var all []Spare
	for key, value := range view.All(naming.KeySpare) {
		var s Spare
		if err := json.Unmarshal(value, &s); err != nil {
			return nil, fmt.Errorf("record %s: %w", key, err)
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b Spare) int { return strings.Compare(a.PropolisID, b.PropolisID) })
	return all, nil
}
