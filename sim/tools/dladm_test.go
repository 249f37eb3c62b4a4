package tools

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/sim/tools/cli"
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
	n.prints("global", "dladm show-etherstub -p -o link", "stub0\n")
	n.prints("global", "dladm show-phys -p -o link", "net0\nnet1\n")
	n.prints("global", "dladm show-phys -m -p -o address,inuse net0", `a8\:40\:25\:0\:7\:1:yes`+"\n")
	n.prints("global", "dladm show-link", ""+
		"LINK        CLASS     MTU    STATE    BRIDGE     OVER\n"+
		"net0        phys      1500   up       --         --\n"+
		"net1        phys      1500   up       --         --\n"+
		"stub0       etherstub 9000   up       --         --\n"+
		"v0          vnic      9000   up       --         stub0\n"+
		"v1          vnic      1500   up       --         net0\n")
	if plain, bare := n.run("dladm show-link"), n.run("dladm"); plain.Stdout != bare.Stdout {
		t.Errorf("dladm without a subcommand is not show-link: %q", bare.Stdout)
	}
}

// A table is laid out as on a real rack (omicron docs/networking.adoc).
func TestDladmTableLooksAsOnARack(t *testing.T) {
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
		if got := r.Stdout == "v0:z1\n"; got != want {
			t.Errorf("%s: show-vnic -o link,zone: %+v", mode, r)
		}
	}
}

func TestDladmParsableFaults(t *testing.T) {
	n := newNetwork(t, world.OmniOS)
	for line, text := range map[string]string{
		"show-link -p":              "-p requires -o",
		"show-phys -p":              "-p requires -o",
		"show-link -p -o all":       `"-o all" is invalid with -p`,
		"show-vnic -p":              "output fields must be specified in parsable mode",
		"show-vnic -p -o all":       "output field `all' invalid in parsable mode",
		"show-etherstub -p":         "output fields must be specified in parsable mode",
		"show-link -p -o link,x":    "unknown output field: `x'",
		"show-linkprop -c -p mtu":   "output fields must be specified in parsable mode",
		"show-link nope0":           "link nope0 is not valid: object not found",
		"show-phys nope0":           "link nope0 is not valid: object not found",
		"show-linkprop nope0":       "link nope0 is not valid: object not found",
		"show-vnic nope0":           "invalid vnic name 'nope0': object not found",
		"show-etherstub nope0":      "invalid vnic name 'nope0': object not found",
		"show-vnic net0":            "failed to show vnic 'net0': invalid argument",
		"show-link -i 1":            "the option -i can be used only with -s",
		"show-link -p -p -o link":   "the option -p cannot be specified more than once",
		"show-etherstub -l net0":    "option not supported for this command",
		"set-linkprop net0":         "link property must be specified",
		"set-linkprop -p mtu=1 no0": "link no0 is not valid: object not found",
		"show-linkprop -p =":        "invalid link properties specified",
	} {
		n.fails("global", "dladm "+line, "", "dladm: "+text+"\n")
	}
}

// Aggregations and VLANs lie over physical links, and VNICs over aggregations.
func TestDladmMakesAggregationsAndVLANs(t *testing.T) {
	n := newNetwork(t, world.OmniOS)
	for _, step := range []struct{ line, says string }{
		{"create-aggr -l net0 aggr0", "create operation failed: link busy"}, // IP uses it
		{"create-aggr -L never -l net1 aggr0", "invalid LACP mode 'never'"},
		{"create-aggr -l net9 aggr0", "invalid link name 'net9': object not found"},
		{"create-aggr -l net1 aggr", "invalid link name 'aggr'"},
		{"set-linkprop -p mtu=9000 net1", ""},
		{"create-aggr -L active -l net1 0", ""},
		{"create-aggr -l net1 aggr1", "create operation failed: link busy"},
		{"create-vnic -l net1 v0", "vnic creation over net1 failed: link busy"},
		{"create-vnic -l aggr0 v0", ""},
		{"create-vlan -l aggr0 -v 4095 vlan7", "invalid VLAN identifier '4095'"},
		{"create-vlan -l v0 -v 7 vlan7", "create operation failed: invalid argument"},
		{"create-vlan -l aggr0 -v 7 vlan7", ""},
		{"create-vlan -l aggr0 -v 7 vlan8", "create operation failed: object already exists"},
		{"create-vlan -l net0 -v 7", ""},
		{"create-vnic -l vlan7 v1", "vnic creation over vlan7 failed: invalid argument"},
		{"delete-vnic vlan7", "vnic deletion failed: object not found"},
		{"delete-aggr vlan7", "delete operation failed: invalid argument"},
		{"delete-aggr aggr0", "delete operation failed: link busy"},
	} {
		r := n.run("dladm " + step.line)
		if want := "dladm: " + step.says + "\n"; step.says != "" && r.Stderr != want || step.says == "" && r.Exit != 0 {
			t.Errorf("dladm %s: %+v, want %q", step.line, r, want)
		}
	}
	n.prints("global", "dladm show-link -p -o link,class,mtu,over", "net0:phys:1500:\nnet1:phys:9000:\naggr0:aggr:9000:net1\nv0:vnic:9000:aggr0\nvlan7:vlan:9000:aggr0\nnet7000:vlan:1500:net0\n")
	n.prints("global", "dladm show-vnic -p -o link", "v0\n")
	for _, line := range []string{"delete-vnic v0", "delete-vlan vlan7", "delete-vlan net7000", "delete-aggr aggr0"} {
		n.prints("global", "dladm "+line, "")
	}
	n.prints("global", "dladm show-link -p -o link", "net0\nnet1\n")
}

