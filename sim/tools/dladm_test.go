package tools

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/boot"
	"github.com/sledctl/sledctl/sim/world/network"
)

// The texts are those of usr/src/cmd/dladm/dladm.c and of dladm_status2str in
// usr/src/lib/libdladm/common/libdladm.c.

func TestDladmListsLinks(t *testing.T) {
	n := newNetwork(t, world.OmniOS)
	n.must("global", "dladm create-etherstub -t stub0", "dladm create-vnic -t -l stub0 -m 2:8:20:a1:0:f -v 7 v0", "dladm create-vnic -t -l net0 v1")
	n.prints("global", "dladm show-link -p -o link,class,mtu,state,bridge,over",
		"net0:phys:1500:up::\nnet1:phys:1500:up::\nstub0:etherstub:9000:up::\nv0:vnic:9000:up::stub0\nv1:vnic:1500:up::net0\n")
	n.prints("global", "dladm show-vnic -p -o LINK,over,speed,macaddress,macaddrtype,vid v0", `v0:stub0:0:2\:8\:20\:a1\:0\:f:fixed:7`+"\n")
	n.prints("global", "dladm show-vnic -p -o macaddress v0", "2:8:20:a1:0:f\n")
	n.prints("global", "dladm show-vnic -p -o link -l stub0", "v0\n")
	n.prints("global", "dladm show-vnic -p -o link stub0", "")
	n.prints("global", "dladm show-phys -m -p -o link,address", `net0:a8\:40\:25\:0\:7\:1`+"\n"+`net1:a8\:40\:25\:0\:7\:2`+"\n")
	n.prints("global", "dladm show-link", ""+
		"LINK        CLASS     MTU    STATE    BRIDGE     OVER\n"+
		"net0        phys      1500   up       --         --\n"+
		"net1        phys      1500   up       --         --\n"+
		"stub0       etherstub 9000   up       --         --\n"+
		"v0          vnic      9000   up       --         stub0\n"+
		"v1          vnic      1500   up       --         net0\n")
}

// A table is laid out as on a real rack (omicron docs/networking.adoc).
func TestDladmTableIsThatOfASampleOfARack(t *testing.T) {
	sample := networkSample(t, "omicron/dladm_show-vnic_--link_underlay_stub0__gz1__omicron-HEAD_docs_networking.adoc.txt")
	n := newNetwork(t, world.Helios)
	n.must("global", "dladm create-etherstub -t underlay_stub0")
	for i, line := range strings.Split(strings.TrimSpace(sample), "\n") {
		f := strings.Fields(line)
		if i == 0 {
			continue
		}
		n.must("global", "dladm create-vnic -t -l underlay_stub0 -m "+f[3]+" "+f[0])
		network.FindLink(n.tx, f[0]).MACType = f[4]
	}
	got := n.run("dladm show-vnic --link underlay_stub0").Stdout
	if diff := cmp.Diff(sample, got); diff != "" {
		t.Errorf("(-rack +here):\n%s", diff)
	}
}

func TestDladmColumnsByDistribution(t *testing.T) {
	for mode, want := range map[world.Mode]bool{world.OmniOS: true, world.SmartOS: true, world.Helios: false} {
		n := newNetwork(t, mode)
		n.must("global", "dladm create-vnic -t -l net0 v0")
		n.zone("z1", "v0")
		r := n.run("dladm show-vnic -p -o link,zone")
		if got := r.Stdout == "v0:z1\n"; got != want || !want && r.Stderr != "dladm: unknown output field: `zone'\n" {
			t.Errorf("%s: show-vnic -o link,zone: %+v", mode, r)
		}
	}
}

func TestDladmLinksThatAreNotThere(t *testing.T) {
	n := newNetwork(t, world.OmniOS)
	for line, text := range map[string]string{
		"show-link nope0":           "link nope0 is not valid: object not found",
		"show-linkprop nope0":       "link nope0 is not valid: object not found",
		"show-vnic nope0":           "invalid vnic name 'nope0': object not found",
		"set-linkprop -p mtu=1 no0": "link no0 is not valid: object not found",
		"create-vnic -l nope0 v1":   "invalid link name 'nope0'",
	} {
		n.fails("global", "dladm "+line, "", "dladm: "+text+"\n")
	}
}

