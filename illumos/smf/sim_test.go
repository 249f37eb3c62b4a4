package smf_test

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/smf"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	simsmf "github.com/sledctl/sledctl/sim/world/smf"
	"github.com/sledctl/sledctl/test/hosttest"
	"github.com/sledctl/sledctl/test/steptest"
)

// The driver on the simulated sled, which knows nothing of it: what it
// refuses, a real sled would.

const (
	milestone = "svc:/milestone/single-user:default"
	site      = "svc:/site/thing:default"
	root      = "/zone/web1/root"
	directory = "/var/svc/manifest/site/sledctl"
)

type rig struct {
	t    *testing.T
	sled *sim.Sled
	host host.Host
}

// simulated is a sled with an installed zone web1.
func simulated(t *testing.T, latency string) rig {
	t.Helper()
	s := sim.New(sim.Options{Latency: latency}, hosttest.Files)
	t.Cleanup(s.Close)
	r := rig{t: t, sled: s, host: s.Host()}
	r.run("zfs", "create", "-o", "mountpoint=/zone", "rpool/zone")
	r.run("zfs", "create", "rpool/zone/web1")
	r.must(r.host.Files().Chmod("/zone/web1", 0o700))
	r.run("zonecfg", "-z", "web1", "create", "-b", ";", "set", "brand=sparse", ";", "set", "zonepath=/zone/web1", ";", "set", "ip-type=exclusive")
	r.run("zoneadm", "-z", "web1", "install")
	return r
}

func (r rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r rig) run(program string, args ...string) {
	r.t.Helper()
	got, err := r.host.Run(r.t.Context(), host.Command{Program: program, Args: args})
	if err != nil || got.Exit != 0 {
		r.t.Fatalf("%s %q: %v, exit %d: %s", program, args, err, got.Exit, got.Stderr)
	}
}

// do does steps that must succeed, and change what they explain.
func (r rig) do(steps ...steptest.Step) {
	r.t.Helper()
	steptest.Does(r.t, r.host, steps...)
}

func (r rig) state(fmri string) string {
	r.t.Helper()
	state, err := smf.State(r.t.Context(), r.host, "web1", fmri)
	if err != nil {
		r.t.Fatal(err)
	}
	return state
}

func (r rig) arm(f world.Fault) {
	r.t.Helper()
	r.must(r.sled.World().Update(r.t.Context(), func(tx *world.Tx) error { tx.Arm(f); return nil }))
}

// bubble runs a test with its own clock.
func bubble(t *testing.T, latency string, test func(t *testing.T, r rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, simulated(t, latency)) })
}

const manifest = `<?xml version="1.0"?>
<!DOCTYPE service_bundle SYSTEM "/usr/share/lib/xml/dtd/service_bundle.dtd.1">
<service_bundle type="manifest" name="sledctl">
  <service name="site/thing" type="service" version="1">
    <create_default_instance enabled="false"/>
    <dependency name="import" grouping="require_all" restart_on="none" type="service">
      <service_fmri value="svc:/system/manifest-import:default"/>
    </dependency>
    <exec_method type="method" name="start" exec="` + directory + `/thing %{config/address}" timeout_seconds="0"/>
    <exec_method type="method" name="stop" exec=":true" timeout_seconds="0"/>
    <property_group name="config" type="application"><propval name="address" type="astring" value="unknown"/></property_group>
    <property_group name="startd" type="framework"><propval name="duration" type="astring" value="transient"/></property_group>
  </service>
</service_bundle>
`

func profile(enabled bool, address string) smf.Profile {
	return smf.Profile{Name: "sledctl", Services: []smf.ProfileService{{
		Name: "site/thing", Instance: "default", Enabled: enabled,
		Groups: []smf.ProfileGroup{{Name: "config", Type: "application", Properties: []smf.ProfileProperty{
			{Name: "address", Type: "astring", Values: []string{address}},
		}}},
	}}}
}

// thing is the method: it leaves what it was told.
const thing = "#!/bin/sh\necho \"$1\" > /var/tmp/told\n"

func (r rig) lay() {
	r.t.Helper()
	r.do(
		smf.WriteMethod{Root: root, Name: directory + "/thing", Content: []byte(thing)},
		smf.WriteManifest{Root: root, Name: directory + "/thing.xml", Content: []byte(manifest)},
	)
}

