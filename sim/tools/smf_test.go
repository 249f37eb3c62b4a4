package tools

import (
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/tools/services"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/boot"
	"github.com/sledctl/sledctl/sim/world/smf"
	"github.com/sledctl/sledctl/test/hosttest"
)

// smfSled is a sled with a running zone z1, a stopped zone z2 and a clock in
// the test's hand.
type smfSled struct {
	*world.Tx
	t *testing.T
}

const (
	webFMRI  = "svc:/site/web:default"
	mainFMRI = "svc:/milestone/single-user:default"
	webPath  = "/var/svc/manifest/site/web.xml"
)

// webManifest is a service that is up as soon as it is enabled.
const webManifest = `<?xml version='1.0'?>
<!DOCTYPE service_bundle SYSTEM '/usr/share/lib/xml/dtd/service_bundle.dtd.1'>
<service_bundle type='manifest' name='web'><service name='site/web' type='service' version='1'>
	<create_default_instance enabled='false' />
	<dependency name='mi' grouping='require_all' restart_on='none' type='service'><service_fmri value='svc:/system/manifest-import' /></dependency>
	<exec_method type='method' name='start' exec=':true' timeout_seconds='60' />
	<exec_method type='method' name='stop' exec=':true' timeout_seconds='60' />
	<property_group name='config' type='application'>
		<propval name='address' type='astring' value='10.0.0.1 (old)' />
		<propval name='port' type='count' value='80' />
		<propval name='empty' type='astring' value='' />
	</property_group>
	<property_group name='startd' type='framework'><propval name='duration' type='astring' value='transient' /></property_group>
	<template><common_name><loctext xml:lang='C'>web server</loctext></common_name></template>
</service></service_bundle>
`

func newSMFSled(t *testing.T) *smfSled {
	t.Helper()
	files := hosttest.Memory()
	o := boot.Options{Seed: 1, Latency: "helios2021"}
	if err := boot.LayRoot(files, o); err != nil {
		t.Fatal(err)
	}
	state := boot.Fresh(o)
	s := &smfSled{Tx: world.NewTx(state, time.Date(2026, 9, 4, 1, 0, 0, 0, time.UTC), files), t: t}
	smf.HaltServices(s.Tx, world.GlobalZone)
	smf.BootServices(s.Tx, world.GlobalZone)
	s.settle()
	for n, name := range []string{"z1", "z2"} {
		config := world.Config{Brand: "sparse", Zonepath: "/zones/" + name}
		z := &world.Zone{Name: name, State: "installed", Config: config}
		if n == 0 {
			z.Kernel = &world.Kernel{ID: 1, State: "running", Config: config}
		}
		state.Zones = append(state.Zones, z)
	}
	for name, data := range smf.BaseManifests() {
		s.write("/zones/z1/root/"+name, string(data))
	}
	s.write("/zones/z1/root/etc/svc/repository.db", string(smf.SeedRepository()))
	s.write("/zones/z1/root"+webPath, webManifest)
	s.write("/usr/share/lib/xml/dtd/service_bundle.dtd.1", "")
	return s
}

