package base_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/operation/operationtest"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/propolis/packaging"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sled/base"
	"github.com/sledctl/sledctl/test/hosttest"
	"github.com/sledctl/sledctl/zone"
)

const pool = "rpool"

func settings() base.Settings {
	return base.Settings{Names: naming.DefaultPrefixes(), Brand: "sparse", Packaging: packaging.Settings{Directory: "/opt/oxide/propolis-server", Images: []string{"/opt/oxide/propolis-server.tar.gz"}}}
}

// bench is a simulated sled with a place for zones, and a ledger.
type bench struct {
	*testing.T
	sled *sim.Sled
	env  operation.Env
}

func newBench(t *testing.T) *bench {
	t.Helper()
	s := sim.New(sim.Options{M2: -1, U2: -1}, hosttest.Files)
	t.Cleanup(s.Close)
	b := &bench{T: t, sled: s, env: operationtest.New(t, s.Host())}
	b.run("zfs", "create", "-o", "mountpoint=/zone", "rpool/zone")
	return b
}

func (b *bench) run(argv ...string) {
	b.Helper()
	r, err := b.env.Host.Run(b.Context(), host.Command{Program: argv[0], Args: argv[1:]})
	if err != nil || r.Exit != 0 {
		b.Fatalf("%q: %v, exit %d, %s", argv, err, r.Exit, r.Stderr)
	}
}

func (b *bench) ensure() base.Record {
	b.Helper()
	r, _, err := settings().Ensure(b.Context(), b.env, pool, false, false)
	if err != nil {
		b.Fatal(err)
	}
	return r
}

// statuses are those of all recorded bases, by zone: empty if valid.
func (b *bench) statuses() map[string]string {
	b.Helper()
	all, err := settings().List(b.Context(), b.env.Host, operationtest.View(b, b.env))
	if err != nil {
		b.Fatal(err)
	}
	reasons := map[string]string{}
	for _, st := range all {
		if st.Valid == (st.Reason != "") {
			b.Errorf("%s: valid %v, because %q", st.Zone, st.Valid, st.Reason)
		}
		reasons[st.Zone] = st.Reason
	}
	return reasons
}

// invalid is what the zones alone tell, by base.
func (b *bench) invalid() map[string]string {
	b.Helper()
	all, err := settings().Invalid(b.Context(), b.env.Host, operationtest.View(b, b.env))
	if err != nil {
		b.Fatal(err)
	}
	reasons := map[string]string{}
	for _, st := range all {
		reasons[st.Zone] = st.Reason
	}
	return reasons
}

func (b *bench) state() string {
	b.Helper()
	data, err := sim.Comparable(b.Context(), b.sled.World())
	if err != nil {
		b.Fatal(err)
	}
	return string(data)
}

func (b *bench) arm(f world.Fault) {
	b.Helper()
	if err := b.sled.World().Update(b.Context(), func(tx *world.Tx) error { tx.Arm(f); return nil }); err != nil {
		b.Fatal(err)
	}
}

const first, second = "propolis_base_rpool_1", "propolis_base_rpool_2"

func TestAPoolGetsAValidBaseOnce(t *testing.T) {
	b := newBench(t)
	r := b.ensure()
	if r.Zone != first || r.Generation != 1 || r.UUID == "" || r.GUID == "" {
		t.Errorf("%+v", r)
	}
	if d := cmp.Diff(map[string]string{first: ""}, b.statuses()); d != "" {
		t.Error(d)
	}
	if now, ok := base.Current(operationtest.View(b, b.env), pool); !ok || now != r {
		t.Errorf("on record: %+v", now)
	}
	zones, err := zone.List(t.Context(), b.env.Host)
	if err != nil || len(zones) != 2 || zones[1].State != zone.Installed {
		t.Errorf("%+v, %v", zones, err)
	}
	changes := 0
	env := b.env
	env.Host = host.Trace(b.env.Host, func(e host.Event) {
		if e.Line.Kind == host.LineRun {
			changes++
		}
	})
	before, seq := b.state(), operationtest.View(b, b.env).Seq()
	again, report, err := settings().Ensure(t.Context(), env, pool, false, false)
	if err != nil || again != r || !report.Plan.Empty() || changes > 0 || b.state() != before || operationtest.View(b, b.env).Seq() != seq {
		t.Errorf("the second time: %+v, %d changes, %v, %v", again, changes, report.Plan, err)
	}
}

