package instance

import (
	"encoding/json"
	"errors"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation/operationtest"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/instance/record"
)

const someID, otherID = "8c4a2b1e-6a57-4a5c-9d3e-0a1b2c3d4e5f", "8c4a2b1e-6a57-4a5c-9d3e-0a1b2c3d4e60"

func ptr[T any](v T) *T { return &v }

func TestFlagsWinOverAFile(t *testing.T) {
	file := Wanted{CPUs: ptr(2), Memory: ptr(uint64(1 << 30)), Disks: []record.Disk{{Path: "/file"}}, NICs: []record.NIC{{Over: "net0"}}, Pool: ptr("rpool"), Address: &record.Address{Mode: record.DHCP}}
	for name, c := range map[string]struct{ flags, want Wanted }{
		"no flags": {Wanted{}, file},
		"one flag": {Wanted{CPUs: ptr(4)}, Wanted{CPUs: ptr(4), Memory: file.Memory, Disks: file.Disks, NICs: file.NICs, Pool: file.Pool, Address: file.Address}},
		"no disks": {Wanted{Disks: []record.Disk{}, NICs: []record.NIC{}}, Wanted{CPUs: file.CPUs, Memory: file.Memory, Disks: []record.Disk{}, NICs: []record.NIC{}, Pool: file.Pool, Address: file.Address}},
		"all flags": {
			Wanted{CPUs: ptr(1), Memory: ptr(uint64(1)), Disks: []record.Disk{{Path: "/flag"}}, NICs: []record.NIC{{}}, Pool: ptr("tank"), Address: &record.Address{Mode: record.Addrconf}},
			Wanted{CPUs: ptr(1), Memory: ptr(uint64(1)), Disks: []record.Disk{{Path: "/flag"}}, NICs: []record.NIC{{}}, Pool: ptr("tank"), Address: &record.Address{Mode: record.Addrconf}},
		},
	} {
		t.Run(name, func(t *testing.T) { equalWanted(t, c.flags.Over(file), c.want) })
	}
}

func TestAnIDAndANameMayComeFromBoth(t *testing.T) {
	for name, c := range map[string]struct{ flags, file, want Wanted }{
		"a name from the flags":           {Wanted{Ref: "web1"}, Wanted{}, Wanted{Ref: "web1"}},
		"a name from the file":            {Wanted{}, Wanted{Ref: "web1"}, Wanted{Ref: "web1"}},
		"both names":                      {Wanted{Ref: "web1"}, Wanted{Ref: "web2"}, Wanted{Ref: "web1"}},
		"an id, the name from the file":   {Wanted{Ref: someID}, Wanted{Ref: "web1"}, Wanted{Ref: someID, Name: "web1"}},
		"a name, the id from the file":    {Wanted{Ref: "web1"}, Wanted{Ref: someID}, Wanted{Ref: someID, Name: "web1"}},
		"a name over the file's, its id":  {Wanted{Ref: "web1"}, Wanted{Ref: someID, Name: "web2"}, Wanted{Ref: someID, Name: "web1"}},
		"an id over the file's, its name": {Wanted{Ref: otherID}, Wanted{Ref: someID, Name: "web2"}, Wanted{Ref: otherID, Name: "web2"}},
		"id and name over the file's":     {Wanted{Ref: otherID, Name: "web1"}, Wanted{Ref: someID, Name: "web2"}, Wanted{Ref: otherID, Name: "web1"}},
		"nothing":                         {Wanted{}, Wanted{}, Wanted{}},
	} {
		if got := c.flags.Over(c.file); got.Ref != c.want.Ref || got.Name != c.want.Name {
			t.Errorf("%s: %q %q", name, got.Ref, got.Name)
		}
	}
}