// Aggregations and VLANs lie over physical links, and VNICs over aggregations.
func TestDladmMakesAggregationsAndVLANs(t *testing.T) {
	n := newNetwork(t, world.OmniOS)
	n.must("global", "dladm set-linkprop -p mtu=9000 net1", "dladm create-aggr -L active -l net1 aggr0",
		"dladm create-vnic -l aggr0 v0", "dladm create-vlan -l aggr0 -v 7 vlan7")
	n.prints("global", "dladm show-link -p -o link,class,mtu,over", "net0:phys:1500:\nnet1:phys:9000:\naggr0:aggr:9000:net1\nv0:vnic:9000:aggr0\nvlan7:vlan:9000:aggr0\n")
	n.prints("global", "dladm show-vnic -p -o link", "v0\n")
	n.fails("global", "dladm set-linkprop -t -p mtu=90000 v0", "", "dladm: warning: cannot set link property 'mtu' on 'v0': invalid argument\n")
	n.must("global", "dladm set-linkprop -t -p mtu=9000 v0")
	n.fails("global", "dladm set-linkprop -p mtu=1500 aggr0", "", "dladm: warning: cannot set link property 'mtu' on 'aggr0': link busy\n")
}

// A link goes into a zone that runs with a stack of its own, and back, until something there
// has it open.
func TestDladmLendsALinkToARunningZone(t *testing.T) {
	n := newNetwork(t, world.OmniOS)
	n.must("global", "dladm create-vnic -t -l net0 v0")
	n.tx.State.Zones = append(n.tx.State.Zones, &world.Zone{Name: "z1", Kernel: &world.Kernel{ID: 1, State: world.ZoneRunning, Config: world.Config{IPType: "exclusive"}}})
	no := func(property, why string) string {
		return "dladm: warning: cannot set link property '" + property + "' on 'v0': " + why + "\n"
	}
	n.fails("global", "dladm set-linkprop -t -p zone=nope v0", "", no("zone", "invalid value"))
	n.fails("global", "dladm set-linkprop -p zone=z1 v0", "", no("zone", "change cannot be persistent"))
	n.must("global", "dladm set-linkprop -t -p zone=z1 v0")
	n.prints("z1", "dladm show-link -p -o link", "v0\n")
	n.prints("global", "dladm show-linkprop -c -p zone -o value v0", "z1\n")
	n.fails("global", "dladm delete-vnic v0", "", "dladm: vnic deletion failed: link busy\n")
	n.tx.State.Stacks["z1"] = &world.Stack{Interfaces: []*world.Interface{{Name: "v0"}}}
	n.fails("global", "dladm reset-linkprop -t -p zone v0", "", "dladm: warning: cannot reset link property 'zone' on 'v0': link busy\n")
	delete(n.tx.State.Stacks, "z1")
	n.must("global", "dladm reset-linkprop -t -p zone v0", "dladm reset-linkprop -t -p zone v0", "dladm delete-vnic v0")
}

// An aggregation is shown as dladm shows one.
func TestDladmShowsAggregations(t *testing.T) {
	n := newNetwork(t, world.OmniOS)
	n.prints("global", "dladm show-aggr -x -p -o link,port,address", "")
	n.tx.State.Links = append(n.tx.State.Links, &world.Link{Name: "aggr0", Class: "aggr", Over: "net0,net1", MAC: "a8:40:25:00:07:01", Up: true})
	n.prints("global", "dladm show-link -p -o link,class,over aggr0", "aggr0:aggr:net0,net1\n")
	n.prints("global", "dladm show-aggr -x -p -o link,port,address",
		`aggr0::a8\:40\:25\:0\:7\:1`+"\n"+`aggr0:net0:a8\:40\:25\:0\:7\:1`+"\n"+`aggr0:net1:a8\:40\:25\:0\:7\:2`+"\n")
	n.prints("global", "dladm show-phys -m -p -o link", "net0\nnet1\n")
}

func TestDladmCreateVNICRefusals(t *testing.T) {
	n := newNetwork(t, world.OmniOS)
	n.must("global", "dladm create-etherstub -t stub0", "dladm create-vnic -t -l net0 -m 2:8:20:1:2:3 v0")
	for line, text := range map[string]string{
		"-l net0 v0":                         "vnic creation over net0 failed: object already exists",
		"-t -l net0 -m 02:08:20:01:02:03 v1": "vnic creation over net0 failed: MAC address is already in use",
		"-t -l net0 -v 1 v1":                 "VLAN over 'net0' may not use default_tag ID (see dladm(8))",
	} {
		n.fails("global", "dladm create-vnic "+line, "", "dladm: "+text+"\n")
	}
	n.fails("global", "dladm create-etherstub -t stub0", "", "dladm: etherstub creation failed: object already exists\n")
	if links := n.run("dladm show-vnic -p -o link").Stdout; links != "v0\n" {
		t.Errorf("refused creations left links: %q", links)
	}
}

// dladm_valid_linkname in usr/src/lib/libdladm/common/libdladm.c.
func TestDladmLinkNames(t *testing.T) {
	n := newNetwork(t, world.OmniOS)
	for _, name := range []string{"net", "0net", "net01", "a-b0", "vnic_", "x", "ä0"} {
		n.refuses("global", "dladm create-vnic -t -l net0 "+name)
		n.refuses("global", "dladm create-etherstub -t "+name)
	}
	for _, name := range []string{"a0", "net10", "a1.b2", "under_score0", strings.Repeat("a", 30) + "1"} {
		n.must("global", "dladm create-vnic -t -l net0 "+name)
	}
}

