package smf_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/boot"
	"github.com/sledctl/sledctl/sim/world/scf"
	"github.com/sledctl/sledctl/sim/world/smf"
	"github.com/sledctl/sledctl/test/hosttest"
)

const testZone = "z1"

// smfZone is a running zone with a clock in the test's hand.
type smfZone struct {
	*world.Tx
	t     *testing.T
	shell smf.Shell
	calls []smf.MethodCall
}

// newSMFZone makes a zone whose root holds the system's manifests and a
// repository; what the shell of a method does is up to the test.
func newSMFZone(t *testing.T, latency string, repository []byte) *smfZone {
	t.Helper()
	files := hosttest.Memory()
	o := boot.Options{Seed: 1, Latency: latency}
	if err := boot.LayRoot(files, o); err != nil {
		t.Fatal(err)
	}
	state := boot.Fresh(o)
	z := &smfZone{Tx: world.NewTx(state, time.Date(2026, 9, 4, 1, 0, 0, 0, time.UTC), files), t: t}
	config := world.Config{Brand: "sparse", Zonepath: "/zones/" + testZone, Resources: []world.Resource{
		{Type: "device", Properties: []world.Property{{Name: "match", Values: []string{"/dev/vmm/*"}}}},
		{Type: "device", Properties: []world.Property{{Name: "match", Values: []string{"/dev/vmmctl"}}}},
		{Type: "device", Properties: []world.Property{{Name: "match", Values: []string{"/dev/viona"}}}},
	}}
	state.Zones = append(state.Zones, &world.Zone{Name: testZone, State: "installed", Config: config,
		Kernel: &world.Kernel{ID: 1, State: "running", Config: config}})
	for name, data := range smf.BaseManifests() {
		z.write("/"+name, data)
	}
	if repository != nil {
		z.write(smf.RepositoryPath, repository)
	}
	return z
}

func (z *smfZone) write(name string, data []byte) {
	z.t.Helper()
	if err := world.Put(z.Files, z.ZonePathOf(testZone, name), data, 0o644); err != nil {
		z.t.Fatal(err)
	}
}

func (z *smfZone) handlers() world.Handlers {
	return smf.ServiceHandlers(func(tx *world.Tx, c smf.MethodCall) smf.MethodResult {
		z.calls = append(z.calls, c)
		if z.shell == nil {
			return smf.MethodResult{}
		}
		return z.shell(tx, c)
	})
}

// settle carries out what is due now.
func (z *smfZone) settle() {
	z.t.Helper()
	if err := z.Settle(z.handlers()); err != nil {
		z.t.Fatal(err)
	}
}

// until lets time pass until an instance is in a state.
func (z *smfZone) until(fmri, want string) {
	z.t.Helper()
	z.settle()
	for range 1000 {
		if state, next := smf.State(smf.Service(z.Tx, testZone, fmri), z.Now); state == want && next == "" {
			return
		}
		next, ok := z.State.NextTime(z.Now)
		if !ok {
			break
		}
		z.Now = next
		z.settle()
	}
	state, next := smf.State(smf.Service(z.Tx, testZone, fmri), z.Now)
	z.t.Fatalf("%s is %q (next %q), never %q", fmri, state, next, want)
}

// edit changes the repository as svccfg does in the running zone.
func (z *smfZone) edit(do func(r *scf.Repository)) {
	z.t.Helper()
	r, err := smf.LoadRepository(z.Tx, testZone)
	if err != nil {
		z.t.Fatal(err)
	}
	do(r)
	if err := smf.Adopt(z.Tx, testZone, r); err != nil {
		z.t.Fatal(err)
	}
}

func thing(body string) []byte {
	return []byte(`<?xml version='1.0'?>
<!DOCTYPE service_bundle SYSTEM '/usr/share/lib/xml/dtd/service_bundle.dtd.1'>
<service_bundle type='manifest' name='t'><service name='site/thing' type='service' version='1'>` + body + `</service></service_bundle>`)
}

