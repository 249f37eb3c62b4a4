package tools

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world/boot"
)

// What zoneadm and zonecfg have, and no driver, script or page uses, is refused: it is
// neither imitated nor passed over.
func TestWhatZonesHaveAndIsNotSimulatedIsRefused(t *testing.T) {
	s := newZoneSled(t, boot.Options{}).base("sparse")
	s.configure("z1", "sparse", "")
	s.configure("z2", "sparse", "")
	s.must("zoneadm -z z2 clone base")
	for name, more := range map[string]string{
		"dataset": "add dataset ; set name=rpool/d ; end", "zfs": "add fs ; set dir=/a ; set special=rpool/a ; set type=zfs ; end",
		"tmpfs":   `add fs ; set dir=/a ; set special="swap" ; set type=tmpfs ; end`,
		"allowed": "add net ; set physical=v0 ; set allowed-address=10.0.0.2/24 ; end",
		"demand":  "add net ; set physical=z1net0 ; set global-nic=net0 ; set vlan-id=7 ; end",
	} {
		s.configure(name, "sparse", more)
	}
	for line := range strings.Lines(refusedOfZones) {
		line = strings.TrimSuffix(line, "\n")
		got := s.run(line, "")
		want := cli.Reply{Stderr: "not simulated: " + strings.Replace(strings.ReplaceAll(line, "'", ""), " ", ": ", 1) + "\n", Exit: 70}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", line, diff)
		}
	}
}

