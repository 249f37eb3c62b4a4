package documents

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation/operationtest"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// exportOf is what a ledger with these records would export.
func exportOf(t *testing.T, records ...record.Record) (exported map[string]json.RawMessage, all []ledger.Fact) {
	t.Helper()
	exported = map[string]json.RawMessage{}
	for _, r := range records {
		facts, err := r.Facts()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range facts {
			exported[f.Key] = f.Value
		}
		all = append(all, facts...)
	}
	return exported, all
}

func plain(n int, name string) record.Record {
	return record.Record{
		ID: fmt.Sprintf("8c4a2b1e-6a57-4a5c-9d3e-00000000000%d", n), Name: name, Wanted: record.WantedRunning, Control: fmt.Sprintf("02:08:20:00:00:0%d", n), Generation: 3,
		Spec: record.Spec{CPUs: 2, Memory: 1 << 30, Pool: "rpool", Address: record.Address{Mode: record.DHCP}, NICs: []record.NIC{{Over: "net0", MAC: fmt.Sprintf("02:08:20:00:01:0%d", n)}}},
	}
}

func TestWhatWasExportedIsTakenBack(t *testing.T) {
	one, two := plain(1, "web1"), plain(2, "web2")
	exported, facts := exportOf(t, one, two)
	exported[naming.KeyTombstone+"x"] = []byte(`{"a":1}`)
	exported[naming.KeyEpoch] = []byte("7")
	exported[naming.KeyDisk+"x"] = []byte(`{}`)
	exported[naming.KeyIntent+"x"] = []byte(`{}`)
	got, err := TakeBack(operationtest.Book(t), exported, false)
	if err != nil {
		t.Fatal(err)
	}
	view := operationtest.Book(t, got.Facts...)
	for _, f := range facts {
		if value, there := view.Get(f.Key); !there || string(value) != string(f.Value) {
			t.Errorf("%s: %s", f.Key, value)
		}
	}
	for key, want := range map[string]bool{naming.KeyTombstone + "x": true, naming.KeyEpoch: true, naming.KeyDisk + "x": false, naming.KeyIntent + "x": false} {
		if _, there := view.Get(key); there != want {
			t.Errorf("%s is there: %v", key, there)
		}
	}
	again, err := TakeBack(view, exported, false)
	if err != nil || len(again.Facts) > 0 {
		t.Errorf("again: %v, %v", again.Facts, err)
	}
}

func TestWhatIsKnownOtherwiseIsNotTaken(t *testing.T) {
	was := plain(1, "web1")
	exported, _ := exportOf(t, was)
	now := was
	now.Name, now.Spec.NICs = "renamed", nil
	_, facts := exportOf(t, now)
	view := operationtest.Book(t, facts...)
	_, err := TakeBack(view, exported, false)
	if e, ok := errors.AsType[*ImportError](err); !ok || e.Kind() != fault.Conflict || e.Hint() == "" {
		t.Errorf("taken: %v", err)
	}
	got, err := TakeBack(view, exported, true)
	if err != nil {
		t.Fatal(err)
	}
	gone := false
	for _, f := range got.Facts {
		gone = gone || f.Key == naming.KeyName+"renamed" && f.Value == nil
	}
	if !gone {
		t.Errorf("what only it reserved stays: %v", got.Facts)
	}
	taken := plain(2, "web1")
	_, facts = exportOf(t, taken)
	if _, err := TakeBack(operationtest.Book(t, facts...), exported, true); fault.Of(err) != fault.Conflict {
		t.Errorf("another instance has the name: %v", err)
	}
}

func TestWhatIsNoExportIsRefused(t *testing.T) {
	one, other := plain(1, "web1"), plain(2, "web1")
	for name, change := range map[string]func(map[string]json.RawMessage){
		"an unknown key":   func(x map[string]json.RawMessage) { x["members"] = []byte(`1`) },
		"no record":        func(x map[string]json.RawMessage) { x[naming.KeyInstance+one.ID] = []byte(`3`) },
		"a swapped record": func(x map[string]json.RawMessage) { x[naming.KeyInstance+other.ID] = x[naming.KeyInstance+one.ID] },
		"one name twice": func(x map[string]json.RawMessage) {
			y, _ := exportOf(t, other)
			x[naming.KeyInstance+other.ID] = y[naming.KeyInstance+other.ID]
		},
		"a count that is no": func(x map[string]json.RawMessage) { x[naming.KeyEpoch] = []byte(`"a"`) },
	} {
		exported, _ := exportOf(t, one)
		change(exported)
		_, err := TakeBack(operationtest.Book(t), exported, false)
		if e, ok := errors.AsType[*ImportError](err); !ok || e.Kind() != fault.Usage {
			t.Errorf("%s: %v", name, err)
		}
	}
}
