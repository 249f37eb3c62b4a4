package tools

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/boot"
	"github.com/sledctl/sledctl/sim/world/network"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

// Booting and halting: usr/src/cmd/zoneadmd/zoneadmd.c and vplat.c.

// sparseSled has the base and the installed zone z1 with the link v0 and a
// loopback mount.
func sparseSled(t *testing.T, latency string) *zoneSled {
	t.Helper()
	s := newZoneSled(t, boot.Options{Latency: latency}).base("sparse")
	s.must("dladm create-vnic -t -l net0 v0")
	s.configure("z1", "sparse", "add net ; set physical=v0 ; end ; "+
		"add fs ; set dir=/opt/oxide/propolis-server ; set special=/opt/oxide/propolis-server ; set type=lofs ; add options ro ; end")
	s.must("zoneadm -z z1 clone base")
	return s
}

func (s *zoneSled) state(name, want string) {
	s.t.Helper()
	z := s.zone(name)
	if got := z.Current(); got != want {
		s.t.Errorf("%s is %s, want %s", name, got, want)
	}
}

// zone_ready and zone_bootup, zone_halt: what a zone has while it is up.
func TestAZoneThatRuns(t *testing.T) {
	s := sparseSled(t, "")
	s.replay(`$ zoneadm -z z1 boot
$ zoneadm list -p
0:global:running:/::ipkg:shared:0
2:z1:running:/zones/z1:UUID:sparse:excl:2
$ dladm show-linkprop -c -o property,value -p zone v0
zone:z1
$ zlogin z1 'zonename; cat /etc/zones/index'
z1
z1:installed:/:UUID
$ zlogin z1 'cat /opt/oxide/propolis-server/bin/propolis-server > /dev/null && echo there'
there
$ zlogin z1 'cat /usr/bin/svcs /lib/svc/seed/nonglobal.db > /dev/null && echo there'
there
$ svcs -H -o state -z z1 svc:/milestone/multi-user-server
online␠␠␠␠␠␠␠␠␠
$ zoneadm -z z1 boot
! zone 'z1': zone is already booted
$ zoneadm -z z1 halt
$ zoneadm -z z1 halt
! zone 'z1': zone is already halted
$ dladm show-linkprop -c -o property,value -p zone v0
zone:
`)
	s.change(func(tx *world.Tx) {
		if z := tx.FindZone("z1"); z.Kernel != nil || z.Daemon != nil || z.State != world.ZoneInstalled {
			t.Errorf("halted: %+v", z)
		}
		// The mounts of the root stay.
		if zfs.MountedAt(tx, "/zones/z1/root") == nil || zfs.MountedAt(tx, "/zones/z1/root/lib/svc") == nil {
			t.Error("the root is not mounted any more")
		}
	})
	s.replay(`$ zoneadm -z z1 boot
$ zoneadm list
global
z1
`)
	if id := s.zone("z1").Kernel.ID; id != 3 {
		t.Errorf("id of the second boot: %d", id)
	}
}

// A failure takes the zone down again, and the text of the last step is
// zoneadm's own.
func TestBootsThatFail(t *testing.T) {
	const failed = "zoneadm: zone 'z1': call to zoneadmd failed\n"
	for name, c := range map[string]struct {
		arrange func(s *zoneSled)
		want    string
	}{
		"link gone": {
			func(s *zoneSled) { s.must("dladm delete-vnic v0") },
			"WARNING: skipping network interface 'v0': object not found\n" +
				"zone 'z1': failed to add network device: No such file or directory\n",
		},
		"link plumbed": {
			func(s *zoneSled) { s.must("ipadm create-if -t v0") },
			"WARNING: skipping network interface 'v0' which is used in the global zone.\n" +
				"zone 'z1': WARNING: skipping network interface 'v0' which is used in the global zone\n" +
				"zone 'z1': failed to add network device: No such file or directory\n",
		},
		"init gone": {
			func(s *zoneSled) {
				s.change(func(tx *world.Tx) {
					if err := tx.Files.Remove("/sbin/init"); err != nil {
						s.t.Fatal(err)
					}
				})
			},
			"zone 'z1': not simulated: a zone without /zones/z1/root/sbin/init\n",
		},
		"init not executable": {
			func(s *zoneSled) {
				s.change(func(tx *world.Tx) {
					if err := tx.Files.Chmod("/sbin/init", 0o644); err != nil {
						s.t.Fatal(err)
					}
				})
			},
			"zone 'z1': not simulated: a zone without /zones/z1/root/sbin/init\n",
		},
	} {
		s := sparseSled(t, "")
		c.arrange(s)
		r := s.run("zoneadm -z z1 boot", "")
		if r.Exit != 1 || r.Stderr != c.want+failed || r.Stdout != "" {
			t.Errorf("%s: exit %d\n%s%s", name, r.Exit, r.Stdout, r.Stderr)
		}
		s.state("z1", world.ZoneInstalled)
		s.change(func(tx *world.Tx) {
			if l := network.FindLink(tx, "v0"); l != nil && l.Zone != "" {
				t.Errorf("%s: the link is still on loan", name)
			}
			if z := tx.FindZone("z1"); z.Daemon != nil {
				t.Errorf("%s: the daemon still has %+v", name, z.Daemon)
			}
		})
	}
}

