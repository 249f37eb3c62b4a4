package commands_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/sledtest"
)

const oneSpare = sledtest.TunedConfig + "\n[instance]\nspares = 1\n"

// aSpare is a sled with one spare on its one pool.
func aSpare(t *testing.T, o sim.Options) again {
	t.Helper()
	return aSpareAs(t, o, oneSpare)
}

// aSpareAs is aSpare with a configuration of one spare.
func aSpareAs(t *testing.T, o sim.Options, config string) again {
	t.Helper()
	s := again{Operator: sledtest.New(t, o, config), mounted: true}
	s.Run("bootstrap")
	s.zone = "propolis_instance_" + between(s.Run("zone list -H -o name"), "propolis_instance_", "\n")
	s.base = "propolis_base_" + between(s.Run("zone list -H -o name"), "propolis_base_", "\n")
	pool := between(s.Run("base list -o json"), `"pool":"`, `"`)
	s.dataset = between(s.Run("base list -o json"), `"dataset":"`, `"`)
	s.dataset = strings.TrimSuffix(s.dataset, s.base) + s.zone
	s.root = "/pool/ext/" + strings.TrimPrefix(pool, "oxp_") + "/crypt/zone/" + s.zone + "/root"
	return s
}

// TestASpareThatWasTamperedWithIsNotTaken changes something of a spare: the VM is cloned, and
// the spare is removed.
func TestASpareThatWasTamperedWithIsNotTaken(t *testing.T) {
	t.Parallel()
	for name, c := range tamperings() {
		t.Run(name, func(t *testing.T) {
			sledtest.Sample(t, name)
			s := aSpare(t, sledtest.Small())
			spare := s.zone
			c.tamper(s)
			kept := strings.Contains(s.Run("reap -n -H"), spare+"\tspare\t-\tof pool ")
			if removed := c.why != "" && strings.Contains(s.Run("reap -n -H"), "\tto remove\ta spare of pool ") && strings.Contains(s.Run("reap -n -H"), c.why); kept == removed || kept != (c.why == "") {
				t.Errorf("reap: %s", s.Run("reap -n -H"))
			}
			s.Run("instance ensure web1")
			taken := !strings.Contains(s.Run("trace"), " clone ")
			s.find()
			if taken != (c.why == "") || taken != (s.zone == spare) {
				t.Errorf("taken %v, in zone %s", taken, s.zone)
			}
			s.untouched(t)
			s.Run("bootstrap")
			if left := s.Run("reap -n -H"); strings.Contains(left, "to remove") || strings.Count(left, "\tspare\t") != 1 || c.why != "" && strings.Contains(left, spare) {
				t.Errorf("left: %s", left)
			}
			s.Run("instance delete web1")
		})
	}
}

// TestTheRecordOfASpareGoesWithItsZone deletes the zone of a spare by hand, also by a run
// that is killed at each of its changes and is repeated: no record is left for bootstrap or reap.
func TestTheRecordOfASpareGoesWithItsZone(t *testing.T) {
	t.Parallel()
	points := 1
	for at := 0; at <= points; at++ { // 0: it is counted, and not killed
		s := aSpare(t, sledtest.Small())
		line := "zone delete " + s.zone
		dying := host.Crash(s.Host(), at, host.CrashBefore)
		s.On(t.Context(), dying, line)
		if at == 0 {
			points = dying.Points()
		}
		s.Run(line)
		s.Run(line)
		if left := s.Run("reap -n -H"); strings.Contains(left, "\tspare") || strings.Contains(left, "record\t") {
			t.Errorf("killed at %d: left %s", at, left)
		}
		for key := range s.Facts() {
			if strings.HasPrefix(key, "spare/") {
				t.Errorf("killed at %d: %s is left", at, key)
			}
		}
		if made := s.Run("bootstrap -H --columns part,detail"); !strings.Contains(made, "1 wanted, created 1") {
			t.Errorf("killed at %d: %s", at, made)
		}
	}
}

// TestAVMFromASpareIsUpSooner holds how long it takes with latencies as they were published.
func TestAVMFromASpareIsUpSooner(t *testing.T) {
	t.Parallel()
	for name, disk := range map[string]string{"none": "", "volume": " --disk rpool/volumes/web1", "file": " --disk /data/web1.img", "read-only file": " --disk /data/cd.iso,readonly"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := aSpare(t, sim.Options{Seed: 1, M2: 1, U2: 1, Latency: "helios2021"})
				disks(s.Operator)
				start := time.Now()
				s.Run("instance ensure web1 --nic over=net0" + disk)
				if took := time.Since(start); took > 2700*time.Millisecond {
					t.Errorf("took %s", took)
				} else {
					t.Logf("took %s", took)
				}
			})
		})
	}
}

// Those that come up at once take different spares.
func TestASpareIsTakenOnce(t *testing.T) {
	t.Parallel()
	s := sledtest.New(t, sledtest.Small(), strings.Replace(oneSpare, "spares = 1", "spares = 3", 1))
	s.Run("bootstrap")
	for _, name := range []string{"web1", "web2", "web3", "web4"} {
		s.Run("instance ensure " + name)
	}
	s.Run("instance stop --all")
	s.Run("bootstrap")
	if out := s.Run("instance ensure --all -H --columns name,state"); strings.Count(out, "\trunning\n") != 4 {
		t.Error(out)
	}
	zones := map[string]bool{}
	for zone := range strings.Lines(s.Run("instance list -H --columns zone")) {
		zones[zone] = true
	}
	if len(zones) != 4 || strings.Contains(s.Run("reap -n -H"), "\tspare\t") {
		t.Errorf("zones %v\n%s", zones, s.Run("reap -n -H"))
	}
}

