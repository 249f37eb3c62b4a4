package nicsync

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	simnapi "github.com/sledctl/sledctl/sim/napi"
	"github.com/sledctl/sledctl/sim/world"
)

// follows lets something happen on a sled on which nothing happened for a while, and
// returns the requests that follow within a time.
func follows(r *rig, within time.Duration, happens func()) string {
	time.Sleep(10 * time.Second)
	r.requests()
	happens()
	time.Sleep(within)
	synctest.Wait()
	return strings.Join(unversioned(r, r.requests()), "; ")
}

// What happens to a VM costs requests for its own NICs, no matter how many others
// there are, and is followed within 6 s; so is what happens before the first look at
// all.
func TestAnEventCostsWhatItTouches(t *testing.T) {
	for _, others := range []int{2, 40} {
		for _, first := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d others, first look done %v", others, first), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, t.Context(), simnapi.EraD)
					defer r.sled.Close()
					for n := range others {
						r.vm(n+10, "running")
						r.record(n+10, ours, "running")
					}
					r.vm(1, "running")
					r.record(1, ours, "running")
					r.record(2, ours, "running") // leaked, and nothing happens to it
					ctx, cancel := context.WithCancel(t.Context())
					defer synctest.Wait()
					defer cancel()
					r.duty(ctx, Schedule{Random: func() float64 { return 0 }})
					if first {
						time.Sleep(3 * time.Minute)
					}
					for _, c := range []struct {
						what    string
						happens func()
						want    string
						has     string
					}{
						{"it stops", func() { r.vm(1, "installed") }, "GET /nics/000001 200; PUT /nics/000001 200", "ours stopped"},
						{"it runs", func() { r.vm(1, "running") }, "GET /nics/000001 200; PUT /nics/000001 200", "ours running"},
						{"its NIC is taken out", func() { r.takeOut(1) }, "GET /nics/000001 200; GET /nics/000001 200; GET /nics/000001 200; DELETE /nics/000001 204", "gone"},
						{"and put back", func() { r.record(1, "", "provisioning"); r.vm(1, "running") }, "GET /nics/000001 200; PUT /nics/000001 200", "ours running"},
						{"it goes", func() { r.removes(1) }, "GET /nics/000001 200; GET /nics/000001 200; GET /nics/000001 200; DELETE /nics/000001 204", "gone"},
					} {
						if got := follows(r, 6*time.Second, c.happens); got != c.want || r.has(1) != c.has {
							t.Errorf("%s: %s, want %s\nthe record: %s, want %s", c.what, got, c.want, r.has(1), c.has)
						}
					}
					if has := r.has(2); (has == "gone") != first {
						t.Errorf("what is leaked, and nothing happened to: %s", has)
					}
				})
			})
		}
	}
}

// An event is kept while NAPI does not answer, also before the first look at all; and
// a VM that is removed and made again within the time is only read.
func TestEventsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, t.Context(), simnapi.EraD)
		defer r.sled.Close()
		r.vm(1, "running")
		r.record(1, ours, "running")
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		r.duty(ctx, Schedule{Random: func() float64 { return 0 }})
		down := world.Fault{Name: world.FaultNAPIDown, Match: "napi"}
		r.change(func(tx *world.Tx) { tx.Arm(down) })
		follows(r, 30*time.Second, func() { r.vm(1, "installed") })
		if has := r.has(1); has != "ours running" {
			t.Errorf("NAPI is down, and: %s", has)
		}
		r.change(func(tx *world.Tx) { tx.State.Faults = nil })
		follows(r, 30*time.Second, func() {})
		if has := r.has(1); has != "ours stopped" {
			t.Errorf("NAPI is up again, and: %s", has)
		}
		got := follows(r, 10*time.Second, func() {
			r.removes(1)
			time.Sleep(2 * time.Second)
			r.vm(1, "installed")
		})
		if got != "GET /nics/000001 200" || r.has(1) != "ours stopped" {
			t.Errorf("it is written again: %s, and: %s", got, r.has(1))
		}
	})
}

// A VM that is marked and gone before anything was looked at was moved away.
func TestAMarkThatIsSeenForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, t.Context(), simnapi.EraD)
		defer r.sled.Close()
		r.vm(1, "running")
		r.record(1, ours, "running")
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		r.duty(ctx, Schedule{Random: func() float64 { return 0 }})
		follows(r, 3*time.Hour, func() {
			r.vm(1, "running", "do-not-inventory")
			time.Sleep(beat + beat/2)
			r.removes(1)
		})
		if r.has(1) != "ours running" || r.moved() != id(1) {
			t.Errorf("%s, remembered %q", r.has(1), r.moved())
		}
		r.record(1, theirs, "running")
		time.Sleep(2 * time.Hour)
		if r.has(1) != "theirs running" || r.moved() != "" {
			t.Errorf("%s, remembered %q", r.has(1), r.moved())
		}
	})
}