// Two clients of one lower link may share an address on different VLANs.
func TestDladmMACsClashPerVLAN(t *testing.T) {
	n := newNetwork(t, world.OmniOS)
	n.must("global",
		"dladm create-vnic -t -l net0 -m 2:8:20:1:2:3 -v 10 v0",
		"dladm create-vnic -t -l net0 -m 2:8:20:1:2:3 -v 11 v1",
		"dladm create-vnic -t -l net1 -m 2:8:20:1:2:3 -v 10 v2")
	n.fails("global", "dladm create-vnic -t -l net0 -m 2:8:20:1:2:3 -v 10 v3", "",
		"dladm: vnic creation over net0 failed: MAC address is already in use\n")
}

func TestDladmRandomMACs(t *testing.T) {
	n := newNetwork(t, world.OmniOS)
	n.must("global", "dladm create-vnic -t -l net0 v0", "dladm create-vnic -t -l net0 -m random v1")
	r := n.run("dladm show-vnic -p -o macaddress,macaddrtype")
	lines := strings.Split(strings.TrimSpace(r.Stdout), "\n")
	if len(lines) != 2 || lines[0] == lines[1] {
		t.Fatalf("addresses: %q", r.Stdout)
	}
	for _, l := range lines {
		if !strings.HasPrefix(l, `2\:8\:20\:`) || !strings.HasSuffix(l, ":random") {
			t.Errorf("random address: %q", l)
		}
	}
}

func TestDladmDeleteRefusals(t *testing.T) {
	n := newNetwork(t, world.OmniOS)
	n.must("global", "dladm create-etherstub -t stub0", "dladm create-vnic -t -l stub0 v0", "dladm create-vnic -t -l stub0 v1",
		"dladm create-vnic -t -l net0 v2", "ipadm create-if -t v1")
	n.zone("z1", "v0")
	for line, text := range map[string]string{
		"delete-vnic nope0":      "invalid link name 'nope0'",
		"delete-vnic stub0":      "'stub0' is not a vnic",
		"delete-etherstub v0":    "'v0' is not an etherstub",
		"delete-etherstub stub0": "vnic deletion failed: link busy",
		"delete-vnic v0":         "vnic deletion failed: link busy",
		"delete-vnic v1":         "vnic deletion failed: link busy",
	} {
		n.fails("global", "dladm "+line, "", "dladm: "+text+"\n")
	}
	n.must("global", "ipadm delete-if v1", "dladm delete-vnic v1", "dladm delete-vnic v2")
	n.prints("global", "dladm show-vnic -p -o link", "v0\n")
}

// An on-loan link stays visible in the global zone; the zone sees its own
// links only, and not what is under them (omicron docs/networking.adoc).
func TestDladmInsideAZone(t *testing.T) {
	n := newNetwork(t, world.OmniOS)
	n.must("global", "dladm create-vnic -t -l net0 v0", "dladm create-vnic -t -l net0 v1")
	n.zone("z1", "v0")
	n.prints("z1", "dladm show-link -p -o link,class,over", "v0:vnic:?\n")
	n.prints("z1", "dladm show-vnic -p -o over", "?\n")
	n.prints("z1", "dladm show-phys -m -p -o link", "")
	n.prints("global", "dladm show-link -p -o link,over v0", "v0:net0\n")
	n.prints("global", "dladm show-linkprop -c -p zone -o LINK,VALUE", "net0:\nnet1:\nv0:z1\nv1:\n")
	n.prints("global", "dladm show-linkprop -c -o value -p zone v0", "z1\n")
	n.prints("global", "dladm show-linkprop -c -o value -p zone v1", "\n")
	n.fails("z1", "dladm show-link net0", "", "dladm: link net0 is not valid: object not found\n")
	n.fails("z1", "dladm create-vnic -t -l v0 v9", "", "dladm: vnic creation over v0 failed: permission denied\n")
	n.fails("z1", "dladm delete-vnic v0", "", "dladm: vnic deletion failed: permission denied\n")
	n.fails("z1", "dladm create-etherstub -t s0", "", "dladm: etherstub creation failed: permission denied\n")
}

// illumos 10001: in the gate the name of a link that a zone has is free; then the
// zone cannot give its link back. OmniOS refuses the second one.
func TestDladmDuplicateNames(t *testing.T) {
	for mode, hazard := range map[world.Mode]bool{world.Helios: true, world.SmartOS: true, world.OmniOS: false} {
		n := newNetwork(t, mode)
		n.must("global", "dladm create-vnic -t -l net0 v0")
		n.zone("z1", "v0")
		r := n.run("dladm create-vnic -t -l net0 v0")
		if got := r.Exit == 0; got != hazard {
			t.Errorf("%s: second v0: %+v", mode, r)
		}
		stay := network.ReturnLinks(n.tx, "z1")
		if got := len(stay) == 1; got != hazard {
			t.Errorf("%s: links that stay in the zone: %v", mode, stay)
		}
	}
}

