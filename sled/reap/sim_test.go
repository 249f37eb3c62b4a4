package reap_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/operation/operationtest"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sled/reap"
	"github.com/sledctl/sledctl/test/hosttest"
)

const (
	orphan = "propolis_instance_8c4a2b1e-6a57-4a5c-9d3e-000000000001"
	alive  = "propolis_instance_8c4a2b1e-6a57-4a5c-9d3e-000000000002"
)

// bench is a simulated sled with what others have made, and a ledger.
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
	b.run("dladm", "create-vnic", "-t", "-l", "net0", "mail0")
	b.run("zfs", "create", "rpool/zone/mail")
	b.zone(alive, "net0")
	b.run("zoneadm", "-z", alive, "boot")
	return b
}

func (b *bench) run(argv ...string) {
	b.Helper()
	r, err := b.env.Host.Run(b.Context(), host.Command{Program: argv[0], Args: argv[1:]})
	if err != nil || r.Exit != 0 {
		b.Fatalf("%q: %v, exit %d, %s", argv, err, r.Exit, r.Stderr)
	}
}

// zone makes an installed zone with a marked dataset and a VNIC.
func (b *bench) zone(name, over string) {
	b.Helper()
	link := "vnic_propolis" + name[len(name)-1:]
	b.run("dladm", "create-vnic", "-t", "-l", over, link)
	b.run("zfs", "create", "-o", naming.PropertyInstance+"=x", "rpool/zone/"+name)
	if err := b.env.Host.Files().Chmod("/zone/"+name, 0o700); err != nil {
		b.Fatal(err)
	}
	b.run("zonecfg", "-z", name, "create -b; set brand=sparse; set zonepath=/zone/"+name+"; set ip-type=exclusive; add net; set physical="+link+"; end")
	b.run("zoneadm", "-z", name, "install")
}

func (b *bench) state() string {
	b.Helper()
	data, err := sim.Comparable(b.Context(), b.sled.World())
	if err != nil {
		b.Fatal(err)
	}
	return string(data)
}

func (b *bench) reap(dryRun bool) (reap.Findings, operation.Report, error) {
	return reap.Settings{Names: naming.DefaultPrefixes(), Links: []string{"net0"}}.Reap(b.Context(), b.env, dryRun)
}

// litter leaves one thing of each kind behind.
func (b *bench) litter() {
	b.zone(orphan, "net0")
	b.run("dladm", "create-vnic", "-t", "-l", "net0", "vnic_propolis7")
	b.run("zfs", "create", "-o", naming.PropertyInstance+"=x", "rpool/zone/propolis_instance_8c4a2b1e-6a57-4a5c-9d3e-000000000003")
	b.run("zfs", "create", "rpool/zone/propolis_instance_8c4a2b1e-6a57-4a5c-9d3e-000000000003/below")
}

func TestLitterGoesAndTheRestStays(t *testing.T) {
	b := newBench(t)
	clean := b.state()
	b.litter()
	littered := b.state()
	findings, _, err := b.reap(true)
	if err != nil || b.state() != littered {
		t.Fatalf("a dry run: %v", err)
	}
	goes := map[string]bool{}
	for _, o := range findings.Objects {
		if o.Verdict.Removed() {
			goes[o.Kind] = true
		}
	}
	if len(goes) != 3 {
		t.Errorf("%+v", findings.Objects)
	}
	if _, report, err := b.reap(false); err != nil {
		t.Fatalf("%v, left: %v", err, report.Outcome.Leftovers)
	}
	if d := cmp.Diff(clean, b.state()); d != "" {
		t.Error(d)
	}
	if _, report, err := b.reap(false); err != nil || !report.Plan.Empty() {
		t.Errorf("the second time: %v, %v", report.Plan, err)
	}
}

func TestWhatCannotGoKeepsNothingElse(t *testing.T) {
	b := newBench(t)
	b.litter()
	err := b.sled.World().Update(t.Context(), func(tx *world.Tx) error {
		tx.Arm(world.Fault{Name: world.FaultFail, Match: "dladm delete-vnic", Exit: 1, Text: "out of luck"})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	_, report, err := b.reap(false)
	if err == nil {
		t.Fatal("it succeeded")
	}
	findings, _, err := b.reap(true)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range findings.Objects {
		if o.Verdict.Removed() && o.Kind != "vnic" {
			t.Errorf("%s %s is still there; left: %v", o.Kind, o.Name, report.Outcome.Leftovers)
		}
	}
}

// Wherever it is killed, the next reap leaves the sled clean.
func TestAReapIsFinishedWhereverTheOneBeforeWasKilled(t *testing.T) {
	start := func(t *testing.T, point int, mode host.CrashMode) (b *bench, clean string, points int) {
		b = newBench(t)
		clean = b.state()
		b.litter()
		dying := host.Crash(b.env.Host, point, mode)
		_, _, err := reap.Settings{Names: naming.DefaultPrefixes(), Links: []string{"net0"}}.Reap(t.Context(), operationtest.On(b.env, dying), false)
		dying.Wait()
		if err != nil && !dying.Crashed() {
			t.Fatal(err)
		}
		return b, clean, dying.Points()
	}
	_, _, points := start(t, 0, host.CrashBefore)
	for mode, how := range []string{"before", "after", "during"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			for point := 1; point <= points; point++ {
				if testing.Short() && point%3 != mode {
					continue // a point is cut in one way
				}
				b, clean, _ := start(t, point, host.CrashMode(mode))
				if _, report, err := b.reap(false); err != nil {
					t.Errorf("at %d: %v, left: %v", point, err, report.Outcome.Leftovers)
				}
				if d := cmp.Diff(clean, b.state()); d != "" {
					t.Errorf("at %d: %s", point, d)
				}
			}
			t.Logf("%d cases", points)
		})
	}
}
