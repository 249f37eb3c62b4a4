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
	add("verify", said+"zone is incomplete; uninstall required.", 1, "incomplete")
	add("ready", said+"must be installed before ready.", 1, "configured", "incomplete")
	add("ready", "zone 'z1': zone is already ready", 0, "ready")
	add("boot", said+"must be installed before boot.", 1, "configured", "incomplete")
	add("boot", "zone 'z1': zone is already booted", 0, "running", "shutting_down", "down")
	add("halt", "cannot manage a zone which is in state 'configured'\nzone 'z1': could not start zoneadmd", 1, "configured")
	add("halt", "zone 'z1': halt operation is invalid for zones in state 'incomplete'", 1, "incomplete")
	add("halt", "zone 'z1': zone is already halted", 0, "installed")
	for _, command := range []string{"shutdown", "reboot"} {
		add(command, said+"not running", 1, "configured", "incomplete", "installed")
		add(command, "zone 'z1': "+command+" operation is invalid for zones in state 'ready'", 1, "ready")
	}
	add("shutdown", "zone 'z1': unable to shutdown zone", 1, "shutting_down", "down")
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
	for _, command := range []string{"shutdown", "reboot"} {
		add(command, "zone 'z1': "+command+" operation is invalid for zones in state 'mounted'", 1, "mounted")
	}

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
	for _, command := range []string{"verify", "clone base", "boot", "halt", "uninstall -F", "mark incomplete"} {
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
	s.replay(`$ zoneadm
! USAGE
= 2
$ zoneadm -z z1 attach
! not simulated: zoneadm: subcommand "attach"
= 70
$ zoneadm -z z1 detach
! not simulated: zoneadm: subcommand "detach"
= 70
$ zoneadm -z z1 move /z/z2
! not simulated: zoneadm: subcommand "move"
= 70
$ zoneadm frobnicate
! USAGE
= 2
$ zoneadm -q list
! zoneadm: illegal option -- q
USAGE
= 2
$ zoneadm boot
! zoneadm: no zone specified
= 1
$ zoneadm install
! USAGE
= 2
$ zoneadm -z global install
! zoneadm: zone 'global': missing or invalid brand
= 1
$ zoneadm -z z1 boot now -x
! zoneadm: zone 'z1': must be installed before boot.
= 1
$ zoneadm -z z1 halt now
! USAGE
= 2
$ zoneadm -z z1 install -?
! USAGE
$ zoneadm -u nothing list
! zoneadm: illegal UUID value specified
= 1
$ zoneadm -R z -z z1 list
! zoneadm: root path must be absolute.
= 1
$ zoneadm -z z1 mark broken
= 2
$ zoneadm -z z1 mark installed
= 2
`)
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
	inside(cli.Reply{Stdout: "z1\n"}, "list", "-c")
	inside(cli.Reply{Stdout: "2:z1:running:/::sparse:excl:2\n"}, "list", "-p")
	inside(cli.Reply{Stderr: "zoneadm: base: No such zone configured\n", Exit: 1}, "-z", "base", "list")
	inside(cli.Reply{Stderr: "zoneadm: zone 'z1': use halt(8) to halt this zone.\n", Exit: 1}, "-z", "z1", "halt")
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
$ zoneadm list -n
c
a
$ zoneadm list -i
global
c
a
$ zoneadm list -c
global
c
a
b
d
$ zoneadm list -ci
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
$ zoneadm list -pv
! zoneadm: list -p and -v are mutually exclusive.
= 1
$ zoneadm list -x
! -x: illegal option -- x
! USAGE
= 2
$ zoneadm -z b list
b
$ zoneadm -z b list -p
-:b:configured:/z/b\:c::sparse:shared:1
$ zoneadm -z b list -c
! -c: illegal option -- c
! USAGE
= 2
$ zoneadm -z global list -p
0:global:running:/::ipkg:shared:0
$ zoneadm -z 1 list
! zoneadm: zone '1': missing or invalid brand
= 1
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

// With -u a UUID wins over -z if it is anybody's.
func TestZoneadmFindsZonesByUUID(t *testing.T) {
	s := newZoneSled(t, boot.Options{})
	s.must("zonecfg -z z1 create -b ; set brand=sparse ; set zonepath=/z/z1", "zonecfg -z z2 create -b ; set brand=sparse ; set zonepath=/z/z2",
		"zoneadm -z z1 mark -F installed")
	id := s.zone("z1").UUID
	s.replay("$ zoneadm -u " + strings.ToUpper(id) + ` -z z2 list
z1
$ zoneadm -u 00000000-0000-0000-0000-000000000001 -z z2 list
z2
$ zoneadm -u 00000000-0000-0000-0000-000000000001 list
global
`)
}

// zone_print_list: a zone that goes away meanwhile is told of, and the exit code
// says nothing.
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

// verify_details, validate_zonepath, verify_handle.
func TestZoneadmVerify(t *testing.T) {
	s := newZoneSled(t, boot.Options{})
	s.must("zonecfg -z z1 create -b ; set brand=sparse ; set zonepath=/z/z1 ; set ip-type=exclusive ; add net ; set physical=v0 ; end")
	const missing = `! WARNING: /z/z1 does not exist, so it could not be verified.
! When 'zoneadm install' is run, 'install' will try to create
! /z/z1, and 'verify' will be tried again,
! but the 'verify' may fail if:
! the parent directory of /z/z1 is group- or other-writable
! or
! /z/z1 overlaps with any other installed zones.
`
	s.replay("$ zoneadm -z z1 verify\n" + missing + `! WARNING: skipping network interface 'v0': object not found
$ dladm create-vnic -t -l net0 v0
$ zoneadm -z z1 verify
` + missing)
	s.must("ipadm create-if -t v0")
	s.replay("$ zoneadm -z z1 verify\n" + missing + "! WARNING: skipping network interface 'v0' which is used in the global zone.\n")
	s.must("ipadm delete-if v0")

	directory := func(name string, mode fs.FileMode) {
		s.change(func(tx *world.Tx) {
			if err := host.MkdirAll(tx.Files, name, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := tx.Files.Chmod(name, mode); err != nil {
				t.Fatal(err)
			}
		})
	}
	directory("/z/z1", 0o700)
	directory("/z", 0o700)
	s.replay("$ zoneadm -z z1 verify\n")
	directory("/z/z1", 0o755)
	s.replay(`$ zoneadm -z z1 verify
! /z/z1 must not be group readable.
! /z/z1 must not be group executable.
! /z/z1 must not be world readable.
! /z/z1 must not be world executable.
! could not verify zonepath /z/z1 because of the above errors.
! zoneadm: zone z1 failed to verify
= 1
`)
	directory("/z/z1", 0o700)
	// Only zones that are installed are in each other's way.
	s.must("zonecfg -z z2 create -b ; set brand=sparse ; set zonepath=/z")
	s.replay("$ zoneadm -z z1 verify\n")
	s.must("zoneadm -z z2 mark -F installed")
	s.replay(`$ zoneadm -z z1 verify
! z1 zonepath (/z/z1) and z2 zonepath (/z) overlap.
! could not verify zonepath /z/z1 because of the above errors.
! zoneadm: zone z1 failed to verify
= 1
`)
	s.must("zonecfg -z z2 delete -F")
	s.must("zonecfg -z z1 add dataset ; set name=rpool/none ; end ; add fs ; set dir=/d ; set special=rpool/fs ; set type=zfs ; end",
		"zfs create rpool/fs")
	s.replay(`$ zoneadm -z z1 verify
! could not verify fs /d: zfs 'rpool/fs' mountpoint is not "legacy"
! could not verify zfs dataset rpool/none: no such pool or dataset
! zoneadm: zone z1 failed to verify
= 1
$ zfs set mountpoint=legacy rpool/fs
$ zfs create -o mountpoint=/n rpool/none
$ zoneadm -z z1 verify
`)
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
	if r := s.run("zoneadm -z z2 verify", ""); r.Exit != 0 || !strings.HasSuffix(r.Stderr, want) {
		t.Errorf("exit %d, %q", r.Exit, r.Stderr)
	}
}

// verify_handle: a shared stack needs an address, and its interface.
func TestZoneadmVerifyOfASharedStack(t *testing.T) {
	s := newZoneSled(t, boot.Options{}).base("bhyve")
	s.must("zonecfg -z z1 create -b ; set brand=bhyve ; set zonepath=/zones/z1 ; add net ; set physical=net1 ; set address=10.0.0.1/24 ; end",
		"zoneadm -z z1 install")
	s.replay(`$ zoneadm -z z1 verify
! WARNING: skipping network interface 'net1' which may not be present/plumbed in the global zone.
$ ipadm create-if net1
$ zoneadm -z z1 verify
$ zoneadm -z z1 boot
$ zoneadm list -p
0:global:running:/::ipkg:shared:0
1:z1:running:/zones/z1:UUID:bhyve:shared:2
`)
}

// cmd_to_str and long_help: what zoneadm says of itself.
func TestZoneadmHelp(t *testing.T) {
	s := newZoneSled(t, boot.Options{})
	if r := s.run("zoneadm help", ""); r.Exit != 0 || !strings.HasPrefix(r.Stdout, "usage:\tzoneadm help\n") {
		t.Errorf("exit %d, %q%q", r.Exit, r.Stdout, r.Stderr)
	}
	if r := s.run("zoneadm help boot", ""); r.Exit != 0 || !strings.Contains(r.Stdout+r.Stderr, "boot [-- boot_arguments]") {
		t.Errorf("help boot: exit %d, %q%q", r.Exit, r.Stdout, r.Stderr)
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
