package reap

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/localdisk"
	"github.com/sledctl/sledctl/zfs"
)

// A local disk holds what a guest wrote: it stays, asked for everything too, unless its removal was
// begun or its making did not end.
func TestLocalDisksStayUnlessTheyWereToGo(t *testing.T) {
	r := localdisk.Record{ID: uuid.MustParse(unknownID), Pool: "oxp_" + unknownID, Size: 1 << 30, Quota: 2 << 30}
	dataset, key := "dataset "+r.Dataset(), "record "+localdisk.Subject(r.ID)
	making := operation.Intent{Makes: []operation.Object{{Kind: "dataset", Name: r.Dataset()}, {Kind: "dataset", Name: r.Volume()}}}
	removing := r
	removing.Removing = true
	for name, c := range map[string]struct {
		there, marked bool
		record        *localdisk.Record
		intent        *operation.Intent
		living        bool
		want          map[string]Verdict
		goes          bool
	}{
		"recorded":                   {true, true, &r, nil, false, map[string]Verdict{dataset: InUse}, false},
		"recorded, without its mark": {true, false, &r, nil, false, map[string]Verdict{dataset: InUse}, false},
		"recorded, and gone":         {false, false, &r, nil, false, map[string]Verdict{key: StaleRec}, false},
		"being made":                 {true, true, nil, &making, true, map[string]Verdict{dataset: InProgress}, false},
		"half made":                  {true, true, nil, &making, false, map[string]Verdict{dataset: Orphan, "record intent/of " + localdisk.Subject(r.ID): StaleRec}, true},
		"made by a later one":        {true, true, &r, &making, false, map[string]Verdict{dataset: InUse}, false},
		"half removed":               {true, true, &removing, nil, false, map[string]Verdict{dataset: Orphan}, true},
		"half removed, and gone":     {false, false, &removing, nil, false, map[string]Verdict{key: StaleRec}, true},
		"unknown to the ledger":      {true, true, nil, nil, false, map[string]Verdict{dataset: Adoptable}, false},
		"somebody else's":            {true, false, nil, nil, false, map[string]Verdict{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := empty()
			s.Pools = append(s.Pools, zfs.Pool{Name: r.Pool, Health: "ONLINE"})
			if c.there {
				s.dataset(r.Dataset())
				s.Datasets[len(s.Datasets)-1].Canmount = "off"
				if c.marked {
					s.Datasets[len(s.Datasets)-1].User = map[string]zfs.Value{naming.PropertyLocalDisk: {Value: unknownID, Source: zfs.Local}}
				}
				s.Datasets = append(s.Datasets, zfs.Dataset{Name: r.Volume(), Type: zfs.TypeVolume, GUID: "guid of vol"})
			}
			if c.record != nil {
				s.fact(t, localdisk.Subject(r.ID), c.record)
			}
			if c.intent != nil {
				s.intent(t, localdisk.Subject(r.ID), c.living, *c.intent)
			}
			for _, all := range []bool{false, true} {
				f := s.judgeAs(t, Choice{All: all})
				if d := cmp.Diff(c.want, verdicts(f)); d != "" {
					t.Error(d)
				}
				if goes := f.goes[dataset] || f.goes[key]; goes != c.goes {
					t.Errorf("all is %v: it goes is %v", all, goes)
				}
			}
		})
	}
}
