package tools

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/boot"
	"github.com/sledctl/sledctl/sim/world/network"
)

// The texts are those of usr/src/cmd/cmd-inet/usr.sbin/ipadm/ipadm.c and of
// ipadm_errors in usr/src/lib/libipadm/common/libipadm.c.

// newZoneNetwork has a zone z1 with the VNIC v0 over an etherstub.
func newZoneNetwork(t *testing.T) *netSled {
	n := newNetwork(t, world.OmniOS)
	n.must("global", "dladm create-etherstub -t stub0", "dladm create-vnic -t -l stub0 -m 2:8:20:15:28:cd v0")
	n.zone("z1", "v0")
	return n
}

// ipadm's die() leaves the newline on standard output.
func (n *netSled) ipFails(zone, line, text string) {
	n.t.Helper()
	n.fails(zone, "ipadm "+line, "\n", "ipadm: "+text)
}

func TestIpadmStaticIPv4(t *testing.T) {
	n := newZoneNetwork(t)
	n.must("z1", "ipadm create-addr -t -T static -a 10.0.0.5/24 v0/v4")
	n.prints("z1", "ipadm show-addr -p -o addrobj,type,state,addr v0/v4", "v0/v4:static:ok:10.0.0.5/24\n")
	n.prints("z1", "ipadm show-addr", ""+
		"ADDROBJ           TYPE     STATE        ADDR\n"+
		"lo0/v4            static   ok           127.0.0.1/8\n"+
		"v0/v4             static   ok           10.0.0.5/24\n"+
		"lo0/v6            static   ok           ::1/128\n")
	if bare := n.in("z1", "ipadm"); bare.Stdout != n.in("z1", "ipadm show-addr").Stdout {
		t.Errorf("ipadm without a subcommand is not show-addr: %q", bare.Stdout)
	}
	n.must("z1", "ipadm delete-addr v0/v4")
	n.ipFails("z1", "show-addr v0/v4", "Could not get address: Object not found")
	n.prints("z1", "ipadm show-addr -p -o addrobj v0/", "")
	n.prints("z1", "ipadm show-if -p -o ifname", "lo0\nv0\n")
}

// A table is laid out as on a real rack (omicron docs/networking.adoc).
func TestIpadmTableIsThatOfASampleOfARack(t *testing.T) {
	n := newNetwork(t, world.Helios)
	n.must("global", "dladm create-etherstub -t underlay_stub0", "dladm create-vnic -t -l net0 -m 2:8:20:1:2:3 vopte0",
		"dladm create-vnic -t -l underlay_stub0 -m 2:8:20:57:0:a9 oxControlService12")
	n.zone("oxz_nexus", "vopte0", "oxControlService12")
	n.must("oxz_nexus", "ipadm create-addr -t -T dhcp vopte0/public", "ipadm create-addr -t -T addrconf oxControlService12/ll",
		"ipadm create-addr -t -T static -a fd00:1122:3344:104::4/64 oxControlService12/omicron6")
	network.FindAddress(n.tx, "oxz_nexus", "vopte0/public").Address = "172.30.2.6/32"
	sample := networkSample(t, "omicron/ipadm__ngz2__omicron-HEAD_docs_networking.adoc.txt")
	if diff := cmp.Diff(sample, n.in("oxz_nexus", "ipadm").Stdout); diff != "" {
		t.Errorf("(-rack +here):\n%s", diff)
	}
}

func TestIpadmRefusals(t *testing.T) {
	n := newZoneNetwork(t)
	n.must("z1", "ipadm create-addr -t -T static -a 10.0.0.5/24 v0/v4")
	for line, text := range map[string]string{
		"create-if -t v0":    "Could not create v0 : Interface already exists",
		"create-if -t nope0": "Could not create nope0 : Could not open DLPI link",
		"delete-if nope0":    "Could not delete nope0: Interface does not exist",
		"create-addr -t -T static -a 10.0.0.6/24 v0/v4":    "Could not create address: Address object already exists",
		"create-addr -t -T static -a 10.0.0.5/24 v0/b":     "Could not create address: Address already in use",
		"create-addr -T static -a 10.0.0.6/24 v0/b":        "Could not create address: Persistent operation on temporary object",
		"create-addr -t -T static -a fd00::5/64 v0/v6":     "Could not create address: Can't assign requested address",
		"create-addr -t -T static -a 10.0.0.6/24 nope0/v4": "Could not create address: Could not open DLPI link",
		"delete-addr v0/nope":                              "could not delete address: Object not found",
		"show-addr v0/nope":                                "Could not get address: Object not found",
		"set-ifprop -t -p mtu=9000 -m ipv4 nope0":          "set-ifprop: mtu: Interface does not exist",
		"set-ifprop -t -p mtu=9001 -m ipv4 v0":             "set-ifprop: mtu: Invalid argument provided",
		"set-ifprop -t -p mtu=1200 -m ipv6 v0":             "set-ifprop: mtu: Invalid argument provided",
	} {
		n.ipFails("z1", line, text)
	}
	n.prints("z1", "ipadm show-addr -p -o addrobj", "lo0/v4\nv0/v4\nlo0/v6\n")
	n.prints("z1", "ipadm show-if -p -o ifname", "lo0\nv0\n")
}