const (
	thingFMRI  = "svc:/site/thing:default"
	thingPath  = "/var/svc/manifest/site/sledctl/thing.xml"
	afterSetup = `<dependency name='m' grouping='require_all' restart_on='none' type='service'><service_fmri value='svc:/system/manifest-import' /></dependency>`
)

// transient is a service that a method starts and that leaves no process.
func transient(enabled bool, exec string) []byte {
	return thing(fmt.Sprintf(`<create_default_instance enabled='%v' />`+afterSetup+
		`<method_context><method_environment><envvar name='LD_LIBRARY_PATH' value='/opt/lib' /></method_environment></method_context>
<exec_method type='method' name='start' exec='%s' timeout_seconds='10' /><exec_method type='method' name='stop' exec=':true' timeout_seconds='3' />
<property_group name='config' type='application'><propval name='address' type='astring' value='a b;c' /></property_group>
<property_group name='startd' type='framework'><propval name='duration' type='astring' value='transient' /></property_group>`, enabled, exec))
}

// omicron PR 385 measured 1.31 s from boot to the milestone with a repository
// that knows all manifests and 17.9 s without.
func TestBootReachesSingleUserInTheMeasuredTime(t *testing.T) {
	for name, c := range map[string]struct {
		repository []byte
		want       time.Duration
	}{
		"seeded":   {fullRepository(), 1310 * time.Millisecond},
		"unseeded": {smf.SeedRepository(), 17900 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			z := newSMFZone(t, "helios2021", c.repository)
			start := z.Now
			smf.BootServices(z.Tx, testZone)
			z.until(smf.SingleUserFMRI, smf.Online)
			if got := z.Now.Sub(start); got > c.want || got < c.want-time.Microsecond {
				t.Errorf("took %v, want %v", got, c.want)
			}
		})
	}
}

// smf_bootstrap(7); omicron issue 4399 has a capture of the middle of a boot.
func TestServicesAppearInTheirOrder(t *testing.T) {
	z := newSMFZone(t, "helios2021", fullRepository())
	smf.BootServices(z.Tx, testZone)
	z.settle()
	if smf.DoorOpen(z.Tx, testZone) {
		t.Error("svc.configd answers before it can")
	}
	z.Now = z.Now.Add(400 * time.Millisecond)
	z.settle()
	if !smf.DoorOpen(z.Tx, testZone) {
		t.Error("svc.configd does not answer")
	}
	known := slices.Sorted(maps.Keys(smf.Repository(z.Tx, testZone).Instances))
	if diff := cmp.Diff([]string{smf.EarlyManifestImportFMRI, smf.RestarterFMRI}, known); diff != "" {
		t.Errorf("before early-manifest-import is through: %s", diff)
	}
	var order []string
	for {
		next, ok := z.State.NextTime(z.Now)
		if !ok {
			break
		}
		z.Now = next
		z.settle()
		for fmri, s := range smf.Repository(z.Tx, testZone).Instances {
			if state, _ := smf.State(s, z.Now); state == smf.Online && !slices.Contains(order, fmri) {
				order = append(order, fmri)
			}
		}
	}
	before := func(first, second string) {
		if i, j := slices.Index(order, first), slices.Index(order, second); i < 0 || j < 0 || i > j {
			t.Errorf("%s is not before %s in %q", first, second, order)
		}
	}
	before("svc:/network/ip-interface-management:default", "svc:/network/loopback:default")
	before("svc:/milestone/network:default", smf.SingleUserFMRI)
	before(smf.ManifestImportFMRI, smf.SingleUserFMRI)
	before(smf.SingleUserFMRI, "svc:/milestone/multi-user:default")
	if state, _ := smf.State(smf.Service(z.Tx, testZone, "svc:/network/dns/client:default"), z.Now); state != smf.Disabled {
		t.Errorf("a disabled service is %s", state)
	}
}