// An aggregation is shown as dladm shows one.
func TestDladmShowsAggregations(t *testing.T) {
	n := newNetwork(t, world.OmniOS)
	n.prints("global", "dladm show-aggr -x -p -o link,port,address", "")
	n.tx.State.Links = append(n.tx.State.Links, &world.Link{Name: "aggr0", Class: "aggr", Over: "net0,net1", MAC: "a8:40:25:00:07:01", Up: true})
	n.prints("global", "dladm show-link -p -o link,class,over aggr0", "aggr0:aggr:net0,net1\n")
	n.prints("global", "dladm show-aggr -x -p -o link,port,address",
		`aggr0::a8\:40\:25\:0\:7\:1`+"\n"+`aggr0:net0:a8\:40\:25\:0\:7\:1`+"\n"+`aggr0:net1:a8\:40\:25\:0\:7\:2`+"\n")
	n.prints("global", "dladm show-aggr -x aggr0", ""+
		"LINK        PORT           SPEED DUPLEX   STATE     ADDRESS            PORTSTATE\n"+
		"aggr0       --             1000Mb full    up        a8:40:25:0:7:1     --\n"+
		"            net0           1000Mb full    up        a8:40:25:0:7:1     attached\n"+
		"            net1           1000Mb full    up        a8:40:25:0:7:2     attached\n")
	n.prints("global", "dladm show-phys -p -o link", "net0\nnet1\n")
	for line, text := range map[string]string{
		"-x -p":           "-p requires -o",
		"-x -p -o all":    "\"-o all\" is invalid with -p",
		"-x -P":           "the option -P cannot be used with -x",
		"-x -L":           "the option -L cannot be used with -x",
		"-x -i 1":         "the option -i can be used only with -s",
		"-x nope0":        "non-existent aggregation 'nope0'",
		"-x net0":         "failed to show aggr net0: invalid argument",
		"aggr0":           "show-aggr: the simulated sled has it with -x only",
		"-x -p -o policy": "",
	} {
		if r := n.run("dladm show-aggr " + line); r.Exit != 1 || r.Stdout != "" || !strings.HasPrefix(r.Stderr, "dladm: "+text) {
			t.Errorf("show-aggr %s: %+v, want %q", line, r, text)
		}
	}
}

func TestDladmUsageFaultsExit1(t *testing.T) {
	n := newNetwork(t, world.OmniOS)
	for line, opens := range map[string]string{
		"nope":                        "dladm: unknown subcommand 'nope'\nusage:  dladm <subcommand> <args> ...\n",
		"create-vnic v0":              "usage:  dladm <subcommand>",
		"create-vnic v0 -l net0":      "usage:  dladm <subcommand>",
		"create-vnic -l net0":         "usage:  dladm <subcommand>",
		"create-vnic -q -l net0 v0":   "dladm: unrecognized option '-q'\nusage:     create-vnic",
		"create-vnic -l":              "dladm: option '-l' requires a value\nusage:     create-vnic",
		"delete-vnic":                 "usage:  dladm <subcommand>",
		"delete-vnic v0 v1":           "usage:  dladm <subcommand>",
		"show-link net0 net1":         "usage:  dladm <subcommand>",
		"rename-link net0":            "usage:  dladm <subcommand>",
		"create-vnic -l net0 -n 1 v0": "usage:  dladm <subcommand>",
		"create-vnic -l net0 -V 1 v0": "usage:  dladm <subcommand>",
		"create-aggr a0":              "usage:  dladm <subcommand>",
		"create-vlan -l net0 a0":      "usage:  dladm <subcommand>",
	} {
		r := n.run("dladm " + line)
		if r.Exit != 1 || r.Stdout != "" || !strings.HasPrefix(r.Stderr, opens) {
			t.Errorf("dladm %s: %+v, want exit 1 and %q", line, r, opens)
		}
	}
	if r := n.run("dladm add-aggr -l net0 aggr0"); r.Exit != 70 || r.Stderr != "not simulated: dladm: add-aggr\n" {
		t.Errorf("add-aggr: %+v", r)
	}
}