// A root with mounts below (vplat_create); sparse does not get so far.
func TestBootsWithSomethingMountedInTheRoot(t *testing.T) {
	s := newZoneSled(t, boot.Options{}).base("kvm")
	s.must("zfs create -o mountpoint=/zones/base/root/mnt rpool/m")
	s.replay(`$ zoneadm -z base boot
! zone 'base': not simulated: zone root /zones/base/root already in use
! zoneadm: zone 'base': call to zoneadmd failed
= 1
`)
	s.state("base", world.ZoneInstalled)
}

// verify_fs_special: what is to be mounted has to be there, and zoneadm sees to
// that.
func TestBootsWithoutWhatIsMounted(t *testing.T) {
	s := sparseSled(t, "")
	s.must("zonecfg -z z1 add fs ; set dir=/x ; set special=/none ; set type=lofs ; end")
	s.replay(`$ zoneadm -z z1 boot
! could not verify fs /x: could not access /none: No such file or directory
! zoneadm: zone z1 failed to verify
= 1
$ zonecfg -z z1 remove fs dir=/x
$ zoneadm -z z1 boot
`)
}

// The daemon continues although its caller may be gone.
func TestABootOutlivesItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sparseSled(t, "helios")
		ctx, kill := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := s.d.Exec(ctx, cli.Call{Tool: "zoneadm", Args: []string{"-z", "z1", "boot"}})
			ended <- err
		}()
		time.Sleep(100 * time.Millisecond)
		s.state("z1", world.ZoneReady)
		kill()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
		time.Sleep(100 * time.Millisecond)
		s.state("z1", world.ZoneRunning)
	})
}

// The kernel waits a second before it first kills what does not go by itself
// (zone_empty in usr/src/uts/common/os/zone.c). Meanwhile the zone is
// shutting_down, and others wait.
func TestHaltTakesASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sparseSled(t, "helios")
		s.must("zoneadm -z z1 boot")
		start := time.Now()
		took := make(chan string, 2)
		halt := func(command string) {
			r := s.run("zoneadm -z z1 "+command, "")
			took <- fmt.Sprintf("%s %s %d %s", command, time.Since(start), r.Exit, r.Stderr)
		}
		go halt("halt")
		time.Sleep(100 * time.Millisecond)
		s.state("z1", world.ZoneShuttingDown)
		// A zone that is going down passes for booted, once the daemon has time.
		go halt("boot")
		if got, want := <-took, "halt 1s 0 "; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if got, want := <-took, "boot 1.2s 0 "; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// vplat_teardown that fails leaves the zone down, and halt can be tried again.
// The first case is github.com/omniosorg/illumos-omnios issue 18.
func TestHaltsThatFail(t *testing.T) {
	s := newZoneSled(t, boot.Options{Mode: world.Helios})
	s.must("dladm create-vnic -t -l net0 v0", "zfs create -o mountpoint=/zones rpool/zones")
	s.configure("z1", "omicron1", "add net ; set physical=v0 ; end")
	s.must("zoneadm -z z1 install", "zoneadm -z z1 boot", "dladm create-vnic -t -l net0 v0")
	s.replay(`$ zoneadm -z z1 halt
! zone 'z1': datalinks remain in zone after shutdown
! zone 'z1': unable to unconfigure network interfaces in zone
! zone 'z1': unable to destroy zone
= 1
$ zoneadm list -p
0:global:running:/::ipkg:shared
1:z1:down:/zones/z1:UUID:omicron1:excl
$ zoneadm -z z1 uninstall -F
! zoneadm: zone 'z1': uninstall operation is invalid for down zones.
= 1
$ dladm delete-vnic v0
$ zoneadm -z z1 halt
$ zoneadm -z z1 boot
`)
	s.change(func(tx *world.Tx) { tx.Arm(world.Fault{Name: world.FaultDown, Match: "z1 halt", Times: 1}) })
	s.replay(`$ zoneadm -z z1 halt
! zone 'z1': unable to unmount '/zones/z1/root'
! zone 'z1': unable to unmount file systems in zone
! zone 'z1': unable to destroy zone
= 1
$ zoneadm -z z1 boot
! zone 'z1': zone is already booted
$ zoneadm -z z1 halt
$ zoneadm -z z1 boot
`)
}

// reboot is halt, ready and boot in one; ready halts a zone that runs.
func TestRebootAndReady(t *testing.T) {
	s := sparseSled(t, "")
	s.must("zoneadm -z z1 boot")
	s.replay(`$ zoneadm -z z1 reboot
$ zoneadm list -p
0:global:running:/::ipkg:shared:0
3:z1:running:/zones/z1:UUID:sparse:excl:2
$ zoneadm -z z1 ready
$ zoneadm list -p
0:global:running:/::ipkg:shared:0
4:z1:ready:/zones/z1:UUID:sparse:excl:2
$ zoneadm -z z1 boot
$ zoneadm list -p
0:global:running:/::ipkg:shared:0
4:z1:running:/zones/z1:UUID:sparse:excl:2
`)
	s.must("zonecfg -z z1 select net physical=v0 ; set physical=gone0 ; end")
	s.replay(`$ zoneadm -z z1 reboot
! WARNING: skipping network interface 'gone0': object not found
! zone 'z1': failed to add network device: No such file or directory
= 1
`)
	s.state("z1", world.ZoneInstalled)
}