func TestAServiceOfOursComesUpWithItsProfile(t *testing.T) {
	bubble(t, "helios2021", func(t *testing.T, r rig) {
		r.lay()
		r.do(
			smf.Seed{Root: root, Manifests: []string{"/lib/svc/manifest", directory}},
			smf.WriteProfile{Root: root, Profile: profile(false, "10.0.0.1 & \"more\"; x")},
		)
		r.run("zoneadm", "-z", "web1", "boot")
		booted := time.Now()
		r.do(smf.Await{Zone: "web1", FMRI: milestone, State: smf.Online})
		if got := time.Since(booted); got < 1300*time.Millisecond || got > 1330*time.Millisecond {
			t.Errorf("single-user after %v", got)
		}
		states, err := smf.States(t.Context(), r.host, "web1")
		r.must(err)
		if states[milestone] != smf.Online || states[site] != smf.Disabled {
			t.Errorf("states %v", states)
		}
		r.do(
			smf.Enable{Zone: "web1", FMRI: site, Temporary: true},
			smf.Await{Zone: "web1", FMRI: site, State: smf.Online},
		)
		told, err := host.ReadFile(r.host.Files(), root+"/var/tmp/told")
		r.must(err)
		if string(told) != "10.0.0.1 & \"more\"; x\n" {
			t.Errorf("the method was told %q", told)
		}
		disable := smf.Enable{Zone: "web1", FMRI: site, Temporary: true}.Undo().(smf.Disable)
		r.do(disable, smf.Await{Zone: "web1", FMRI: site, State: smf.Disabled})
	})
}

// A zone that was not seeded takes a dozen times as long (omicron PR 385).
func TestSeedingIsWhatMakesTheBootFast(t *testing.T) {
	bubble(t, "helios2021", func(t *testing.T, r rig) {
		r.run("zoneadm", "-z", "web1", "boot")
		booted := time.Now()
		r.do(smf.Await{Zone: "web1", FMRI: milestone, State: smf.Online})
		if got := time.Since(booted); got < 17*time.Second {
			t.Errorf("single-user after %v", got)
		}
	})
}

// The time from online to noticed, over many boots of different phase.
func TestAwaitNoticesAtOnce(t *testing.T) {
	bubble(t, "helios2021", func(t *testing.T, r rig) {
		r.lay()
		r.do(smf.Seed{Root: root, Manifests: []string{"/lib/svc/manifest", directory}})
		for n := range 24 {
			r.run("zoneadm", "-z", "web1", "boot")
			time.Sleep(time.Duration(n/2) * 113 * time.Millisecond)
			r.do(smf.Await{Zone: "web1", Root: []string{"", root}[n%2], FMRI: milestone, State: smf.Online})
			var online time.Time
			r.must(r.sled.World().View(t.Context(), func(tx *world.Tx) error {
				online = simsmf.Since(simsmf.Service(tx, "web1", milestone), tx.Now)
				return nil
			}))
			if late := time.Since(online); late > 20*time.Millisecond && time.Duration(n/2)*67*time.Millisecond < 1300*time.Millisecond {
				t.Errorf("noticed %v late", late)
			}
			r.run("zoneadm", "-z", "web1", "halt")
		}
	})
}

// counted is a host that counts the commands that run on it.
type counted struct {
	host.Host
	commands *atomic.Int64
}

func (c counted) Run(ctx context.Context, command host.Command) (host.Result, error) {
	c.commands.Add(1)
	return c.Host.Run(ctx, command)
}