// ip_sioctl_addr in usr/src/uts/common/inet/ip/ip_if.c: the first IPv6 address
// of an interface must be link-local.
func TestIpadmStaticIPv6NeedsALinkLocalAddress(t *testing.T) {
	n := newZoneNetwork(t)
	const static = "create-addr -t -T static -a fd00::5/64 v0/v6"
	n.ipFails("z1", static, "Could not create address: Can't assign requested address")
	if network.FindInterface(n.tx, "z1", "v0") != nil {
		t.Error("the interface that the failed command had made is still there")
	}
	n.must("z1", "ipadm create-addr -t -T addrconf v0/ll", "ipadm "+static)
	n.prints("z1", "ipadm show-addr -p -o type,addr v0/ll", `addrconf:fe80\:\:8\:20ff\:fe15\:28cd%v0/10`+"\n")
	n.prints("z1", "ipadm show-addr -p -o addr v0/", "fe80::8:20ff:fe15:28cd%v0/10\nfd00::5/64\n")
	n.ipFails("z1", "create-addr -t -T addrconf v0/again", "Could not create address: Addrconf already in progress")
}

func TestIpadmInTheGlobalZoneLeavesLentLinksAlone(t *testing.T) {
	n := newZoneNetwork(t)
	n.ipFails("global", "create-if -t v0", "Could not create v0 : Interface already in use")
	n.ipFails("global", "create-addr -t -T static -a 10.0.0.9/24 v0/v4", "Could not create address: Interface already in use")
	n.must("global", "dladm create-vnic -t -l stub0 v1")
	n.ipFails("z1", "create-if -t v1", "Could not create v1 : Could not open DLPI link")
	n.ipFails("global", "create-if v1", "Could not create v1 : Persistent operation on temporary object")
	n.must("global", "ipadm create-if -t v1")
	n.ipFails("global", "create-if -t stub0", "Could not create stub0 : Could not open DLPI link")
}

// ipmgmtd(8) answers every ipadm; before its service is online there is none.
func TestIpadmBeforeItsDaemonRuns(t *testing.T) {
	n := newZoneNetwork(t)
	service := n.tx.State.Services["z1"].Instances["svc:/network/ip-interface-management:default"]
	service.Timeline = []world.Timepoint{{State: "offline", From: n.tx.Now}, {State: "online", From: n.tx.Now.Add(time.Second)}}
	n.ipFails("z1", "show-addr", "Could not open handle to library - Could not communicate with ipmgmtd")
	n.tx.Now = n.tx.Now.Add(time.Second)
	n.must("z1", "ipadm create-if -t v0")
	n.tx.State.Services["z1"] = nil
	n.ipFails("z1", "show-addr", "Could not open handle to library - Could not communicate with ipmgmtd")
}

// IPADM_DAD_FOUND is no failure of create-addr, and detection that takes
// longer than a second is not waited for (i_ipadm_dad_wait in
// usr/src/lib/libipadm/common/libipadm.c).
func TestIpadmDuplicateAddresses(t *testing.T) {
	n := newZoneNetwork(t)
	n.must("global", "dladm create-vnic -t -l stub0 v1", "dladm create-vnic -t -l stub0 -v 5 v2", "dladm create-vnic -t -l net0 v3")
	n.zone("z2", "v1")
	n.zone("z3", "v2")
	n.zone("z4", "v3")
	n.must("z1", "ipadm create-addr -t -T static -a 10.0.0.5/24 v0/v4")
	n.must("z2", "ipadm create-addr -t -T static -a 10.0.0.5/24 v1/v4")
	n.must("z3", "ipadm create-addr -t -T static -a 10.0.0.5/24 v2/v4")
	n.must("z4", "ipadm create-addr -t -T static -a 10.0.0.5/24 v3/v4")
	for zone, want := range map[string]string{"z1": "ok", "z2": "duplicate", "z3": "ok", "z4": "ok"} {
		if got := n.in(zone, "ipadm show-addr -p -o state v"+string("0123"[zone[1]-'1'])+"/v4").Stdout; got != want+"\n" {
			t.Errorf("%s: %q, want %s", zone, got, want)
		}
	}
	n.must("z1", "ipadm delete-addr v0/v4")
	n.must("z2", "ipadm delete-addr v1/v4", "ipadm create-addr -t -T static -a 10.0.0.5/24 v1/v4")
	n.prints("z2", "ipadm show-addr -p -o state v1/v4", "ok\n")
}