func TestABaseThatIsNotAsItWasMadeIsReplaced(t *testing.T) {
	for name, c := range map[string]struct {
		change func(b *bench)
		reason string
	}{
		"it was reinstalled": {func(b *bench) {
			b.run("zoneadm", "-z", first, "uninstall", "-F")
			b.run("zoneadm", "-z", first, "install")
		}, "reinstalled"},
		"it was uninstalled": {func(b *bench) { b.run("zoneadm", "-z", first, "uninstall", "-F") }, "configured"},
		"it was deleted": {func(b *bench) {
			b.run("zoneadm", "-z", first, "uninstall", "-F")
			b.run("zonecfg", "-z", first, "delete", "-F")
		}, "gone"},
		"it was booted":        {func(b *bench) { b.run("zoneadm", "-z", first, "boot") }, "running"},
		"it has another mark":  {func(b *bench) { b.run("zfs", "set", naming.PropertyBase+"=other", "rpool/zone/"+first) }, "another system"},
		"it has lost its mark": {func(b *bench) { b.run("zfs", "inherit", naming.PropertyBase, "rpool/zone/"+first) }, "no mark"},
		"the release has changed": {func(b *bench) {
			if err := host.WriteFile(b.env.Host.Files(), "/etc/release", []byte("OmniOS v11 r151058\n"), 0o644); err != nil {
				b.Fatal(err)
			}
		}, "another system"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			old := b.ensure()
			c.change(b)
			if reason := b.statuses()[first]; !strings.Contains(reason, c.reason) {
				t.Errorf("reason: %q", reason)
			}
			if got := b.invalid(); !strings.Contains(name, "mark") && got[first] != b.statuses()[first] || strings.Contains(name, "mark") && len(got) > 0 {
				t.Errorf("without a look at the datasets: %q", got)
			}
			r := b.ensure()
			if left := b.invalid(); len(left) > 0 {
				t.Errorf("invalid behind it: %q", left)
			}
			if r.Zone != second || r.Generation != 2 || r.UUID == old.UUID || b.statuses()[second] != "" {
				t.Errorf("%+v, %q", r, b.statuses())
			}
			if again := b.ensure(); again != r {
				t.Errorf("again: %+v", again)
			}
		})
	}
}

func TestARetiredBaseLeavesNothingBehind(t *testing.T) {
	b := newBench(t)
	before := b.state()
	b.ensure()
	if _, _, err := settings().Retire(t.Context(), b.env, first, alone(nobody), false); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(before, b.state()); d != "" {
		t.Error(d)
	}
	if all, err := base.All(operationtest.View(b, b.env)); err != nil || len(all) > 0 || len(operation.Open(operationtest.View(b, b.env))) > 0 {
		t.Errorf("on record: %v, %v", all, err)
	}
	if there, _, err := settings().Retire(t.Context(), b.env, first, alone(nobody), false); there || err != nil {
		t.Errorf("once more: %v, %v", there, err)
	}
}

func TestARetiredBaseMayBeHalfGone(t *testing.T) {
	for name, change := range map[string]func(b *bench){
		"its zone is configured": func(b *bench) { b.run("zoneadm", "-z", first, "uninstall", "-F") },
		"its zone is gone": func(b *bench) {
			b.run("zoneadm", "-z", first, "uninstall", "-F")
			b.run("zonecfg", "-z", first, "delete", "-F")
		},
		"all of it is gone": func(b *bench) {
			b.run("zoneadm", "-z", first, "uninstall", "-F")
			b.run("zonecfg", "-z", first, "delete", "-F")
			if r, err := b.env.Host.Run(b.Context(), host.Command{Program: "zfs", Args: []string{"destroy", "-r", "rpool/zone/" + first}}); err != nil {
				b.Fatal(err, r.Exit) // uninstall may have done it
			}
		},
		"a snapshot was left on it": func(b *bench) { b.run("zfs", "snapshot", "rpool/zone/"+first+"@left") },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			before := b.state()
			b.ensure()
			change(b)
			if _, _, err := settings().Retire(t.Context(), b.env, first, alone(nobody), false); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(before, b.state()); d != "" {
				t.Error(d)
			}
		})
	}
}

// alone is where no zones are cloned ahead.
func alone(since base.Cloned) base.Clones {
	return base.Clones{Since: since, Ahead: func(ledger.View, *inventory.Inventory, string) (base.Ahead, error) { return base.Ahead{}, nil }}
}

// nobody has cloned a base.
func nobody(ledger.View, ledger.View, string) (string, error) { return "", nil }

// The sled is looked at before the ledger is locked: a clone that was made, and
// finished, in between is in no listing and in no intent.
func TestABaseThatWasClonedMeanwhileIsNotRetired(t *testing.T) {
	b := newBench(t)
	b.ensure()
	before := b.state()
	cloned := func(_, _ ledger.View, base string) (string, error) { return "instance of " + base, nil }
	_, _, err := settings().Retire(t.Context(), b.env, first, alone(cloned), false)
	if needed, ok := errors.AsType[*base.NeededError](err); !ok || !strings.Contains(needed.Reason, "instance of "+first) || b.state() != before {
		t.Errorf("error: %v", err)
	}
}