func TestWhatIsLeftOpenStaysAsItIs(t *testing.T) {
	was := record.Spec{
		CPUs: 2, Memory: 1 << 30, Disks: []record.Disk{{Path: "/a"}}, Pool: "rpool", Address: record.Address{Mode: record.DHCP},
		NICs: []record.NIC{{Over: "net0", MAC: "02:08:20:00:00:01"}, {Over: "net1", MAC: "02:08:20:00:00:02", VLAN: 7}},
	}
	nics := func(w Wanted) []record.NIC { return w.apply(was).NICs }
	for name, c := range map[string]struct{ got, want any }{
		"all of it":                           {Wanted{}.apply(was), was},
		"but the CPUs":                        {Wanted{CPUs: ptr(4)}.apply(was).CPUs, 4},
		"but the memory":                      {Wanted{Memory: ptr(uint64(2 << 30))}.apply(was).Memory, uint64(2 << 30)},
		"but the disks":                       {Wanted{Disks: []record.Disk{}}.apply(was).Disks, []record.Disk{}},
		"but the pool":                        {Wanted{Pool: ptr("tank")}.apply(was).Pool, "tank"},
		"an empty pool is none":               {Wanted{Pool: ptr("")}.apply(was).Pool, "rpool"},
		"but the address":                     {Wanted{Address: &record.Address{Mode: record.Addrconf}}.apply(was).Address.Mode, record.Addrconf},
		"a NIC keeps its link and MAC":        {nics(Wanted{NICs: []record.NIC{{}, {VLAN: 7}}}), was.NICs},
		"a NIC on another link has a new MAC": {nics(Wanted{NICs: []record.NIC{{Over: "net1"}}}), []record.NIC{{Over: "net1"}}},
		"a MAC that is given counts":          {nics(Wanted{NICs: []record.NIC{{MAC: "02:08:20:00:00:09"}}}), []record.NIC{{Over: "net0", MAC: "02:08:20:00:00:09"}}},
		"a third NIC is open":                 {nics(Wanted{NICs: []record.NIC{{}, {}, {}}})[2], record.NIC{}},
		"no NICs":                             {nics(Wanted{NICs: []record.NIC{}}), []record.NIC{}},
	} {
		same := cmp.Options{cmp.Comparer(func(a, b record.Address) bool { return a == b })}
		if d := cmp.Diff(c.want, c.got, same); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	if was.NICs[0].Over != "net0" || was.NICs[1].VLAN != 7 {
		t.Errorf("the spec itself was changed: %+v", was)
	}
}

func TestAZeroThatIsAskedForIsNotTheDefault(t *testing.T) {
	for name, w := range map[string]Wanted{"CPUs": {CPUs: ptr(0)}, "fewer": {CPUs: ptr(-1)}, "memory": {Memory: ptr(uint64(0))}} {
		if _, ok := errors.AsType[*record.InputError](w.validate()); !ok {
			t.Errorf("%s: taken", name)
		}
	}
	if err := (Wanted{}).validate(); err != nil {
		t.Error(err)
	}
}

func TestWhoIsMeant(t *testing.T) {
	c := settings()
	known := record.Record{ID: someID, Name: "db", Wanted: record.WantedStopped, Spec: record.Spec{Address: record.Address{Mode: record.DHCP}}}
	view := operationtest.Book(t, kept(t, known)...)
	for name, tc := range map[string]struct {
		wanted   Wanted
		id, name string
	}{
		"a new name":                  {Wanted{Ref: "web1"}, c.ID("web1"), "web1"},
		"a known name":                {Wanted{Ref: "db"}, someID, "db"},
		"a known id":                  {Wanted{Ref: someID}, someID, "db"},
		"a known id in other letters": {Wanted{Ref: "{8C4A2B1E-6A57-4A5C-9D3E-0A1B2C3D4E5F}"}, someID, "db"},
		"a known id with a new name":  {Wanted{Ref: someID, Name: "db2"}, someID, "db2"},
		"a new id":                    {Wanted{Ref: otherID}, otherID, "vm-" + otherID},
		"a new id with a name":        {Wanted{Ref: otherID, Name: "web1"}, otherID, "web1"},
	} {
		id, n, err := identityOf(c.Namespace, view, tc.wanted)
		if err != nil || id != tc.id || n != tc.name {
			t.Errorf("%s: %s %q, %v", name, id, n, err)
		}
	}
	for name, w := range map[string]Wanted{
		"nobody":                {},
		"a name that cannot be": {Ref: "Web_1"},
		"a taken name":          {Ref: otherID, Name: "db"},
	} {
		if id, n, err := identityOf(c.Namespace, view, w); err == nil {
			t.Errorf("%s: %s %q", name, id, n)
		}
	}
	if _, err := c.Find(view, "web1"); err == nil {
		t.Error("an instance that is not recorded was found")
	}
}

func TestDifferencesShowBothValues(t *testing.T) {
	is := record.Spec{CPUs: 2, Memory: 1 << 30, Disks: []record.Disk{{Path: "/a", ReadOnly: true}}, Address: record.Address{Mode: record.DHCP}, Pool: "rpool"}
	wanted := record.Spec{CPUs: 4, Memory: 512 << 20, NICs: []record.NIC{{Over: "net0", MAC: "02:08:20:00:00:01", VLAN: 7}}, Address: record.Address{Mode: record.Addrconf}, Pool: "tank"}
	want := []Difference{
		{"cpus", "2", "4"}, {"memory", "1G", "512M"}, {"disks", "/a,readonly", "none"}, {"nics", "none", "over=net0,mac=02:08:20:00:00:01,vlan=7"},
		{"address", "dhcp", "addrconf"}, {"pool", "rpool", "tank"},
	}
	if d := cmp.Diff(want, differences(is, wanted)); d != "" {
		t.Error(d)
	}
	if all := differences(is, is); all != nil {
		t.Errorf("from itself: %v", all)
	}
}

func equalWanted(t *testing.T, got, want Wanted) {
	t.Helper()
	same := cmp.Options{
		cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }), cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
	}
	if d := cmp.Diff(want, got, same); d != "" {
		t.Error(d)
	}
}

func TestANameWhoseOwnerCannotBeReadIsNotFree(t *testing.T) {
	view := operationtest.Book(t, ledger.Fact{Key: naming.KeyInstance + someID, Value: json.RawMessage(`{"id": 7}`)}, ledger.Fact{Key: naming.KeyName + "web1", Value: json.RawMessage(`7`)})
	if _, _, err := identityOf(settings().Namespace, view, Wanted{Ref: otherID, Name: "web1"}); err == nil {
		t.Error("its name was given to another")
	}
}
