package tools

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/boot"
	"github.com/sledctl/sledctl/sim/world/zones"
)

// The rules here are those of usr/src/cmd/zonecfg/zonecfg.c unless a test names
// another source.

// main() of zonecfg.c.
func TestZonecfgCommandLines(t *testing.T) {
	s := newZoneSled(t, boot.Options{})
	s.replay(`$ zonecfg -z -bad info
! -bad: Bogus zone name
! USAGE
= 2
$ zonecfg -z nobody info
! nobody: No such zone configured
= 1
$ zonecfg -z nobody export
! nobody: No such zone configured
= 1
`)
}

func TestZonecfgMakesAZone(t *testing.T) {
	s := newZoneSled(t, boot.Options{})
	s.replay(`$ zonecfg -z z1 create -b ; set brand=sparse ; set zonepath=/z/z1/ ; set ip-type=exclusive
$ zonecfg -z z1 export
create -b
set zonepath=/z/z1
set brand=sparse
set autoboot=false
set ip-type=exclusive
$ zoneadm list -c
global
z1
$ zonecfg -z z1 delete -F
$ zoneadm list -c
global
`)
	if s.file("/etc/zones/z1.xml") != "" || strings.Contains(s.file("/etc/zones/index"), "z1") {
		t.Error("z1 is still in /etc/zones")
	}
}

func TestZonecfgStartsFromTemplates(t *testing.T) {
	s := newZoneSled(t, boot.Options{})
	for _, c := range []struct{ create, brand, ip string }{
		{"create -b", "ipkg", "shared"}, {"create", "ipkg", "exclusive"},
	} {
		s.must("zonecfg -z base create -F ; set zonepath=/z/base ; set brand=sparse ; set ip-type=shared")
		s.must("zonecfg -z z1 " + c.create + " ; set zonepath=/z/z1")
		if got := s.zone("z1").Config; got.Brand != c.brand || got.IPType != c.ip && c.create != "create" || got.Zonepath != "/z/z1" {
			t.Errorf("%s: %+v", c.create, got)
		}
		s.must("zonecfg -z z1 delete -F")
	}
}

// create_func, check_if_zone_already_exists: an installed zone is refused, but
// the exit code says nothing of it, and what follows changes the zone that is
// there.
func TestZonecfgCreateOfAZoneThatIsThere(t *testing.T) {
	s := newZoneSled(t, boot.Options{})
	s.must("zonecfg -z z1 create -b ; set brand=sparse ; set zonepath=/z/z1")
	s.replay(`$ zonecfg -z z1 create -b
! Zone exists, input not from terminal and -F not specified:
! create command ignored, exiting.
= 1
$ zonecfg -z z1 create -b -F ; set brand=ipkg ; set zonepath=/z/other
Zone z1 already exists; overwriting.
$ zoneadm -z z1 mark incomplete
$ zonecfg -z z1 create -b -F ; set brand=ipkg ; set zonepath=/z/z1
Zone z1 already exists; overwriting.
$ zoneadm -z z1 mark -F installed
$ zonecfg -z z1 create -b -F ; set autoboot=true ; set zonepath=/elsewhere ; set brand=sparse
! Zone z1 already installed; create not allowed.
! Zone z1 already installed; set zonepath not allowed.
! Zone z1 already installed; set brand not allowed.
$ zonecfg -z z1 export
create -b
set zonepath=/z/z1
set brand=ipkg
set autoboot=true
set ip-type=shared
`)
}

