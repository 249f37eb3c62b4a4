package reap_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/engine/bundle"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation/operationtest"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/smf"
	"github.com/sledctl/sledctl/sled/network"
	"github.com/sledctl/sledctl/sled/reap"
)

// settings are reap's, with a directory for bundles.
func settings() reap.Settings {
	return reap.Settings{
		Names: naming.DefaultPrefixes(), Links: []string{"net0"}, Keys: "/var/run/sledctl/key",
		Bundles: bundle.Settings{Dir: "/crash", Max: bundle.DefaultMax, Lock: bundle.LockName("/var/run/sledctl")},
	}
}

func (b *bench) bundles() []bundle.Bundle {
	b.Helper()
	all, err := bundle.List(b.env.Host.Files(), []bundle.Place{{Dir: "/crash"}})
	if err != nil {
		b.Fatal(err)
	}
	return all
}

func (b *bench) mkdir(names ...string) {
	b.Helper()
	for _, name := range names {
		if err := host.MkdirAll(b.env.Host.Files(), name, 0o700); err != nil {
			b.Fatal(err)
		}
	}
}

func (b *bench) write(name, data string) {
	b.Helper()
	b.mkdir(path.Dir(name))
	if err := host.WriteFile(b.env.Host.Files(), name, []byte(data), 0o600); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) there(name string) bool {
	_, err := b.env.Host.Files().Stat(name)
	return err == nil
}

// put brings an installed zone into a state, by its own commands where there
// are any.
func (b *bench) put(name, state string) {
	b.Helper()
	switch state {
	case world.ZoneInstalled:
		return
	case "incomplete":
		b.run("zoneadm", "-z", name, "mark", "incomplete")
		return
	case world.ZoneReady:
		b.run("zoneadm", "-z", name, "ready")
		return
	case world.ZoneMounted:
		b.run("zoneadm", "-z", name, "mount")
		return
	}
	b.run("zoneadm", "-z", name, "boot")
	if state == world.ZoneRunning {
		return
	}
	err := b.sled.World().Update(b.Context(), func(tx *world.Tx) error { // as after a halt that got stuck
		smf.HaltServices(tx, name)
		tx.FindZone(name).Kernel.State = state
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// A zone that nobody needs goes from whatever state it is in, with all that is
// its own; one that runs goes only when everything does.
func TestAZoneGoesFromEveryState(t *testing.T) {
	for _, state := range []string{
		world.ZoneConfigured, "incomplete", world.ZoneInstalled, world.ZoneReady, world.ZoneMounted, world.ZoneRunning, world.ZoneShuttingDown, world.ZoneDown,
	} {
		t.Run(state, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.mkdir("/crash")
				clean := b.state()
				if state == world.ZoneConfigured {
					b.run("dladm", "create-vnic", "-t", "-l", "net0", "vnic_propolis1")
					b.run("zonecfg", "-z", orphan, "create -b; set brand=sparse; set zonepath=/zone/"+orphan+"; set ip-type=exclusive; add net; set physical=vnic_propolis1; end")
				} else {
					b.zone(orphan, "net0")
					b.write("/zone/"+orphan+"/root/var/svc/log/last.log", "words")
					b.put(orphan, state)
				}
				running := state == world.ZoneRunning
				choice := reap.Choice{All: running}
				if running {
					findings, report, err := settings().ReapChosen(t.Context(), b.env, reap.Choice{}, false)
					if err != nil || !report.Plan.Empty() {
						t.Errorf("a zone that runs: %v, %v, %v", err, report.Plan, findings.Objects)
					}
					p, err := reap.ParsePattern("zone/" + alive)
					if err != nil {
						t.Fatal(err)
					}
					v, _ := reap.ParsePattern("vnic/vnic_propolis2")
					choice.Exclude = []reap.Pattern{p, v}
				}
				if _, report, err := settings().ReapChosen(t.Context(), b.env, choice, false); err != nil {
					t.Fatalf("%v, left: %v", err, report.Outcome.Leftovers)
				}
				if d := cmp.Diff(clean, b.state()); d != "" {
					t.Error(d)
				}
				want := 1
				if state == world.ZoneConfigured {
					want = 0
				}
				if got := b.bundles(); len(got) != want {
					t.Errorf("%d bundles, want %d", len(got), want)
				}
			})
		})
	}
}

