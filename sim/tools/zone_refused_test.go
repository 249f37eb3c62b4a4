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
		"shared":  "set ip-type=shared ; add net ; set physical=net1 ; set address=10.0.0.1/24 ; end",
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
zoneadm list -i
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
zoneadm -z shared clone base
zoneadm -z demand clone base
`