func TestABaseThatIsNeededIsNotRetired(t *testing.T) {
	for name, need := range map[string]func(b *bench){
		"something is cloned from it": func(b *bench) {
			b.run("zfs", "snapshot", "rpool/zone/"+first+"@s")
			b.run("zfs", "clone", "rpool/zone/"+first+"@s", "rpool/copy")
		},
		"something is being cloned from it": func(b *bench) {
			value, _ := json.Marshal(operation.Intent{Verb: "instance ensure", Subject: "instance/1", Base: first})
			l, _ := b.env.Ledger(b.Context())
			_, err := l.Update(b.Context(), func(ledger.View) ([]ledger.Fact, error) { return []ledger.Fact{{Key: "intent/1", Value: value}}, nil })
			if err != nil {
				b.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.ensure()
			need(b)
			before := b.state()
			_, _, err := settings().Retire(t.Context(), b.env, first, alone(nobody), false)
			if _, ok := errors.AsType[*base.NeededError](err); !ok || b.state() != before {
				t.Errorf("error: %v", err)
			}
		})
	}
	b := newBench(t)
	there, _, err := settings().Retire(t.Context(), b.env, "propolis_base_rpool_7", alone(nobody), false)
	if there || err != nil {
		t.Errorf("one that does not exist: %v, %v", there, err)
	}
}

func TestAFailedBaseIsUndoneAndMadeTheNextTime(t *testing.T) {
	for _, command := range []string{"zfs create", "zonecfg -z", "zoneadm -z " + first + " install", "svccfg import", "zfs set"} {
		t.Run(command, func(t *testing.T) {
			b := newBench(t)
			before := b.state()
			b.arm(world.Fault{Name: world.FaultFail, Match: command, Times: 1, Exit: 1, Text: "out of luck"})
			if _, _, err := settings().Ensure(t.Context(), b.env, pool, false, false); err == nil {
				t.Fatal("it succeeded")
			}
			if d := cmp.Diff(before, b.state()); d != "" {
				t.Error(d)
			}
			if all, _ := base.All(operationtest.View(b, b.env)); len(all) > 0 {
				t.Errorf("on record: %+v", all)
			}
			if r := b.ensure(); r.Zone != first || b.statuses()[first] != "" {
				t.Errorf("%+v", r)
			}
		})
	}
}

// Wherever it is killed, the next run makes the base, and retiring what is on
// record leaves the sled as it was.
func TestABaseIsMadeWhereverTheRunBeforeWasKilled(t *testing.T) {
	whole := newBench(t)
	env, never := whole.dying(0, host.CrashBefore)
	if _, _, err := settings().Ensure(t.Context(), env, pool, false, false); err != nil {
		t.Fatal(err)
	}
	for mode, how := range []string{"before", "after", "during"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			for point := 1; point <= never.Points(); point++ {
				if testing.Short() && point%3 != mode {
					continue // a point is cut in one way
				}
				b := newBench(t)
				before := b.state()
				env, dying := b.dying(point, host.CrashMode(mode))
				_, _, err := settings().Ensure(t.Context(), env, pool, false, false)
				dying.Wait()
				if r := b.ensure(); b.statuses()[r.Zone] != "" {
					t.Errorf("at %d, %v: %v", point, err, b.statuses())
				}
				for name := range b.statuses() {
					if _, _, err := settings().Retire(t.Context(), b.env, name, alone(nobody), false); err != nil {
						t.Errorf("at %d: retire %s: %v", point, name, err)
					}
				}
				if d := cmp.Diff(before, b.state()); d != "" {
					t.Errorf("at %d: %s", point, d)
				}
			}
			t.Logf("%d cases", never.Points())
		})
	}
}

// dying is the bench as a process sees it that is killed at a point.
func (b *bench) dying(point int, mode host.CrashMode) (operation.Env, *host.Crashing) {
	dying := host.Crash(b.env.Host, point, mode)
	return operationtest.On(b.env, dying), dying
}

func TestAPoolWithoutAPlaceForZonesIsRefused(t *testing.T) {
	b := newBench(t)
	b.run("zfs", "destroy", "rpool/zone")
	before := b.state()
	_, _, err := settings().Ensure(t.Context(), b.env, pool, false, false)
	if e, ok := errors.AsType[*base.NotPreparedError](err); !ok || e.Dataset != "rpool/zone" || b.state() != before {
		t.Errorf("error: %v", err)
	}
}

func TestAHostWithoutTheBrandIsRefused(t *testing.T) {
	b := newBench(t)
	if err := b.env.Host.Files().Remove("/usr/lib/brand/sparse"); err != nil {
		t.Fatal(err)
	}
	before := b.state()
	_, _, err := settings().Ensure(t.Context(), b.env, pool, false, false)
	if _, ok := errors.AsType[*packaging.MissingError](err); !ok || !strings.Contains(err.Error(), "/usr/lib/brand/sparse") || b.state() != before {
		t.Errorf("error: %v", err)
	}
}

func TestADryRunMakesNothing(t *testing.T) {
	b := newBench(t)
	before, seq := b.state(), operationtest.View(b, b.env).Seq()
	_, report, err := settings().Ensure(t.Context(), b.env, pool, true, false)
	if err != nil || report.Plan.Empty() || b.state() != before || operationtest.View(b, b.env).Seq() != seq {
		t.Errorf("%v, %v", report.Plan, err)
	}
}