// delete_func, zonecfg_destroy in libzonecfg.c. Both the question and the
// deletion look for the zone.
func TestZonecfgDelete(t *testing.T) {
	s := newZoneSled(t, boot.Options{})
	s.must("zonecfg -z z1 create -b ; set brand=sparse ; set zonepath=/z/z1")
	s.replay(`$ zonecfg -z z1 delete
! Input not from terminal and -F not specified:
! delete command ignored, exiting.
= 1
$ zonecfg -z nobody delete -F
! nobody: No such zone configured
! nobody: No such zone configured
= 1
$ zonecfg -z z1 delete -F now
! syntax error at 'now'
! USAGE
= 1
`)
	s.change(func(tx *world.Tx) { zones.StartKernelZone(tx, tx.FindZone("z1")) })
	s.replay(`$ zonecfg -z z1 delete -F
! z1: Zone state is invalid for the requested operation
= 1
`)
	// An installed zone goes, and what it has on disk stays.
	s.change(func(tx *world.Tx) {
		tx.FindZone("z1").Kernel = nil
		if err := zones.SetZoneState(tx, tx.FindZone("z1"), world.ZoneInstalled); err != nil {
			t.Fatal(err)
		}
		if err := host.MkdirAll(tx.Files, "/z/z1/root", 0o755); err != nil {
			t.Fatal(err)
		}
	})
	s.must("zonecfg -z z1 delete -F")
	s.change(func(tx *world.Tx) {
		if tx.FindZone("z1") != nil || !isThere(tx, "/z/z1/root") {
			t.Error("the zone is left, or its root is not")
		}
	})
}

// usr/src/cmd/zonecfg/zonecfg_lex.l.
func TestZonecfgWords(t *testing.T) {
	s := newZoneSled(t, boot.Options{})
	s.must("zonecfg -z z1 create -b ; set brand=sparse ; set zonepath=/z/z1")
	value := func(word, want string) {
		t.Helper()
		r := s.run("zonecfg -z z1 'set bootargs="+word+"'", "")
		switch got := s.zone("z1").Config.Globals["bootargs"]; {
		case want == "" && (r.Exit != 1 || !strings.HasPrefix(r.Stderr, "syntax error at '")):
			t.Errorf("%s: exit %d, %q", word, r.Exit, r.Stderr)
		case want != "" && (r.Exit != 0 || got != want):
			t.Errorf("%s: exit %d, %q is %q", word, r.Exit, r.Stderr, got)
		}
	}
	value("a", "a")
	value(`"a b"`, "a b")
	value(`"a;b=c[d](e)"`, "a;b=c[d](e)")
	value("a,b:c/d.e-f_g@h%i", "a,b:c/d.e-f_g@h%i")
	value("a#b", "a#b")
	value("net", "net") // a word of its own, and a value all the same
	value(`"net"`, "net")
	value("value", "value")
	value("values", "values")
	value("a b", "")
	value("a=b", "")
	value("a[b", "")
	value("(a", "")
	value("", "")
	// A quote that is not closed takes the end of the line, and with it the
	// end of the command.
	if r := s.run(`zonecfg -z z1 'set bootargs="a'`, ""); r != (cli.Reply{}) || s.zone("z1").Config.Globals["bootargs"] != "values" {
		t.Errorf("not closed: %+v", r)
	}
	s.replay(`# Comments only open a command; blanks do not matter.
$ zonecfg -z z1 '# set autoboot=maybe'
$ zonecfg -z z1 '  set  autoboot  =  true ; ; '
$ zonecfg -z z1 'info autoboot'
autoboot: true
$ zonecfg -z z1 'frobnicate'
! syntax error at 'f'
! USAGE
= 1
$ zonecfg -z z1 'set autoboot true'
! syntax error at 'true'
! USAGE
= 1
$ zonecfg -z z1 'set'
! USAGE
= 1
$ zonecfg -z z1 'addattr;set name=a;set type=string;set value=b;end'
$ zonecfg -z z1 info attr
attr:
→name: a
→type: string
→value: b
`)
}