const refusedOfZones = `zoneadm help
zoneadm frobnicate
zoneadm -q list
zoneadm boot
zoneadm install
zoneadm -u 00000000-0000-0000-0000-000000000001 list
zoneadm -R /z -z z1 list
zoneadm -z 1 list
zoneadm -z base list -i
zoneadm list -n
zoneadm list -pv
zoneadm list base
zoneadm -z base list -c
zoneadm -z global list -p
zoneadm -z z1 verify
zoneadm -z z1 attach
zoneadm -z z1 detach
zoneadm -z z1 move /z/z2
zoneadm -z z1 apply
zoneadm -z z2 boot now
zoneadm -z z2 boot -f
zoneadm -z z2 boot -- -m verbose
zoneadm -z z2 halt -X
zoneadm -z z2 ready now
zoneadm -z z2 reboot -- -s
zoneadm -z z2 shutdown -r
zoneadm -z z2 mount -f
zoneadm -z z1 mark broken
zoneadm -z z1 mark installed
zoneadm -z z1 install -?
zoneadm -z z1 install -x nodataset
zoneadm -z z1 install -a image
zoneadm -z global install -x
zoneadm -z z1 clone
zoneadm -z z1 clone global
zoneadm -z z1 clone SUNWblank
zoneadm -z z1 clone -X base
zoneadm -z z1 clone -m copy base
zoneadm -z z1 clone -s @golden base
zoneadm -z base uninstall
zoneadm -z base uninstall -Fn
zoneadm -z base uninstall -F now
zoneadm -z dataset clone base
zoneadm -z zfs clone base
zoneadm -z tmpfs clone base
zoneadm -z allowed clone base
zoneadm -z demand clone base
zonecfg -?
zonecfg -y z1
zonecfg -z
zonecfg -z z1 -f /etc
zonecfg -z z1 -f nowhere
zonecfg -z z1 add attr ; set name=-a ; set type=string ; set value=b ; end ; cancel
zonecfg -z z1 add attr ; set name=a ; set type=boolean ; set value=yes ; end ; cancel
zonecfg -z z1 add attr ; set name=a ; set type=uint ; set value=-1 ; end ; cancel
zonecfg -z z1 add capped-memory ; set physical=12 ; set physical=x ; set locked=x ; cancel
zonecfg -z z1 add capped-memory ; set physical=1G ; set swap=2G ; set locked=1536M ; end ; cancel
zonecfg -z z1 add capped-memory ; set physical=1G ; set swap=49M ; cancel
zonecfg -z z1 add fs ; add dir /a ; cancel
zonecfg -z z1 add fs ; add options (name=a) ; cancel
zonecfg -z z1 add fs ; set dir=[/a] ; cancel
zonecfg -z z1 add fs ; set type=a/b ; set type="" ; cancel
zonecfg -z z1 add net ; add physical net0 ; cancel
zonecfg -z z1 add net ; revert ; cancel
zonecfg -z z1 add net ; select net physical=net0 ; cancel
zonecfg -z z1 add net ; set allowed-address=-x ; cancel
zonecfg -z z1 add net ; set allowed-address=fd00::1/129 ; cancel
zonecfg -z z1 add net ; set physical=net0:1 ; cancel
zonecfg -z z1 add rctl ; add value (priv=privileged,limit=1,limit=2,action=none) ; cancel
zonecfg -z z1 add rctl ; add value (priv=privileged,ncpus=1) ; cancel
zonecfg -z z1 add rctl ; add value 5 ; cancel
zonecfg -z z1 add security-flags ; set lower=none ; set default=aslr ; set upper=all ; end ; add security-flags
zonecfg -z z1 clear max-lwps ; clear max-lwps
zonecfg -z z1 set limitpriv=default,frob
zonecfg -z z1 set limitpriv=default,proc_zone
zonecfg -z z1 delete -x
zonecfg -z z1 remove capped-cpu ; clear cpu-shares ; add dedicated-cpu ; set ncpus=4-2 ; set ncpus=2-4 ; set importance=3 ; end
zonecfg -z z1 remove capped-memory
zonecfg -z z1 remove security-flags ; remove security-flags
zonecfg -z z1 select capped-memory ; clear swap ; cancel ; info capped-memory
zonecfg -z z1 select capped-memory ; set locked=2G ; end ; clear locked ; end
zonecfg -z z1 select capped-memory ; set physical=2G ; end
zonecfg -z z1 select net match=v0
zonecfg -z z1 set -F zonepath=/x
zonecfg -z z1 set autoboot=true ; commit ; set pool=later ; revert -F ; info pool ; info autoboot
zonecfg -z z1 set autoboot=true ; revert
zonecfg -z z1 set cpu-shares=5
zonecfg -z z1 set fs-allowed="ufs, pcfs"
zonecfg -z z1 set hostid=0xcafe ; set fs-allowed=ufs,pcfs ; set bootargs="-m verbose" ; set scheduling-class=FSS
zonecfg -z z1 set ip-type=exclusive ; add net ; set physical=net0 ; set address=10.0.0.1/24 ; end
zonecfg -z z1 set max-lwps=200 ; set cpu-shares=5 ; set max-shm-memory=2G
zonecfg -z z1 set max-lwps=99
zonecfg -z z1 set max-sem-ids=7
zonecfg -z z1 set physical=net0
zonecfg -z z1 set pool=SUNWtmp
zonecfg -z z1 set zonename=-z
zonecfg -z z1 set zonename=z2
zonecfg -z z1 set zonepath=//
zonecfg help create
zonecfg info
zonecfg help
zonecfg -R /z -z z1 info
zonecfg -z global info
zonecfg -z z1 help
zonecfg -z z1 ? create
zonecfg -z z1 -f -
zonecfg -z z1 create -F -t base
zonecfg -z z1 create -F -a /nowhere
zonecfg -z z1 export -f /tmp/z1
zonecfg -z z1 set pool=later
zonecfg -z z1 set brand=omicron1
zonecfg -z z1 add
zonecfg -z z1 add admin
zonecfg -z z1 clear
zonecfg -z z1 clear autoboot
zonecfg -z z1 clear ip-type
zonecfg -z z1 add net ; exit -F
zonecfg -z z1 add net ; set physical=v9 ; end ; add net ; set physical=v9 ; end
zonecfg -z z1 add net ; set physical=v9 ; end ; remove net
zonecfg -z z1 add net ; set physical=v9 ; end ; remove -F net
zonecfg -z z1 set ip-type=shared ; add net ; set physical=net1 ; set address=10.0.0.1/24 ; end
zonecfg -z z1 add dedicated-cpu ; set ncpus=4-2 ; end
zonecfg -z z1 add capped-memory ; set physical=1G ; end ; add capped-memory
zonecfg -z z1 add capped-memory ; info
zonecfg -z z1 add fs ; set dir=/a ; clear raw
zonecfg -z z1 add fs ; remove dir /a
zonecfg -z z1 add rctl ; add value [(priv=privileged,limit=1,action=deny)]
zonecfg -z z1 add rctl ; remove value 2
`
