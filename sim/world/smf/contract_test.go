package smf_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/smf"
	"github.com/sledctl/sledctl/sim/world/zones"
)

// smf_method(7), "Exit Codes".
func TestExitCodesOfStartMethods(t *testing.T) {
	for exit, c := range map[int]struct {
		state, why string
		attempts   int
	}{
		0: {smf.Online, "dependencies_satisfied", 1},
		1: {smf.Maintenance, "fault_threshold_reached", 3}, 95: {smf.Maintenance, "method_failed", 1}, 96: {smf.Maintenance, "method_failed", 1},
		99: {smf.Maintenance, "method_failed", 1}, 100: {smf.Maintenance, "method_failed", 1},
	} {
		t.Run(fmt.Sprint(exit), func(t *testing.T) {
			z := newSMFZone(t, "none", fullRepository())
			z.shell = func(*world.Tx, smf.MethodCall) smf.MethodResult { return smf.MethodResult{Exit: exit} }
			z.write(thingPath, transient(true, "/bin/thing"))
			smf.BootServices(z.Tx, testZone)
			z.until(thingFMRI, c.state)
			s := smf.Service(z.Tx, testZone, thingFMRI)
			if s.Auxiliary != c.why || len(z.calls) != c.attempts || s.Wait != exit<<8 {
				t.Errorf("auxiliary %s after %d attempts, wait %d; want %s after %d", s.Auxiliary, len(z.calls), s.Wait, c.why, c.attempts)
			}
		})
	}
}

func TestAMethodThatHangsIsKilledAfterItsTimeout(t *testing.T) {
	z := newSMFZone(t, "none", fullRepository())
	z.shell = func(*world.Tx, smf.MethodCall) smf.MethodResult { return smf.MethodResult{Hung: true} }
	z.write(thingPath, transient(true, "/bin/thing"))
	start := z.Now
	smf.BootServices(z.Tx, testZone)
	z.until(thingFMRI, smf.Maintenance)
	if got := z.Now.Sub(start); got != 30*time.Second {
		t.Errorf("three attempts of 10 s took %v", got)
	}
}

func TestAMethodsTimeCounts(t *testing.T) {
	z := newSMFZone(t, "none", fullRepository())
	z.shell = func(*world.Tx, smf.MethodCall) smf.MethodResult { return smf.MethodResult{Took: time.Second} }
	z.write(thingPath, transient(true, "/bin/thing"))
	start := z.Now
	smf.BootServices(z.Tx, testZone)
	z.settle()
	if state, next := smf.State(smf.Service(z.Tx, testZone, thingFMRI), z.Now); state != smf.Offline || next != smf.Online {
		t.Errorf("while the method runs: %s>%s", state, next)
	}
	z.until(thingFMRI, smf.Online)
	if got := z.Now.Sub(start); got != time.Second {
		t.Errorf("took %v", got)
	}
}

// contractService is a service that leaves a server behind.
func contractService() []byte {
	return thing(`<create_default_instance enabled='true' />` + afterSetup +
		`<exec_method type='method' name='start' exec='server' timeout_seconds='0' /><exec_method type='method' name='stop' exec=':kill' timeout_seconds='0' />
<property_group name='startd' type='framework'><propval name='duration' type='astring' value='contract' /></property_group>`)
}

func propolisShell(argv ...string) smf.Shell {
	return func(tx *world.Tx, c smf.MethodCall) smf.MethodResult {
		_, stderr, exit, _ := zones.Spawn(tx, c.Zone, argv, c.Env)
		if exit != 0 {
			return smf.MethodResult{Output: stderr}
		}
		return smf.MethodResult{}
	}
}

// svc.startd(8): a contract service is restarted when its last process dies.
func TestAContractServiceIsRestartedWhenItsLastProcessDies(t *testing.T) {
	z := newSMFZone(t, "none", fullRepository())
	z.shell = propolisShell("/opt/propolis-server", "run", "/x", "0.0.0.0:12400")
	z.write(thingPath, contractService())
	smf.BootServices(z.Tx, testZone)
	z.until(thingFMRI, smf.Online)
	for n := range smf.QuickRestarts {
		p := z.State.Processes[0]
		generation := smf.Generation(smf.Service(z.Tx, testZone, thingFMRI), z.Now)
		smf.Exit(z.Tx, p.PID)
		if n < smf.QuickRestarts-1 {
			z.until(thingFMRI, smf.Online)
			if q := z.State.Processes[0]; len(z.State.Processes) != 1 || q.PID == p.PID {
				t.Fatalf("after death %d: %d processes", n+1, len(z.State.Processes))
			}
			if smf.Generation(smf.Service(z.Tx, testZone, thingFMRI), z.Now) <= generation {
				t.Fatal("the generation did not rise")
			}
			continue
		}
		z.until(thingFMRI, smf.Maintenance)
	}
	if got := smf.Service(z.Tx, testZone, thingFMRI).Auxiliary; got != "restarting_too_quickly" {
		t.Errorf("auxiliary %s", got)
	}
}

