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
		<property name='ports' type='count'><count_list><value_node value='80' /><value_node value='443' /></count_list></property>
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
	r := tool(s.Tx, c)
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

// usage is what a command says of an option that it does not have.
func (s *smfSled) usage(tool string) string {
	s.t.Helper()
	return s.run(tool + " -@").Stderr
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
	s.expect("svcadm -z z1 enable web", "", "svcadm: Couldn't bind to configuration repository: repository server unavailable.\n", 1)
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
	s.expect("svcs -z z1 -H -o state,stime,fmri single-user", "-              -        "+mainFMRI+strings.Repeat(" ", 50-len(mainFMRI))+" \n", "", 0)
	s.expect("svcs -x -z z1 single-user", "", mainFMRI+" has no \"restarter\" property group; ignoring.\n", 0)
	s.expect("svcprop -z z1 -p restarter/state "+webFMRI, "", "svcprop: Pattern '"+webFMRI+"' doesn't match any entities\n", 1)
}

// svcprop(1).
func TestSvcprop(t *testing.T) {
	s := newSMFSled(t).boot()
	for line, want := range map[string]cli.Reply{
		"svcprop -z z1 -p restarter/state " + mainFMRI:         {Stdout: "online\n"},
		"svcprop -t -z z1 -p restarter/state " + mainFMRI:      {Stdout: "restarter/state astring online\n"},
		"@z1 svcprop -p config/address web":                    {Stdout: "10.0.0.1\\ \\(old\\)\n"},
		"@z1 svcprop -p config/ports web":                      {Stdout: "80 443\n"},
		"@z1 svcprop -p config/empty web":                      {Stdout: "\"\"\n"},
		"@z1 svcprop -f -p config/ports web":                   {Stdout: webFMRI + "/:properties/config/ports count 80 443\n"},
		"@z1 svcprop " + webFMRI + "/:properties/config/ports": {Stdout: "80 443\n"},
		"@z1 svcprop -p config web":                            {Stdout: "config/address astring 10.0.0.1\\ \\(old\\)\nconfig/ports count 80 443\nconfig/empty astring \"\"\n"},
		"@z1 svcprop -p config -p startd/duration web": {Stdout: "config/address astring 10.0.0.1\\ \\(old\\)\nconfig/ports count 80 443\n" +
			"config/empty astring \"\"\nstartd/duration astring transient\n"},
		"@z1 svcprop -c -p general/enabled web": {Stdout: "false\n"},
		"@z1 svcprop -C -p config/ports web": {Exit: 1,
			Stderr: "svcprop: Couldn't find property group `config' for instance `" + webFMRI + "'.\n"},
		"@z1 svcprop -p config/x web": {Exit: 1, Stderr: "svcprop: Couldn't find property `config/x' for instance `" + webFMRI + "'.\n"},
		"@z1 svcprop -p config/x svc:/site/web": {Exit: 1,
			Stderr: "svcprop: Couldn't find property `config/x' for service `svc:/site/web'.\n"},
		"@z1 svcprop -q -p config/x web":                        {Exit: 1},
		"@z1 svcprop -q -p config/ports web":                    {},
		"@z1 svcprop -p config/x nothing":                       {Exit: 1, Stderr: "svcprop: Pattern 'nothing' doesn't match any entities\n"},
		"@z1 svcprop -s running -p config/ports web":            {Stdout: "80 443\n"},
		"@z1 svcprop -s other -p config/ports web":              {Exit: 1, Stderr: "svcprop: No such snapshot.\n"},
		"@z1 svcprop -s running -p config/ports svc:/site/web":  {Exit: 1, Stderr: "svcprop: Only instances have snapshots.\n"},
		"@z1 svcprop -s running -p restarter/state single-user": {Exit: 1, Stderr: "svcprop: Couldn't find property group `restarter' for instance `" + mainFMRI + "'.\n"},
		"svcprop":                                {Exit: 2, Stderr: s.usage("svcprop")},
		"svcprop -c -C web":                      {Exit: 2, Stderr: s.usage("svcprop")},
		"svcprop -x web":                         {Exit: 2, Stderr: s.usage("svcprop")},
		"svcprop -w -p a -p b web":               {Exit: 2, Stderr: s.usage("svcprop")},
		"svcprop -w web2":                        {Exit: 1, Stderr: "svcprop: Pattern 'web2' doesn't match any entities\n"},
		"@z1 svcprop -w web":                     {Exit: 2, Stderr: "svcprop: Cannot wait for an instance.\n"},
		"@z1 svcprop -w svc:/site/web":           {Exit: 2, Stderr: "svcprop: Cannot wait for a service.\n"},
		"svcprop -p a/b/c web":                   {Exit: 2, Stderr: "svcprop: -p argument `a/b/c' has too many components.\n" + s.usage("svcprop")},
		"svcprop -p 9 web":                       {Exit: 2, Stderr: "svcprop: Invalid component name `9'.\n"},
		"@z1 svcprop -z z1 -p a web":             {Exit: 1, Stderr: "svcprop: svcprop -z may only be used from the global zone\n"},
		"svcprop -p restarter/state " + mainFMRI: {Stdout: "online\n"}, // the global zone's own
	} {
		s.expect(line, want.Stdout, want.Stderr, want.Exit)
	}
	whole := s.run("@z1 svcprop web").Stdout
	for _, line := range []string{"general/enabled boolean false\n", "config/ports count 80 443\n", "restarter/state astring disabled\n", "start/exec astring :true\n"} {
		if !strings.Contains(whole, line) {
			t.Errorf("svcprop web lacks %q in\n%s", line, whole)
		}
	}
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
	s.run("svcadm -z z1 disable -s " + webFMRI)

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
	s.expect("svcs -z z1 -H -o state,fmri,zone "+mainFMRI+" web", "disabled       "+fmri(webFMRI)+"z1               \n"+
		"online         "+fmri(mainFMRI)+"z1               \n", "", 0)
	s.expect("svcs -z z1 web", "STATE          STIME    FMRI"+strings.Repeat(" ", 46)+"\ndisabled        1:00:17 "+fmri(webFMRI)+"\n", "", 0)
	s.expect("svcs -z z1 nope", "STATE          STIME    FMRI"+strings.Repeat(" ", 46)+"\n", "svcs: Pattern 'nope' doesn't match any instances\n", 1)
	s.expect("svcs -z z1 -o nope", "", "svcs: Unknown column \"nope\".\n", 1)
	s.expect("@z1 svcs -z z1", "", "svcs: svcs -z may only be used from the global zone\n", 1)
	s.expect("svcs -L -x web", "", s.usage("svcs"), 2)
	s.expect("svcs -L -z z1 web", "/zones/z1/root/var/svc/log/site-web:default.log\n", "", 0)
	s.expect("@z1 svcs -L web", "/var/svc/log/site-web:default.log\n", "", 0)
	if got := s.run("svcs -z z1 -H -o fmri").Stdout; strings.Contains(got, webFMRI) || !strings.Contains(got, mainFMRI) {
		t.Errorf("without -a: %s", got)
	}
	if got := s.run("svcs -a -z z1 -H -o fmri").Stdout; !strings.Contains(got, webFMRI) {
		t.Errorf("with -a: %s", got)
	}
	for _, option := range []string{"-d", "-D", "-l", "-p", "-Z", "-?"} {
		s.expect("svcs "+option+" web", "", "not simulated: svcs: option "+option+"\n", 70)
	}
	s.expect("svcs -s fmri", "", "not simulated: svcs: option -s\n", 70)
	s.expect("svcs -o desc", "", "not simulated: svcs: column \"desc\"\n", 70)
	s.start("svcadm -z z1 enable web")
	s.expect("svcs -z z1 -H -o state web", "offline*       \n", "", 0)
	s.expect("svcs -z z1 -H -o state,nstate web", "offline        online        \n", "", 0)
}

