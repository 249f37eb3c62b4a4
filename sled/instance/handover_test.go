package instance

import (
	"encoding/json"
	"testing"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/operation/operationtest"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/sled/instance/migration"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// What is remembered of a migration is written with the record that it explains,
// and forgotten when the instance has gone the other way.
func TestHandovers(t *testing.T) {
	const byThis = "5e2b5a63-5ab6-4c4e-9e9e-8f3c1c3a7a01"
	stay := func(*Observed, *record.Record) {}
	departs := func(done bool) func(*Observed, *record.Record) {
		return func(_ *Observed, r *record.Record) {
			r.Migration = &record.Migration{ID: byThis, Target: []string{"ssh", "b"}, Departed: done}
		}
	}
	left := func(s *Observed, r *record.Record) {
		s.Inside.VM.ID, s.Inside.VM.State = r.ID, propolis.StateDestroyed
		s.Inside.VM.Migration.Out = &propolis.Migration{ID: byThis, State: migration.PhaseFinish}
	}
	arrives := func(_ *Observed, r *record.Record) {
		r.Migration = &record.Migration{ID: byThis, Source: "10.77.0.2:12400"}
	}
	here := func(r record.Record) record.Record {
		incarnation := *r.Incarnation
		incarnation.Migration, r.Migration, r.Incarnation = byThis, nil, &incarnation
		return r
	}
	none := func(record.Record) record.Record { return record.Record{} }
	same := func(r record.Record) record.Record { return r }
	again := func(r record.Record) record.Record { r.Generation++; return r }
	for name, c := range map[string]struct {
		change       func(*Observed, *record.Record)
		before       func(record.Record) record.Record // nil: nothing
		after        func(record.Record) record.Record
		has          string // the handover that there is already
		departed     string // the peer of the handover that there is then
		arrived      string
		gone, arrive bool // whether there is one
	}{
		"one that has departed":                       {change: departs(true), after: none, departed: "ssh b", gone: true},
		"one that came, and has departed":             {change: departs(true), after: none, has: naming.KeyArrived, departed: "ssh b", gone: true},
		"one that another program has migrated":       {change: left, after: none, gone: true},
		"one that is deleted":                         {change: stay, after: none},
		"one that came, and is deleted":               {change: stay, after: none, has: naming.KeyArrived},
		"one that has not departed":                   {change: departs(false), after: none},
		"one that arrives":                            {change: arrives, before: same, after: here, arrived: "10.77.0.2:12400", arrive: true},
		"one that has arrived before it was asked":    {change: arrives, before: here, after: here, arrived: "10.77.0.2:12400", arrive: true},
		"one that comes back":                         {change: arrives, before: same, after: here, has: naming.KeyDeparted, arrived: "10.77.0.2:12400", arrive: true},
		"one that comes back, and does not arrive":    {change: arrives, after: none, has: naming.KeyDeparted, gone: true},
		"one that is made again where it had left":    {change: stay, before: same, after: again, has: naming.KeyDeparted},
		"one that begins to be made again":            {change: stay, before: same, has: naming.KeyDeparted, gone: true},
		"one that had arrived, and is started again":  {change: func(_ *Observed, r *record.Record) { *r = here(*r) }, before: same, after: again, has: naming.KeyArrived, arrive: true},
		"one that had arrived, and has been followed": {change: func(_ *Observed, r *record.Record) { *r = here(*r) }, before: same, after: again},
	} {
		t.Run(name, func(t *testing.T) {
			s := settings()
			r := made(t, s, oneNIC())
			seen := prepared().bring(s, r, atRunning).look()
			c.change(&seen, &r)
			facts := kept(t, r)
			if c.has != "" {
				facts = append(facts, ledger.Fact{Key: c.has + r.ID, Value: json.RawMessage("{}")})
			}
			var d operation.Decision
			if c.before != nil {
				d.OnStart = change(t, c.before(r), r)
			}
			if c.after != nil {
				d.OnSuccess = change(t, c.after(r), r)
			}
			if err := migration.Remember(operationtest.Book(t, facts...), r.ID, &d, seen.Inside.VM, moment("m").Now); err != nil {
				t.Fatal(err)
			}
			view := operationtest.Book(t, append(append(facts, d.OnStart...), d.OnSuccess...)...)
			for _, want := range []struct {
				handovers func(ledger.View) ([]migration.Handover, error)
				there     bool
				peer      string
			}{{migration.HasDeparted, c.gone, c.departed}, {migration.HasArrived, c.arrive, c.arrived}} {
				got, err := want.handovers(view)
				if err != nil || (len(got) == 1) != want.there || want.there && got[0].Peer != want.peer || want.there && got[0].Instance != r.ID {
					t.Errorf("%+v, %v; want %v, from or to %q", got, err, want.there, want.peer)
				}
				if want.there && c.has == "" && (got[0].Migration != byThis || got[0].Name != r.Name || got[0].Time.IsZero()) {
					t.Errorf("%+v", got[0])
				}
			}
			if gone, _ := migration.HasDeparted(view); c.gone && c.departed != "" && (len(gone[0].VMs) != 1 || len(gone[0].MACs) != len(r.Spec.NICs) || gone[0].Control != r.Control) {
				t.Errorf("%+v", gone[0])
			}
		})
	}
}
