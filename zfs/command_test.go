package zfs

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
)

func TestQueryLines(t *testing.T) {
	properties := append(native(), "sledctl:instance", "sledctl:base")
	for _, c := range []struct {
		command host.Command
		want    string
	}{
		{
			listCommand([]string{"rpool/zone", "oxp_1"}, properties),
			"zfs get -Hp -r -o name,property,value,source " +
				"type,guid,mountpoint,mounted,origin,used,available,quota,reservation,compression,canmount,sledctl:instance,sledctl:base " +
				"rpool/zone oxp_1",
		},
		{getCommand("tank/a", []string{"type", "guid"}), "zfs get -Hp -o name,property,value,source type,guid tank/a"},
		{nearCommand("tank/a", []string{"guid"}), "zfs get -Hp -d 1 -o name,property,value,source guid tank/a"},
		{
			getCommand("tank/a", Extended()),
			"zfs get -Hp -o name,property,value,source refquota,volsize,zoned,encryption,keyformat,keystatus,encryptionroot tank/a",
		},
		{poolsCommand(), "zpool list -HpvP -o name,size,allocated,free,health,guid,failmode"},
		{plainPoolsCommand(), "zpool list -H -o name,guid,health,failmode"},
		{statusCommand(), "zpool status"},
		{poolCommand("tank"), "zpool list -H -o name,guid tank"},
		{attributesCommand([]string{"/zone", "/a b"}), "ls -d/v /zone '/a b'"},
		{importableCommand(""), "zpool import"},
		{importableCommand("/var/tmp/a b"), "zpool import -d '/var/tmp/a b'"},
	} {
		if diff := cmp.Diff(c.want, c.command.Shell()); diff != "" {
			t.Error(diff)
		}
		if !c.command.ReadOnly {
			t.Errorf("%s: is not read-only", c.want)
		}
	}
}

// explainer is what package plan prints of a step.
type explainer interface {
	Verb() string
	Explain() []host.Line
	Undo() any
}