// svcs(1), -x: omicron issue 11276 has a capture.
func TestSvcsExplains(t *testing.T) {
	s := newSMFSled(t).boot()
	s.expect("svcs -x -z z1", "", "", 0)
	s.run("svcadm -z z1 mark maintenance svc:/network/ip-interface-management:default")
	s.settle()
	want := "svc:/network/ip-interface-management:default (IP interface management)\n  Zone: z1\n" +
		" State: maintenance since Fri Sep  4 01:00:18 2026\nReason: Maintenance requested by an administrator.\n" +
		"   See: http://illumos.org/msg/SMF-8000-63\n" +
		"   See: /zones/z1/root/var/svc/log/network-ip-interface-management:default.log\n" +
		"Impact: This service is not running.\n"
	s.expect("svcs -x -z z1", want, "", 0)
}

// svcadm(8).
func TestSvcadm(t *testing.T) {
	s := newSMFSled(t).boot()
	s.expect("svcadm -z z1 -v enable -t web", webFMRI+" temporarily enabled.\n", "", 0)
	s.expect("svcadm -z z1 enable -s -t web", "", "", 0)
	s.expect("svcprop -z z1 -p restarter/state web", "online\n", "", 0)
	s.expect("svcprop -z z1 -c -p general/enabled web", "false\n", "", 0)
	s.expect("svcprop -z z1 -p general_ovr/enabled web", "true\n", "", 0)
	s.expect("svcadm -z z1 disable -s web", "", "", 0)
	s.expect("svcprop -z z1 -q -p general_ovr/enabled web", "", "", 1)
	s.expect("svcadm -z z1 enable nope", "", "svcadm: Pattern 'nope' doesn't match any instances\n", 1)
	s.expect("svcadm -z z1 enable default", "", s.run("svcadm -z z1 enable default").Stderr, 1)
	if got := s.run("svcadm -z z1 enable default").Stderr; !strings.HasPrefix(got, "svcadm: Pattern 'default' matches multiple instances:\n    svc:/") {
		t.Errorf("ambiguous: %q", got)
	}
	s.expect("svcadm -z z1 clear web", "", "svcadm: Instance \""+webFMRI+"\" is not in a maintenance or degraded state.\n", 1)
	s.expect("svcadm -z z1 mark maintenance web", "", "", 0)
	s.expect("svcadm -z z1 enable -s web", "", "svcadm: Instance \""+webFMRI+"\" is in maintenance state.\n", 3)
	if got := s.run("svcadm -z z1 clear '*'"); got.Exit != 1 || strings.Contains(got.Stderr, webFMRI) || !strings.Contains(got.Stderr, mainFMRI) {
		t.Errorf("only one is in maintenance: %+v", got)
	}
	s.expect("svcadm -z z1 enable -s web", "", "", 0)
	s.expect("svcadm -z z1 restart web", "", "", 0)
	s.expect("svcadm -z nope enable web", "", "svcadm: invalid zone 'nope'\n", 1)
	for line, what := range map[string]string{
		"milestone all": `subcommand "milestone"`, "refresh web": `subcommand "refresh"`, "enable -r web": "enable -r",
		"mark degraded web": "mark degraded", "mark -It maintenance web": "mark -It", "-S maintenance clear": "option -S", "-Z enable web": "option -Z",
	} {
		s.expect("svcadm "+line, "", "not simulated: svcadm: "+what+"\n", 70)
	}
	for _, line := range []string{"svcadm", "svcadm -z z1", "svcadm -z z1 enable", "svcadm -z z1 enable -x web", "svcadm -z z1 frobnicate", "svcadm -z z1 mark maintenance"} {
		s.expect(line, "", s.usage("svcadm"), 2)
	}
}

