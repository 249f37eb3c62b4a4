package commands_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/test/sledtest"
)

const bootedSpare = oneSpare + "spares_booted = 1\n"

// aBootedSpare is aSpare with that spare booted.
func aBootedSpare(t *testing.T, o sim.Options) again {
	t.Helper()
	return aSpareAs(t, o, bootedSpare)
}

// A VM without disks has a zone that runs already; one whose zone must be configured as it
// boots does not take that.
func TestAVMFromABootedSpareIsUpAtOnce(t *testing.T) {
	t.Parallel()
	for flags, most := range map[string]time.Duration{
		"": 800 * time.Millisecond, " --nic over=net0,max-bw=100 --nic over=net1": 800 * time.Millisecond,
		" --disk rpool/volumes/web1": 0, " --disk /data/web1.img": 0, " --disk /data/cd.iso,readonly": 0, " --cpu-cap 2": 0,
	} {
		t.Run(strings.TrimSpace("plain"+flags), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := aBootedSpare(t, sim.Options{Seed: 1, M2: 1, U2: 1, Latency: "helios2021"})
				disks(s.Operator)
				spare, start := s.zone, time.Now()
				s.Run("instance ensure web1" + flags)
				took := time.Since(start)
				if s.find(); (s.zone == spare) != (most != 0) {
					t.Fatalf("in zone %s, the spare is %s", s.zone, spare)
				}
				if t.Logf("took %s", took); most != 0 && took > most {
					t.Errorf("took %s", took)
				}
				s.Run("instance ensure web1" + flags)
				s.Run("instance stop web1")
				if left := s.Run("reap -n -H"); strings.Contains(left, "to remove") || strings.Contains(left, "unknown") {
					t.Errorf("left: %s", left)
				}
			})
		})
	}
}

// Explain shows what is then done, by bootstrap and by the VM that takes it.
func TestExplainIsWhatIsDoneWithABootedSpare(t *testing.T) {
	t.Parallel()
	s := aBootedSpare(t, sledtest.Small())
	s.Run("reap --all --yes")
	explains(s.Operator, "bootstrap")
	explains(s.Operator, "instance ensure web1 --nic over=net0,allow-ip=10.9.0.5")
	explains(s.Operator, "bootstrap")
	if err := s.Reboot(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Run("bootstrap")
	s.Run("instance ensure web1") // whose bundle has the time in its name
	if trace := s.Run("trace"); strings.Contains(trace, " clone ") || !strings.Contains(trace, "site.xml") {
		t.Error(trace)
	}
}

// What somebody does to a spare that runs: halted, it is one that does not run; booted again, or
// booted by hand in a later boot of the sled, nobody takes it, and it is left alone.
func TestABootedSpareThatSomebodyHasBootedIsNotTaken(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reboots  bool
		commands []string
		taken    bool
	}{
		"halted":               {commands: []string{"zoneadm -z %s halt"}, taken: true},
		"booted again":         {commands: []string{"zoneadm -z %s halt", "zoneadm -z %s boot"}},
		"booted after a reset": {reboots: true, commands: []string{"zoneadm -z %s boot"}},
		"configured":           {commands: []string{"zonecfg -z %s set bootargs=-v"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := aBootedSpare(t, sledtest.Small())
			spare := s.zone
			if c.reboots {
				if err := s.Reboot(t.Context()); err != nil {
					t.Fatal(err)
				}
				s.WriteFile("/etc/sledctl/config.toml", oneSpare)
				s.Run("bootstrap")
				s.WriteFile("/etc/sledctl/config.toml", bootedSpare)
			}
			for _, line := range c.commands {
				s.Command(fmt.Sprintf(line, spare))
			}
			s.Run("instance ensure web1")
			if s.find(); (s.zone == spare) != c.taken {
				t.Errorf("in zone %s, the spare is %s", s.zone, spare)
			}
			if name == "configured" {
				return // bootstrap removes it
			}
			s.Run("bootstrap")
			if out := s.Run("zone list -H -o name"); !strings.Contains(out, spare) {
				t.Errorf("it is gone: %s", out)
			}
		})
	}
}

