package tools

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/tools/zoneadm"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/boot"
)

// Installing, cloning and uninstalling by zoneadm itself: install_func,
// clone_func and uninstall_func in usr/src/cmd/zoneadm/zoneadm.c, and
// usr/src/cmd/zoneadm/zfs.c.

// The UUID and the states while a zone is installed: incomplete from its lock
// on, installed when the hook has ended well. A caller that is killed leaves
// it incomplete.
func TestAZoneIsIncompleteWhileItIsInstalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newZoneSled(t, boot.Options{Latency: "helios"})
		s.must("zfs create -o mountpoint=/zones rpool/zones")
		s.configure("z1", "sparse", "")
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.must("zoneadm -z z1 install")
		}()
		time.Sleep(time.Second)
		during := s.zone("z1")
		if during.State != world.ZoneIncomplete || during.UUID == "" {
			t.Errorf("meanwhile: %s, UUID %q", during.State, during.UUID)
		}
		start := time.Now().Add(-time.Second)
		<-done
		after := s.zone("z1")
		if after.State != world.ZoneInstalled || after.UUID != during.UUID {
			t.Errorf("afterwards: %s, UUID %q", after.State, after.UUID)
		}
		if took := time.Since(start); took != 1800*time.Millisecond {
			t.Errorf("took %s", took)
		}
	})
}

func TestAKilledInstallLeavesItsZoneIncomplete(t *testing.T) {
	for _, command := range []string{"install", "clone base"} {
		t.Run(command, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newZoneSled(t, boot.Options{Latency: "helios"}).base("sparse")
				s.configure("z1", "sparse", "")
				ctx, kill := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() {
					_, err := s.d.Exec(ctx, cli.Call{Tool: "zoneadm", Args: append([]string{"-z", "z1"}, strings.Fields(command)...)})
					ended <- err
				}()
				time.Sleep(time.Second)
				kill()
				if err := <-ended; !errors.Is(err, context.Canceled) {
					t.Errorf("ended with %v", err)
				}
				if z := s.zone("z1"); z.State != world.ZoneIncomplete {
					t.Errorf("it is %s", z.State)
				}
				// The lock is free, and uninstalling cleans up: once the hook of clone, which is
				// not killed with zoneadm, has left the zone that it has mounted.
				if command != "install" {
					s.replay(`$ zoneadm -z z1 uninstall -F
! zoneadm: zone 'z1': uninstall operation is invalid for mounted zones.
= 1
$ zoneadm -z z1 mark incomplete
! zoneadm: zone 'z1': mark operation is invalid for mounted zones.
= 1
$ zoneadm list -p
0:global:running:/::ipkg:shared:0
1:z1:mounted:/zones/z1:UUID:sparse:excl:2
`)
					time.Sleep(time.Second)
				}
				s.must("zoneadm -z z1 uninstall -F")
				if z := s.zone("z1"); z.State != world.ZoneConfigured {
					t.Errorf("it is %s", z.State)
				}
				s.must("zoneadm -z z1 " + command)
			})
		})
	}
}

// The state is looked at before the lock is taken: of two that come at once
// the second waits, and then installs over what the first one did.
func TestTwoInstallsOfOneZone(t *testing.T) {
	s := newZoneSled(t, boot.Options{Mode: world.Helios})
	s.must("zfs create -o mountpoint=/zones rpool/zones")
	s.configure("z1", "omicron1", "")
	s.change(func(tx *world.Tx) {
		install := cli.Call{Tool: "zoneadm", Args: []string{"-z", "z1", "install"}, Zone: world.GlobalZone}
		first, second := zoneadm.Run(tx, install), zoneadm.Run(tx, install)
		if first.Next.Lock != "z1" || second.Next.Lock != "z1" {
			t.Fatalf("locks %q and %q", first.Next.Lock, second.Next.Lock)
		}
		if end := toTheEnd(tx, first); end.Exit != 0 || tx.FindZone("z1").State != world.ZoneInstalled {
			t.Errorf("the first: exit %d, zone %s", end.Exit, tx.FindZone("z1").State)
		}
		// The root is there by then, which the brand does not expect.
		end := toTheEnd(tx, second)
		if end.Exit != 1 || end.Stderr != "Error: File exists (os error 17)\n" || tx.FindZone("z1").State != world.ZoneIncomplete {
			t.Errorf("the second: exit %d, %q, zone %s", end.Exit, end.Stderr, tx.FindZone("z1").State)
		}
	})
}

// toTheEnd continues a command that has its lock, without its latencies.
func toTheEnd(tx *world.Tx, r cli.Reply) cli.Reply {
	for r.Next != nil {
		next := r.Next
		r.Next = nil
		r.Add(next.Do(tx))
	}
	return r
}

// ZONE_SUBPROC_* in usr/src/uts/common/sys/zone.h.
func TestHooksThatFail(t *testing.T) {
	for _, c := range []struct {
		exit  int
		state string
	}{
		{253, world.ZoneIncomplete}, {254, world.ZoneConfigured}, {255, world.ZoneIncomplete}, {1, world.ZoneIncomplete},
	} {
		s := newZoneSled(t, boot.Options{})
		s.must("zfs create -o mountpoint=/zones rpool/zones")
		s.configure("z1", "sparse", "")
		s.change(func(tx *world.Tx) {
			tx.Arm(world.Fault{Name: world.FaultHook, Match: "z1 install", Exit: c.exit, Text: "pkg: no route", Times: 1})
		})
		r := s.run("zoneadm -z z1 install", "")
		if z := s.zone("z1"); r.Exit != 1 || z.State != c.state || !strings.HasPrefix(r.Stderr, "pkg: no route\n") {
			t.Errorf("%d: exit %d, %q, zone %s", c.exit, r.Exit, r.Stderr, z.State)
		}
		if strings.Contains(r.Stdout+r.Stderr, "usage:") != (c.exit == 253) {
			t.Errorf("%d: usage shown or not: %q", c.exit, r.Stderr)
		}
		if c.state == world.ZoneIncomplete {
			s.must("zoneadm -z z1 uninstall -F", "zoneadm -z z1 install")
		}
	}
}