// zone_graceful_shutdown.
func TestShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sparseSled(t, "helios")
		s.must("zoneadm -z z1 boot")
		ended := make(chan cli.Reply, 1)
		go func() { ended <- s.run("zoneadm -z z1 shutdown", "") }()
		time.Sleep(100 * time.Millisecond)
		s.state("z1", world.ZoneRunning) // its services stop, one after the other
		if r := <-ended; r != (cli.Reply{}) {
			t.Errorf("ended with %+v", r)
		}
		s.state("z1", world.ZoneInstalled)

		s.must("zoneadm -z z1 boot")
		// A zone that does not go by itself runs on; halt does not wait for it.
		s.change(func(tx *world.Tx) {
			tx.Arm(world.Fault{Name: world.FaultShutdownTimeout, Match: "z1 shutdown", Delay: 100 * time.Second, Times: 1})
		})
		start := time.Now()
		s.replay("$ zoneadm -z z1 shutdown\n! zone 'z1': unable to shutdown zone\n= 1\n")
		if took := time.Since(start); took != 100*time.Second {
			t.Errorf("it waited %s", took)
		}
		s.state("z1", world.ZoneRunning)
		go func() { ended <- s.run("zoneadm -z z1 shutdown", "") }()
		time.Sleep(100 * time.Millisecond)
		s.must("zoneadm -z z1 halt")
		if r := <-ended; r.Exit != 0 {
			t.Errorf("the shutdown that halt cut short: %+v", r)
		}
		s.state("z1", world.ZoneInstalled)
	})
}

// A scratch zone: mount and unmount, for installers.
func TestMountAndUnmount(t *testing.T) {
	s := sparseSled(t, "")
	s.replay(`$ zoneadm -z z1 mount
$ zoneadm -z z1 list -p
2:z1:mounted:/zones/z1:UUID:sparse:excl:2
$ zoneadm -z z1 unmount
`)
	s.state("z1", world.ZoneInstalled)
	s.must("zoneadm -z z1 mark incomplete")
	s.replay(`$ zoneadm -z z1 mount
! zoneadm: zone 'z1': must be installed before mount.
= 1
`)
	s.state("z1", world.ZoneIncomplete)
}

// svc-zones calls sysboot for the zones that it does not boot: the root of
// ipkg and sparse zones is mounted, because nothing else mounts it.
func TestSysboot(t *testing.T) {
	s := sparseSled(t, "")
	s.must("zoneadm -z z1 boot")
	s.change(func(tx *world.Tx) {
		if err := boot.Reboot(tx); err != nil {
			t.Fatal(err)
		}
		if zfs.MountedAt(tx, "/zones/z1/root") != nil {
			t.Error("the root is mounted by itself")
		}
	})
	s.replay(`$ zoneadm list -c
global
base
z1
$ zoneadm -z z1 sysboot
$ zfs list -H -o mounted rpool/zones/z1/ROOT/zbe
yes
$ dladm create-vnic -t -l net0 v0
$ zoneadm -z z1 boot
$ zoneadm list -p
0:global:running:/::ipkg:shared:0
1:z1:running:/zones/z1:UUID:sparse:excl:2
`)
}

// Loopback file systems of the zone.
func TestFileSystemsOfAZone(t *testing.T) {
	s := sparseSled(t, "")
	s.change(func(tx *world.Tx) {
		for _, name := range []string{"/data", "/data/below"} {
			if err := tx.Files.Mkdir(name, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"/data/file", "/data/below/file"} {
			if err := cli.WriteFile(tx.Files, name, []byte(name+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	})
	s.must("zonecfg -z z1 add fs ; set dir=/in/data ; set special=/data ; set type=lofs ; end ; " +
		"add fs ; set dir=/in/data/below ; set special=/data/below ; set type=lofs ; add options [ro,nodevices] ; end ; " +
		"add fs ; set dir=/in/file ; set special=/data/file ; set type=lofs ; end")
	s.replay(`$ zoneadm -z z1 boot
$ zlogin z1 'cat /in/data/file /in/data/below/file /in/file'
/data/file
/data/below/file
/data/file
$ zlogin z1 'echo new > /in/data/new'
`)
	if r := s.run("zlogin z1 'echo new > /in/data/below/new'", ""); r.Exit == 0 {
		t.Errorf("written to a mount that is read-only: %+v", r)
	}
	if s.file("/data/new") != "new\n" {
		t.Error("what the zone wrote is not there")
	}
	s.must("zoneadm -z z1 halt")
	if s.file("/zones/z1/root/in/data/new") != "" {
		t.Error("the file systems are still there")
	}
}
