package record

import (
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/vnic"
)

func TestDisksAsTheyAreGiven(t *testing.T) {
	for given, want := range map[string]Disk{
		"/disks/a.img":               {Path: "/disks/a.img"},
		"/disks/a.img,readonly":      {Path: "/disks/a.img", ReadOnly: true},
		"tank/vm/a":                  {Path: "/dev/zvol/rdsk/tank/vm/a"},
		"tank/vm/a,readonly":         {Path: "/dev/zvol/rdsk/tank/vm/a", ReadOnly: true},
		"/dev/zvol/dsk/tank/a":       {Path: "/dev/zvol/rdsk/tank/a"},
		"/dev/zvol/rdsk/tank/a":      {Path: "/dev/zvol/rdsk/tank/a"},
		"/disks/with a space":        {Path: "/disks/with a space"},
		"/disks/a.img=b":             {Path: "/disks/a.img=b"},
		"/dev/zvol/rdsk/tank/a@here": {Path: "/dev/zvol/rdsk/tank/a@here"},
	} {
		if got, err := ParseDisk(given); err != nil || got != want {
			t.Errorf("%q: %+v, %v", given, got, err)
		}
	}
}

func TestDisksThatCannotBe(t *testing.T) {
	for _, given := range []string{
		"", ",", ",readonly", "/", "-a.img", "a b", "./a", "../a", "/a/../b", "/a//b", "/a/", "/a,", "/a,readwrite", "/a,readonly,readonly",
		"/a,readonly ", "/a\"b", "/a\nb", "/dev/zvol/dsk/", "tank/", "tank//a", "tank/../a",
	} {
		d, err := ParseDisk(given)
		if input, ok := errors.AsType[*InputError](err); !ok || input.Field != "disk" {
			t.Errorf("%q: %+v, %v", given, d, err)
		}
	}
}

func TestNICsAsTheyAreGiven(t *testing.T) {
	for given, want := range map[string]NIC{
		"":                                   {},
		"over=net0":                          {Over: "net0"},
		"vlan=4094":                          {VLAN: 4094},
		"mac=2:8:20:0:A:b,over=stub0,vlan=1": {Over: "stub0", MAC: "02:08:20:00:0a:0b", VLAN: 1},
		"allow-ip=FD00::5,max-bw=100,over=net0,allow-ip=10.0.0.5,allow-ip=fd00:0::5": {Over: "net0", MaxBW: 100, AllowIP: []string{"10.0.0.5", "fd00::5"}},
	} {
		if got, err := ParseNIC(given); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, %v", given, got, err)
		}
	}
}

func TestNICsThatCannotBe(t *testing.T) {
	for _, given := range []string{
		",", "over", "over=", "mac=", "vlan=", "net0", "over=net0,", ",over=net0", "Over=net0", "mtu=9000",
		"over=net0,over=net1", "vlan=1,vlan=1", "mac=2:8:20:0:0:1,mac=2:8:20:0:0:1",
		"vlan=0", "vlan=-1", "vlan=4095", "vlan=4096", "vlan=99999999999999999999", "vlan=01", "vlan=+1", "vlan=0x1", "vlan= 1",
		"max-bw=", "max-bw=1", "max-bw=0", "max-bw=9M", "max-bw=1000001", "max-bw=5,max-bw=5", "allow-ip=", "allow-ip", "allow-ip=10.0.0.5/24", "allow-ip=10.0.0.5+10.0.0.6", "allow-ip=fe80::1%net0", "allow-ip=::ffff:10.0.0.5", "allow-ip=0.0.0.0",
		"allow-ip=ff02::1", "allow-ip=a", strings.Repeat("allow-ip=10.0.0.5,", 32) + "allow-ip=10.0.0.6",
		"over=net", "over=9net0", "over=net0/1", "over=" + strings.Repeat("a", 31) + "0",
		"mac=ff:ff:ff:ff:ff:ff", "mac=1:0:0:0:0:1", "mac=0:0:0:0:0:0", "mac=2:8:20:0:0", "mac=2:8:20:0:0:1:2", "mac=2-8-20-0-0-1", "mac=2:8:20:0:0:100",
	} {
		if n, err := ParseNIC(given); err == nil {
			t.Errorf("%q is taken: %+v", given, n)
		}
	}
	for given, typed := range map[string]func(error) bool{
		"vlan=4095": func(err error) bool {
			e, ok := errors.AsType[*InputError](err)
			return ok && strings.Contains(e.Want, "4094")
		},
		"over=net": func(err error) bool { _, ok := errors.AsType[*vnic.NameError](err); return ok },
		"mac=1:2":  func(err error) bool { _, ok := errors.AsType[*vnic.MACError](err); return ok },
	} {
		if _, err := ParseNIC(given); !typed(err) {
			t.Errorf("%q: %v", given, err)
		}
	}
}