func TestABootIsAwaitedWithFiveCommands(t *testing.T) {
	for name, c := range map[string]struct {
		late  time.Duration // behind the boot
		fault world.Fault
		most  int64
	}{
		"a boot":                         {most: 5},
		"a door that takes long":         {fault: world.Fault{Name: world.FaultSlowDoor, Match: "web1", Delay: 8 * time.Second}, most: 9},
		"a start within the wait":        {late: 700 * time.Millisecond, most: 6},
		"a zone that has been up longer": {late: 10 * time.Second, most: 4},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, "helios2021", func(t *testing.T, r rig) {
				r.lay()
				r.do(smf.Seed{Root: root, Manifests: []string{"/lib/svc/manifest", directory}})
				if c.fault.Name != "" {
					r.arm(c.fault)
				}
				r.run("zoneadm", "-z", "web1", "boot")
				time.Sleep(c.late)
				h := counted{r.host, &atomic.Int64{}}
				r.must(smf.Await{Zone: "web1", Root: root, FMRI: milestone, State: smf.Online}.Do(t.Context(), h))
				if got := h.commands.Load(); got > c.most {
					t.Errorf("%d commands, not up to %d", got, c.most)
				}
				if got := r.state(milestone); got != smf.Online {
					t.Errorf("state %s", got)
				}
			})
		})
	}
}

func TestMaintenanceEndsTheWait(t *testing.T) {
	bubble(t, "helios2021", func(t *testing.T, r rig) {
		r.arm(world.Fault{Name: world.FaultMaintenance, Match: "web1 " + milestone})
		r.run("zoneadm", "-z", "web1", "boot")
		err := smf.Await{Zone: "web1", FMRI: milestone, State: smf.Online}.Do(t.Context(), r.host)
		maintenance, ok := errors.AsType[*smf.MaintenanceError](err)
		if !ok || maintenance.FMRI != milestone || !errors.Is(err, host.ErrState) {
			t.Fatalf("error %v", err)
		}
		if !strings.Contains(err.Error(), "/var/svc/log/milestone-single-user:default.log") {
			t.Errorf("the message does not name the log: %v", err)
		}
		r.do(smf.Await{Zone: "web1", FMRI: milestone, State: smf.Maintenance})
	})
}

// A svcprop -w that misses every change must not keep us.
func TestAwaitDoesNotRelyOnTheEdge(t *testing.T) {
	missesEdges(t, "", 3500*time.Millisecond)
	missesEdges(t, root, 4500*time.Millisecond) // those of the early import, too
}

func missesEdges(t *testing.T, zoneroot string, most time.Duration) {
	bubble(t, "helios2021", func(t *testing.T, r rig) {
		r.arm(world.Fault{Name: world.FaultMissed, Match: "svcprop -w"})
		r.lay()
		r.do(smf.Seed{Root: root, Manifests: []string{"/lib/svc/manifest", directory}})
		r.run("zoneadm", "-z", "web1", "boot")
		booted := time.Now()
		r.do(smf.Await{Zone: "web1", Root: zoneroot, FMRI: milestone, State: smf.Online})
		if got := time.Since(booted); got > most {
			t.Errorf("noticed after %v", got)
		}
	})
}

func TestAwaitEndsWithItsContext(t *testing.T) {
	bubble(t, "none", func(t *testing.T, r rig) {
		r.run("zoneadm", "-z", "web1", "boot")
		for fmri, word := range map[string]string{
			milestone: "", "svc:/network/dns/client:default": "disabled", "svc:/no/such:default": "unknown there",
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			err := smf.Await{Zone: "web1", FMRI: fmri, State: smf.Online}.Do(ctx, r.host)
			cancel()
			if word == "" {
				r.must(err)
			} else if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), word) {
				t.Errorf("%s: %v", fmri, err)
			}
		}
		r.run("zoneadm", "-z", "web1", "halt")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for _, zoneroot := range []string{"", root} {
			err := smf.Await{Zone: "web1", Root: zoneroot, FMRI: milestone, State: smf.Online}.Do(ctx, r.host)
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "not there yet") {
				t.Errorf("halted zone: %v", err)
			}
		}
	})
}

