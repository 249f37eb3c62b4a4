package tools

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/boot"
	"github.com/sledctl/sledctl/sim/world/zones"
)

// The rules here are those of usr/src/cmd/zoneadm/zoneadm.c unless a test names
// another source.

// into puts a zone into a state by hand.
func (s *zoneSled) into(name, state string) {
	s.t.Helper()
	s.change(func(tx *world.Tx) {
		z := tx.FindZone(name)
		z.Kernel, z.Daemon = nil, nil
		index := state
		if zones.ZoneRank(state) > zones.ZoneRank(world.ZoneInstalled) {
			index = world.ZoneInstalled
		}
		if err := zones.SetZoneState(tx, z, index); err != nil {
			s.t.Fatal(err)
		}
		if index != state {
			zones.StartKernelZone(tx, z).State = state
		}
	})
}

// What the states of a zone keep commands from: sanity_check, and for the lines
// without "zoneadm:" server() in usr/src/cmd/zoneadmd/zoneadmd.c.
func TestZoneadmRefusesByState(t *testing.T) {
	s := newZoneSled(t, boot.Options{}).base("sparse")
	s.configure("z1", "sparse", "")
	s.must("zoneadm -z z1 clone base")
	const said = "zoneadm: zone 'z1': "
	kernel := []string{"ready", "running", "shutting_down", "down"}
	type answer struct {
		exit int
		text string
	}
	want := map[string]map[string]answer{}
	add := func(command, text string, exit int, states ...string) {
		if want[command] == nil {
			want[command] = map[string]answer{}
		}
		for _, state := range states {
			want[command][state] = answer{exit, strings.ReplaceAll(text, "STATE", state) + "\n"}
		}
	}
	for command, line := range map[string]string{"install": "install", "clone": "clone base"} {
		add(line, said+"zone is incomplete; uninstall required.", 1, "incomplete")
		add(line, said+"is already installed.", 1, "installed")
		add(line, said+command+" operation is invalid for STATE zones.", 1, kernel...)
	}
	add("ready", said+"must be installed before ready.", 1, "configured", "incomplete")
	add("ready", "zone 'z1': zone is already ready", 0, "ready")
	add("boot", said+"must be installed before boot.", 1, "configured", "incomplete")
	add("boot", "zone 'z1': zone is already booted", 0, "running", "shutting_down", "down")
	add("halt", "not simulated: zoneadm: -z z1 halt", 70, "configured")
	add("halt", "zone 'z1': halt operation is invalid for zones in state 'incomplete'", 1, "incomplete")
	add("halt", "zone 'z1': zone is already halted", 0, "installed")
	for _, command := range []string{"shutdown", "reboot"} {
		add(command, said+"not running", 1, "configured", "incomplete", "installed")
	}
	add("reboot", "zone 'z1': reboot operation is invalid for zones in state 'ready'", 1, "ready")
	add("shutdown", "not simulated: zoneadm: -z z1 shutdown", 70, "ready", "shutting_down", "down", "mounted")
	add("uninstall -F", said+"is already in state 'configured'.", 1, "configured")
	add("uninstall -F", said+"uninstall operation is invalid for STATE zones.", 1, kernel...)
	add("mark incomplete", said+"mark operation is invalid for STATE zones.", 1, kernel...)
	add("unmount", said+"must be mounted before unmount.", 1, "configured", "incomplete", "installed", "running")
	add("sysboot", said+"sysboot operation is invalid for STATE zones.", 1, append(kernel, "configured", "incomplete")...)
	for _, command := range []string{"boot", "ready"} {
		add(command, "zone 'z1': "+command+" operation is invalid for zones in state 'mounted'\n"+
			"zoneadm: zone 'z1': call to zoneadmd failed", 1, "mounted")
	}
	add("halt", "zone 'z1': halt operation is invalid for zones in state 'mounted'", 1, "mounted")
	add("reboot", "zone 'z1': reboot operation is invalid for zones in state 'mounted'", 1, "mounted")

	for command, states := range want {
		for state, expected := range states {
			s.into("z1", state)
			got := s.run("zoneadm -z z1 "+command, "")
			if diff := cmp.Diff(cli.Reply{Stderr: expected.text, Exit: expected.exit}, got); diff != "" {
				t.Errorf("%s of a zone that is %s (-want +got):\n%s", command, state, diff)
			}
			if now := s.zone("z1"); now.Current() != state {
				t.Errorf("%s of a zone that is %s: now it is %s", command, state, now.Current())
			}
		}
	}
}