// A bootstrap that is killed while it boots a spare leaves one that nobody takes; the next one
// replaces it.
func TestASpareWhoseBootDidNotEndIsReplaced(t *testing.T) {
	t.Parallel()
	points := 1
	for at := 0; at <= points; at++ { // 0: it is counted, and not killed
		s := aBootedSpare(t, sledtest.Small())
		s.Command("zoneadm -z " + s.zone + " halt")
		s.Run("reap -n")
		spare := s.zone
		dying := host.Crash(s.Host(), at, host.CrashBefore)
		s.On(t.Context(), dying, "bootstrap")
		if at == 0 {
			points = dying.Points()
		}
		runs := strings.Contains(s.Run("zone list -H --columns name,state"), spare+"\trunning\n")
		known := strings.Contains(string(s.Facts()["spare/"+strings.TrimPrefix(spare, "propolis_instance_")]), `"zone_id"`)
		s.Run("instance ensure web1")
		if s.find(); s.zone == spare && runs && !known {
			t.Errorf("killed at %d: a spare whose boot did not end was taken", at)
		}
		t.Logf("killed at %d: it runs: %v, as recorded: %v, it was taken: %v", at, runs, known, s.zone == spare)
		s.Run("bootstrap")
		if out := s.Run("reap -n -H"); strings.Contains(out, "to remove") || strings.Count(out, ", booted, for the next new VM") != 1 {
			t.Errorf("killed at %d: left %s", at, out)
		}
		s.Run("instance delete web1")
	}
}

// Under pressure of memory a spare that runs is given up as any, and it goes with its base.
func TestABootedSpareIsGivenUp(t *testing.T) {
	t.Parallel()
	for name, c := range shortages() {
		t.Run(name, func(t *testing.T) {
			s := aBootedSpare(t, sledtest.Small())
			faults(s.Operator, c.begin)
			explains(s.Operator, "bootstrap")
			if zones := s.Run("zone list -H -o name"); strings.Contains(zones, "instance") {
				t.Error(zones)
			}
		})
	}
	t.Run("its base", func(t *testing.T) {
		s := aBootedSpare(t, sledtest.Small())
		explains(s.Operator, "base retire "+s.base)
		if left := s.Run("zone list -H"); left != "" {
			t.Error(left)
		}
	})
}

// A ledger that is older than the sled has a spare that a VM has by now, which runs or rests: it
// is left alone, and can be adopted.
func TestASpareThatAnOlderLedgerHasIsTheVMs(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]string{"booted": bootedSpare, "not booted": oneSpare} {
		for _, halted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, halted %v", name, halted), func(t *testing.T) {
				s := aSpareAs(t, sledtest.Small(), config)
				before := map[string]string{}
				for _, copied := range s.Copies() {
					data, err := host.ReadFile(s.Host().Files(), copied)
					if err != nil {
						t.Fatal(err)
					}
					before[copied] = string(data)
				}
				s.Run("instance ensure web1 --nic over=net0")
				s.find()
				if halted {
					s.Command("zoneadm -z " + s.zone + " halt")
				}
				for copied, data := range before {
					s.WriteFile(copied, data)
				}
				s.Run("ledger heal --yes --keep " + strings.Fields(s.Try("ledger check -H --columns copy").Out)[0])
				if out := s.Run("reap -n -H"); strings.Contains(out, s.zone+"\tspare") || !strings.Contains(out, s.zone+"\tadoptable") {
					t.Errorf("reap: %s", out)
				}
				s.Run("bootstrap")
				s.Run("instance adopt --all")
				if out := s.Run("instance list -H --columns zone"); !strings.Contains(out, s.zone) {
					t.Errorf("it is gone: %s", out)
				}
			})
		}
	}
}