// usr/src/cmd/svc/milestone/manifest-import: manifests, then the site profile.
func TestManifestsAndTheSiteProfileAreReadAtBoot(t *testing.T) {
	z := newSMFZone(t, "none", fullRepository())
	z.write(thingPath, transient(false, "/bin/thing %{config/address}"))
	z.write(smf.SiteProfile, []byte(`<?xml version='1.0'?>
<!DOCTYPE service_bundle SYSTEM '/usr/share/lib/xml/dtd/service_bundle.dtd.1'>
<service_bundle type='profile' name='site'><service name='site/thing' type='service' version='1'>
<instance name='default' enabled='true'><property_group name='config' type='application'><propval name='address' type='astring' value='10.1.2.3' /></property_group></instance>
</service></service_bundle>`))
	smf.BootServices(z.Tx, testZone)
	z.until(thingFMRI, smf.Online)
	want := []smf.MethodCall{{Zone: testZone, FMRI: thingFMRI, Name: "start", Script: "/bin/thing 10.1.2.3",
		Env: map[string]string{"LD_LIBRARY_PATH": "/opt/lib", "PATH": "/usr/sbin:/usr/bin", "SMF_FMRI": thingFMRI,
			"SMF_METHOD": "start", "SMF_RESTARTER": smf.RestarterFMRI, "SMF_ZONENAME": testZone}}}
	if diff := cmp.Diff(want, z.calls); diff != "" {
		t.Error(diff)
	}
}

// smf_method(7): values are escaped for the shell.
func TestPropertyValuesInMethodsAreEscaped(t *testing.T) {
	z := newSMFZone(t, "none", fullRepository())
	z.write(thingPath, transient(true, "/bin/thing %{config/address}"))
	smf.BootServices(z.Tx, testZone)
	z.until(thingFMRI, smf.Online)
	if got := z.calls[0].Script; got != `/bin/thing a\ b\;c` {
		t.Errorf("script %q", got)
	}
}

// What is not simulated of a method's tokens ends in maintenance, with a word in the log.
func TestWhatIsNotSimulatedIsRefused(t *testing.T) {
	for _, token := range []string{"%f", "%%", "%", "%{address}", "%{config/address:,}", "%{config/none}", "%{config/address"} {
		z := newSMFZone(t, "none", fullRepository())
		z.write(thingPath, transient(true, "/bin/thing "+token))
		smf.BootServices(z.Tx, testZone)
		z.until(thingFMRI, smf.Maintenance)
		log, err := host.ReadFile(z.Files, z.ZonePathOf(testZone, smf.LogPath(thingFMRI)))
		if err != nil || !strings.Contains(string(log), "not simulated: what "+token) || len(z.calls) > 0 {
			t.Errorf("%s: %d calls, %v, %s", token, len(z.calls), err, log)
		}
	}
}

// svccfg cleanup is part of manifest import.
func TestAServiceWhoseManifestIsGoneIsDeleted(t *testing.T) {
	z := newSMFZone(t, "none", fullRepository())
	z.write(thingPath, transient(true, ":true"))
	smf.BootServices(z.Tx, testZone)
	z.until(thingFMRI, smf.Online)
	smf.HaltServices(z.Tx, testZone)
	if err := z.Files.Remove(z.ZonePathOf(testZone, thingPath)); err != nil {
		t.Fatal(err)
	}
	smf.BootServices(z.Tx, testZone)
	z.until(smf.SingleUserFMRI, smf.Online)
	if smf.Service(z.Tx, testZone, thingFMRI) != nil {
		t.Error("the service is still there")
	}
}

// A profile is applied once (mhash_test_file): what is set later stays.
func TestTheSiteProfileIsAppliedOnce(t *testing.T) {
	z := newSMFZone(t, "none", fullRepository())
	z.write(thingPath, transient(false, ":true"))
	profile := `<?xml version='1.0'?>
<!DOCTYPE service_bundle SYSTEM '/usr/share/lib/xml/dtd/service_bundle.dtd.1'>
<service_bundle type='profile' name='site'><service name='site/thing' type='service' version='1'><instance name='default' enabled='true' /></service></service_bundle>`
	z.write(smf.SiteProfile, []byte(profile))
	smf.BootServices(z.Tx, testZone)
	z.until(thingFMRI, smf.Online)
	z.edit(func(r *scf.Repository) {
		e, _ := r.Lookup(thingFMRI)
		e.Set("general", "enabled", "boolean", "false")
	})
	z.until(thingFMRI, smf.Disabled)
	smf.HaltServices(z.Tx, testZone)
	smf.BootServices(z.Tx, testZone)
	z.until(smf.SingleUserFMRI, smf.Online)
	z.until(thingFMRI, smf.Disabled)
}

