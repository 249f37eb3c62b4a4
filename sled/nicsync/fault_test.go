package nicsync

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/peer/napi"
	simnapi "github.com/sledctl/sledctl/sim/napi"
	"github.com/sledctl/sledctl/sim/world"
)

// disturbed is a sled with a record of each kind, and a fault.
func disturbed(t *testing.T, faults ...world.Fault) *rig {
	r := newRig(t, t.Context(), simnapi.EraD)
	r.vm(1, "running")
	r.record(1, ours, "running")
	r.vm(2, "running")
	r.record(2, "", "running")
	r.record(3, ours, "running") // leaked
	r.vm(4, "installed")
	r.record(4, ours, "running")
	r.change(func(tx *world.Tx) {
		for _, f := range faults {
			tx.Arm(f)
		}
	})
	return r
}

func (r *rig) state() string {
	return strings.Join([]string{r.has(1), r.has(2), r.has(3), r.has(4)}, ", ")
}

const (
	untouched = "ours running,  running, ours running, ours running"
	truth     = "ours running, ours running, gone, ours stopped"
)

// What is no complete and consistent answer changes nothing, and is reported; once it
// is over, one look repairs all.
func TestFaultsOfTheList(t *testing.T) {
	list := "GET /nics"
	for name, c := range map[string]struct {
		fault world.Fault
		want  error
	}{
		"nothing, with 200":        {world.Fault{Name: world.FaultNAPIEmpty, Match: list}, napi.ErrReply},
		"HTML":                     {world.Fault{Name: world.FaultNAPIHTML, Match: list}, napi.ErrReply},
		"truncated":                {world.Fault{Name: world.FaultNAPITruncated, Match: list}, napi.ErrReply},
		"an object":                {world.Fault{Name: world.FaultNAPIObject, Match: list}, napi.ErrReply},
		"another sled's record":    {world.Fault{Name: world.FaultNAPIForeign, Match: list}, napi.ErrNoFilter},
		"a MAC twice":              {world.Fault{Name: world.FaultNAPITwice, Match: list}, napi.ErrReply},
		"a record of nobody":       {world.Fault{Name: world.FaultNAPIOwnerless, Match: list}, napi.ErrReply},
		"a 500":                    {world.Fault{Name: world.FaultNAPIFail, Match: list, Exit: 500, Text: "x"}, host.ErrTransient},
		"a 404 of something else":  {world.Fault{Name: world.FaultNAPIFail, Match: "GET", Exit: 404, Text: "no such page"}, nil},
		"no answer":                {world.Fault{Name: world.FaultNAPIDown, Match: list}, host.ErrTransient},
		"a restart":                {world.Fault{Name: world.FaultNAPIRestart, Match: list, Delay: time.Minute}, host.ErrTransient},
		"a downgrade":              {world.Fault{Name: world.FaultNAPIEra, Match: "GET /search/nics", Text: simnapi.EraB}, napi.ErrNoFilter},
		"a record cannot be read":  {world.Fault{Name: world.FaultNAPIHTML, Match: "GET /nics/*"}, napi.ErrReply},
		"a record that is missing": {world.Fault{Name: world.FaultNAPIFail, Match: "GET /nics/*", Exit: 404, Text: "x"}, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			c.fault.Times = 1
			r := disturbed(t, c.fault)
			defer r.sled.Close()
			_, err := r.sync(all())
			if err == nil || c.want != nil && !errors.Is(err, c.want) || r.state() != untouched || len(writes(r.requests())) > 0 {
				t.Errorf("%s: %s, %v", name, r.state(), err)
			}
			r.change(func(tx *world.Tx) { tx.State.Faults = nil; tx.State.NAPI.Era = simnapi.EraD })
			time.Sleep(2 * time.Minute)
			if _, err := r.sync(all()); err != nil || r.state() != truth {
				t.Errorf("%s, afterwards: %s, %v", name, r.state(), err)
			}
		})
	}
}