// create_zfs_zonepath in zfs.c.
func TestZonepathsAreFileSystemsOfTheirOwn(t *testing.T) {
	s := newZoneSled(t, boot.Options{})
	s.must("zfs create -o mountpoint=/zones rpool/zones")
	s.configure("z1", "kvm", "")
	s.replay(`$ zoneadm -z z1 install
A ZFS file system has been created for this zone.
$ zfs get -H -o property,value sharenfs,mounted,mountpoint rpool/zones/z1
sharenfs→off
mounted→yes
mountpoint→/zones/z1
`)
	s.change(func(tx *world.Tx) {
		if info, err := tx.Files.Stat("/zones/z1"); err != nil || info.Mode.Perm() != 0o700 {
			t.Errorf("mode %v, %v", info.Mode, err)
		}
	})
	// Where the directory above is none, it is a directory.
	s.configure("z2", "kvm", "set zonepath=/plain/z2")
	s.replay(`$ zoneadm -z z2 install
`)
	s.hasDatasets("rpool/zones", "\n/z1\n")
	// One that is there is taken as it is.
	s.must("zfs create rpool/zones/z4")
	s.configure("z4", "kvm", "")
	s.change(func(tx *world.Tx) {
		if err := tx.Files.Chmod("/zones/z4", 0o700); err != nil {
			t.Fatal(err)
		}
	})
	s.replay("$ zoneadm -z z4 install\n")
}

// The source of a clone: clone_func.
func TestCloneRefusesSources(t *testing.T) {
	s := newZoneSled(t, boot.Options{}).base("sparse")
	s.configure("z1", "sparse", "")
	s.configure("other", "ipkg", "")
	s.replay(`$ zoneadm -z z1 clone nobody
! zoneadm: nobody: could not get state: No such zone configured
= 1
$ zoneadm -z z1 clone other
! zoneadm: zone other is configured; installed is required.
= 1
$ zoneadm -z other clone base
! zoneadm: Zones 'base' and 'other' have different brand types.
= 1
`)
	s.must("zoneadm -z base boot")
	s.replay(`$ zoneadm -z z1 clone base
! zoneadm: zone 'z1': clone operation is invalid for running zones.
= 1
`)
	if z := s.zone("z1"); z.State != world.ZoneConfigured {
		t.Errorf("it is %s", z.State)
	}
}

// warn_fs_match and its like, which are refused: what both zones have.
func TestCloneRefusesWhatBothZonesHave(t *testing.T) {
	const lofs = "add fs ; set dir=/a ; set special=/tmp ; set type=lofs ; end"
	for theirs, mine := range map[string]string{lofs: lofs, "add device ; set match=/dev/vmm* ; end": "add device ; set match=/dev/vmmctl ; end"} {
		s := newZoneSled(t, boot.Options{})
		s.must("zfs create -o mountpoint=/zones rpool/zones")
		s.configure("base", "sparse", theirs)
		s.configure("z1", "sparse", mine)
		s.must("zoneadm -z base install")
		s.replay("$ zoneadm -z z1 clone base\n! not simulated: zoneadm: -z z1 clone base\n= 70\n")
	}
}

// Brands without a hook for it are cloned by zoneadm itself (clone_zfs in zfs.c).
func TestCloneWithoutAHook(t *testing.T) {
	s := newZoneSled(t, boot.Options{}).base("kvm")
	s.configure("z1", "kvm", "")
	s.replay("$ zoneadm -z z1 clone base\n! not simulated: zoneadm: zones of brand kvm\n= 70\n")
	s.hasDatasets("rpool/zones", "\n/base\n")
}

// cleanup_zonepath leaves what it does not know.
func TestUninstallLeavesUserData(t *testing.T) {
	want := illumosSample(t, "zoneadm-uninstall-extra-data-omnios.txt")
	s := newZoneSled(t, boot.Options{})
	s.must("zfs create -o mountpoint=/zones rpool/zones")
	s.configure("testzone", "kvm", "")
	s.must("zoneadm -z testzone install")
	s.change(func(tx *world.Tx) {
		if err := cli.WriteFile(tx.Files, "/zones/testzone/data", nil, 0o644); err != nil {
			t.Fatal(err)
		}
	})
	r := s.run("zoneadm -z testzone uninstall -F", "")
	if diff := cmp.Diff(cli.Reply{Stderr: want}, r); diff != "" {
		t.Error(diff)
	}
	s.change(func(tx *world.Tx) {
		if isThere(tx, "/zones/testzone/root") || !isThere(tx, "/zones/testzone/data") {
			t.Error("the root is left, or the data is gone")
		}
	})
}

func TestUninstallRefuses(t *testing.T) {
	s := newZoneSled(t, boot.Options{}).base("kvm")
	s.must("zfs create -o mountpoint=/zones/base/root/data rpool/data")
	s.replay(`$ zoneadm -z base uninstall -F
! zoneadm: zone 'base': These file systems are mounted on subdirectories of /zones/base/root.
!
! zoneadm: zone 'base':   /zones/base/root/data
!
= 1
`)
	if z := s.zone("base"); z.State != world.ZoneInstalled {
		t.Errorf("it is %s", z.State)
	}
}