// smf(7), "Dependencies", and restart_on of service_bundle(5).
func TestDependencies(t *testing.T) {
	base := `<create_default_instance enabled='true' /><dependency name='d' grouping='%s' restart_on='%s' type='service'>%s</dependency>
<exec_method type='method' name='start' exec=':true' timeout_seconds='0' /><exec_method type='method' name='stop' exec=':true' timeout_seconds='0' />
<property_group name='startd' type='framework'><propval name='duration' type='astring' value='transient' /></property_group>`
	dns, physical := "svc:/network/dns/client", "svc:/network/physical"
	for name, c := range map[string]struct {
		grouping, on string
		fmris        []string
		up, after    string // the thing's state at first, and when network/physical has been disabled
	}{
		"all, one is disabled":       {"require_all", "none", []string{physical, dns}, smf.Offline, smf.Offline},
		"all, restart_on none":       {"require_all", "none", []string{physical}, smf.Online, smf.Online},
		"all, restart_on restart":    {"require_all", "restart", []string{physical}, smf.Online, smf.Offline},
		"all, restart_on error":      {"require_all", "error", []string{physical}, smf.Online, smf.Online},
		"any":                        {"require_any", "restart", []string{dns, physical}, smf.Online, smf.Offline},
		"optional, disabled":         {"optional_all", "none", []string{dns}, smf.Online, smf.Online},
		"optional, absent":           {"optional_all", "none", []string{"svc:/site/none"}, smf.Online, smf.Online},
		"all, absent":                {"require_all", "none", []string{"svc:/site/none"}, smf.Offline, smf.Offline},
		"an instance that is online": {"require_all", "none", []string{physical + ":default"}, smf.Online, smf.Online},
	} {
		t.Run(name, func(t *testing.T) {
			z := newSMFZone(t, "none", fullRepository())
			var fmris strings.Builder
			for _, f := range c.fmris {
				fmt.Fprintf(&fmris, "<service_fmri value='%s' />", f)
			}
			z.write(thingPath, thing(fmt.Sprintf(base, c.grouping, c.on, fmris.String())))
			smf.BootServices(z.Tx, testZone)
			z.until("svc:/milestone/multi-user-server:default", smf.Online)
			z.until(thingFMRI, c.up)
			off := false
			smf.SetTemporary(z.Tx, testZone, physical+":default", &off)
			z.until(physical+":default", smf.Disabled)
			z.until(thingFMRI, c.after)
		})
	}
}

// svcadm(8): clear, restart; svccfg(8): refresh.
func TestAdministration(t *testing.T) {
	z := newSMFZone(t, "none", fullRepository())
	z.write(thingPath, transient(true, "/bin/thing %{config/address}"))
	z.Arm(world.Fault{Name: world.FaultMaintenance, Match: testZone + " " + thingFMRI, Times: 1})
	smf.BootServices(z.Tx, testZone)
	z.until(thingFMRI, smf.Maintenance)
	off := false
	smf.SetTemporary(z.Tx, testZone, thingFMRI, &off)
	z.until(thingFMRI, smf.Maintenance) // it stays until cleared
	smf.Clear(z.Tx, testZone, thingFMRI)
	z.until(thingFMRI, smf.Disabled)
	smf.SetTemporary(z.Tx, testZone, thingFMRI, nil)
	z.until(thingFMRI, smf.Online)
	if smf.Clear(z.Tx, testZone, thingFMRI) {
		t.Error("an online instance was cleared")
	}

	z.edit(func(r *scf.Repository) {
		e, _ := r.Lookup(thingFMRI)
		scf.Entity{Service: e.Service}.Set("config", "address", "astring", "new")
	})
	smf.Restart(z.Tx, testZone, thingFMRI)
	z.until(thingFMRI, smf.Online)
	if got := z.calls[len(z.calls)-1].Script; strings.HasSuffix(got, "new") {
		t.Error("the method saw a value that was not refreshed")
	}
	z.edit(func(r *scf.Repository) {
		e, _ := r.Lookup(thingFMRI)
		e.Instance.Refresh()
		smf.Refresh(z.Tx, testZone, thingFMRI, e)
	})
	smf.Restart(z.Tx, testZone, thingFMRI)
	z.until(thingFMRI, smf.Online)
	if got := z.calls[len(z.calls)-1].Script; got != "/bin/thing new" {
		t.Errorf("after the refresh: %q", got)
	}
}