// network records a network of which the etherstub and the VNIC are former.
func (b *bench) former() {
	b.Helper()
	b.run("dladm", "create-etherstub", "-t", "old_stub0")
	b.run("dladm", "create-vnic", "-t", "-l", "old_stub0", "-m", "2:8:20:1:2:3", "old_gz0")
	b.run("ipadm", "create-addr", "-t", "-T", "static", "-a", "10.9.0.1/24", "old_gz0/control")
	b.run("dladm", "create-vnic", "-t", "-l", "net0", "-m", "2:8:20:1:2:4", "vnic_propolis8")
	b.run("ipadm", "create-addr", "-t", "-T", "static", "-a", "10.9.1.1/24", "vnic_propolis8/x")
	book, err := b.env.Ledger(b.Context())
	if err == nil {
		r := network.Record{Former: []network.Former{
			{Kind: "etherstub", Name: "old_stub0"}, {Kind: "vnic", Name: "old_gz0", MAC: "02:08:20:01:02:03"}, {Kind: "vnic", Name: "vnic_propolis8", MAC: "02:08:20:01:02:04"},
		}}
		fact, ferr := r.Forgetting(func(network.Former) bool { return false })
		if err = ferr; err == nil {
			_, err = book.Update(b.Context(), func(ledger.View) ([]ledger.Fact, error) { return []ledger.Fact{fact}, nil })
		}
	}
	if err != nil {
		b.Fatal(err)
	}
}

// more leaves one thing of each of the other kinds.
func (b *bench) more() {
	b.Helper()
	b.litter()
	b.write("/zone/"+orphan+"/root/var/svc/log/last.log", "words")
	b.former()
	b.mkdir("/crash", "/zone/propolis_instance_8c4a2b1e-6a57-4a5c-9d3e-000000000005/root")
	b.write("/zone/propolis_instance_8c4a2b1e-6a57-4a5c-9d3e-000000000006/precious", "data")
	b.write("/var/run/sledctl/key/disk1.key", "thirty-two bytes that nobody sees")
	b.write("/dev/vmm/a-vm", "")
	const lone = "propolis_instance_8c4a2b1e-6a57-4a5c-9d3e-000000000004"
	b.write("/etc/zones/"+lone+".xml", `<zone name="`+lone+`" zonepath="/zone/`+lone+`" brand="sparse"/>`)
	b.write("/etc/zones/others.xml", "<zone/>")
}

// clear says what is wrong with a sled after a reap.
func (b *bench) clear(clean string) string {
	b.Helper()
	if d := cmp.Diff(clean, b.state()); d != "" {
		return d
	}
	for name, want := range map[string]bool{
		"/zone/propolis_instance_8c4a2b1e-6a57-4a5c-9d3e-000000000005": false, "/zone/propolis_instance_8c4a2b1e-6a57-4a5c-9d3e-000000000006/precious": true,
		"/var/run/sledctl/key/disk1.key": false, "/dev/vmm/a-vm": true,
		"/etc/zones/propolis_instance_8c4a2b1e-6a57-4a5c-9d3e-000000000004.xml": false, "/etc/zones/others.xml": true,
	} {
		if b.there(name) != want {
			return name + " is there, or is not, as it should not"
		}
	}
	for _, taken := range b.bundles() {
		if taken.Zone == orphan {
			return ""
		}
	}
	return "there is no bundle of " + orphan
}