// NAPI restarts in the middle of the pages, or is another one for the second.
func TestFaultsBetweenPages(t *testing.T) {
	for name, f := range map[string]world.Fault{
		"a restart":   {Name: world.FaultNAPIRestart, Delay: time.Minute},
		"a downgrade": {Name: world.FaultNAPIEra, Text: simnapi.EraB},
		"an old one":  {Name: world.FaultNAPIEra, Text: simnapi.EraA},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, t.Context(), simnapi.EraD)
			defer r.sled.Close()
			r.change(func(tx *world.Tx) {
				for n := range 1200 {
					addRecord(tx, n, ours, "running")
				}
				addRecord(tx, 5000, theirs, "running")
				f.Match, f.Times, f.Skip = "GET /nics", 1, 1
				tx.Arm(f)
			})
			o := all()
			o.MaxDelete = 5000
			if _, err := r.sync(o); err == nil || len(writes(r.requests())) > 0 {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// NAPI is upgraded or downgraded between any two requests: nothing that is here
// goes, nothing of another sled is touched, and what is left undone is reported; the
// next look, at a NAPI of today, repairs all.
func TestAnotherNAPIBetweenTwoRequests(t *testing.T) {
	turns := 0
	for _, from := range simnapi.Eras() {
		for _, to := range simnapi.Eras() {
			for _, match := range []string{"GET /search/nics", "GET /nics", "GET /nics/*", "PUT", "DELETE"} {
				for skip := range 2 {
					if from == to {
						continue
					}
					turns++
					if testing.Short() && turns%21 != 0 {
						continue
					}
					synctest.Test(t, func(t *testing.T) {
						r := disturbed(t, world.Fault{Name: world.FaultNAPIEra, Match: match, Times: 1, Skip: skip, Text: to})
						defer r.sled.Close()
						r.record(5, theirs, "running")
						r.change(func(tx *world.Tx) { tx.State.NAPI.Era = from })
						_, err := r.sync(all())
						turn := fmt.Sprintf("from %s to %s at %s, %d passed", from, to, match, skip)
						for n, is := range []string{r.has(1), r.has(2), r.has(4), r.has(5)} {
							if is == "gone" || n == 3 && is != "theirs running" {
								t.Errorf("%s: %s and %s, %v", turn, r.state(), r.has(5), err)
							}
						}
						if r.state() == untouched && err == nil {
							t.Errorf("%s: nothing was done, and nobody is told", turn)
						}
						r.change(func(tx *world.Tx) { tx.State.Faults = nil; tx.State.NAPI.Era = simnapi.EraD })
						if _, err := r.sync(all()); err != nil || r.state() != truth || r.has(5) != "theirs running" {
							t.Errorf("%s, afterwards: %s, %v", turn, r.state(), err)
						}
					})
				}
			}
		}
	}
	t.Logf("%d turns", turns)
}

// A record that others change is read and judged again; one that is another
// version each time is left, and that is reported.
func TestChangesMeanwhile(t *testing.T) {
	for name, c := range map[string]struct {
		fault world.Fault
		want  string
		ok    bool
	}{
		"once, seen by the write":      {world.Fault{Name: world.FaultNAPIRace, Match: "DELETE", Times: 1}, truth, true},
		"once, seen by the store":      {world.Fault{Name: world.FaultNAPIRace, Match: "PUT", Times: 1}, truth, true},
		"each time":                    {world.Fault{Name: world.FaultNAPIRace, Match: "/nics/*", Times: 0}, untouched, false},
		"each time it is read":         {world.Fault{Name: world.FaultNAPITouch, Match: "GET /nics/*", Times: 0}, untouched, false},
		"each time it would be erased": {world.Fault{Name: world.FaultNAPIRace, Match: "DELETE", Times: 0}, "ours running, ours running, ours running, ours stopped", false},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := disturbed(t, c.fault)
			defer r.sled.Close()
			outcome, err := r.sync(all())
			if (err == nil) != c.ok || r.state() != c.want {
				t.Errorf("%s: %s, want %s: %v", name, r.state(), c.want, err)
			}
			if c.ok && len(r.told) == 0 {
				t.Errorf("%s: nobody was told", name)
			}
			if !c.ok && outcome.Results[mac(3)] == Removed {
				t.Errorf("%s: %v", name, outcome.Results)
			}
		})
	}
}