func (s *smfSled) write(name, data string) {
	s.t.Helper()
	if err := host.MkdirAll(s.Files, path.Dir(name), 0o755); err != nil {
		s.t.Fatal(err)
	}
	f, err := s.Files.Open(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := f.Write([]byte(data)); err != nil {
		s.t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *smfSled) settle() {
	s.t.Helper()
	if err := s.Settle(smf.ServiceHandlers(func(*world.Tx, smf.MethodCall) smf.MethodResult { return smf.MethodResult{} })); err != nil {
		s.t.Fatal(err)
	}
}

// pass lets time pass until something has come true; false if it never does.
func (s *smfSled) pass(until func(*world.Tx) bool) bool {
	s.t.Helper()
	s.settle()
	for !until(s.Tx) {
		next, ok := s.State.NextTime(s.Now)
		if !ok {
			return false
		}
		s.Now = next
		s.settle()
	}
	return true
}

// boot boots z1 until its web service is known.
func (s *smfSled) boot() *smfSled {
	s.t.Helper()
	smf.BootServices(s.Tx, "z1")
	if !s.pass(func(tx *world.Tx) bool {
		state, _ := smf.State(smf.Service(tx, "z1", "svc:/milestone/multi-user-server:default"), tx.Now)
		return state == smf.Online
	}) {
		s.t.Fatal("the zone does not come up")
	}
	return s
}

// start runs the first transaction of a command line, in the global zone or
// that of an "@zone" in front.
func (s *smfSled) start(line string) cli.Reply {
	s.t.Helper()
	words := shellWords(line)
	c := cli.Call{Zone: world.GlobalZone, Env: map[string]string{}}
	for strings.HasPrefix(words[0], "@") || strings.Contains(words[0], "=") {
		if key, value, ok := strings.Cut(words[0], "="); ok {
			c.Env[key] = value
		} else {
			c.Zone = words[0][1:]
		}
		words = words[1:]
	}
	c.Tool, c.Args = words[0], words[1:]
	tool := map[string]cli.Tool{"svcs": services.Svcs, "svcprop": services.Svcprop, "svcadm": services.Svcadm, "svccfg": services.Svccfg}[c.Tool]
	r := cli.Refusing(tool)(s.Tx, c)
	s.settle()
	return r
}

// run runs a command line to its end.
func (s *smfSled) run(line string) cli.Reply {
	s.t.Helper()
	r := s.start(line)
	for r.Next != nil {
		if !s.pass(r.Next.Until) {
			s.t.Fatalf("%s: waits for ever", line)
		}
		more := r.Next.Do(s.Tx)
		s.settle()
		r.Stdout, r.Stderr = r.Stdout+more.Stdout, r.Stderr+more.Stderr
		r.Exit, r.Next = more.Exit, more.Next
	}
	return r
}

// shellWords splits at blanks, with single quotes.
func shellWords(line string) []string {
	var words []string
	for _, m := range regexp.MustCompile(`(?:[^\s']+|'[^']*')+`).FindAllString(line, -1) {
		words = append(words, strings.ReplaceAll(m, "'", ""))
	}
	return words
}

// expect runs a command line and compares all that it leaves.
func (s *smfSled) expect(line, stdout, stderr string, exit int) {
	s.t.Helper()
	r := s.run(line)
	if diff := cmp.Diff(cli.Reply{Stdout: stdout, Stderr: stderr, Exit: exit}, cli.Reply{Stdout: r.Stdout, Stderr: r.Stderr, Exit: r.Exit}); diff != "" {
		s.t.Errorf("%s\n%s", line, diff)
	}
}

// svcs.c, svcprop.c and svcadm.c: what they say before svc.configd answers
// (omicron issue 7257 has the first).
func TestCommandsBeforeTheRepositoryServerAnswers(t *testing.T) {
	s := newSMFSled(t)
	smf.BootServices(s.Tx, "z1")
	s.settle()
	s.expect("svcs -z z1", "", "svcs: Could not bind to repository server for zone z1: repository server unavailable\n", 1)
	s.expect("@z1 svcs", "", "svcs: Could not bind to repository server: repository server unavailable.  Exiting.\n", 1)
	s.expect("svcs -H -o state -z z2", "", "svcs: Could not bind to repository server for zone z2: repository server unavailable\n", 1)
	s.expect("svcs -z nope", "", "svcs: invalid zone 'nope'\n", 1)
	s.expect("svcprop -z z1 -p restarter/state "+mainFMRI, "", "svcprop: Could not connect to configuration repository: repository server unavailable.\n", 1)
	s.expect("svcprop -z nope -p restarter/state "+mainFMRI, "", "svcprop: invalid zone 'nope'\n", 1)
	s.expect("svcadm -z z1 enable "+webFMRI, "", "svcadm: Couldn't bind to configuration repository: repository server unavailable.\n", 1)
	s.expect("@z1 svccfg import /", "", "svccfg: Could not connect to repository server: repository server unavailable.\n", 1)
}

// Between the door and the end of early-manifest-import an instance has no
// restarter property group (logs of omicron issue 5318: "Property not found").
func TestCommandsInEarlyBoot(t *testing.T) {
	s := newSMFSled(t)
	smf.BootServices(s.Tx, "z1")
	if !s.pass(func(tx *world.Tx) bool { return smf.DoorOpen(tx, "z1") }) {
		t.Fatal("no door")
	}
	s.expect("svcprop -z z1 -p restarter/state "+mainFMRI, "",
		"svcprop: Couldn't find property group `restarter' for instance `"+mainFMRI+"'.\n", 1)
	s.expect("svcprop -w -z z1 -p restarter/state "+mainFMRI, "", "svcprop: Not found.\n", 1)
	s.expect("svcs -z z1 -H -o state,stime,fmri "+mainFMRI, "-              -        "+mainFMRI+strings.Repeat(" ", 50-len(mainFMRI))+" \n", "", 0)
	s.expect("svcs -x -z z1 "+mainFMRI, "", mainFMRI+" has no \"restarter\" property group; ignoring.\n", 0)
	s.expect("svcprop -z z1 -p restarter/state "+webFMRI, "", "svcprop: Pattern '"+webFMRI+"' doesn't match any entities\n", 1)
}

// svcprop(1).
func TestSvcprop(t *testing.T) {
	s := newSMFSled(t).boot()
	for line, want := range map[string]cli.Reply{
		"svcprop -z z1 -p restarter/state " + mainFMRI:          {Stdout: "online\n"},
		"@z1 svcprop -p config/address " + webFMRI:              {Stdout: "10.0.0.1\\ \\(old\\)\n"},
		"@z1 svcprop -p config/port -p config/empty " + webFMRI: {Stdout: "80\n\"\"\n"},
		"@z1 svcprop -c -p general/enabled " + webFMRI:          {Stdout: "false\n"},
		"@z1 svcprop -p config/x " + webFMRI:                    {Exit: 1, Stderr: "svcprop: Couldn't find property `config/x' for instance `" + webFMRI + "'.\n"},
		"@z1 svcprop -p none/x " + webFMRI:                      {Exit: 1, Stderr: "svcprop: Couldn't find property group `none' for instance `" + webFMRI + "'.\n"},
		"@z1 svcprop -p config/x svc:/site/no:default":          {Exit: 1, Stderr: "svcprop: Pattern 'svc:/site/no:default' doesn't match any entities\n"},
		"@z1 svcprop -w -p config/x svc:/site/no:default":       {Exit: 1, Stderr: "svcprop: Pattern 'svc:/site/no:default' doesn't match any entities\n"},
		"@z1 svcprop -w -p config/x " + webFMRI:                 {Exit: 1, Stderr: "svcprop: Not found.\n"},
		"@z1 svcprop -z z1 -p restarter/state " + webFMRI:       {Exit: 1, Stderr: "svcprop: svcprop -z may only be used from the global zone\n"},
		"svcprop -p restarter/state " + mainFMRI:                {Stdout: "online\n"}, // the global zone's own
	} {
		s.expect(line, want.Stdout, want.Stderr, want.Exit)
	}
}

// What nothing asks of these commands is refused, and not passed over.
func TestWhatIsNotSimulatedOfSMFIsRefused(t *testing.T) {
	s := newSMFSled(t).boot()
	s.write("/tmp/half.xml", strings.Replace(webManifest, "require_all", "exclude_all", 1))
	for line, what := range map[string]string{
		"svcs -v": "option -v", "svcs -d web": "option -d", "svcs -D web": "option -D", "svcs -l web": "option -l", "svcs -p web": "option -p",
		"svcs -Z": "option -Z", "svcs -?": "option -?", "svcs -s fmri": "option -s", "svcs -o": "option -o",
		"svcs -o desc": `column "desc"`, "svcs -o state,nstate": `column "nstate"`, "svcs -o ctid": `column "ctid"`, "svcs -o zone": `column "zone"`,
		"svcs web": `operand "web"`, "svcs 'network/*'": `operand "network/*"`, "svcs lrc:/etc/rc2_d/S20x": `operand "lrc:/etc/rc2_d/S20x"`,
		"svcs -L": "-L", "svcs -L -x " + webFMRI: "-L -x " + webFMRI, "svcs -x -H": "-x -H", "svcs -a -x": "-a -x",
		"svcprop " + webFMRI: webFMRI, "svcprop -p config " + webFMRI: "-p config", "svcprop -p a/b/c " + webFMRI: "-p a/b/c",
		"svcprop -t -p a/b " + webFMRI: "option -t", "svcprop -f -p a/b " + webFMRI: "option -f", "svcprop -q -p a/b " + webFMRI: "option -q",
		"svcprop -C -p a/b " + webFMRI: "option -C", "svcprop -s running -p a/b " + webFMRI: "option -s", "svcprop -p a/b": "-p a/b",
		"svcprop -w -c -p a/b " + webFMRI: "-w -c -p a/b " + webFMRI, "svcprop -w -p a/b -p a/c " + webFMRI: "-w -p a/b -p a/c " + webFMRI,
		"svcprop -p a/b " + webFMRI + " " + mainFMRI:               "-p a/b " + webFMRI + " " + mainFMRI,
		"svcprop -p start/exec svc:/milestone/single-user":         "properties of a service",
		"svcprop -p start/exec " + mainFMRI + "/:properties/start": `operand "` + mainFMRI + `/:properties/start"`,
		"svcadm": "", "svcadm enable": "enable", "svcadm -v enable " + mainFMRI: "option -v",
		"svcadm -S maintenance clear": "option -S", "svcadm -Z enable " + mainFMRI: "option -Z", "svcadm enable -s " + mainFMRI: "enable -s " + mainFMRI,
		"svcadm enable -r " + mainFMRI: "enable -r " + mainFMRI, "svcadm disable -s " + mainFMRI: "disable -s " + mainFMRI,
		"svcadm disable -c x " + mainFMRI: "disable -c x " + mainFMRI, "svcadm restart -d " + mainFMRI: "restart -d " + mainFMRI,
		"svcadm clear -t " + mainFMRI: "clear -t " + mainFMRI, "svcadm enable web": `operand "web"`,
		"svcadm milestone " + mainFMRI: `subcommand "milestone"`, "svcadm refresh " + mainFMRI: `subcommand "refresh"`, "svcadm mark " + mainFMRI: `subcommand "mark"`,
		"svccfg": "", "svccfg import": "import", "svccfg import -V /x": "import -V /x", "svccfg archive": "archive", "svccfg -f /x": "-f /x",
		"svccfg -s " + webFMRI + " listprop": "-s " + webFMRI + " listprop", "svccfg import /none": "/none is no file and no directory",
		"SVCCFG_DTD=/none svccfg import /tmp/half.xml": "stat /none: no such file or directory",
		"svccfg import /tmp/half.xml":                  "/tmp/half.xml: element dependency with what stands in it",
	} {
		tool, _, _ := strings.Cut(strings.TrimPrefix(line, "SVCCFG_DTD=/none "), " ")
		s.expect(line, "", "not simulated: "+tool+": "+what+"\n", 70)
	}
	s.expect("svcprop -p general/enabled "+mainFMRI, "true\n", "", 0) // nothing was changed
}

// svcprop(1), -w: woken by any change of the group, whatever its value.
func TestSvcpropWaitsForAChangeOfTheGroup(t *testing.T) {
	s := newSMFSled(t).boot()
	r := s.start("svcprop -w -z z1 -p restarter/state " + webFMRI)
	if r.Next == nil || s.pass(r.Next.Until) {
		t.Fatalf("it did not wait: %+v", r)
	}
	s.run("svcadm -z z1 enable " + webFMRI)
	if !s.pass(r.Next.Until) {
		t.Fatal("a change did not wake it")
	}
	if got := r.Next.Do(s.Tx).Stdout; got != "offline\n" {
		t.Errorf("the first change shows %q", got)
	}
	r = s.start("svcprop -w -z z1 -p restarter/state " + webFMRI)
	if s.pass(r.Next.Until); r.Next.Do(s.Tx).Stdout != "online\n" {
		t.Error("the end of the start was missed")
	}
	s.run("svcadm -z z1 disable " + webFMRI)

	r = s.start("@z1 svcprop -w -p general/enabled " + webFMRI)
	s.run("svcadm -z z1 enable " + webFMRI)
	if !s.pass(r.Next.Until) {
		t.Fatal("a persistent group's change did not wake it")
	}
	if got := r.Next.Do(s.Tx).Stdout; got != "true\n" {
		t.Errorf("general/enabled: %q", got)
	}
}

// The repository's server goes with its zone.
func TestSvcpropEndsWhenTheZoneIsHalted(t *testing.T) {
	s := newSMFSled(t).boot()
	r := s.start("svcprop -w -z z1 -p restarter/state " + mainFMRI)
	smf.HaltServices(s.Tx, "z1")
	if !r.Next.Until(s.Tx) {
		t.Fatal("it still waits")
	}
	if got := r.Next.Do(s.Tx); got.Exit != 1 || got.Stderr != "svcprop: Unexpected libscf error: connection to repository broken.  Exiting.\n" {
		t.Errorf("%+v", got)
	}
}

// svcs(1); the widths are those of captures in omicron's docs.
func TestSvcs(t *testing.T) {
	s := newSMFSled(t).boot()
	fmri := func(f string) string { return f + strings.Repeat(" ", 50-len(f)) + " " }
	s.expect("svcs -z z1 -H -o state,fmri "+mainFMRI+" "+webFMRI, "disabled       "+fmri(webFMRI)+"\n"+"online         "+fmri(mainFMRI)+"\n", "", 0)
	s.expect("svcs -z z1 "+webFMRI, "STATE          STIME    FMRI"+strings.Repeat(" ", 46)+"\ndisabled        1:00:17 "+fmri(webFMRI)+"\n", "", 0)
	s.expect("svcs -z z1 -H svc:/site/web svc:/site/no", "disabled        1:00:17 "+fmri(webFMRI)+"\n", "svcs: Pattern 'svc:/site/no' doesn't match any instances\n", 1)
	s.expect("@z1 svcs -z z1", "", "svcs: svcs -z may only be used from the global zone\n", 1)
	s.expect("svcs -L -z z1 "+webFMRI, "/zones/z1/root/var/svc/log/site-web:default.log\n", "", 0)
	s.expect("@z1 svcs -L "+webFMRI, "/var/svc/log/site-web:default.log\n", "", 0)
	if got := s.run("svcs -z z1 -H -o fmri").Stdout; strings.Contains(got, webFMRI) || !strings.Contains(got, mainFMRI) {
		t.Errorf("without -a: %s", got)
	}
	if got := s.run("svcs -a -z z1 -H -o fmri").Stdout; !strings.Contains(got, webFMRI) {
		t.Errorf("with -a: %s", got)
	}
	s.start("svcadm -z z1 enable " + webFMRI)
	s.expect("svcs -z z1 -H -o state "+webFMRI, "offline*       \n", "", 0)
}

// svcs(1), -x: omicron issue 11276 has a capture.
func TestSvcsExplains(t *testing.T) {
	s := newSMFSled(t).boot()
	s.expect("svcs -x -z z1", "", "", 0)
	s.Arm(world.Fault{Name: world.FaultMaintenance, Match: "z1 " + webFMRI, Times: 1})
	s.run("svcadm -z z1 enable " + webFMRI)
	s.pass(func(tx *world.Tx) bool {
		state, _ := smf.State(smf.Service(tx, "z1", webFMRI), tx.Now)
		return state == smf.Maintenance
	})
	want := webFMRI + " (web server)\n  Zone: z1\n State: maintenance since Fri Sep  4 01:00:18 2026\n" +
		"Reason: Start method exited with $SMF_EXIT_ERR_FATAL.\n   See: http://illumos.org/msg/SMF-8000-KS\n" +
		"   See: /zones/z1/root/var/svc/log/site-web:default.log\nImpact: This service is not running.\n"
	s.expect("svcs -x -z z1", want, "", 0)
	s.run("svcadm -z z1 disable svc:/system/manifest-import")
	got := s.run("svcs -x -z z1 svc:/system/manifest-import:default " + mainFMRI).Stdout
	for _, part := range []string{"Reason: Disabled by an administrator.\n   See: http://illumos.org/msg/SMF-8000-05\n", "Impact: None.\n"} {
		if !strings.Contains(got, part) {
			t.Errorf("no %q in %s", part, got)
		}
	}
}

// Those that wait for an instance in maintenance are counted.
func TestSvcsCountsWhoWaits(t *testing.T) {
	s := newSMFSled(t)
	s.Arm(world.Fault{Name: world.FaultMaintenance, Match: "z1 " + mainFMRI, Times: 1})
	smf.BootServices(s.Tx, "z1")
	s.pass(func(*world.Tx) bool { return false })
	got := s.run("svcs -x -z z1")
	if !strings.HasPrefix(got.Stdout, mainFMRI) || !strings.Contains(got.Stdout, "\nImpact: 3 dependent services are not running.  (Use -v for list.)\n") ||
		strings.Count(got.Stdout, "Reason: ") != 1 {
		t.Errorf("%+v", got)
	}
}

// svcadm(8).
func TestSvcadm(t *testing.T) {
	s := newSMFSled(t).boot()
	state := func(want string) {
		t.Helper()
		s.pass(func(*world.Tx) bool { return s.run("svcprop -z z1 -p restarter/state "+webFMRI).Stdout == want+"\n" })
		s.expect("svcprop -z z1 -p restarter/state "+webFMRI, want+"\n", "", 0)
	}
	s.expect("svcadm -z z1 enable -t "+webFMRI, "", "", 0)
	state("online")
	s.expect("svcprop -z z1 -c -p general/enabled "+webFMRI, "false\n", "", 0)
	s.expect("svcprop -z z1 -p general_ovr/enabled "+webFMRI, "true\n", "", 0)
	s.expect("svcadm -z z1 disable svc:/site/web", "", "", 0)
	state("disabled")
	s.expect("svcprop -z z1 -p general_ovr/enabled "+webFMRI, "", "svcprop: Couldn't find property group `general_ovr' for instance `"+webFMRI+"'.\n", 1)
	s.expect("svcadm -z z1 enable svc:/site/no", "", "svcadm: Pattern 'svc:/site/no' doesn't match any instances\n", 1)
	s.expect("svcadm -z z1 clear "+webFMRI, "", "svcadm: Instance \""+webFMRI+"\" is not in a maintenance or degraded state.\n", 1)
	s.Arm(world.Fault{Name: world.FaultMaintenance, Match: "z1 " + webFMRI, Times: 1})
	s.expect("svcadm -z z1 enable "+webFMRI, "", "", 0)
	state("maintenance")
	s.expect("svcadm -z z1 clear "+webFMRI, "", "", 0)
	state("online")
	s.expect("svcadm -z z1 restart "+webFMRI, "", "", 0)
	state("online")
	s.expect("svcadm -z nope enable web", "", "svcadm: invalid zone 'nope'\n", 1)
}