func TestIpadmTentativeAfterTheCommandHasEnded(t *testing.T) {
	n := newZoneNetwork(t)
	n.tx.Arm(world.Fault{Name: world.FaultSlowDAD, Match: "ipadm create-addr", Times: 1, Delay: 3 * time.Second})
	began := n.tx.Now
	n.must("z1", "ipadm create-addr -t -T static -a 10.0.0.5/24 v0/v4")
	if took := n.tx.Now.Sub(began); took != time.Second {
		t.Errorf("create-addr waited %v for duplicate address detection, want 1s", took)
	}
	n.prints("z1", "ipadm show-addr -p -o state v0/v4", "tentative\n")
	n.tx.Now = began.Add(3 * time.Second)
	n.prints("z1", "ipadm show-addr -p -o state v0/v4", "ok\n")
}

// do_create_addr: with -w 0 it does not wait for the lease.
func TestIpadmDHCP(t *testing.T) {
	state := boot.Fresh(boot.Options{Latency: "helios2021"})
	n := &netSled{t, world.NewTx(state, state.Booted, nil)}
	n.must("global", "dladm create-vnic -t -l net0 v0", "dladm create-vnic -t -l net0 v1", "dladm create-etherstub -t stub0",
		"dladm create-vnic -t -l stub0 v2")
	began := n.tx.Now
	n.must("global", "ipadm create-addr -t -T dhcp v0/dhcp")
	if took := n.tx.Now.Sub(began); took != n.tx.Latency(world.StepDHCP) {
		t.Errorf("took %v", took)
	}
	r := n.run("ipadm show-addr -p -o type,state,addr v0/dhcp")
	if !strings.HasPrefix(r.Stdout, "dhcp:ok:192.168.77.") {
		t.Errorf("lease: %q", r.Stdout)
	}
	n.must("global", "ipadm create-addr -t -T dhcp -w 0 v1/dhcp")
	n.prints("global", "ipadm show-addr -p -o state,addr v1/dhcp", "down:?\n")
	n.tx.Now = n.tx.Now.Add(time.Minute)
	if a, b := n.run("ipadm show-addr -p -o addr v0/dhcp").Stdout, n.run("ipadm show-addr -p -o addr v1/dhcp").Stdout; a == b || b == "?\n" {
		t.Errorf("leases %q and %q", a, b)
	}
	n.must("global", "ipadm create-addr -t -T dhcp -w 0 v2/dhcp")
	n.tx.Now = n.tx.Now.Add(time.Hour)
	n.prints("global", "ipadm show-addr -p -o state,addr v2/dhcp", "down:?\n")
}

func TestIpadmInterfaceProperties(t *testing.T) {
	n := newZoneNetwork(t)
	n.must("z1", "ipadm create-if -t v0", "ipadm set-ifprop -t -p mtu=1500 -m ipv4 v0")
	if got := network.InterfaceMTU(n.tx, "z1", "v0", "ipv4"); got != 1500 {
		t.Errorf("MTU %d", got)
	}
}

// ipadm(8): with -t only what is active changes; the rest is in
// /etc/ipadm/ipadm.conf of the zone.
func TestIpadmPersistence(t *testing.T) {
	n := newNetwork(t, world.OmniOS)
	n.must("global", "dladm create-vnic -l net0 v0", "ipadm create-addr -T static -a 10.0.0.5/24 v0/keep",
		"ipadm create-addr -t -T static -a 10.0.0.6/24 v0/drop")
	network.RebootNetwork(n.tx)
	n.prints("global", "ipadm show-addr -p -o addrobj,state", "lo0/v4:ok\nnet0/v4:ok\nv0/keep:ok\nlo0/v6:ok\n")
}