// The VM comes back, or its record is taken over, between the look and the write.
func TestWhatIsLeakedNoMore(t *testing.T) {
	for name, comes := range map[string]func(*rig){
		"its zone is configured again": func(r *rig) { r.vm(3, "configured") },
		"it is provisioned again":      func(r *rig) { r.record(3, ours, "provisioning") },
		"it is another sled's":         func(r *rig) { r.record(3, theirs, "running") },
		"another VM has its MAC": func(r *rig) {
			r.change(func(tx *world.Tx) {
				tx.State.Links = append(tx.State.Links, &world.Link{Name: "vm9", Class: "vnic", Over: "net0", MAC: mac(3), Up: true})
			})
		},
		"somebody forbids it": func(r *rig) { r.forbid("web1 moves") },
	} {
		synctest.Test(t, func(t *testing.T) {
			r := disturbed(t)
			defer r.sled.Close()
			o := all()
			o.ConfirmTwice = time.Minute
			time.AfterFunc(30*time.Second, func() { comes(r) })
			outcome, err := r.sync(o)
			if r.has(3) == "gone" || outcome.Results[mac(3)] == Removed {
				t.Errorf("%s: it is gone: %v", name, err)
			}
			if strings.HasPrefix(name, "somebody") != errors.Is(err, host.ErrRefused) {
				t.Errorf("%s: %v", name, err)
			}
			if r.has(2) != "ours running" || r.has(4) != "ours stopped" {
				t.Errorf("%s: %s", name, r.state())
			}
		})
	}
}

func (r *rig) forbid(why string) {
	files := r.sled.Host().Files()
	if err := errors.Join(host.MkdirAll(files, "/etc/sledctl", 0o755), host.WriteFile(files, "/etc/sledctl/nics.lock", []byte(why+"\n"), 0o644)); err != nil {
		r.t.Fatal(err)
	}
}

// While the file is there nothing is asked for, and a sync under way stops.
func TestTheLockFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := disturbed(t)
		defer r.sled.Close()
		r.forbid("web1 moves to sled7")
		_, err := r.sync(all())
		if disabled, ok := errors.AsType[*napi.WritesDisabledError](err); !ok || disabled.Reason != "web1 moves to sled7" || r.state() != untouched {
			t.Errorf("%s, %v", r.state(), err)
		}
		if sent := r.requests(); len(sent) > 0 {
			t.Error(sent)
		}
		dry := all()
		dry.DryRun = true
		if o, err := r.sync(dry); err != nil || o.Results[mac(3)] != ToRemove || o.Results[mac(2)] != ToChange || len(writes(r.requests())) > 0 {
			t.Errorf("a dry run: %v, %v", o.Results, err)
		}
	})
}

// Where a VM is being moved, its records are left alone; with the option, all are.
func TestMoving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := disturbed(t)
		defer r.sled.Close()
		r.vm(4, "installed", "do-not-inventory")
		o := all()
		o.DisableDuringMigration = true
		_, err := r.sync(o)
		if moves, ok := errors.AsType[*MovingError](err); !ok || moves.VM != id(4) || r.state() != untouched {
			t.Errorf("%s, %v", r.state(), err)
		}
		if _, err := r.sync(all()); err != nil || r.state() != "ours running, ours running, gone, ours running" {
			t.Errorf("%s, %v", r.state(), err)
		}
	})
}

// Somebody begins to move a VM when all was looked at and nothing is written yet:
// its record is left alone, or all are.
func TestMovingSinceTheLook(t *testing.T) {
	for disable, want := range map[bool]string{false: "ours running, ours running, gone, ours running", true: untouched} {
		synctest.Test(t, func(t *testing.T) {
			r := disturbed(t)
			defer r.sled.Close()
			looks := 0
			r.env.Host = host.Trace(r.env.Host, func(e host.Event) {
				if !strings.HasPrefix(e.Line.Text, "dladm show-phys") {
					return
				}
				if looks++; looks == 2 { // the last that is asked before anything is decided
					r.vm(4, "installed", "do-not-inventory")
				}
			})
			o := all()
			o.DisableDuringMigration = disable
			_, err := r.sync(o)
			moves, is := errors.AsType[*MovingError](err)
			if r.state() != want || is != disable || is && moves.VM != id(4) || !is && err != nil || !disable && len(r.told) == 0 {
				t.Errorf("disabled %v: %s, told %q, %v", disable, r.state(), r.told, err)
			}
			if disable && len(writes(r.requests())) > 0 {
				t.Error("something was written")
			}
		})
	}
}

