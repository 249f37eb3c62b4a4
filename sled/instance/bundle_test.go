package instance

import (
	"strings"
	"testing"

	"github.com/sledctl/sledctl/engine/bundle"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/illumos/smf"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/zone"
)

// What a zone can tell is kept where something went wrong with it, before
// anything of it is touched, and no failure to keep it is in the way.
func TestEvidenceIsKeptOfWhatFailed(t *testing.T) {
	const pool = "oxp_e4b4dc87-ab46-49fb-a4b4-d361ae214c03"
	debug, _ := naming.Debug(pool)
	nowhere := &bundle.NowhereError{}
	for name, c := range map[string]struct {
		point  int
		change func(*Observed, *record.Record)
		want   bundle.Cause
		told   int // warnings
	}{
		"a healthy one":            {atRunning, func(*Observed, *record.Record) {}, "", 0},
		"one that is not made yet": {atInstalled, func(_ *Observed, r *record.Record) { r.Incarnation.Ensured = false }, "", 0},
		"one whose VM failed":      {atRunning, func(s *Observed, _ *record.Record) { s.Inside.VM.State = "Failed" }, bundle.Failed, 0},
		"one whose service is down": {atRunning, func(s *Observed, _ *record.Record) {
			s.Inside = Inside{Services: map[string]string{settings().Propolis.FMRI: smf.Maintenance}}
		}, bundle.Failed, 0},
		"one from before the boot":    {atInstalled, func(s *Observed, r *record.Record) { r.Incarnation.Ensured, r.Incarnation.Boot = true, "earlier" }, bundle.StaleZone, 0},
		"one whose zone was halted":   {atInstalled, func(s *Observed, r *record.Record) { r.Incarnation.Ensured = true }, bundle.Failed, 0},
		"one that is only configured": {atConfigured, func(s *Observed, r *record.Record) { r.Incarnation.Ensured = true }, "", 0},
		"a sled without a place":      {atRunning, func(s *Observed, _ *record.Record) { s.Inside.VM.State, s.Places, s.Nowhere = "Failed", nil, nowhere }, "", 1},
		"no place, a healthy one":     {atRunning, func(s *Observed, _ *record.Record) { s.Places, s.Nowhere = nil, nowhere }, "", 0},
		"no place, only configured":   {atConfigured, func(s *Observed, r *record.Record) { r.Incarnation.Ensured, s.Places, s.Nowhere = true, nil, nowhere }, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := settings()
			s.Bundles = bundle.Settings{Max: 1 << 20, Lock: "/run/lock/bundle"}
			r := made(t, s, oneNIC())
			seen := prepared().bring(s, r, c.point).look()
			seen.Places = []bundle.Place{{Dir: debug.Mountpoint, Pool: pool, Dataset: debug.Dataset}}
			incarnation := *r.Incarnation
			r.Incarnation = &incarnation
			if c.point == atRunning {
				r.Incarnation.Ensured = true
			}
			c.change(&seen, &r)
			p, err := plan.Plan{Actions: teardown(s, r, seen, moment("m"), StopTime)}.Sorted()
			if err != nil {
				t.Fatal(err)
			}
			if told := unkept(s.Blueprint(), r, seen); len(told) != c.told {
				t.Errorf("told: %v", told)
			}
			var taken []bundle.Take
			for i, a := range p.Actions {
				if step, ok := a.Step.(bundle.Take); ok {
					taken = append(taken, step)
					if i != 0 || !a.BestEffort {
						t.Errorf("action %d of %q, best effort: %v", i, plan.IDs(p.Actions), a.BestEffort)
					}
				}
			}
			if c.want == "" {
				if len(taken) != 0 {
					t.Errorf("%+v", taken)
				}
				return
			}
			if len(taken) != 1 || !strings.Contains(taken[0].ID, "-"+string(c.want)+"-") || taken[0].Zone != r.Incarnation.Zone || taken[0].Reason == "" || taken[0].Dir != debug.Mountpoint {
				t.Fatalf("%+v", taken)
			}
			z, _ := seen.Inv.Zone(r.Incarnation.Zone)
			if taken[0].Running != (z.State == zone.Running) {
				t.Errorf("the zone is %s, and the bundle thinks that it runs: %v", z.State, taken[0].Running)
			}
		})
	}
}
