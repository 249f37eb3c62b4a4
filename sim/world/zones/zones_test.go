package zones_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/boot"
	"github.com/sledctl/sledctl/sim/world/zones"
	"github.com/sledctl/sledctl/test/hosttest"
	"github.com/sledctl/sledctl/test/refdata"
)

// zonesTx is a transaction on a fresh sled with its files.
func zonesTx(t *testing.T, mode world.Mode) *world.Tx {
	t.Helper()
	o := boot.Options{Mode: mode}
	files := hosttest.Memory()
	if err := boot.LayRoot(files, o); err != nil {
		t.Fatal(err)
	}
	s := boot.Fresh(o)
	return world.NewTx(s, s.Booted, files)
}

func addZone(t *testing.T, tx *world.Tx, name, zonepath string) *world.Zone {
	t.Helper()
	z, err := zones.AddZone(tx, name, world.Config{Brand: "sparse", Zonepath: zonepath, IPType: "exclusive"})
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func setState(t *testing.T, tx *world.Tx, z *world.Zone, state string) {
	t.Helper()
	if err := zones.SetZoneState(tx, z, state); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, tx *world.Tx, name string) string {
	t.Helper()
	data, err := host.ReadFile(tx.Files, name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// putzoneent and getzoneent in usr/src/lib/libzonecfg/common/getzoneent.c.
func TestTheIndexOfZones(t *testing.T) {
	tx := zonesTx(t, world.OmniOS)
	const head = "# kept by hand\n\nglobal:installed:/\n"
	if err := world.ReplaceFile(tx.Files, zones.ZoneIndex, []byte(head), 0o644); err != nil {
		t.Fatal(err)
	}
	is := func(want string) {
		t.Helper()
		if diff := cmp.Diff(head+want, readFile(t, tx, zones.ZoneIndex)); diff != "" {
			t.Errorf("index (-want +got):\n%s", diff)
		}
	}
	z1 := addZone(t, tx, "z1", "/z/z1")
	z2 := addZone(t, tx, "z2", "/z/a:b")
	is("z1:configured:/z/z1:\nz2:configured:\"/z/a:b\":\n")

	// The UUID is new with incomplete, stays with installed and goes with
	// configured.
	setState(t, tx, z1, world.ZoneIncomplete)
	first := z1.UUID
	is("z1:incomplete:/z/z1:" + first + "\nz2:configured:\"/z/a:b\":\n")
	setState(t, tx, z1, world.ZoneInstalled)
	is("z1:installed:/z/z1:" + first + "\nz2:configured:\"/z/a:b\":\n")
	setState(t, tx, z1, world.ZoneIncomplete)
	if z1.UUID == first || len(z1.UUID) != 36 {
		t.Errorf("UUID %q after %q", z1.UUID, first)
	}
	setState(t, tx, z1, world.ZoneConfigured)
	is("z1:configured:/z/z1:\nz2:configured:\"/z/a:b\":\n")

	if err := zones.RenameZone(tx, z1, "first"); err != nil {
		t.Fatal(err)
	}
	is("first:configured:/z/z1:\nz2:configured:\"/z/a:b\":\n")
	if _, err := tx.Files.Stat("/etc/zones/z1.xml"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file of the old name: %v", err)
	}
	if text := readFile(t, tx, "/etc/zones/first.xml"); !strings.Contains(text, `<zone name="first" zonepath="/z/z1"`) {
		t.Errorf("first.xml:\n%s", text)
	}
	if err := zones.RemoveZone(tx, z2); err != nil {
		t.Fatal(err)
	}
	is("first:configured:/z/z1:\n")
	if tx.FindZone("z2") != nil {
		t.Error("z2 is still there")
	}
}

// zone_alloc_zoneid in usr/src/uts/common/os/zone.c: ids go up, and are not
// used again before they come round.
func TestEveryBootHasAnIDOfItsOwn(t *testing.T) {
	tx := zonesTx(t, world.OmniOS)
	z1, z2 := addZone(t, tx, "z1", "/z/z1"), addZone(t, tx, "z2", "/z/z2")
	if id := zones.StartKernelZone(tx, z2).ID; id != 1 {
		t.Errorf("first id %d", id)
	}
	if id := zones.StartKernelZone(tx, z1).ID; id != 2 {
		t.Errorf("second id %d", id)
	}
	if order := tx.KernelZones(); order[0] != z2 || order[1] != z1 {
		t.Error("zones are not in the order of their start")
	}
	z2.Kernel = nil
	if id := zones.StartKernelZone(tx, z2).ID; id != 3 {
		t.Errorf("id of the second boot %d", id)
	}
	z2.Kernel = nil
	tx.State.Counters["zone id"] = zones.MaxZoneID
	if id := zones.StartKernelZone(tx, z2).ID; id != 1 {
		t.Errorf("id after the last %d", id)
	}
	z2.Kernel = nil
	if id := zones.StartKernelZone(tx, z2).ID; id != 3 {
		t.Errorf("id past one in use %d", id)
	}
	zones.ForgetKernelZones(tx)
	if len(tx.KernelZones()) != 0 || zones.StartKernelZone(tx, z1).ID != 1 {
		t.Error("a reboot begins with 1 again")
	}
}

// A ready zone has a copy of its configuration (zonecfg_create_snapshot in
// libzonecfg.c).
func TestARunningZoneKeepsItsConfiguration(t *testing.T) {
	tx := zonesTx(t, world.OmniOS)
	z := addZone(t, tx, "z1", "/z/z1")
	z.Config.Resources = []world.Resource{{Type: "fs", Properties: []world.Property{{Name: "options", Values: []string{"ro"}}}}}
	k := zones.StartKernelZone(tx, z)
	z.Config.Zonepath = "/elsewhere"
	z.Config.Resources[0].Set("options", "rw")
	z.Config.SetGlobal("limitpriv", "default")
	if z.Root() != "/z/z1/root" || k.Config.Resources[0].Get("options") != "ro" || k.Config.Globals != nil {
		t.Errorf("the kernel zone has %+v", k.Config)
	}
	if z.State != world.ZoneConfigured || z.Current() != world.ZoneReady {
		t.Errorf("state %s, current %s", z.State, z.Current())
	}
	z.Kernel = nil
	if z.Root() != "/elsewhere/root" {
		t.Errorf("root %s", z.Root())
	}
}

func TestPathsInAZone(t *testing.T) {
	tx := zonesTx(t, world.OmniOS)
	z := addZone(t, tx, "z1", "/z/z1")
	loops := []world.Loop{
		{Dir: "/usr", Special: "/usr", ReadOnly: true},
		{Dir: "/usr/lib/fm", Special: "/z/z1/root/usr/lib/fm"},
		{Dir: "/opt/app", Special: "/data/app"},
	}
	at := func(name, want string, readOnly bool) {
		t.Helper()
		if got := tx.ZonePathOf("z1", name); got != want {
			t.Errorf("%s lies at %s, want %s", name, got, want)
		}
		if got := tx.ReadOnlyIn("z1", name); got != readOnly {
			t.Errorf("%s read-only: %v", name, got)
		}
	}
	at("/usr/bin/svcs", "/z/z1/root/usr/bin/svcs", false)
	zones.StartKernelZone(tx, z).Loops = loops
	at("/usr/bin/svcs", "/usr/bin/svcs", true)
	at("/usr", "/usr", true)
	at("/usrlocal", "/z/z1/root/usrlocal", false)
	at("/usr/lib/fm/x", "/z/z1/root/usr/lib/fm/x", false) // the last mount wins
	at("/usr/lib/fmd", "/usr/lib/fmd", true)
	at("/opt/app/../app/f", "/data/app/f", false)
	at("../../etc/passwd", "/z/z1/root/etc/passwd", false)
	z.Kernel = nil
	at("/opt/app/f", "/z/z1/root/opt/app/f", false)
	if got := tx.ZonePathOf(world.GlobalZone, "/opt/app"); got != "/opt/app" {
		t.Errorf("in the global zone: %s", got)
	}
}

// usr/src/lib/libzonecfg/dtd/zonecfg.dtd.1; libxml2 writes two blanks of indent.
func TestTheDocumentOfAZone(t *testing.T) {
	resource := func(kind string, pairs ...string) world.Resource {
		r := world.Resource{Type: kind}
		for i := 0; i < len(pairs); i += 2 {
			r.Set(pairs[i], pairs[i+1])
		}
		return r
	}
	c := world.Config{Brand: "sparse", Zonepath: "/z/z1", IPType: "exclusive",
		Globals: map[string]string{"limitpriv": "default,dtrace_proc", "debugid": "3"}}
	fs := resource("fs", "dir", "/opt/a", "special", "/a & b", "type", "lofs")
	fs.Set("options", "ro", "nodevices")
	cap := resource("rctl", "name", "zone.cpu-cap")
	cap.Set("value", "(priv=privileged,limit=200,action=deny)")
	c.Resources = []world.Resource{
		resource("attr", "name", "owner", "type", "string", "value", `say "hi"`), fs,
		resource("net", "physical", "vnic0", "allowed-address", "10.0.0.2/24"), cap,
		resource("device", "match", "/dev/vmm/*"), resource("dataset", "name", "rpool/d"),
		resource("dedicated-cpu", "ncpus", "2-4", "importance", "7"), resource("capped-memory", "physical", "1048576"),
	}
	const want = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE zone PUBLIC "-//Sun Microsystems Inc//DTD Zones//EN" "file:///usr/share/lib/xml/dtd/zonecfg.dtd.1">
<!--
    DO NOT EDIT THIS FILE.  Use zonecfg(8) instead.
-->
<zone name="z1" zonepath="/z/z1" autoboot="false" brand="sparse" ip-type="exclusive" limitpriv="default,dtrace_proc" debugid="3">
  <attr name="owner" type="string" value="say &quot;hi&quot;"/>
  <filesystem special="/a &amp; b" directory="/opt/a" type="lofs">
    <fsoption name="ro"/>
    <fsoption name="nodevices"/>
  </filesystem>
  <network allowed-address="10.0.0.2/24" physical="vnic0"/>
  <rctl name="zone.cpu-cap">
    <rctl-value priv="privileged" limit="200" action="deny"/>
  </rctl>
  <device match="/dev/vmm/*"/>
  <dataset name="rpool/d"/>
  <tmp_pool importance="7"/>
  <pset ncpu_min="2" ncpu_max="4"/>
  <mcap physcap="1048576"/>
</zone>
`
	got := zones.ZoneXML("z1", c)
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("document (-want +got):\n%s", diff)
	}
	name, back, err := zones.ParseZoneXML(got)
	if err != nil || name != "z1" {
		t.Fatalf("read back %q: %v", name, err)
	}
	if diff := cmp.Diff(string(got), string(zones.ZoneXML(name, back))); diff != "" {
		t.Errorf("read back and written again (-want +got):\n%s", diff)
	}
}

func TestDocumentsThatAreNone(t *testing.T) {
	for name, text := range map[string]string{"empty": "", "half": "<zone", "something else": "<service_bundle/>"} {
		if _, _, err := zones.ParseZoneXML([]byte(text)); !errors.Is(err, zones.ErrZoneDocument) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A document of SmartOS has elements and attributes that only it knows; they
// are passed over, as libzonecfg does with what is not asked for.
func TestADocumentFromARealSled(t *testing.T) {
	for file, data := range refdata.Files(t, "samples/illumos/etc-zones-*.xml") {
		name, c, err := zones.ParseZoneXML(data)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		minimal := file == "etc-zones-minimal-joyent.xml" // a zone without resources
		want := strings.TrimSuffix(strings.TrimPrefix(file, "etc-zones-"), ".xml")
		if minimal {
			want = "073ae53b-c444-4e23-866b-10f99f276242"
		}
		if name != want {
			t.Errorf("name %q, want %q", name, want)
		}
		if c.Brand != "joyent" || c.IPType != "exclusive" || !c.Autoboot || c.Zonepath != "/zones/"+name {
			t.Errorf("configuration %+v", c)
		}
		// All but the elements that only SmartOS has are written as they were.
		written := string(zones.ZoneXML(name, c))
		for line := range strings.Lines(string(data)) {
			if strings.Contains(line, "net-attr") || strings.Contains(line, "network") || strings.Contains(line, "<zone ") {
				continue
			}
			if !strings.Contains(written, line) {
				t.Errorf("lost: %s", line)
			}
		}
		if minimal {
			continue
		}
		net := c.All("net")[0]
		if net.Get("mac-addr") != "01:02:03:04:05:06" || net.Get("vlan-id") != "1024" || net.Get("global-nic") != "internal" {
			t.Errorf("net %+v", net)
		}
	}
}

// omniosorg/pkg5 src/brand/etc has a template per brand next to those of the
// gate; the brand of Helios has none, but its baseline.
func TestTemplatesAndBaselines(t *testing.T) {
	tx := zonesTx(t, "") // OmniOS
	for template, brand := range map[string]string{"SUNWblank": "ipkg", "SUNWdefault": "ipkg", "OMNIsparse": "sparse", "OMNIbhyve": "bhyve"} {
		c, err := zones.ZoneTemplate(tx, template)
		if err != nil || c.Brand != brand {
			t.Errorf("%s: brand %q, %v", template, c.Brand, err)
		}
	}
	if _, err := zones.ZoneTemplate(tx, "OMNIomicron1"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no such template: %v", err)
	}
	tx = zonesTx(t, world.Helios)
	if _, err := zones.ZoneTemplate(tx, "OMNIsparse"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("OmniOS's template on Helios: %v", err)
	}
	if _, err := tx.Files.Stat("/var/run/brand/omicron1/baseline/files.tar.gz"); err != nil {
		t.Error(err)
	}
}

func TestTheGlobalZoneIsNoZone(t *testing.T) {
	tx := zonesTx(t, world.OmniOS)
	if tx.FindZone(world.GlobalZone) != nil || tx.ZoneRoot(world.GlobalZone) != "/" || tx.ZoneRoot("nobody") != "" {
		t.Errorf("global %v, root of nobody %q", tx.FindZone(world.GlobalZone), tx.ZoneRoot("nobody"))
	}
}

// A sled that has lost its RAM disk has no zones, but what they had on disk
// (omicron issue 2888).
func TestDropZones(t *testing.T) {
	tx := zonesTx(t, world.Helios)
	addZone(t, tx, "z1", "/z/z1")
	addZone(t, tx, "z2", "/z/z2")
	if err := host.MkdirAll(tx.Files, "/z/z1/root", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := zones.DropZones(tx); err != nil {
		t.Fatal(err)
	}
	if index := readFile(t, tx, zones.ZoneIndex); strings.Contains(index, "z1") || len(tx.State.Zones) != 0 {
		t.Errorf("index:\n%s", index)
	}
	if _, err := tx.Files.Stat("/z/z1/root"); err != nil {
		t.Error(err)
	}
}
