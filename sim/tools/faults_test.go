package tools

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/boot"
)

// arm is sim fault add, with --times 1.
func (s *zoneSled) arm(f world.Fault) {
	s.t.Helper()
	f.Times = 1
	s.change(func(tx *world.Tx) { tx.Arm(f) })
}

// A zoneadm(8) that SIGKILL ends while it installs leaves the zone incomplete
// (install_func in usr/src/cmd/zoneadm/zoneadm.c); a command that is one change
// has made it.
func TestACommandCanBeKilledHalfWay(t *testing.T) {
	s := newZoneSled(t, boot.Options{})
	s.must("zfs create -o mountpoint=/zones rpool/zones")
	s.configure("z1", "sparse", "")
	s.arm(world.Fault{Name: world.FaultKilled, Match: "zoneadm z1 install"})
	if got := s.run("zoneadm -z z1 install", ""); got.Exit != 137 {
		t.Errorf("exit %d, %s", got.Exit, got.Stderr)
	}
	if got := s.zone("z1").State; got != world.ZoneIncomplete {
		t.Errorf("the zone is %s", got)
	}
	s.must("zoneadm -z z1 uninstall -F", "zoneadm -z z1 install")

	s.arm(world.Fault{Name: world.FaultKilled, Match: "zfs create"})
	if got := s.run("zfs create rpool/a", ""); got.Exit != 137 {
		t.Errorf("exit %d, %s", got.Exit, got.Stderr)
	}
	s.must("zfs list -H rpool/a")
}

// A boot that fails once the zone is ready takes it down again (zone_bootup and
// bringup_failure_recovery in usr/src/cmd/zoneadmd/zoneadmd.c).
func TestABootCanFailAfterTheZoneIsReady(t *testing.T) {
	s := sparseSled(t, "")
	s.arm(world.Fault{Name: world.FaultBoot, Match: "zoneadm z1 boot", Text: "could not exec init"})
	got := s.run("zoneadm -z z1 boot", "")
	if got.Exit != 1 || !strings.Contains(got.Stderr, "zone 'z1': could not exec init\n") {
		t.Errorf("exit %d, %q", got.Exit, got.Stderr)
	}
	if z := s.zone("z1"); z.State != world.ZoneInstalled || z.Kernel != nil {
		t.Errorf("the zone is %s, in the kernel: %t", z.State, z.Kernel != nil)
	}
	s.must("zoneadm -z z1 boot")
}

// svc.configd that takes its time, and services that start late or stay in
// transition: svcs(1) shows "*" behind the state of such a one.
func TestServicesCanBeSlow(t *testing.T) {
	const singleUser = "svc:/milestone/single-user:default"
	for name, c := range map[string]struct {
		fault         world.Fault
		before, after string // what svcs shows of the milestone until, and from, Delay later
	}{
		"door":      {world.Fault{Name: world.FaultSlowDoor, Match: "z1"}, "", "online"},
		"milestone": {world.Fault{Name: world.FaultSlowMilestone, Match: "z1"}, "-", "online"},
		"method":    {world.Fault{Name: world.FaultSlowMethod, Match: "z1 " + singleUser}, "offline*", "online"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := sparseSled(t, "")
				c.fault.Delay = time.Minute
				s.arm(c.fault)
				s.must("zoneadm -z z1 boot")
				time.Sleep(59 * time.Second)
				got := s.run("svcs -z z1 -H -o state "+singleUser, "")
				if before := strings.TrimSpace(got.Stdout); before != c.before {
					t.Errorf("before: %q, %q", before, got.Stderr)
				}
				time.Sleep(2 * time.Second)
				if after := strings.TrimSpace(s.run("svcs -z z1 -H -o state "+singleUser, "").Stdout); after != c.after {
					t.Errorf("afterwards: %q", after)
				}
			})
		})
	}
}

// A disk that goes, or fails, while a command runs.
func TestADiskCanGoUnderACommand(t *testing.T) {
	for _, name := range []string{world.FaultLoseDisk, world.FaultFailDisk} {
		s := newZoneSled(t, boot.Options{})
		var disk, pool string
		s.change(func(tx *world.Tx) { disk, pool = tx.State.Disks[2].Name, tx.State.Disks[2].Pool })
		s.arm(world.Fault{Name: name, Match: "zfs create", Text: disk})
		got := s.run("zfs create "+pool+"/a", "")
		if got.Exit != 1 || got.Stderr != "cannot create '"+pool+"/a': pool I/O is currently suspended\n" {
			t.Errorf("%s: exit %d, %q", name, got.Exit, got.Stderr)
		}
	}
}