// What cannot be seen of the sled is unknown, and then nothing is written.
func TestTheSledCannotBeSeen(t *testing.T) {
	for name, f := range map[string]world.Fault{
		"zoneadm fails":       {Name: world.FaultFail, Match: "zoneadm list", Exit: 1, Text: "zoneadm: out of memory"},
		"zoneadm says little": {Name: world.FaultFail, Match: "zoneadm list", Exit: 0},
		"dladm fails":         {Name: world.FaultFail, Match: "dladm show-vnic", Exit: 1, Text: "dladm: no"},
		"show-phys fails":     {Name: world.FaultFail, Match: "dladm show-phys", Exit: 1, Text: "dladm: no"},
	} {
		synctest.Test(t, func(t *testing.T) {
			f.Times = 0
			r := disturbed(t, f)
			defer r.sled.Close()
			_, err := r.sync(all())
			if _, ok := errors.AsType[*UnknownError](err); !ok || r.state() != untouched {
				t.Errorf("%s: %s, %v", name, r.state(), err)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		r := disturbed(t)
		defer r.sled.Close()
		if err := host.WriteFile(r.sled.Host().Files(), "/etc/zones/"+id(1)+".xml", []byte("<zone"), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := r.sync(all()); err == nil || r.state() != untouched {
			t.Errorf("%s, %v", r.state(), err)
		}
	})
}

// At most so many go, and if more would, nothing is changed.
func TestMaxDelete(t *testing.T) {
	for _, c := range []struct {
		leaked, here, limit int
		ok                  bool
	}{{8, 0, -1, true}, {9, 0, -1, false}, {9, 27, -1, true}, {10, 27, -1, false}, {1, 9, 0, false}, {9, 0, 9, true}} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, t.Context(), simnapi.EraD)
			defer r.sled.Close()
			for n := range c.leaked + c.here {
				r.record(n, ours, "running")
				if n >= c.leaked {
					r.vm(n, "installed")
				}
			}
			o := all()
			o.MaxDelete = c.limit
			_, err := r.sync(o)
			many, is := errors.AsType[*TooManyError](err)
			sent := len(writes(r.requests()))
			if is == c.ok || is && (many.Going != c.leaked || sent > 0) || !is && sent != c.leaked+c.here {
				t.Errorf("%+v: %d writes, %v", c, sent, err)
			}
		})
	}
}

// Each option allows its own part.
func TestOptions(t *testing.T) {
	for want, o := range map[string]Options{
		untouched: {}, "ours running, ours running, ours running, ours running": {Backfill: true},
		"ours running,  running, gone, ours running": {Reap: true}, "ours running,  running, ours running, ours stopped": {State: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := disturbed(t)
			defer r.sled.Close()
			o.MaxDelete = -1
			if _, err := r.sync(o); err != nil || r.state() != want {
				t.Errorf("%+v: %s, %v", o, r.state(), err)
			}
		})
	}
}

// A write that is refused does not stop the others.
func TestOneRefusalKeepsNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := disturbed(t, world.Fault{Name: world.FaultNAPIFail, Match: "PUT /nics/90b8d0000002", Times: 0, Exit: http.StatusUnprocessableEntity, Text: "no"})
		defer r.sled.Close()
		outcome, err := r.sync(all())
		if err == nil || r.state() != "ours running,  running, gone, ours stopped" || outcome.Results[mac(2)] != Left {
			t.Errorf("%s, %v, %v", r.state(), outcome.Results, err)
		}
	})
}

// An operator who ends a sync while it waits ends it.
func TestInterruption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := disturbed(t)
		defer r.sled.Close()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		o := all()
		o.ConfirmTwice = time.Hour
		began := time.Now()
		if _, err := r.settings.Sync(ctx, r.env, o); !errors.Is(err, context.Canceled) || time.Since(began) != time.Second || r.has(3) == "gone" {
			t.Errorf("%v after %v, %s", err, time.Since(began), r.state())
		}
	})
}

// An instance that is recorded while the sync waits is here.
func TestAnInstanceThatIsRecordedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := disturbed(t)
		defer r.sled.Close()
		var recorded atomic.Bool
		r.settings.Recorded = func(ledger.View) ([]VM, error) {
			if recorded.Load() {
				return []VM{{Name: "web3", IDs: []string{id(3)}}}, nil
			}
			return nil, nil
		}
		o := all()
		o.ConfirmTwice = time.Minute
		time.AfterFunc(time.Second, func() { recorded.Store(true) })
		if _, err := r.sync(o); err != nil || r.has(3) != "ours running" {
			t.Errorf("%s, %v", r.state(), err)
		}
	})
}