func TestDladmCreateVNICRefusals(t *testing.T) {
	n := newNetwork(t, world.OmniOS)
	n.must("global", "dladm create-etherstub -t stub0", "dladm create-vnic -t -l net0 -m 2:8:20:1:2:3 v0")
	for line, text := range map[string]string{
		"-l nope0 v1":                           "invalid link name 'nope0'",
		"-l net0 v0":                            "vnic creation over net0 failed: object already exists",
		"-t -l net0 -m 02:08:20:01:02:03 v1":    "vnic creation over net0 failed: MAC address is already in use",
		"-t -l net0 -m a8:40:25:0:7:1 v1":       "vnic creation over net0 failed: MAC address reserved for use by underlying data-link",
		"-t -l net0 -m 1:0:5e:0:0:1 v1":         "vnic creation over net0 failed: invalid MAC address",
		"-t -l net0 -m 2:8:20:1:2 v1":           "invalid MAC address",
		"-t -l net0 -m fixed v1":                "'fixed' is not a valid MAC address",
		"-t -l net0 -m auto -m auto v1":         "cannot specify -m option twice",
		"-t -l v0 v1":                           "vnic creation over v0 failed: invalid argument",
		"-l stub0 v1":                           "vnic creation over stub0 failed: can't create persistent object on top of temporary object",
		"-t -l net0 -v 0 v1":                    "invalid VLAN identifier '0'",
		"-t -l net0 -v 4095 v1":                 "invalid VLAN identifier '4095'",
		"-t -l net0 -v 1 v1":                    "VLAN over 'net0' may not use default_tag ID (see dladm(8))",
		"-t -l net0 -f v1":                      "-f option can only be used with -v",
		"-t -l net0 -p mtu v1":                  "invalid vnic property",
		"-t -l net0 -p mtu=9000 v1":             "vnic creation over net0 failed: invalid argument",
		"-t -l net0 " + strings.Repeat("a", 32): "link name too long '" + strings.Repeat("a", 32) + "'",
	} {
		n.fails("global", "dladm create-vnic "+line, "", "dladm: "+text+"\n")
	}
	if links := n.run("dladm show-vnic -p -o link").Stdout; links != "v0\n" {
		t.Errorf("refused creations left links: %q", links)
	}
}

// dladm_valid_linkname in usr/src/lib/libdladm/common/libdladm.c.
func TestDladmLinkNames(t *testing.T) {
	n := newNetwork(t, world.OmniOS)
	for _, name := range []string{"net", "0net", "net01", "a-b0", "vnic_", "x", "ä0"} {
		n.fails("global", "dladm create-vnic -t -l net0 "+name, "", "dladm: invalid link name '"+name+"'\n")
		n.fails("global", "dladm create-etherstub -t "+name, "", "dladm: invalid link name '"+name+"'\n")
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
		"delete-vnic nope0":       "invalid link name 'nope0'",
		"delete-vnic stub0":       "'stub0' is not a vnic",
		"delete-etherstub v0":     "'v0' is not an etherstub",
		"delete-etherstub stub0":  "vnic deletion failed: link busy",
		"delete-vnic v0":          "vnic deletion failed: link busy",
		"delete-vnic v1":          "vnic deletion failed: link busy",
		"delete-vnic net0":        "vnic deletion failed: object not found",
		"create-etherstub stub0":  "etherstub creation failed: object already exists",
		"rename-link v1 v9":       "rename operation failed: link busy",
		"rename-link nope0 v9":    "rename operation failed: object not found",
		"rename-link v2 net0":     "rename operation failed: object already exists",
		"rename-link v2 bad-name": "rename operation failed: invalid argument",
	} {
		n.fails("global", "dladm "+line, "", "dladm: "+text+"\n")
	}
	n.must("global", "ipadm delete-if v1", "dladm delete-vnic v1", "dladm rename-link v2 v9", "dladm delete-vnic -t v9")
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
	n.prints("z1", "dladm show-phys -p -o link", "")
	n.prints("global", "dladm show-link -p -o link,over v0", "v0:net0\n")
	n.prints("global", "dladm show-linkprop -c -p zone -o LINK,VALUE", "net0:\nnet1:\nv0:z1\nv1:\n")
	n.prints("global", "dladm show-linkprop -c -o value -p zone v0", "z1\n")
	n.prints("global", "dladm show-linkprop -c -o value -p zone v1", "\n")
	n.fails("z1", "dladm show-link net0", "", "dladm: link net0 is not valid: object not found\n")
	n.fails("z1", "dladm create-vnic -t -l v0 v9", "", "dladm: vnic creation over v0 failed: permission denied\n")
	n.fails("z1", "dladm delete-vnic v0", "", "dladm: vnic deletion failed: permission denied\n")
	n.fails("z1", "dladm create-etherstub -t s0", "", "dladm: etherstub creation failed: permission denied\n")
}