func TestSlowDeathsDoNotLeadToMaintenance(t *testing.T) {
	z := newSMFZone(t, "none", fullRepository())
	z.shell = propolisShell("/opt/propolis-server", "run", "/x", "0.0.0.0:12400")
	z.write(thingPath, contractService())
	smf.BootServices(z.Tx, testZone)
	z.until(thingFMRI, smf.Online)
	for range 3 * smf.QuickRestarts {
		z.Now = z.Now.Add(11 * time.Minute)
		smf.Exit(z.Tx, z.State.Processes[0].PID)
		z.until(thingFMRI, smf.Online)
	}
}

// A contract service whose method leaves no process behind has failed.
func TestAServerThatDoesNotStartEndsInMaintenance(t *testing.T) {
	z := newSMFZone(t, "none", fullRepository())
	z.shell = propolisShell("/opt/propolis-server", "run", "/x", "10.9.9.9:12400") // not an address of the zone
	z.write(thingPath, contractService())
	smf.BootServices(z.Tx, testZone)
	z.until(thingFMRI, smf.Maintenance)
	log, err := host.ReadFile(z.Files, z.ZonePathOf(testZone, "/var/svc/log/site-thing:default.log"))
	if err != nil || !strings.Contains(string(log), "Cannot assign requested address") {
		t.Errorf("log: %s, %v", log, err)
	}
}

func TestStoppingKillsTheContract(t *testing.T) {
	z := newSMFZone(t, "none", fullRepository())
	z.shell = propolisShell("/opt/propolis-server", "run", "/x", "0.0.0.0:12400")
	z.write(thingPath, contractService())
	smf.BootServices(z.Tx, testZone)
	z.until(thingFMRI, smf.Online)
	off := false
	smf.SetTemporary(z.Tx, testZone, thingFMRI, &off)
	z.until(thingFMRI, smf.Disabled)
	if len(z.State.Processes) != 0 {
		t.Errorf("processes left: %v", z.State.Processes)
	}
	smf.SetTemporary(z.Tx, testZone, thingFMRI, nil)
	z.until(thingFMRI, smf.Online)
	smf.HaltServices(z.Tx, testZone)
	if len(z.State.Processes) != 0 || smf.Repository(z.Tx, testZone) != nil || len(z.State.Due) != 0 {
		t.Error("the halted zone left something")
	}
}

// bin/propolis-server/src/main.rs of oxidecomputer/propolis: the command line.
func TestPropolisRefusesBadCommandLines(t *testing.T) {
	z := newSMFZone(t, "none", fullRepository())
	for args, want := range map[string]string{
		"":                                   "requires a subcommand",
		"start":                              "unrecognized subcommand 'start'",
		"run":                                "required arguments were not provided:\n  <BOOTROM_PATH>\n  <PROPOLIS_ADDR>",
		"run /x":                             "required arguments were not provided:\n  <PROPOLIS_ADDR>",
		"run /x 127.0.0.1":                   "invalid value '127.0.0.1' for '<PROPOLIS_ADDR>'",
		"run /x fd00::1:12400":               "invalid value",
		"run /x 0.0.0.0:1 x":                 "invalid value 'x' for '[VNC_ADDR]'",
		"run /x 0.0.0.0:1 0.0.0.0:2 y":       "unexpected argument 'y'",
		"run /x 0.0.0.0:1 --metric-addr":     "a value is required",
		"run /x 0.0.0.0:1 --metric-addr ::1": "invalid value '::1' for '--metric-addr",
		"run /x 0.0.0.0:1 --config x":        "unexpected argument '--config'",
	} {
		p, stderr, exit, ok := zones.Spawn(z.Tx, testZone, append([]string{"propolis-server"}, strings.Fields(args)...), nil)
		if p != nil || exit != 2 || !ok || !strings.Contains(stderr, want) {
			t.Errorf("%q: %q, exit %d; want %q", args, stderr, exit, want)
		}
	}
	for args, want := range map[string]string{
		"run /x 10.1.1.1:1":                                      "Cannot assign requested address",
		"run /x 0.0.0.0:1 --metric-addr dns":                     "cannot use metric address from DNS",
		"run /x [::]:12400 127.0.0.1:5900 --metric-addr=disable": "Cannot assign requested address",
	} {
		if p, stderr, exit, _ := zones.Spawn(z.Tx, testZone, append([]string{"propolis-server"}, strings.Fields(args)...), nil); p != nil || exit != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%q: %q, exit %d; want %q", args, stderr, exit, want)
		}
	}
	if p, stderr, _, _ := zones.Spawn(z.Tx, testZone, []string{"/a/propolis-server", "run", "/x", "[::]:12400", "--log-level", "info"}, nil); p == nil {
		t.Errorf("refused: %s", stderr)
	}
	if p, stderr, _, _ := zones.Spawn(z.Tx, testZone, []string{"propolis-server", "run", "/x", "[::]:12400"}, nil); p != nil || !strings.Contains(stderr, "Address already in use") {
		t.Errorf("second server on one port: %q", stderr)
	}
	z.State.Zones[0].Kernel.Config.Resources = nil
	if p, _, exit, _ := zones.Spawn(z.Tx, testZone, []string{"propolis-server", "run", "/x", "[::]:1"}, nil); p != nil || exit != 1 {
		t.Error("a server runs in a zone without the devices")
	}
}