func TestDladmLinkProperties(t *testing.T) {
	n := newNetwork(t, world.OmniOS)
	n.must("global", "dladm create-etherstub stub0", "dladm create-vnic -t -l stub0 v0", "dladm set-linkprop -t -p mtu=1500 v0")
	n.prints("global", "dladm show-linkprop -c -o value -p mtu v0", "1500\n")
	n.prints("global", "dladm show-linkprop -c -o property,perm,value,default,possible -p priority v0", "priority:rw:high:high:low,medium,high\n")
	n.prints("global", "dladm show-linkprop -c -o property,perm,value,default,possible -p state v0", "state:r-:up:up:up,down\n")
	n.fails("global", "dladm set-linkprop -t -p mtu=9001 v0", "", "dladm: warning: cannot set link property 'mtu' on 'v0': invalid argument\n")
}

// A halt of the zone that has a link takes its protection off, and nothing else.
func TestDladmProtection(t *testing.T) {
	n := newNetwork(t, world.OmniOS)
	n.must("global", "dladm create-vnic -t -l net0 v0")
	n.zone("z1", "v0")
	const shows = "dladm show-linkprop -c -o property,value -p protection v0"
	n.prints("global", shows, "protection:\n")
	n.must("global", "dladm set-linkprop -t -p mtu=1400 v0", "dladm set-linkprop -t -p protection=mac-nospoof v0")
	n.prints("global", shows, "protection:mac-nospoof\n")
	n.fails("global", "dladm set-linkprop -t -p protection=all v0", "",
		"dladm: warning: link property 'protection' must be one of: mac-nospoof,restricted,ip-nospoof,dhcp-nospoof\n")
	n.must("global", "dladm reset-linkprop -t -p protection v0")
	n.prints("global", shows, "protection:\n")
	n.must("global", "dladm set-linkprop -t -p protection=mac-nospoof,restricted v0")
	n.fails("global", "dladm reset-linkprop -t -p protection v9", "", "dladm: link v9 is not valid: object not found\n")
	n.fails("z1", "dladm set-linkprop -t -p protection=restricted v0", "", "dladm: warning: cannot set link property 'protection' on 'v0': permission denied\n")
	network.ReturnLinks(n.tx, "z1")
	n.prints("global", shows, "protection:\n")
	n.prints("global", "dladm show-linkprop -c -o value -p mtu v0", "1400\n")
}

// illumos 15695: an MTU that is given at creation is sometimes not applied.
func TestDladmMTUAtCreation(t *testing.T) {
	n := newNetwork(t, world.OmniOS)
	n.must("global", "dladm create-etherstub -t stub0", "dladm create-vnic -t -l stub0 -p mtu=1500 v0")
	n.prints("global", "dladm show-linkprop -c -o value -p mtu v0", "1500\n")
	n.tx.Arm(world.Fault{Name: world.FaultMTUIgnored, Match: "dladm create-vnic", Times: 1})
	n.must("global", "dladm create-vnic -t -l stub0 -p mtu=1500 v1")
	n.prints("global", "dladm show-linkprop -c -o value -p mtu v1", "9000\n")
}

// man8/dladm.8: without -t a link is there again after a reboot, with the MAC
// address that it had; with -t it is gone.
func TestDladmPersistence(t *testing.T) {
	n := newNetwork(t, world.OmniOS)
	n.must("global", "dladm create-vnic -l net0 v0", "dladm create-vnic -t -l net0 v1", "dladm set-linkprop -p mtu=1400 v0",
		"dladm set-linkprop -t -p mtu=1300 v0")
	mac := n.run("dladm show-vnic -p -o macaddress v0").Stdout
	n.prints("global", "dladm show-vnic -p -o link", "v0\nv1\n")
	network.RebootNetwork(n.tx)
	n.prints("global", "dladm show-vnic -p -o link", "v0\n")
	n.prints("global", "dladm show-vnic -p -o macaddress v0", mac)
	n.prints("global", "dladm show-linkprop -c -o value -p mtu v0", "1400\n")
}

func TestDladmCreateVNICTakesItsTime(t *testing.T) {
	state := boot.Fresh(boot.Options{Latency: "helios2021"})
	n := &netSled{t, world.NewTx(state, state.Booted, nil)}
	n.must("global", "dladm create-vnic -t -l net0 v0")
	if took := n.tx.Now.Sub(state.Booted); took != n.tx.Latency(world.StepVNIC) {
		t.Errorf("took %v", took)
	}
}
