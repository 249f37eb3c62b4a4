package tools

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/boot"
)

// What system-unconfigure leaves.
const (
	hostsOfAClone = "#\n# Internet host table\n#\n::1\t\tlocalhost\n127.0.0.1\tlocalhost loghost\n"

	vfstabOfAClone = "#device\t\tdevice\t\tmount\t\tFS\tfsck\tmount\tmount\n#to mount\tto fsck\t\tpoint\t\ttype\tpass\tat boot\toptions\n#\n" +
		"/devices\t-\t\t/devices\tdevfs\t-\tno\t-\n/proc\t\t-\t\t/proc\t\tproc\t-\tno\t-\nctfs\t\t-\t\t/system/contract ctfs\t-\tno\t-\n" +
		"objfs\t\t-\t\t/system/object\tobjfs\t-\tno\t-\nsharefs\t\t-\t\t/etc/dfs/sharetab\tsharefs\t-\tno\t-\nfd\t\t-\t\t/dev/fd\t\tfd\t-\tno\t-\n" +
		"swap\t\t-\t\t/tmp\t\ttmpfs\t-\tyes\t-\n"

	passwordOfAClone = "$5$kr1VgdIt$OUiUAyZCDogH/uaxH71rMeQxvpDEY2yX.x0ZQRnmeb9"
)

// unconfigure_zone of omniosorg/pkg5 src/brand/ipkg/common.ksh: a clone is mounted
// while system-unconfigure is at work in it, and a mounted zone is a kernel zone.
func TestACloneIsMountedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newZoneSled(t, boot.Options{Latency: "helios2021"}).base("sparse")
		s.configure("z1", "sparse", "")
		s.configure("z2", "sparse", "")
		start, ended := time.Now(), make(chan cli.Reply, 1)
		go func() { ended <- s.run("zoneadm -z z1 clone base", "") }()
		time.Sleep(400 * time.Millisecond)
		s.state("z1", world.ZoneIncomplete)
		time.Sleep(200 * time.Millisecond)
		s.replay(`$ zoneadm list -cp
0:global:running:/::ipkg:shared:0
1:z1:mounted:/zones/z1:UUID:sparse:excl:2
-:base:installed:/zones/base:UUID:sparse:excl:1
-:z2:configured:/zones/z2::sparse:excl:3
$ zoneadm -z z1 uninstall -F
! zoneadm: zone 'z1': uninstall operation is invalid for mounted zones.
= 1
$ zoneadm -z z1 mark incomplete
! zoneadm: zone 'z1': mark operation is invalid for mounted zones.
= 1
$ zoneadm -z z2 clone z1
! zoneadm: zone 'z2': clone operation is invalid for mounted zones.
= 1
$ zoneadm -z z1 clone base
! zoneadm: zone 'z1': clone operation is invalid for mounted zones.
= 1
$ zonecfg -z z1 delete -F
! z1: Zone state is invalid for the requested operation
= 1
$ zlogin -n z1 'zonename; cat /a/etc/svc/repository.db > /dev/null && echo root; cat /usr/bin/svcs > /dev/null && echo tools'
z1
root
tools
$ zlogin -n z1 'svcs -H'
! svcs: Could not bind to repository server: repository server unavailable.  Exiting.
= 1
$ svcs -H -z z1
! svcs: Could not bind to repository server for zone z1: repository server unavailable
= 1
`)
		if r := <-ended; r != (cli.Reply{}) || time.Since(start) != 1700*time.Millisecond {
			t.Errorf("%+v after %v", r, time.Since(start))
		}
		s.state("z1", world.ZoneInstalled)
		if z := s.zone("z1"); z.Kernel != nil || z.Daemon != nil {
			t.Errorf("%+v is left", z)
		}
	})
}

// The hook's fault: the zone stays mounted.
func TestAZoneThatStaysMounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newZoneSled(t, boot.Options{}).base("sparse")
		s.configure("z2", "sparse", "")
		s.change(func(tx *world.Tx) {
			tx.Arm(world.Fault{Name: world.FaultSlowClone, Match: "z2 clone", Delay: time.Hour})
		})
		s.meanwhile("zoneadm -z z2 clone base")
		time.Sleep(time.Minute)
		s.state("z2", world.ZoneMounted)
		time.Sleep(time.Hour)
		s.state("z2", world.ZoneInstalled)
	})
}

// system-unconfigure removes the files that say where the clone comes from.
func TestACloneIsUnconfigured(t *testing.T) {
	s := newZoneSled(t, boot.Options{}).base("sparse")
	for _, name := range []string{"z1", "z2"} {
		s.configure(name, "sparse", "")
		s.must("zoneadm -z " + name + " clone base")
	}
	const root = "/zones/z1/root/etc/"
	for name, want := range map[string]string{
		"inet/hosts": hostsOfAClone, "vfstab": vfstabOfAClone, "default/init": "TZ=UTC\nCMASK=022\n", "ssh/sshd_config": "Port 22\nPermitRootLogin no\n",
	} {
		if diff := cmp.Diff(want, s.file(root+name)); diff != "" || s.file("/zones/base/root/etc/"+name) == want {
			t.Errorf("%s (-want +got): %s", name, diff)
		}
	}
	if shadow := s.file(root + "shadow"); !strings.HasPrefix(shadow, "root:"+passwordOfAClone+":20410:") || !strings.Contains(shadow, "nobody:") {
		t.Errorf("shadow: %q", shadow)
	}
	keys := map[string]bool{}
	for _, zone := range []string{"z1", "z2"} {
		for _, algorithm := range []string{"rsa", "ecdsa", "ed25519"} {
			keys[s.file("/zones/"+zone+"/root/etc/ssh/ssh_host_"+algorithm+"_key")] = true
		}
	}
	if len(keys) != 6 || keys[""] {
		t.Errorf("%d host keys, not 6", len(keys))
	}
	s.change(func(tx *world.Tx) {
		if info, err := tx.Files.Stat(root + "shadow"); err != nil || info.Mode.Perm() != 0o400 {
			t.Errorf("shadow: %v, %v", info, err)
		}
	})
}