// synch.c: -s gives up on what can never come up, with its own exit code.
func TestSvcadmEnableSaysWhenDependenciesCannotBeMet(t *testing.T) {
	s := newSMFSled(t).boot()
	s.run("svcadm -z z1 disable -s system/manifest-import")
	s.expect("svcadm -z z1 enable -s web", "", "svcadm: Instance \""+webFMRI+"\" has unsatisfied dependencies.\n", 4)
	s.expect("svcadm -z z1 enable system/manifest-import", "", "", 0)
	s.expect("svcadm -z z1 enable -s web", "", "", 0)
}

// omicron issue 4252: disable -s of an instance in maintenance never returns.
func TestSvcadmDisableOfAnInstanceInMaintenanceHangs(t *testing.T) {
	s := newSMFSled(t).boot()
	s.run("svcadm -z z1 mark maintenance web")
	r := s.start("svcadm -z z1 disable -s web")
	if r.Next == nil || s.pass(r.Next.Until) {
		t.Error("it returned")
	}
	s.run("svcadm -z z1 clear web")
	if !s.pass(r.Next.Until) {
		t.Error("clearing did not free it")
	}
}

func TestSvcadmAnotherEntityStepsIn(t *testing.T) {
	s := newSMFSled(t).boot()
	s.run("svcadm -z z1 disable system/manifest-import")
	r := s.start("svcadm -z z1 enable -s -t network/dns/client")
	s.start("svcadm -z z1 disable network/dns/client")
	if !r.Next.Until(s.Tx) {
		t.Fatal("still waiting")
	}
	if got := r.Next.Do(s.Tx); got.Exit != 3 || !strings.Contains(got.Stderr, "has been disabled by another entity") {
		t.Errorf("%+v", got)
	}
}