func TestEveryKindOfLitterGoes(t *testing.T) {
	b := newBench(t)
	clean := b.state()
	b.more()
	findings, report, err := settings().Reap(t.Context(), b.env, false)
	if err != nil {
		t.Fatalf("%v, left: %v", err, report.Outcome.Leftovers)
	}
	if wrong := b.clear(clean); wrong != "" {
		t.Error(wrong)
	}
	gone := map[string]int{}
	for _, o := range findings.Objects {
		if o.Removed {
			gone[o.Kind]++
		}
	}
	want := map[string]int{reap.KindZone: 1, reap.KindVNIC: 4, reap.KindEtherstub: 1, reap.KindAddress: 2, reap.KindDataset: 1, reap.KindDirectory: 1, reap.KindConfig: 1, reap.KindKey: 1}
	if d := cmp.Diff(want, gone); d != "" {
		t.Error(d)
	}
	if r, _, err := network.Load(operationtest.View(t, b.env)); err != nil || len(r.Former) != 0 {
		t.Errorf("former links are still recorded: %v, %v", r.Former, err)
	}
}

// Wherever a reap of everything that can be left is killed, the next one leaves
// the sled clean, with a bundle of the zone, and with whole bundles only.
func TestEveryKindOfLitterGoesAlsoBehindOneThatWasKilled(t *testing.T) {
	run := func(t *testing.T, point int, mode host.CrashMode) (b *bench, clean string, points int) {
		b = newBench(t)
		clean = b.state()
		b.more()
		dying := host.Crash(b.env.Host, point, mode)
		_, _, err := settings().Reap(t.Context(), operationtest.On(b.env, dying), false)
		dying.Wait()
		if err != nil && !dying.Crashed() {
			t.Fatal(err)
		}
		return b, clean, dying.Points()
	}
	_, _, points := run(t, 0, host.CrashBefore)
	modes := []string{"before", "after", "during"}
	for mode, how := range modes {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			cases := 0
			for point := 1; point <= points; point++ {
				if testing.Short() && point%len(modes) != mode {
					continue
				}
				b, clean, _ := run(t, point, host.CrashMode(mode))
				if _, report, err := settings().Reap(t.Context(), b.env, false); err != nil {
					t.Errorf("at %d: %v, left: %v", point, err, report.Outcome.Leftovers)
				}
				if wrong := b.clear(clean); wrong != "" {
					t.Errorf("at %d: %s", point, wrong)
				}
				infos, err := b.env.Host.Files().ReadDir("/crash/bundle/zone/" + orphan)
				if err != nil || slices.ContainsFunc(infos, func(i host.Info) bool { return !strings.HasSuffix(i.Name, ".tar.gz") }) {
					t.Errorf("at %d: %v, %v", point, infos, err)
				}
				cases++
			}
			t.Logf("%d cases", cases)
		})
	}
}

// What is busy is tried again until it is not.
func TestBusyThingsAreTriedAgain(t *testing.T) {
	for _, match := range []string{"dladm delete-vnic", "zfs destroy", "zfs unmount"} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			clean := b.state()
			b.litter()
			err := b.sled.World().Update(t.Context(), func(tx *world.Tx) error {
				tx.Arm(world.Fault{Name: world.FaultBusy, Match: match, Times: 5})
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if _, report, err := b.reap(false); err != nil {
				t.Errorf("%s: %v, left: %v", match, err, report.Outcome.Leftovers)
			}
			if d := cmp.Diff(clean, b.state()); d != "" {
				t.Errorf("%s: %s", match, d)
			}
			if time.Since(began) < 100*time.Millisecond {
				t.Errorf("%s: it was not busy", match)
			}
		})
	}
}

// A bundle that cannot be taken is a warning, and the zone goes.
func TestAZoneGoesWithoutItsBundleIfThatCannotBeTaken(t *testing.T) {
	for name, spoil := range map[string]func(*bench){
		"no place": func(*bench) {},
		"a file in the way": func(b *bench) {
			b.mkdir("/crash")
			b.write("/crash/bundle", "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			clean := b.state()
			b.litter()
			spoil(b)
			var warned []error
			b.env.Warn = func(err error) { warned = append(warned, err) }
			_, _, err := settings().Reap(t.Context(), b.env, false)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(clean, b.state()); d != "" {
				t.Error(d)
			}
			if len(warned) == 0 {
				t.Errorf("warned: %v", warned)
			}
		})
	}
}