// illumos 10001: in the gate the name of a link on loan is free; then the zone
// cannot give its link back. OmniOS refuses the second one.
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
	n.prints("global", "dladm show-linkprop -c -o property,perm,value,default,possible -p priority,state v0",
		"priority:rw:high:high:low,medium,high\nstate:r-:up:up:up,down\n")
	n.must("global", "dladm reset-linkprop -t -p mtu v0")
	n.prints("global", "dladm show-linkprop -c -o value,default -p mtu v0", "9000:9000\n")
	warned := func(line, text string) {
		t.Helper()
		n.fails("global", line, "", "dladm: warning: "+text+"\n")
	}
	warned("dladm set-linkprop -t -p mtu=9001 v0", "cannot set link property 'mtu' on 'v0': invalid argument")
	warned("dladm set-linkprop -t -p nope=1 v0", "invalid link property 'nope'")
	warned("dladm set-linkprop -t -p priority=urgent v0", "link property 'priority' must be one of: low,medium,high")
	warned("dladm set-linkprop -t -p state=down v0", "cannot set link property 'state' on 'v0': read-only property")
	warned("dladm set-linkprop -p zone=z1 v0", "cannot set link property 'zone' on 'v0': change cannot be persistent")
	warned("dladm set-linkprop -t -p zone=z1 v0", "cannot set link property 'zone' on 'v0': invalid value")
	warned("dladm set-linkprop -t -p mtu= v0", "no value specified for 'mtu'")
	warned("dladm reset-linkprop -t -p state v0", "cannot reset link property 'state' on 'v0': read-only property")
}

// Of several properties only the last one's outcome is the exit code
// (set_linkprop in usr/src/cmd/dladm/dladm.c).
func TestDladmSetLinkpropForgetsEarlierFailures(t *testing.T) {
	n := newNetwork(t, world.OmniOS)
	n.must("global", "dladm create-vnic -t -l net0 v0")
	r := n.run("dladm set-linkprop -t -p nope=1,priority=low v0")
	want := cli.Reply{Stderr: "dladm: warning: invalid link property 'nope'\n"}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Error(diff)
	}
	n.prints("global", "dladm show-linkprop -c -o value -p priority v0", "low\n")
}

func TestDladmZonePropertyMovesALink(t *testing.T) {
	n := newNetwork(t, world.OmniOS)
	n.must("global", "dladm create-vnic -t -l net0 v0", "ipadm create-if -t v0")
	n.zone("z1")
	n.fails("global", "dladm set-linkprop -t -p zone=z1 v0", "", "dladm: warning: cannot set link property 'zone' on 'v0': link busy\n")
	n.must("global", "ipadm delete-if v0", "dladm set-linkprop -t -p zone=z1 v0")
	n.prints("z1", "dladm show-link -p -o link", "v0\n")
	n.must("z1", "ipadm create-if -t v0")
	n.fails("global", "dladm reset-linkprop -t -p zone v0", "", "dladm: warning: cannot reset link property 'zone' on 'v0': link busy\n")
	n.must("z1", "ipadm delete-if v0")
	n.must("global", "dladm reset-linkprop -t -p zone v0", "dladm delete-vnic v0")
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
		"dladm set-linkprop -t -p mtu=1300 v0", "dladm create-vnic -l net0 v2", "dladm delete-vnic -t v2")
	mac := n.run("dladm show-vnic -p -o macaddress v0").Stdout
	n.prints("global", "dladm show-link -P -p -o link,over", "net0:\nnet1:\nv0:net0\nv2:net0\n")
	n.fails("global", "dladm show-link -P -p -o link v1", "", "dladm: link v1 is a temporary link: invalid argument\n")
	n.prints("global", "dladm show-vnic -p -o link", "v0\nv1\n")
	network.RebootNetwork(n.tx)
	n.prints("global", "dladm show-vnic -p -o link", "v0\nv2\n")
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