func TestStepLines(t *testing.T) {
	for _, c := range []struct {
		step explainer
		verb string
		want []string
	}{
		{
			Create{Dataset: "tank/a", Properties: []Property{{"mountpoint", "/a b"}, {"x:y", "it's"}}},
			"zfs.create", []string{`zfs create -o 'mountpoint=/a b' -o 'x:y=it'\''s' tank/a`},
		},
		{
			Create{Dataset: "tank/zone/a", Mountpoint: "/zone/a", Mode: 0o700},
			"zfs.create", []string{"zfs create tank/zone/a", "chmod 0700 /zone/a"},
		},
		{
			Create{Dataset: "tank/a", Properties: []Property{{"mountpoint", "/a"}}, Mode: 0o755},
			"zfs.create", []string{"zfs create -o mountpoint=/a tank/a", "chmod 0755 /a"},
		},
		{Create{Dataset: "tank/a@b"}, "zfs.create", nil},
		{Set{Dataset: "tank/a", Name: "quota", Value: "1024"}, "zfs.set", []string{"zfs set quota=1024 tank/a"}},
		{Inherit{Dataset: "tank/a", Name: "x:y"}, "zfs.inherit", []string{"zfs inherit x:y tank/a"}},
		{Mount{Dataset: "tank/a"}, "zfs.mount", []string{"zfs mount tank/a"}},
		{Unmount{Dataset: "tank/a"}, "zfs.unmount", []string{"zfs unmount tank/a"}},
		{Snapshot{Name: "tank/a@b", Properties: []Property{{"x:y", "1"}}}, "zfs.snapshot", []string{"zfs snapshot -o x:y=1 tank/a@b"}},
		{Destroy{Dataset: "tank/a", GUID: "1"}, "zfs.destroy", []string{"zfs unmount tank/a", "zfs destroy tank/a"}},
		{Destroy{Dataset: "tank/v", Type: TypeVolume}, "zfs.destroy", []string{"zfs destroy tank/v"}},
		{CloneVolume{Snapshot: "tank/v@s", Dataset: "tank/w", Properties: []Property{{"x:y", "1"}}}, "zfs.clone-volume", []string{"zfs clone -o x:y=1 tank/v@s tank/w"}},
		{CloneVolume{Snapshot: "tank/v", Dataset: "tank/w"}, "zfs.clone-volume", nil},
		{
			ReceiveVolume{Dataset: "tank/w", Snapshot: "s", Properties: []Property{{"x:y", "1"}}, From: Sent{Snapshot: "tank/v@s"}.Source()}, "zfs.receive-volume",
			[]string{"zfs send tank/v@s | zfs receive -u -o x:y=1 tank/w@s", "zfs destroy tank/w@s"},
		},
		{
			ReceiveVolume{Dataset: "tank/w", Snapshot: "s", From: Sent{Snapshot: "tank/v@s", Since: "tank/v@r"}.Source()}, "zfs.receive-volume",
			[]string{"zfs send -i tank/v@r tank/v@s | zfs receive -u tank/w@s", "zfs destroy tank/w@s"},
		},
		{
			ReceiveVolume{Dataset: "tank/w", Snapshot: "s", From: Sent{Token: "1-ab-c-d"}.Source()}, "zfs.receive-volume",
			[]string{"zfs send -t 1-ab-c-d | zfs receive -u tank/w@s", "zfs destroy tank/w@s"},
		},
		{ReceiveVolume{Dataset: "tank/w@s"}, "zfs.receive-volume", nil},
		{
			ReceiveVolume{Dataset: "tank/w", Snapshot: "s", Keep: true, From: Sent{Snapshot: "tank/v@s"}.Source()}, "zfs.receive-volume",
			[]string{"zfs send tank/v@s | zfs receive -u tank/w@s"},
		},
		{
			ReceiveChanges{Dataset: "tank/w", Since: "s", Snapshot: "t", From: Sent{Snapshot: "tank/v@t", Since: "tank/v@s"}.Source()}, "zfs.receive-changes",
			[]string{"zfs send -i tank/v@s tank/v@t | zfs receive -u tank/w@t", "zfs destroy tank/w@s"},
		},
		{ReceiveChanges{Dataset: "tank/w", Since: "s"}, "zfs.receive-changes", nil},
		{DestroySnapshot{Name: "tank/a@b"}, "zfs.destroy-snapshot", []string{"zfs destroy tank/a@b"}},
		{DestroySnapshots{Dataset: "tank/a", Snapshot: "b"}, "zfs.destroy-snapshots", []string{"zfs destroy -r tank/a@b"}},
		{
			CreatePool{Name: "oxp_1", Device: "c1t0d0", Properties: []Property{{"ashift", "12"}}},
			"zpool.create", []string{"zpool create -o ashift=12 oxp_1 c1t0d0"},
		},
		{SetPool{Pool: "oxp_1", Name: "failmode", Value: "continue"}, "zpool.set", []string{"zpool set failmode=continue oxp_1"}},
		{ImportPool{Name: "oxp_1", GUID: "17"}, "zpool.import", []string{"zpool import 17"}},
		{ImportPool{Name: "oxp_1", GUID: "17", Dir: "/vdev", Force: true}, "zpool.import", []string{"zpool import -f -d /vdev 17"}},
		{Protect{Directory: "/zone", Make: true}, "zfs.protect", []string{"mkdir -p -m 0755 /zone", "chmod S+ci /zone"}},
		{Protect{Directory: "/zone"}, "zfs.protect", []string{"chmod S+ci /zone"}},
		{
			Protect{Directory: "/zone", Entries: []string{"a", "b c"}, Aside: "/old-zone", Loosen: true}, "zfs.protect",
			[]string{
				"chmod S-ci /zone", "mkdir -p -m 0755 /old-zone", "mv /zone/a /old-zone/a", "mv '/zone/b c' '/old-zone/b c'", "chmod S+ci /zone",
			},
		},
		{Protect{Directory: "/zone", Make: true, Unfixable: true}, "zfs.protect", []string{"mkdir -p -m 0755 /zone"}},
		{ExportPool{Name: "oxp_1", GUID: "17"}, "zpool.export", []string{"zpool export oxp_1"}},
	} {
		if got := c.step.Verb(); got != c.verb {
			t.Errorf("verb %q, want %q", got, c.verb)
		}
		var got []string
		for _, l := range c.step.Explain() {
			if !l.Mutates() {
				t.Errorf("%q changes something", l.Text)
			}
			got = append(got, l.Text)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestUndo(t *testing.T) {
	for name, c := range map[string]struct {
		step explainer
		want any
	}{
		"a creation":                      {Create{Dataset: "tank/a", Mode: 0o700, Mountpoint: "/a"}, Destroy{Dataset: "tank/a"}},
		"a mount":                         {Mount{"tank/a"}, Unmount{"tank/a"}},
		"an unmount":                      {Unmount{"tank/a"}, Mount{"tank/a"}},
		"a snapshot":                      {Snapshot{Name: "tank/a@b"}, DestroySnapshot{Name: "tank/a@b"}},
		"a new pool":                      {CreatePool{Name: "p", Device: "d"}, nil},
		"a property of a pool":            {SetPool{"p", "failmode", "continue", "wait"}, SetPool{"p", "failmode", "wait", "continue"}},
		"one of unknown old value":        {SetPool{"p", "failmode", "continue", ""}, nil},
		"an import":                       {ImportPool{Name: "p", GUID: "1", Dir: "/d", Force: true}, ExportPool{"p", "1", "/d"}},
		"an export":                       {ExportPool{"p", "1", "/d"}, ImportPool{Name: "p", GUID: "1", Dir: "/d"}},
		"an export of whatever":           {ExportPool{"p", "", "/d"}, nil},
		"a destruction":                   {Destroy{Dataset: "tank/a"}, nil},
		"the destruction of a snapshot":   {DestroySnapshot{Name: "tank/a@b"}, nil},
		"the destruction of snapshots":    {DestroySnapshots{Dataset: "tank/a", Snapshot: "b"}, nil},
		"an own value":                    {Set{"tank/a", "x:y", "2", "1", Local}, Set{"tank/a", "x:y", "1", "2", Local}},
		"a value of unknown source":       {Set{"tank/a", "quota", "2", "1", ""}, Set{"tank/a", "quota", "1", "2", Local}},
		"an own value that is empty":      {Set{"tank/a", "x:y", "2", "", Local}, Set{"tank/a", "x:y", "", "2", Local}},
		"a user property that was unset":  {Set{"tank/a", "x:y", "2", "", ""}, Inherit{Dataset: "tank/a", Name: "x:y"}},
		"one that zfs shows as unset":     {Set{"tank/a", "x:y", "2", "-", "-"}, Inherit{Dataset: "tank/a", Name: "x:y"}},
		"an inherited value":              {Set{"tank/a", "atime", "on", "off", "inherited from tank"}, Inherit{Dataset: "tank/a", Name: "atime"}},
		"a default":                       {Set{"tank/a", "compression", "on", "off", "default"}, Inherit{Dataset: "tank/a", Name: "compression"}},
		"a default that is not inherited": {Set{"tank/a", "quota", "1", "0", "default"}, Set{"tank/a", "quota", "0", "1", Local}},
		"a native value that is unknown":  {Set{"tank/a", "compression", "on", "", ""}, nil},
		"an inheritance":                  {Inherit{Dataset: "tank/a", Name: "x:y", Old: "1"}, Set{Dataset: "tank/a", Name: "x:y", Value: "1"}},
		"an inheritance of the unknown":   {Inherit{Dataset: "tank/a", Name: "x:y"}, nil},
	} {
		if diff := cmp.Diff(c.want, c.step.Undo()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestLegacyMountLines(t *testing.T) {
	for want, c := range map[string]host.Command{
		"mount -F zfs tank/z/ROOT/zbe /z/root": mountLegacyCommand("tank/z/ROOT/zbe", "/z/root"),
		"umount /z/root":                       unmountLegacyCommand("/z/root"),
	} {
		if c.Shell() != want || c.ReadOnly {
			t.Errorf("%s, want %s", c.Shell(), want)
		}
	}
}
