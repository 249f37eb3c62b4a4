package commands_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/network"
	"github.com/sledctl/sledctl/test/sledtest"
)

// apart fails unless the guest NICs of an instance send from their own MAC address only,
// the first also from 10.9.0.5 and fd00:9::5 only.
func apart(s *sledtest.Operator, name string) {
	s.T.Helper()
	guests := strings.Split(s.Value("instance get "+name+" -H --columns vnics"), ",")[1:]
	if len(guests) == 0 {
		s.T.Fatal("no guest NIC")
	}
	err := s.World().Update(s.T.Context(), func(tx *world.Tx) error {
		for _, g := range guests {
			l := network.FindLink(tx, g)
			if l == nil || l.Zone == "" {
				s.T.Fatalf("no zone has %s: %+v", g, l)
			}
			own := g == guests[0]
			if limited := strings.TrimSpace(l.Properties["maxbw"]); limited != map[bool]string{true: "100"}[own] {
				s.T.Errorf("%s is limited to %q Mbit/s", g, limited)
			}
			if !sends(l, l.MAC, "10.9.0.5") || !sends(l, l.MAC, "fd00:9::5") {
				s.T.Errorf("%s does not send from its own addresses: %v", g, l.Properties)
			}
			if sends(l, "02:08:20:00:00:99", "10.9.0.5") {
				s.T.Errorf("%s sends from another MAC address: %v", g, l.Properties)
			}
			if sends(l, l.MAC, "10.9.0.6") == own {
				s.T.Errorf("%s sends from another IP address: %v", g, own)
			}
		}
		return nil
	})
	if err != nil {
		s.T.Fatal(err)
	}
}

// ways are those on which a VM comes to run with the NICs of its guest, and what is
// typed on each: Z is its zone, G its first guest VNIC. The sled reboots at a line
// that says so.
func ways() map[string][]string {
	const ensure = "instance ensure web1 --nic over=net0,max-bw=100,allow-ip=fd00:9::5,allow-ip=10.9.0.5 --nic over=net1,vlan=7"
	return map[string][]string{
		"ensured": {ensure},
		"by single steps": {
			"vnic create --instance web1 --nic over=net0,max-bw=100,allow-ip=10.9.0.5,allow-ip=fd00:9::5", "zone create --instance web1", "zone boot --instance web1", "zone address --instance web1",
			"propolis start --instance web1", "propolis ensure --instance web1", "propolis run --instance web1",
		},
		"started again":               {ensure, "instance stop web1", "instance start web1"},
		"the guest reboots":           {ensure, "instance reboot web1"},
		"rebuilt":                     {ensure, "instance ensure web1 --cpus 3 --recreate"},
		"the sled reboots":            {ensure, "REBOOT", "bootstrap", "instance ensure web1"},
		"its zone was rebooted":       {ensure, "$ zoneadm -z Z reboot", "instance ensure web1"},
		"another program took it off": {ensure, "$ dladm reset-linkprop -t -p protection G", ensure},
		"another program freed it":    {ensure, "$ dladm reset-linkprop -t -p maxbw G", ensure},
		"its limits were others": {
			"instance ensure web1 --nic over=net0,max-bw=900,allow-ip=10.9.0.6 --nic over=net1,vlan=7,max-bw=5,allow-ip=10.9.0.7", ensure,
		},
		"another program held it to more": {ensure, "$ dladm set-linkprop -t -p maxbw=50M G", ensure},
		"adopted": {
			ensure, "LOST", "bootstrap --new-ledger", "instance adopt web1", "$ dladm reset-linkprop -t -p protection G", "instance ensure web1",
		},
		"its zone was halted":      {ensure, "$ zoneadm -z Z halt", "instance ensure web1"},
		"its Propolis was stopped": {ensure, "$ svcadm -z Z disable svc:/site/sledctl/propolis-server:default", "instance ensure web1"},
	}
}

// typed types a line of a way.
func typed(t *testing.T, s *sledtest.Operator, line string) {
	t.Helper()
	command, tool := strings.CutPrefix(line, "$ ")
	switch {
	case line == "REBOOT":
		if err := s.Reboot(t.Context()); err != nil {
			t.Fatal(err)
		}
	case line == "LOST":
		s.LoseLedger()
	case tool:
		zone := s.Value("instance get web1 -H --columns zone")
		guest := strings.Split(s.Value("instance get web1 -H --columns vnics"), ",")[1]
		s.Command(strings.NewReplacer(" Z", " "+zone, " G", " "+guest).Replace(command))
	default:
		s.Run(line)
	}
}

// A machine that comes from another sled is held to its limits before it runs here.
func TestAGuestThatMovesSendsAsNobodyElse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := sledtest.NewMoving(t).Open(t)
		m.Source.Run("instance ensure web3 --nic over=net0,max-bw=100,allow-ip=10.9.0.5,allow-ip=fd00:9::5")
		apart(m.Source, "web3")
		m.Source.Run("instance migrate web3 --to-command there")
		apart(m.Target, "web3")
		held := m.Target.Run("instance get web3 --diff")
		guest := strings.Split(m.Target.Value("instance get web3 -H --columns vnics"), ",")[1]
		m.Target.Command("dladm reset-linkprop -t -p protection " + guest)
		if told := m.Target.Run("instance get web3 --diff"); strings.Contains(held, "mac-nospoof") || !strings.Contains(told, guest+", without mac-nospoof") {
			t.Errorf("held:\n%s\nnot held:\n%s", held, told)
		}
	})
}

// On every way up a guest NIC is held to its MAC address: a halt of its zone has taken
// that off, also one by another program.
func TestAGuestSendsAsNobodyElse(t *testing.T) {
	for name, lines := range ways() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := sledtest.New(t, sledtest.Small(), "")
				s.Run("bootstrap")
				for _, line := range lines {
					typed(t, s, line)
				}
				apart(s, "web1")
			})
		})
	}
}

// sends says whether a packet leaves a link: mac_protect_check of
// usr/src/uts/common/io/mac/mac_protect.c drops it if the link's protection says so.
// The packet comes from a MAC address, padded, and from an IP address.
func sends(l *world.Link, mac, ip string) bool {
	held := strings.Split(l.Properties["protection"], ",")
	allowed := strings.Split(l.Properties["allowed-ips"], ",")
	return (mac == l.MAC || !slices.Contains(held, "mac-nospoof")) &&
		(!slices.Contains(held, "ip-nospoof") || slices.Contains(allowed, ip))
}