// What stands in the states' way comes after what stands in everybody's.
func TestZoneadmRefusesInOrder(t *testing.T) {
	s := newZoneSled(t, boot.Options{})
	s.must("zonecfg -z z1 create -b ; set brand=sparse ; set zonepath=/z/z1")
	for _, command := range []string{"clone base", "boot", "halt", "uninstall -F", "mark incomplete"} {
		word, _, _ := strings.Cut(command, " ")
		for _, c := range []struct{ target, want string }{
			{"-z global ", "zoneadm: zone 'global': " + word + " operation is invalid for the global zone.\n"},
			{"-z nobody ", "zoneadm: nobody: No such zone configured\n"},
		} {
			if r := s.run("zoneadm "+c.target+command, ""); r.Exit != 1 || r.Stderr != c.want {
				t.Errorf("zoneadm %s%s: exit %d, %q", c.target, command, r.Exit, r.Stderr)
			}
		}
	}
}

// Inside a zone only the zone itself is there, and nothing can be done to it.
func TestZoneadmInsideAZone(t *testing.T) {
	s := newZoneSled(t, boot.Options{}).base("sparse")
	s.configure("z1", "sparse", "")
	s.must("zoneadm -z z1 clone base", "zoneadm -z z1 boot")
	inside := func(want cli.Reply, args ...string) {
		t.Helper()
		got, err := s.d.Exec(t.Context(), cli.Call{Tool: "zoneadm", Args: args, Zone: "z1"})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("zoneadm %q (-want +got):\n%s", args, diff)
		}
	}
	inside(cli.Reply{Stderr: "zoneadm: base: No such zone configured\n", Exit: 1}, "-z", "base", "list")
	inside(cli.Reply{Stderr: "not simulated: zoneadm: -z z1 halt\n", Exit: 70}, "-z", "z1", "halt")
	inside(cli.Reply{Stderr: "not simulated: zoneadm: list -c\n", Exit: 70}, "list", "-c")
	inside(cli.Reply{Stderr: "zoneadm: zone 'z1': must be in the global zone to boot a zone.\n", Exit: 1}, "-z", "z1", "boot")
}

// zone_print: OmniOS adds the debug id to a parsable line
// (github.com/omniosorg/illumos-omnios).
func TestZoneadmListLines(t *testing.T) {
	s := newZoneSled(t, boot.Options{})
	s.must("zonecfg -z b create -b ; set brand=sparse ; set zonepath=/z/b:c",
		"zonecfg -z a create -b ; set brand=ipkg ; set zonepath=/z/a ; set ip-type=exclusive",
		"zonecfg -z c create -b ; set brand=sparse ; set zonepath=/z/c ; set ip-type=exclusive",
		"zonecfg -z d create -b ; set brand=sparse ; set zonepath=/z/d", "zoneadm -z a mark -F installed", "zoneadm -z d mark incomplete")
	s.into("c", "running")
	s.into("a", "down")
	s.replay(`$ zoneadm list
global
c
a
$ zoneadm list -c
global
c
a
b
d
$ zoneadm list -cp
0:global:running:/::ipkg:shared:0
1:c:running:/z/c:UUID:sparse:excl:3
2:a:down:/z/a:UUID:ipkg:excl:2
-:b:configured:/z/b\:c::sparse:shared:1
-:d:incomplete:/z/d:UUID:sparse:shared:4
$ zoneadm list -v
  ID NAME             STATUS     PATH                           BRAND    IP␠␠␠␠
   0 global           running    /                              ipkg     shared
   1 c                running    /z/c                           sparse   excl␠␠
   2 a                down       /z/a                           ipkg     excl␠␠
$ zoneadm -z b list
b
$ zoneadm -z b list -p
-:b:configured:/z/b\:c::sparse:shared:1
`)
	s.into("c", "mounted")
	s.replay(`# A scratch zone is one of the kernel's list, and has its own name (vplat.c).
$ zoneadm list -p
0:global:running:/::ipkg:shared:0
2:a:down:/z/a:UUID:ipkg:excl:2
3:c:mounted:/z/c:UUID:sparse:excl:3
$ zoneadm -z c list -p
3:c:mounted:/z/c:UUID:sparse:excl:3
`)
}

// The gate's parsable lines, which Helios has, are without the debug id.
func TestZoneadmListLinesOfTheGate(t *testing.T) {
	s := newZoneSled(t, boot.Options{Mode: world.Helios})
	s.must("zonecfg -z oxz_switch create -b ; set brand=omicron1 ; set zonepath=/zone/oxz_switch ; set ip-type=exclusive")
	s.replay(`$ zoneadm list -cp
0:global:running:/::ipkg:shared
-:oxz_switch:configured:/zone/oxz_switch::omicron1:excl
`)
}