func TestAFaultSendsAServiceToMaintenance(t *testing.T) {
	z := newSMFZone(t, "none", fullRepository())
	z.Arm(world.Fault{Name: world.FaultMaintenance, Match: testZone + " " + smf.SingleUserFMRI, Times: 1})
	smf.BootServices(z.Tx, testZone)
	z.until(smf.SingleUserFMRI, smf.Maintenance)
	smf.Clear(z.Tx, testZone, smf.SingleUserFMRI)
	z.until(smf.SingleUserFMRI, smf.Online)
}

// A repository that is no repository keeps svc.configd from answering.
func TestABrokenRepositoryHasNoDoor(t *testing.T) {
	z := newSMFZone(t, "none", []byte("garbage"))
	smf.BootServices(z.Tx, testZone)
	z.settle()
	if smf.DoorOpen(z.Tx, testZone) {
		t.Error("the door is open")
	}
}

func TestAZoneWithoutARepositoryImportsEverything(t *testing.T) {
	z := newSMFZone(t, "none", nil)
	smf.BootServices(z.Tx, testZone)
	z.until(smf.SingleUserFMRI, smf.Online)
	if _, err := z.Files.Stat(z.ZonePathOf(testZone, smf.RepositoryPath)); err != nil {
		t.Error(err)
	}
}

// The group that svcprop(1) shows: libscf_priv.h names the properties.
func TestTheRestarterGroup(t *testing.T) {
	z := newSMFZone(t, "none", fullRepository())
	z.write(thingPath, transient(true, "/bin/thing"))
	smf.BootServices(z.Tx, testZone)
	z.until(thingFMRI, smf.Online)
	g := smf.Groups(smf.Service(z.Tx, testZone, thingFMRI), z.Now)
	for name, want := range map[string]string{
		"state": "online", "next_state": "none", "auxiliary_state": "dependencies_satisfied", "start_method_waitstatus": "0",
		"logfile":         "/var/svc/log/site-thing:default.log",
		"state_timestamp": fmt.Sprintf("%d.%09d", z.Now.Unix(), z.Now.Nanosecond()),
	} {
		if got := g.Value("restarter", name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if g.Find("general_ovr") != nil {
		t.Error("general_ovr without a temporary change")
	}
}

// The sled's own zone: everything online, and coming up at once after a reboot.
func TestTheGlobalZone(t *testing.T) {
	z := newSMFZone(t, "helios2021", fullRepository())
	if state, _ := smf.State(smf.Service(z.Tx, world.GlobalZone, smf.SingleUserFMRI), z.Now.Add(100*365*24*time.Hour)); state != smf.Online {
		t.Errorf("single-user of a fresh sled: %s", state)
	}
	smf.HaltServices(z.Tx, world.GlobalZone)
	smf.BootServices(z.Tx, world.GlobalZone)
	z.settle()
	if state, _ := smf.State(smf.Service(z.Tx, world.GlobalZone, "svc:/milestone/multi-user-server:default"), z.Now); state != smf.Online {
		t.Errorf("after a reboot: %s", state)
	}
}