// The root of a zone that the sled has forgotten is mounted for its bundle,
// whether it lies in the zonepath's dataset or in a boot environment of its own.
func TestALostRootIsKeptABundleOf(t *testing.T) {
	name := "propolis_instance_8c4a2b1e-6a57-4a5c-9d3e-000000000003"
	for kind, lay := range map[string]func(*bench){
		"in the zonepath": func(b *bench) {
			b.write("/zone/"+name+"/root/var/svc/log/last.log", "words")
			b.run("zfs", "unmount", "rpool/zone/"+name)
		},
		"in a boot environment": func(b *bench) {
			b.run("zfs", "create", "-o", "mountpoint=legacy", "-o", "zoned=on", "rpool/zone/"+name+"/ROOT")
			b.run("zfs", "create", "-o", "canmount=noauto", "rpool/zone/"+name+"/ROOT/zbe")
			b.mkdir("/zone/" + name + "/root")
			b.run("mount", "-F", "zfs", "rpool/zone/"+name+"/ROOT/zbe", "/zone/"+name+"/root")
			b.write("/zone/"+name+"/root/var/svc/log/last.log", "words")
			b.run("umount", "/zone/"+name+"/root")
		},
		"in one that a reap left mounted which was killed": func(b *bench) {
			b.run("zfs", "create", "-o", "mountpoint=legacy", "-o", "zoned=on", "rpool/zone/"+name+"/ROOT")
			b.run("zfs", "create", "-o", "canmount=noauto", "rpool/zone/"+name+"/ROOT/zbe")
			b.mkdir("/zone/" + name + "/root")
			b.run("mount", "-F", "zfs", "rpool/zone/"+name+"/ROOT/zbe", "/zone/"+name+"/root")
			b.write("/zone/"+name+"/root/var/svc/log/last.log", "words")
		},
	} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.mkdir("/crash")
				clean := b.state()
				b.run("zfs", "create", "-o", naming.PropertyInstance+"=x", "rpool/zone/"+name)
				lay(b)
				if _, report, err := settings().Reap(t.Context(), b.env, false); err != nil {
					t.Fatalf("%v, left: %v", err, report.Outcome.Leftovers)
				}
				if d := cmp.Diff(clean, b.state()); d != "" {
					t.Error(d)
				}
				got := b.bundles()
				if len(got) != 1 {
					t.Fatalf("%+v", got)
				}
				if text := b.unzipped(got[0]); !bytes.Contains(text, []byte("root/var/svc/log/last.log")) {
					t.Errorf("%s", text)
				}
			})
		})
	}
}

func (b *bench) unzipped(taken bundle.Bundle) []byte {
	b.Helper()
	data, err := host.ReadFile(b.env.Host.Files(), taken.Path)
	if err != nil {
		b.Fatal(err)
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		b.Fatal(err)
	}
	text, err := io.ReadAll(unzipped)
	if err != nil {
		b.Fatal(err)
	}
	return text
}

// A bundle on request leaves the zone alone.
func TestABundleOnRequest(t *testing.T) {
	b := newBench(t)
	b.mkdir("/crash")
	before := b.state()
	id, _, err := settings().Bundle(t.Context(), b.env, alive, false)
	if err != nil {
		t.Fatal(err)
	}
	got := b.bundles()
	if len(got) != 1 || got[0].ID != id || got[0].Zone != alive || got[0].Cause != bundle.Requested {
		t.Errorf("%+v", got)
	}
	if d := cmp.Diff(before, b.state()); d != "" {
		t.Error(d)
	}
	if id, _, err := settings().Bundle(t.Context(), b.env, "nowhere", false); id != "" || err != nil {
		t.Errorf("one that does not exist: %q, %v", id, err)
	}
	if _, _, err := settings().Bundle(t.Context(), b.env, "global", false); err == nil {
		t.Error("one of the global zone was taken")
	}
}