// Explain shows what is then done with a spare.
func TestExplainIsWhatIsDoneWithASpare(t *testing.T) {
	t.Parallel()
	s := sledtest.New(t, sledtest.Small(), oneSpare)
	disks(s)
	s.Run("bootstrap")
	s.Run("reap --all --yes")
	explains(s, "bootstrap")
	explains(s, "instance ensure web1 --nic over=net0 --disk rpool/volumes/web1 --disk /data/cd.iso,readonly")
	explains(s, "bootstrap")
}

// A base goes with its spares; one that a VM has keeps it.
func TestABaseIsRetiredWithItsSpares(t *testing.T) {
	t.Parallel()
	s := aSpare(t, sledtest.Small())
	explains(s.Operator, "base retire "+s.base)
	if left := s.Run("reap -n -H"); strings.Contains(left, "propolis_") && strings.Contains(left, "zone\t") {
		t.Errorf("left: %s", left)
	}
	s.Run("bootstrap")
	s.Run("instance ensure web1")
	s.Run("bootstrap")
	base := "propolis_base_" + between(s.Run("zone list -H -o name"), "propolis_base_", "\n")
	if a := s.Try("base retire " + base); a.Exit != 8 || strings.Count(s.Run("reap -n -H"), "\tspare\t") != 1 {
		t.Errorf("exit %d: %s%s", a.Exit, a.Errs, s.Run("reap -n -H"))
	}
}

// An agent makes the spares that are missing, boots what is to be booted, and does neither where
// there are enough.
func TestTheAgentFillsUpSpares(t *testing.T) {
	for name, c := range map[string]struct{ config, sign string }{
		"not booted": {oneSpare, "\tspare\t"}, "booted": {bootedSpare, ", booted, for the next new VM"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := aSpareAs(t, sledtest.Small(), c.config)
				s.Lobby = &sledtest.Lobby{}
				defer s.StartAgent(t, s.Host()).Stop()
				s.Run("instance ensure web1")
				if s.find(); strings.Contains(s.Run("reap -n -H"), "\tspare\t") {
					t.Error("there is one before the agent made it")
				}
				time.Sleep(15 * time.Second)
				if out := s.Run("reap -n -H"); strings.Count(out, c.sign) != 1 {
					t.Errorf("there is none: %s", out)
				}
				before := s.Comparable()
				time.Sleep(time.Minute)
				s.Same(before, "an agent with nothing to fill up")
			})
		})
	}
}

// One that could not be made is not tried every ten seconds, but once something is new.
func TestTheAgentDoesNotInsistOnASpare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := aSpare(t, sledtest.Small())
		s.Lobby = &sledtest.Lobby{}
		s.Run("instance ensure web1")
		s.Arm(world.Fault{Name: world.FaultFail, Match: "zoneadm clone", Times: 1, Exit: 1, Text: "the injected failure"})
		defer s.StartAgent(t, s.Host()).Stop()
		spares := func() int { return strings.Count(s.Run("reap -n -H"), "\tspare\t") }
		if time.Sleep(time.Minute); spares() != 0 {
			t.Error("it was tried again")
		}
		s.Run("instance stop web1")
		if time.Sleep(15 * time.Second); spares() != 1 {
			t.Error("it was not tried again although the ledger has changed")
		}
	})
}

// rebootedSpare is a sled with a spare from before a reboot, in which bootstrap has unlocked the
// pools.
func rebootedSpare(t *testing.T) again {
	t.Helper()
	s := aSpare(t, sledtest.Small())
	if err := s.Reboot(t.Context()); err != nil {
		t.Fatal(err)
	}
	if out := s.Run("reap -n -H"); strings.Contains(out, s.zone+"\torphan") {
		t.Errorf("before its pool is unlocked: %s", out)
	}
	s.Run("bootstrap")
	s.mounted = false
	return s
}

// A spare outlives a reboot of the sled where it is proven to be as it was cloned: what was done
// to it while the sled was off is rolled back, or bootstrap makes another.
func TestASpareOutlivesAReboot(t *testing.T) {
	t.Parallel()
	for name, c := range tamperings() {
		t.Run(name, func(t *testing.T) {
			sledtest.Sample(t, name)
			s := rebootedSpare(t)
			spare := s.zone
			c.tamper(s)
			if kept := strings.Contains(s.Run("reap -n -H"), spare+"\tspare\t-\tof pool "); kept != (c.why == "") {
				t.Errorf("kept %v: %s", kept, s.Run("reap -n -H"))
			}
			s.Run("instance ensure web1 --nic over=net0")
			taken := !strings.Contains(s.Run("trace"), " clone ")
			if s.find(); taken != (c.why == "") || taken != (s.zone == spare) {
				t.Errorf("taken %v, in zone %s", taken, s.zone)
			}
			s.untouched(t)
			s.Run("bootstrap")
			if left := s.Run("reap -n -H"); strings.Contains(left, "to remove") || spares(s.Operator) != 1 {
				t.Errorf("left: %s", left)
			}
			s.Run("instance delete web1")
		})
	}
}

// Explain shows what is then done with a spare from before a reboot, also that its root is
// mounted.
func TestExplainIsWhatIsDoneWithASpareFromBeforeAReboot(t *testing.T) {
	t.Parallel()
	s := rebootedSpare(t)
	explains(s.Operator, "instance ensure web1 --nic over=net0")
	if trace := s.Run("trace"); !strings.Contains(trace, "mount -F zfs") || strings.Contains(trace, " clone ") {
		t.Error(trace)
	}
	s.Run("instance stop web1")
	explains(s.Operator, "instance start web1")
}