func TestErrorsHaveTheirKinds(t *testing.T) {
	bubble(t, "helios2021", func(t *testing.T, r rig) {
		ctx := t.Context()
		for _, zoneroot := range []string{"", "/zone/nobody/root"} {
			if err := (smf.Await{Zone: "nobody", Root: zoneroot, FMRI: milestone, State: smf.Online}).Do(ctx, r.host); !errors.Is(err, smf.ErrNoZone) {
				t.Errorf("await in no zone: %v", err)
			}
		}
		if _, err := smf.States(ctx, r.host, "nobody"); !errors.Is(err, smf.ErrNoZone) {
			t.Errorf("states of no zone: %v", err)
		}
		if _, err := smf.States(ctx, r.host, "web1"); !errors.Is(err, host.ErrTransient) {
			t.Errorf("states of a halted zone: %v", err)
		}
		r.run("zoneadm", "-z", "web1", "boot")
		if err := (smf.Enable{Zone: "web1", FMRI: site}).Do(ctx, r.host); !errors.Is(err, host.ErrTransient) {
			t.Errorf("enable before the door: %v", err)
		}
		r.do(smf.Await{Zone: "web1", FMRI: milestone, State: smf.Online})
		if err := (smf.Enable{Zone: "web1", FMRI: site}).Do(ctx, r.host); !errors.Is(err, host.ErrNotFound) {
			t.Errorf("enable of no service: %v", err)
		}
		if _, err := smf.State(ctx, r.host, "web1", site); !errors.Is(err, host.ErrNotFound) {
			t.Errorf("state of no service: %v", err)
		}
		states, err := smf.States(ctx, r.host, "")
		if err != nil || states[milestone] != smf.Online {
			t.Errorf("the global zone: %v, %v", states, err)
		}
	})
}

func TestAServiceThatDiesIsSeenToComeBack(t *testing.T) {
	bubble(t, "none", func(t *testing.T, r rig) {
		r.run("zoneadm", "-z", "web1", "boot")
		r.do(smf.Await{Zone: "web1", FMRI: milestone, State: smf.Online})
		dns := "svc:/network/dns/client:default"
		r.do(smf.Enable{Zone: "web1", FMRI: dns}, smf.Await{Zone: "web1", FMRI: dns, State: smf.Online})
		r.do(smf.Disable{Zone: "web1", FMRI: dns}, smf.Await{Zone: "web1", FMRI: dns, State: smf.Disabled})
		if got := r.state(dns); got != smf.Disabled {
			t.Errorf("state %s", got)
		}
	})
}

func TestSeedLeavesTheOldRepositoryWhenItFails(t *testing.T) {
	for name, c := range map[string]struct {
		fault world.Fault
		spoil string
	}{
		"svccfg fails":    {fault: world.Fault{Name: world.FaultFail, Match: "svccfg import", Exit: 1, Text: "svccfg: no"}},
		"a bad manifest":  {spoil: "<"},
		"a wrong profile": {spoil: strings.Replace(manifest, "type=\"manifest\"", "type=\"profile\"", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, "none", func(t *testing.T, r rig) {
				r.lay()
				if c.spoil != "" {
					r.do(smf.WriteManifest{Root: root, Name: directory + "/bad.xml", Content: []byte(c.spoil)})
				} else {
					r.arm(c.fault)
				}
				before, err := host.ReadFile(r.host.Files(), root+"/etc/svc/repository.db")
				r.must(err)
				err = smf.Seed{Root: root, Manifests: []string{"/lib/svc/manifest", directory}}.Do(t.Context(), r.host)
				if err == nil {
					t.Fatal("no error")
				}
				if _, ok := errors.AsType[*host.CommandError](err); !ok {
					t.Errorf("error %v is no *host.CommandError", err)
				}
				after, err := host.ReadFile(r.host.Files(), root+"/etc/svc/repository.db")
				r.must(err)
				if string(before) != string(after) {
					t.Error("the repository was replaced")
				}
				if _, err := r.host.Files().Stat(root + "/etc/svc/repository.db.sledctl"); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("the new one is left: %v", err)
				}
			})
		})
	}
}

func TestFilesNeedTheRoot(t *testing.T) {
	r := simulated(t, "none")
	for _, s := range []steptest.Step{
		smf.WriteProfile{Root: "/zone/none/root", Profile: profile(true, "x")},
		smf.WriteManifest{Root: "/zone/none/root", Name: directory + "/a.xml"},
		smf.Seed{Root: "/zone/none/root"},
	} {
		if err := s.Do(t.Context(), r.host); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", s.Verb(), err)
		}
	}
	bad := profile(true, "x")
	bad.Services[0].Name = ""
	if _, ok := errors.AsType[*smf.ProfileError](smf.WriteProfile{Root: root, Profile: bad}.Do(t.Context(), r.host)); !ok {
		t.Error("a bad profile was written")
	}
}
