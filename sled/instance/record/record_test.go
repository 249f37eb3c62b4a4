package record

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation/operationtest"
	"github.com/sledctl/sledctl/illumos/naming"
)

// written is what a ledger holds after these facts.
const anID = "8c4a2b1e-6a57-4a5c-9d3e-0a1b2c3d4e5f"

func written(facts ...ledger.Fact) map[string]string {
	held := map[string]string{}
	for _, f := range facts {
		if f.Value == nil {
			delete(held, f.Key)
			continue
		}
		held[f.Key] = string(f.Value)
	}
	return held
}

func anyRecord(id string) *rapid.Generator[Record] {
	return rapid.Custom(func(t *rapid.T) Record {
		r := Record{
			ID: id, Name: rapid.StringMatching(`[a-c]`).Draw(t, "name"), Wanted: WantedRunning, Control: anyMAC().Draw(t, "control"),
			Spec: Spec{CPUs: 1, Memory: 1 << 30, Address: anyAddress().Draw(t, "address"), NICs: rapid.SliceOfN(anyNIC(), 0, 3).Draw(t, "nics"), Disks: []Disk{}},
		}
		if rapid.Bool().Draw(t, "runs") {
			n := rapid.IntRange(0, 5).Draw(t, "number")
			r.Incarnation = &Incarnation{Zone: "z", Control: VNIC{Name: fmt.Sprint("c", n), MAC: r.Control}, Guests: []VNIC{}}
			for i, nic := range r.Spec.NICs {
				r.Incarnation.Guests = append(r.Incarnation.Guests, VNIC{Name: fmt.Sprint("g", n+i), Over: nic.Over, MAC: nic.MAC})
			}
		}
		return r
	})
}

// After one record has replaced another, the ledger holds what the new one
// alone would hold: every reservation of the old is given back.
func TestARecordGivesBackAllThatItReserved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old, next := anyRecord(anID).Draw(t, "old"), anyRecord(anID).Draw(t, "next")
		facts := func(r, old Record) []ledger.Fact {
			f, err := r.Replaces(old)
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
		made, changed, gone := facts(old, Record{}), facts(next, old), facts(Record{}, next)
		if d := cmp.Diff(written(facts(next, Record{})...), written(slices.Concat(made, changed)...)); d != "" {
			t.Errorf("after the change: %s", d)
		}
		if left := written(slices.Concat(made, changed, gone)...); len(left) != 0 {
			t.Errorf("after its end: %v", slices.Sorted(maps.Keys(left)))
		}
	})
}

func TestARecordTouchesNoOtherKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old, next := anyRecord(anID).Draw(t, "old"), anyRecord(anID).Draw(t, "next")
		own := map[string]bool{naming.KeyInstance + anID: true}
		for _, key := range slices.Concat(old.Reserves(), next.Reserves()) {
			own[key] = true
		}
		facts, err := next.Replaces(old)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range facts {
			if !own[f.Key] {
				t.Errorf("%s belongs to another instance", f.Key)
			}
		}
	})
}

func TestARecordIsReadBackAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRecord(anID).Draw(t, "record")
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var again Record
		if err := json.Unmarshal(data, &again); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		if d := cmp.Diff(r, again, cmp.Comparer(func(a, b Address) bool { return a == b })); d != "" {
			t.Error(d)
		}
	})
}

func TestWhoWasClonedFromABaseSince(t *testing.T) {
	fact := func(id, base string, ensured bool) ledger.Fact {
		value, err := json.Marshal(Record{ID: id, Name: "i" + id, Spec: Spec{Address: Address{Mode: DHCP}}, Incarnation: &Incarnation{Zone: "z" + id, Base: base, Ensured: ensured}})
		if err != nil {
			t.Fatal(err)
		}
		return ledger.Fact{Key: Subject(id), Value: value}
	}
	one, other := fact("1", "b1", false), fact("2", "b2", true)
	for name, c := range map[string]struct {
		before, now []ledger.Fact
		want        string
	}{
		"nobody":             {nil, []ledger.Fact{other}, ""},
		"one that was there": {[]ledger.Fact{one}, []ledger.Fact{one, other}, ""},
		"one that is new":    {[]ledger.Fact{other}, []ledger.Fact{one, other}, "i1"},
		"one that was made":  {[]ledger.Fact{one}, []ledger.Fact{fact("1", "b1", true)}, "i1"},
		"one that is gone":   {[]ledger.Fact{one}, nil, ""},
	} {
		got, err := ClonedSince(operationtest.Book(t, c.before...), operationtest.Book(t, c.now...), "b1")
		if got != c.want || err != nil {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
	}
}

func TestABrokenRecordIsAnError(t *testing.T) {
	view := operationtest.Book(t, ledger.Fact{Key: naming.KeyInstance + anID, Value: json.RawMessage(`{"id": 7}`)}, ledger.Fact{Key: naming.KeyName + "web1", Value: json.RawMessage(`7`)})
	if _, _, err := Load(view, anID); err == nil {
		t.Error("loaded")
	}
	if all, err := All(view); err == nil {
		t.Errorf("listed: %v", all)
	}
}