// zone_print_list: zoneadm reports a zone that vanishes meanwhile, and exits as if it
// had not.
func TestZoneadmListRaces(t *testing.T) {
	s := newZoneSled(t, boot.Options{})
	s.must("zonecfg -z z1 create -b ; set brand=sparse ; set zonepath=/z/z1")
	s.change(func(tx *world.Tx) { tx.Arm(world.Fault{Name: world.FaultListRace, Text: "z1", Times: 1}) })
	s.replay(`$ zoneadm list -c
global
! zoneadm: z1: could not get state: No such zone configured
$ zoneadm list -c
global
z1
`)
}

// verify_details, validate_zonepath, verify_handle: what is wrong with a zonepath is
// refused.
func TestZoneadmVerify(t *testing.T) {
	s := newZoneSled(t, boot.Options{})
	s.must("zonecfg -z z1 create -b ; set brand=kvm ; set zonepath=/z/z1", "zonecfg -z z2 create -b ; set brand=kvm ; set zonepath=/z")
	directory := func(name string, mode fs.FileMode) {
		t.Helper()
		s.change(func(tx *world.Tx) {
			if err := host.MkdirAll(tx.Files, name, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := tx.Files.Chmod(name, mode); err != nil {
				t.Fatal(err)
			}
		})
	}
	refused := func(why string) {
		t.Helper()
		if r := s.run("zoneadm -z z1 install", ""); r != (cli.Reply{Stderr: "not simulated: zoneadm: -z z1 install\n", Exit: 70}) {
			t.Errorf("%s: %+v", why, r)
		}
	}
	directory("/z/z1", 0o755)
	directory("/z", 0o700)
	refused("others may read it")
	directory("/z/z1", 0o700)
	directory("/z", 0o777)
	refused("others may write above it")
	directory("/z", 0o700)
	s.must("zoneadm -z z2 mark -F installed")
	refused("it is below that of a zone that is installed")
	s.must("zoneadm -z z2 mark -F configured")
	directory("/z/z1/root", 0o700)
	refused("there is a root that looks like none")
	directory("/z/z1/root", 0o755)
	s.change(func(tx *world.Tx) {
		if err := cli.WriteFile(tx.Files, "/z/z1/SUNWdetached.xml", nil, 0o644); err != nil {
			t.Fatal(err)
		}
	})
	refused("it was detached")
	s.change(func(tx *world.Tx) {
		if err := tx.Files.Remove("/z/z1/SUNWdetached.xml"); err != nil {
			t.Fatal(err)
		}
	})
	s.must("zoneadm -z z1 install")
}

// Two zones cannot run with one link; zoneadm only warns of it.
func TestZoneadmVerifyOfALinkThatAnotherZoneHas(t *testing.T) {
	s := newZoneSled(t, boot.Options{}).base("sparse")
	s.must("dladm create-vnic -t -l net0 v0")
	for _, name := range []string{"z1", "z2"} {
		s.configure(name, "sparse", "add net ; set physical=v0 ; end")
	}
	s.must("zoneadm -z z1 clone base", "zoneadm -z z1 boot")
	want := "WARNING: skipping network interface 'v0' which is used by the non-global zone 'z1'.\n"
	if r := s.run("zoneadm -z z2 clone base", ""); r.Exit != 0 || !strings.HasSuffix(r.Stderr, want) {
		t.Errorf("exit %d, %q", r.Exit, r.Stderr)
	}
}

func TestZoneadmMark(t *testing.T) {
	s := newZoneSled(t, boot.Options{})
	s.must("zonecfg -z z1 create -b ; set brand=sparse ; set zonepath=/z/z1")
	for _, c := range []struct{ args, state string }{
		{"incomplete", "incomplete"}, {"-F installed", "installed"}, {"-F configured", "configured"},
	} {
		s.must("zoneadm -z z1 mark " + c.args)
		z := s.zone("z1")
		if z.State != c.state || (z.UUID == "") != (c.state == "configured") {
			t.Errorf("mark %s: %s, UUID %q", c.args, z.State, z.UUID)
		}
		if index := s.file("/etc/zones/index"); !strings.Contains(index, fmt.Sprintf("z1:%s:/z/z1:%s\n", z.State, z.UUID)) {
			t.Errorf("index:\n%s", index)
		}
	}
}
