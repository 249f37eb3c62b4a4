package ipadm

import (
	"bytes"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sledctl/sledctl/test/refdata"
)

var prefixes = cmpopts.EquateComparable(netip.Prefix{})

func TestParseAddresses(t *testing.T) {
	got, err := ParseAddresses([]byte("lo0/v4:static:ok:127.0.0.1/8\nv0/dhcp:dhcp:down:?\n" + `v0/ll:addrconf:tentative:fe80\:\:8\:20ff\:fe15\:28cd%v0/10` + "\n" +
		`v0/v6:static:duplicate:fd00\:\:5/64` + "\ntun0/x:static:ok:10.0.0.1->10.0.0.2\nv0/?:static:ok:10.0.0.9\nv0/off:static:disabled:somehost\n"))
	want := []Address{
		{"lo0/v4", Static, OK, netip.MustParsePrefix("127.0.0.1/8")},
		{"v0/dhcp", DHCP, Down, netip.Prefix{}},
		{"v0/ll", Addrconf, Tentative, netip.MustParsePrefix("fe80::8:20ff:fe15:28cd/10")},
		{"v0/v6", Static, Duplicate, netip.MustParsePrefix("fd00::5/64")},
		{"tun0/x", Static, OK, netip.Prefix{}},
		{"v0/?", Static, OK, netip.MustParsePrefix("10.0.0.9/32")},
		{"v0/off", Static, Disabled, netip.Prefix{}},
	}
	if diff := cmp.Diff(want, got, prefixes); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
}

func TestParseRoutes(t *testing.T) {
	got, err := ParseRoutes([]byte(`
Routing Table: IPv4
  Destination           Gateway           Flags  Ref     Use     Interface 
-------------------- -------------------- ----- ----- ---------- --------- 
default              10.12.116.1          UG        1         20           
10.12.116.0          10.12.116.7          U         1          9 bnx0      

Routing Table: IPv6
  Destination/Mask            Gateway                   Flags Ref   Use    If   
--------------------------- --------------------------- ----- --- ------- -----
fd00:1122:3344:104::/64     fd00:1122:3344:104::4       U      11    2386 oxControlService12
default                     fd00:1122:3344:104::1       UG     13  210937      
`))
	want := []Route{
		{"default", "10.12.116.1", "UG", ""}, {"10.12.116.0", "10.12.116.7", "U", "bnx0"},
		{"fd00:1122:3344:104::/64", "fd00:1122:3344:104::4", "U", "oxControlService12"}, {"default", "fd00:1122:3344:104::1", "UG", ""},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
}

func TestParsersRefuse(t *testing.T) {
	addresses := func(b []byte) error { _, err := ParseAddresses(b); return err }
	routes := func(b []byte) error { _, err := ParseRoutes(b); return err }
	link := func(b []byte) error { _, err := ParseRouteLink(b); return err }
	const head = "Routing Table: IPv4\n  Destination Gateway Flags Ref Use Interface\n---- ---- ---- ---- ---- ----\n"
	for text, parse := range map[string]func([]byte) error{
		"v0/v4:static:ok\n":                      addresses,
		"v0/v4:static:ok:10.0.0.1/24":            addresses,
		"v0/v4:static:ok:10.0.0.1/33\n":          addresses,
		"v0/v4:static:ok:somehost\n":             addresses,
		"v0/v4:static::10.0.0.1/24\n":            addresses,
		"v0/v4:vrrp:ok:10.0.0.1/24\n":            addresses,
		"v0:static:ok:10.0.0.1/24\n":             addresses,
		"v0/v6:static:ok:fd00::5/64\n":           addresses,
		head + "default 10.0.0.1 UG 1\n":         routes,
		head + "default gateway UG 1 20\n":       routes,
		head + "somenet 10.0.0.1 UG 1 20\n":      routes,
		head + "default 10.0.0.1 1 UG 20 v0\n":   routes,
		head + "default 10.0.0.1 UG x 20 v0\n":   routes,
		"default 10.0.0.1 UG 1 20 v0\n":          routes,
		"":                                       link,
		"  interface: \n":                        link,
		" route to: default\n gateway: 10.0.0.1": link,
	} {
		if err := parse([]byte(text)); !errors.Is(err, ErrSyntax) {
			t.Errorf("%q: %v, want ErrSyntax", text, err)
		}
	}
}

// What real systems printed.
func TestSamples(t *testing.T) {
	for name, text := range refdata.Files(t, "samples/omicron/ipadm_show-addr_-p_-o_ADDR*") {
		for line := range strings.Lines(string(text)) {
			if p, err := parseAddress(strings.TrimSpace(line)); err != nil || !p.IsValid() {
				t.Errorf("%s: %q: %v", name, line, err)
			}
		}
	}
	for name, text := range refdata.Files(t, "samples/omicron/netstat_-rn*") {
		if strings.Contains(name, "grep") {
			continue // lines that somebody picked out
		}
		text = bytes.ReplaceAll(text, []byte("...\n"), nil) // where the document leaves lines out
		if routes, err := ParseRoutes(text); err != nil || len(routes) == 0 {
			t.Errorf("%s: %v, %v", name, routes, err)
		}
	}
	for name, text := range refdata.Files(t, "samples/omicron/route_-n_get_default*") {
		if link, err := ParseRouteLink(text); err != nil || link != "opte0" {
			t.Errorf("%s: %q, %v", name, link, err)
		}
	}
}

// Tables for people, and what other commands printed, are no listings.
func TestSamplesOfOtherKindsAreRefused(t *testing.T) {
	for _, pattern := range []string{"omicron/ipadm__*", "omicron/ipadm_show-if*", "omicron/ipadm_show-addr_opte0*", "omicron/dladm__*", "napi/dladm-show-vnic-p.txt", "illumos/zoneadm-list*"} {
		for name, text := range refdata.Files(t, "samples/"+pattern) {
			if got, err := ParseAddresses(text); err == nil {
				t.Errorf("%s as addresses: %v", name, got)
			}
			if got, err := ParseRoutes(text); err == nil {
				t.Errorf("%s as routes: %v", name, got)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"v0/v4:static:ok:10.0.0.1/24\n", `v0/ll:addrconf:ok:fe80\:\:1%v0/10` + "\n", "lo0:ok\n", "interface: v0\n",
		"Routing Table: IPv4\n---\ndefault 10.0.0.1 UG 1 20\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		addresses, err := ParseAddresses([]byte(text))
		check(t, text, err)
		for _, a := range addresses {
			if a.Address.IsValid() && a.Address.Addr().Zone() != "" {
				t.Errorf("%q: address %v has a zone", text, a.Address)
			}
		}
		_, err = ParseRoutes([]byte(text))
		check(t, text, err)
		_, err = ParseRouteLink([]byte(text))
		check(t, text, err)
	})
}

func check(t *testing.T, text string, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, ErrSyntax) {
		t.Errorf("%q: %v", text, err)
	}
}