func TestAddressesAsTheyAreGiven(t *testing.T) {
	static := func(prefix, gateway string) Address {
		a := Address{Mode: Static, Prefix: netip.MustParsePrefix(prefix)}
		if gateway != "" {
			a.Gateway = netip.MustParseAddr(gateway)
		}
		return a
	}
	for given, want := range map[string]Address{
		"dhcp":                                 {Mode: DHCP},
		"addrconf":                             {Mode: Addrconf},
		"10.77.0.5/16":                         static("10.77.0.5/16", ""),
		"10.77.0.5/16,gateway=10.77.0.1":       static("10.77.0.5/16", "10.77.0.1"),
		"fd00:1122::5/64":                      static("fd00:1122::5/64", ""),
		"fd00:1122::5/64,gateway=fd00:1122::1": static("fd00:1122::5/64", "fd00:1122::1"),
	} {
		if got, err := ParseAddress(given); err != nil || got != want {
			t.Errorf("%q: %+v, %v", given, got, err)
		}
	}
}

func TestAddressesThatCannotBe(t *testing.T) {
	for given, field := range map[string]string{
		"": "address", "static": "address", "DHCP": "address", "dhcp,": "address", "10.77.0.5": "address", "10.77.0.5/33": "address",
		"10.77.0.256/16": "address", "0.0.0.0/0": "address", "::/64": "address", "224.0.0.1/8": "address", "ff02::1/64": "address",
		"fe80::1%net0/64": "address", "10.77.0.5/16,": "address", "10.77.0.5/16,gw=10.77.0.1": "address", "10.77.0.5/016": "address",
		"10.77.0.5/16,gateway=": "gateway", "10.77.0.5/16,gateway=10.78.0.1": "gateway", "10.77.0.5/16,gateway=10.77.0.5": "gateway",
		"10.77.0.5/16,gateway=fd00::1": "gateway", "10.77.0.5/16,gateway=10.77.0.1,gateway=10.77.0.1": "gateway",
	} {
		a, err := ParseAddress(given)
		if input, ok := errors.AsType[*InputError](err); !ok || input.Field != field {
			t.Errorf("%q: %+v, %v", given, a, err)
		}
	}
}

func TestNamesOfInstances(t *testing.T) {
	for _, good := range []string{"a", "1", "web1", "web-1.example", "a" + strings.Repeat("-", 61) + "b", strings.Repeat("a", 63)} {
		if err := ValidateName(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "-a", "a-", ".a", "a.", ".", "Web1", "web 1", "web_1", "web/1", "wéb", "web1\n", strings.Repeat("a", 64),
		"8c4a2b1e-6a57-4a5c-9d3e-0a1b2c3d4e5f", "8c4a2b1e6a574a5c9d3e0a1b2c3d4e5f",
	} {
		if _, ok := errors.AsType[*InputError](ValidateName(bad)); !ok {
			t.Errorf("%q is taken", bad)
		}
	}
}

// What is printed is what can be typed.
func TestWhatIsPrintedIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := anyAddress().Draw(t, "address")
		if got, err := ParseAddress(a.String()); err != nil || got != a {
			t.Errorf("address %s: %+v, %v", a, got, err)
		}
		n := anyNIC().Draw(t, "nic")
		if got, err := ParseNIC(NicText([]NIC{n})); err != nil || !reflect.DeepEqual(got, n) {
			t.Errorf("nic %+v: %+v, %v", n, got, err)
		}
		d := anyDisk().Draw(t, "disk")
		if got, err := ParseDisk(DiskText([]Disk{d})); err != nil || got != d {
			t.Errorf("disk %+v: %+v, %v", d, got, err)
		}
	})
}

