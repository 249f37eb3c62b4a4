package instance

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/operation/operationtest"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// A run that ends leaves a tombstone where an agent watches, and says how it
// ended.
func TestARunThatEndsLeavesATombstone(t *testing.T) {
	epoch := ledger.Fact{Key: KeyEpoch, Value: json.RawMessage("1")}
	for name, c := range map[string]struct {
		change func(*Observed, *record.Record)
		facts  func(t *testing.T, r record.Record) []ledger.Fact
		agent  bool
		want   record.State // empty: no tombstone
	}{
		"one that is stopped": {func(*Observed, *record.Record) {}, stopped, true, "destroyed"},
		"one that is deleted": {func(*Observed, *record.Record) {}, gone, true, "destroyed"},
		"one that had failed": {func(s *Observed, _ *record.Record) { s.Inside.VM.State = "Failed" }, gone, true, record.Failed},
		"one that a reboot of the sled met": {func(s *Observed, r *record.Record) {
			r.Incarnation.Boot = "earlier"
			s.Boot = "now"
			s.Inv = prepared().look().Inv
		}, gone, true, record.Failed},
		"one whose stop was killed":                      {func(s *Observed, _ *record.Record) { s.Inv = prepared().look().Inv; s.Inside = Inside{} }, stopping, true, "destroyed"},
		"one whose zone is gone":                         {func(s *Observed, _ *record.Record) { s.Inv = prepared().look().Inv; s.Inside = Inside{} }, stopped, true, record.Failed},
		"one that had failed, and whose stop was killed": {func(s *Observed, _ *record.Record) { s.Inside.VM.State = "Failed" }, stopping, true, record.Failed},
		"one that never had its machine":                 {func(_ *Observed, r *record.Record) { r.Incarnation.Ensured = false }, gone, true, ""},
		"one that goes on":                               {func(*Observed, *record.Record) {}, unchanged, true, ""},
		"one on a sled without an agent":                 {func(*Observed, *record.Record) {}, gone, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := settings()
			r := made(t, s, oneNIC())
			incarnation := *r.Incarnation
			incarnation.Ensured = true
			r.Incarnation = &incarnation
			seen := prepared().bring(s, r, atRunning).look()
			c.change(&seen, &r)
			facts := kept(t, r)
			if c.agent {
				facts = append(facts, epoch)
			}
			does := c.facts(t, r)
			for _, f := range does {
				if strings.HasPrefix(f.Key, "intent/") {
					facts = append(facts, f)
				}
			}
			got, err := tombstonesFor(s.Blueprint(), operationtest.Book(t, facts...), r.ID, does, seen, moment("m").Now)
			if err != nil {
				t.Fatal(err)
			}
			all, err := Tombstones(operationtest.Book(t, got...))
			if err != nil {
				t.Fatal(err)
			}
			if c.want == "" {
				if len(all) != 0 {
					t.Errorf("%+v", all)
				}
				return
			}
			if len(all) != 1 || all[0].State != c.want || all[0].PropolisID != incarnation.PropolisID || all[0].Instance != r.ID || all[0].Name != r.Name {
				t.Errorf("%+v, want one that is %s", all, c.want)
			}
		})
	}
}

func stopped(t *testing.T, r record.Record) []ledger.Fact {
	next := r
	next.Incarnation = nil
	return change(t, next, r)
}

// stopping are the facts of a stop behind another, which was killed.
func stopping(t *testing.T, r record.Record) []ledger.Fact {
	removes := operation.Intent{Verb: "instance stop", Subject: record.Subject(r.ID), Removes: []operation.Object{{Kind: "zone", Name: r.Incarnation.Zone}}}
	return append(stopped(t, r), intent(t, "dead", removes))
}

func gone(t *testing.T, r record.Record) []ledger.Fact { return change(t, record.Record{}, r) }

func unchanged(t *testing.T, r record.Record) []ledger.Fact { return change(t, r, r) }

func change(t *testing.T, next, old record.Record) []ledger.Fact {
	facts, err := next.Replaces(old)
	if err != nil {
		t.Fatal(err)
	}
	return facts
}