// read_input: commands of a command line go on after an error, those of a
// file do not, and those of standard input do; all save what was changed.
func TestZonecfgSavesAfterErrors(t *testing.T) {
	s := newZoneSled(t, boot.Options{})
	s.must("zonecfg -z z1 create -b ; set brand=sparse ; set zonepath=/z/z1")
	s.change(func(tx *world.Tx) {
		text := "# by hand\nset bootargs=\"-v\"\nset autoboot=maybe\nset limitpriv=default\n"
		if err := cli.WriteFile(tx.Files, "/tmp/commands", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	})
	s.replay(`$ zonecfg -z z1 set autoboot=maybe ; set autoboot=true
! autoboot value must be 'true' or 'false'.
= 1
$ zonecfg -z z1 info autoboot
autoboot: true
$ zonecfg -z z1 -f /tmp/commands
! On line 3 of /tmp/commands:
! autoboot value must be 'true' or 'false'.
= 1
$ zonecfg -z z1 info bootargs
bootargs: -v
$ zonecfg -z z1 info limitpriv
limitpriv:␠
$ zonecfg -z z1
< set autoboot=maybe
< set limitpriv=default
< exit
! autoboot value must be 'true' or 'false'.
= 1
$ zonecfg -z z1 info limitpriv
limitpriv: default
$ zonecfg -z z1
< clear limitpriv
< exit
$ zonecfg -z z1 info limitpriv
limitpriv:␠
`)
	// A last line without an end is not carried out.
	r := s.run("zonecfg -z z1", "set limitpriv=default\nset bootargs=second")
	if c := s.zone("z1").Config.Globals; r.Exit != 0 || c["limitpriv"] != "default" || c["bootargs"] != "-v" {
		t.Errorf("exit %d, %q; %v", r.Exit, r.Stderr, c)
	}
}

// A resource that is not ended keeps everything from being saved (cleanup()).
func TestZonecfgEndsInAResource(t *testing.T) {
	s := newZoneSled(t, boot.Options{})
	s.must("zonecfg -z z1 create -b ; set brand=sparse ; set zonepath=/z/z1")
	s.replay(`$ zonecfg -z z1 set autoboot=true ; add net ; set physical=net0
! Resource incomplete.
= 1
$ zonecfg -z z1 info autoboot
autoboot: false
$ zonecfg -z z1 add net ; exit
! Resource incomplete, input not from terminal and -F not specified:
! exit command ignored, but exiting anyway.
= 1
$ zonecfg -z z1 set autoboot=true ; add net ; cancel
$ zonecfg -z z1 info net
$ zonecfg -z z1 info autoboot
autoboot: true
$ zonecfg -z z1 cancel
! The cancel command only makes sense in the resource scope.
= 1
$ zonecfg -z z1 end
! The end command only makes sense in the resource scope.
= 1
`)
}

// verify_func: what the configuration lacks keeps it from being saved.
func TestZonecfgVerifiesBeforeItSaves(t *testing.T) {
	s := newZoneSled(t, boot.Options{})
	s.replay(`$ zonecfg -z z1 create -b ; set brand=sparse
! zonepath cannot be empty.
! Zone z1 failed to verify
! z1: Required resource missing
! Configuration not saved.
= 1
$ zonecfg -z z1 create -b ; set zonepath=/z/z1 ; set brand=sparse ; set limitpriv=default,!net_access,dtrace_proc ; verify
$ zonecfg -z z1 set ip-type=exclusive ; add net ; set physical=net0 ; set defrouter=10.0.0.1 ; end
! net: defrouter for net0 cannot be specified without allowed-address for an exclusive IP type
! Zone z1 failed to verify
! z1: Invalid argument
! Configuration not saved.
= 1
$ zonecfg -z z1 set ip-type=exclusive ; add net ; set physical=net0 ; set defrouter=10.0.0.1 ; set allowed-address=10.0.0.2/24 ; end
`)
}

// zonecfg_save of a zone whose brand is not on the sled.
func TestZonecfgOfABrandThatIsNotThere(t *testing.T) {
	s := newZoneSled(t, boot.Options{})
	s.change(func(tx *world.Tx) {
		if _, err := zones.AddZone(tx, "z1", world.Config{Brand: "omicron1", Zonepath: "/z/z1"}); err != nil {
			t.Fatal(err)
		}
	})
	s.replay("$ zonecfg -z z1 info\n! not simulated: zonecfg: -z z1 info\n= 70\n")
}

func TestZonecfgGlobalProperties(t *testing.T) {
	s := newZoneSled(t, boot.Options{})
	s.must("zonecfg -z z1 create -b ; set brand=sparse ; set zonepath=/z/z1")
	s.replay(`$ zonecfg -z z1 set zonepath=z/z1
! z/z1 is not an absolute path.
= 1
$ zonecfg -z z1 set zonepath=//z///z1//
$ zonecfg -z z1 info zonepath
zonepath: /z/z1
$ zonecfg -z z1 set ip-type=both
! ip-type value must be 'shared' or 'exclusive'.
= 1
$ zonecfg -z z1 set -F autoboot=true
! syntax error at 'autoboot'
! USAGE
= 1
$ zonecfg -z z1 set fs-allowed=ufs,pcfs ; set bootargs="-m verbose" ; set scheduling-class=FSS
$ zonecfg -z z1 export
create -b
set zonepath=/z/z1
set brand=sparse
set autoboot=false
set bootargs=-m verbose
set scheduling-class=FSS
set ip-type=shared
set fs-allowed=ufs,pcfs
$ zonecfg -z z1 clear bootargs ; clear fs-allowed ; clear scheduling-class
$ zonecfg -z z1 clear zonepath
! zonepath: Clearing this property is not allowed
= 1
$ zonecfg -z z1 clear brand
! brand: Clearing this property is not allowed
= 1
`)
}

// Renaming: set zonename, zonecfg_set_name in libzonecfg.c.
func TestZonecfgRenamesAZone(t *testing.T) {
	s := newZoneSled(t, boot.Options{})
	s.must("zonecfg -z z1 create -b ; set brand=sparse ; set zonepath=/z/z1", "zonecfg -z z2 create -b ; set brand=sparse ; set zonepath=/z/z2")
	s.replay(`$ zonecfg -z z1 set zonename=z3
$ zoneadm list -c
global
z3
z2
`)
}

// revert_func goes back to what is saved, where anything was changed: that is refused.
func TestZonecfgReverts(t *testing.T) {
	s := newZoneSled(t, boot.Options{})
	s.must("zonecfg -z z1 create -b ; set brand=sparse ; set zonepath=/z/z1")
	s.replay(`$ zonecfg -z z1 revert -F
! No changes to revert.
= 1
`)
}

// zone_is_read_only.
func TestZonecfgLeavesTemplatesAlone(t *testing.T) {
	s := newZoneSled(t, boot.Options{})
	for _, command := range []string{"create", "set autoboot=true", "add net", "delete -F", "commit", "clear pool", "remove net", "verify"} {
		r := s.run("zonecfg -z SUNWblank "+command, "")
		if want := "not simulated: zonecfg: -z SUNWblank " + command + "\n"; r.Exit != 70 || r.Stderr != want {
			t.Errorf("%s: exit %d, %q", command, r.Exit, r.Stderr)
		}
	}
	s.replay(`$ zonecfg -z SUNWblank info brand
brand: ipkg
`)
}

func TestZonecfgInsideAZone(t *testing.T) {
	s := newZoneSled(t, boot.Options{})
	s.change(func(tx *world.Tx) { addRunningZone(t, tx, "z1") })
	got, err := s.d.Exec(t.Context(), cli.Call{Tool: "zonecfg", Args: []string{"-z", "z1", "info"}, Zone: "z1"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(cli.Reply{Stderr: "zonecfg can only be run from the global zone.\n", Exit: 1}, got); diff != "" {
		t.Error(diff)
	}
}

// Two that begin with the same configuration do not lock each other out: the
// last one to save wins (zonecfg takes no lock of the zone).
func TestZonecfgDoesNotWaitForZoneadm(t *testing.T) {
	s := newZoneSled(t, boot.Options{})
	s.must("zonecfg -z z1 create -b ; set brand=sparse ; set zonepath=/z/z1")
	s.change(func(tx *world.Tx) { zones.StartKernelZone(tx, tx.FindZone("z1")) })
	s.must("zonecfg -z z1 set autoboot=true")
	if z := s.zone("z1"); !z.Config.Autoboot || z.Kernel.Config.Autoboot {
		t.Errorf("configured %v, running with %v: edits count from the next boot", z.Config.Autoboot, z.Kernel.Config.Autoboot)
	}
}