func FuzzSpecs(f *testing.F) {
	for _, s := range []string{"", "dhcp", "10.0.0.1/8,gateway=10.0.0.2", "over=net0,mac=2:8:20:1:2:3,vlan=7", "/a,readonly", "tank/a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if a, err := ParseAddress(s); err == nil {
			if again, err := ParseAddress(a.String()); err != nil || again != a {
				t.Errorf("address %q is %s, read back %+v, %v", s, a, again, err)
			}
		}
		if n, err := ParseNIC(s); err == nil && n.Over != "" && n.MAC != "" {
			if again, err := ParseNIC(NicText([]NIC{n})); err != nil || !reflect.DeepEqual(again, n) {
				t.Errorf("nic %q: %+v, %v", s, again, err)
			}
		}
		if d, err := ParseDisk(s); err == nil {
			if again, err := ParseDisk(DiskText([]Disk{d})); err != nil || again != d {
				t.Errorf("disk %q: %+v, %v", s, again, err)
			}
		}
	})
}

func TestSpecsOutOfBounds(t *testing.T) {
	good := func() Spec {
		return Spec{CPUs: 2, Memory: 1 << 30, Address: Address{Mode: DHCP}, Pool: "rpool"}
	}
	if err := good().Validate(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Spec){
		"no CPU":                  func(s *Spec) { s.CPUs = 0 },
		"fewer than no CPU":       func(s *Spec) { s.CPUs = -1 },
		"more CPUs than Propolis": func(s *Spec) { s.CPUs = spec.MaxCPUs + 1 },
		"no memory":               func(s *Spec) { s.Memory = 0 },
		"less than a MiB":         func(s *Spec) { s.Memory = 1<<20 - 1 },
		"parts of a MiB":          func(s *Spec) { s.Memory = 1<<30 + 1 },
		"nine NICs":               func(s *Spec) { s.NICs = make([]NIC, 9) },
		"nine disks":              func(s *Spec) { s.Disks = make([]Disk, 9) },
		"one disk twice":          func(s *Spec) { s.Disks = []Disk{{Path: "/a"}, {Path: "/a", ReadOnly: true}} },
		"one MAC twice":           func(s *Spec) { s.NICs = []NIC{{MAC: "02:08:20:00:00:01"}, {MAC: "02:08:20:00:00:01"}} },
	} {
		s := good()
		change(&s)
		if _, ok := errors.AsType[*InputError](s.Validate()); !ok {
			t.Errorf("%s is taken", name)
		}
	}
}

func anyAddress() *rapid.Generator[Address] {
	return rapid.Custom(func(t *rapid.T) Address {
		switch rapid.IntRange(0, 3).Draw(t, "mode") {
		case 0:
			return Address{Mode: DHCP}
		case 1:
			return Address{Mode: Addrconf}
		case 2:
			host := rapid.IntRange(2, 250).Draw(t, "host")
			a := Address{Mode: Static, Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 77, 0, byte(host)}), 16)}
			if rapid.Bool().Draw(t, "gateway") {
				a.Gateway = netip.MustParseAddr("10.77.0.1")
			}
			return a
		}
		ip := [16]byte{0: 0xfd, 15: byte(rapid.IntRange(2, 250).Draw(t, "host"))}
		return Address{Mode: Static, Prefix: netip.PrefixFrom(netip.AddrFrom16(ip), 64)}
	})
}

func anyMAC() *rapid.Generator[string] { return rapid.StringMatching(`02:08:20:[0-9a-f]{2}:00:0[1-3]`) }

func anyNIC() *rapid.Generator[NIC] {
	return rapid.Custom(func(t *rapid.T) NIC {
		return NIC{
			Over: rapid.StringMatching(`[a-z][a-z_.]{0,9}[1-9]`).Draw(t, "over"), MAC: anyMAC().Draw(t, "mac"),
			VLAN: rapid.IntRange(0, 4094).Draw(t, "vlan"),
		}
	})
}

func anyDisk() *rapid.Generator[Disk] {
	return rapid.Custom(func(t *rapid.T) Disk {
		return Disk{Path: rapid.StringMatching(`(/dev/zvol/rdsk)?(/[a-z0-9@=]{1,5}){1,3}`).Draw(t, "path"), ReadOnly: rapid.Bool().Draw(t, "readonly")}
	})
}
