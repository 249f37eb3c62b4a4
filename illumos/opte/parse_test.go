package opte

import (
	"errors"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
)

func TestCommandLines(t *testing.T) {
	for want, c := range map[string]host.Command{
		"opteadm --version":                    versionCommand(),
		"opteadm list-ports":                   listCommand(),
		"opteadm dump-layer -p opte0 firewall": layerCommand("opte0", "firewall"),
		"opteadm set-xde-underlay net0 net1":   setUnderlayCommand(underlay),
		"opteadm delete-xde opte0":             deleteCommand("opte0"),
		"opteadm add-router-entry -p opte0 10.0.0.0/8 ip4=172.30.0.9 custom": addRouteCommand(AddRoute{"opte0", mac, route(t, "10.1.1.1/8 ip4=172.30.0.9 custom"), false}),
		"opteadm create-xde opte0 --guest-mac 02:08:20:a1:00:0f --private-ip 172.30.0.5 --vpc-subnet 172.30.0.0/24 --gateway-mac a8:40:25:ff:77:77 --gateway-ip 172.30.0.1 --vpc-vni 100 --src-underlay-addr fd00:1122:3344:101::1": createCommand(four()),
	} {
		if got := c.Shell(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	c := setRulesCommand(SetRules{Port: "opte0", MAC: mac, Rules: rules(t, "priority=1 action=deny dir=out")})
	if got, want := string(c.Stdin), "dir=out action=deny priority=1 hosts=any protocol=any port=any\n"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	c = setRulesCommand(SetRules{Port: "opte0", MAC: mac, Rules: rules(t, "priority=1 action=deny dir=out port=7-9,12")})
	if got, want := string(c.Stdin), "dir=out action=deny priority=1 hosts=any protocol=any port=7,8,9,12\n"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if c := setRulesCommand(SetRules{Port: "opte0"}); c.Stdin == nil || len(c.Stdin) > 0 {
		t.Errorf("%q, want an empty input: without one it would not be read", c.Stdin)
	}
}

func TestRulesHaveOneForm(t *testing.T) {
	for in, want := range map[string]string{
		"dir=IN action=allow priority=0":                                   "dir=in action=allow priority=0 hosts=any protocol=any port=any",
		"port=443,22,22 priority=9 dir=out action=deny protocol=tcp":       "dir=out action=deny priority=9 hosts=any protocol=tcp port=22,443",
		"dir=in action=allow priority=1 port=25,22-23,24,80-80":            "dir=in action=allow priority=1 hosts=any protocol=any port=22-25,80",
		"dir=in action=allow priority=1 hosts=subnet=10.1.2.3/8":           "dir=in action=allow priority=1 hosts=subnet=10.0.0.0/8 protocol=any port=any",
		"dir=in action=allow priority=1 hosts=ip=FD00::0:1 protocol=icmp6": "dir=in action=allow priority=1 hosts=ip=fd00::1 protocol=icmp6 port=any",
	} {
		got, err := ParseRule(in)
		if err != nil || got.String() != want {
			t.Errorf("%s: %s, %v", in, got, err)
		}
		if again, err := ParseRule(got.String()); err != nil || again != got {
			t.Errorf("%s is read as %s, %v", got, again, err)
		}
	}
	for _, bad := range []string{
		"", "dir=in", "dir=in action=allow", "dir=up action=allow priority=1", "dir=in action=pass priority=1", "dir=in action=allow priority=65536", "dir=in action=allow priority=01",
		"dir=in action=allow priority=1 priority=2", "dir=in action=allow priority=1 hosts=10.0.0.1", "dir=in action=allow priority=1 hosts=ip=10.0.0", "dir=in action=allow priority=1 hosts=vni=16777216",
		"dir=in action=allow priority=1 port=0", "dir=in action=allow priority=1 port=25-22", "dir=in action=allow priority=1 port=0-9", "dir=in action=allow priority=1 protocol=tcp:1", "dir=in action=allow priority=1 protocol=sctp", "dir=in action=allow priority=1 x=y", "any",
	} {
		_, err := ParseRule(bad)
		if e, ok := errors.AsType[*InvalidError](err); !ok || e.Kind() != fault.Usage {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for _, bad := range []string{"", "10.0.0.0/8", "10.0.0.0/8 ig user", "10.0.0.0 ig", "10.0.0.0/8 ip6=fd00::1", "10.0.0.0/8 sub4=10.0.0.0", "fd00::/8 ip4=10.0.0.1", "10.0.0.0/8 ig=x", "224.0.0.0/4 drop", "10.0.0.0/8 drop=1", "10.0.0.0/8 ip4=10.0.0.1 system x"} {
		_, err := ParseRoute(bad)
		if e, ok := errors.AsType[*InvalidError](err); !ok || e.Kind() != fault.Usage {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

const listing = `LINK   MAC ADDRESS        IPv4 ADDRESS  EPHEMERAL IPv4  FLOATING IPv4  IPv6 ADDRESS  EXTERNAL IPv6  FLOATING IPv6  STATE
opte0  A8:40:25:FF:00:01  10.0.0.5      10.1.0.9        10.1.0.2       None          None           None           running
                                                        10.1.0.3                                                   
                                                                                                                   
opte1  A8:40:25:FF:00:02  None          None            None           fd00::5       None           None           ready
`

func TestListingsAreReadStrictly(t *testing.T) {
	ports, err := ParsePorts([]byte(listing))
	if err != nil || len(ports) != 2 || ports[0].MAC != "a8:40:25:ff:00:01" || ports[0].IPs[0].String() != "10.0.0.5" || ports[1].IPs[0].String() != "fd00::5" {
		t.Fatalf("%+v, %v", ports, err)
	}
	for name, bad := range map[string]string{
		"nothing":            "",
		"a column is gone":   strings.ReplaceAll(listing, "  EPHEMERAL IPv4", ""),
		"a column more":      strings.Replace(listing, "STATE", "STATE  MORE", 1),
		"another order":      strings.Replace(listing, "LINK   MAC ADDRESS", "MAC ADDRESS   LINK", 1),
		"cut off":            strings.TrimSuffix(listing, "\n"),
		"a short address":    strings.Replace(listing, "A8:40:25:FF:00:01", "A8:40:25:FF:00   ", 1),
		"a lower-case one":   strings.Replace(listing, "A8:40:25:FF:00:01", "a8:40:25:ff:00:01", 1),
		"no address":         strings.Replace(listing, "10.0.0.5", "10.0.0.x", 1),
		"a row runs over":    strings.Replace(listing, "opte0  A8", "opte000000A8", 1),
		"more of no port":    strings.Join(strings.SplitAfter(listing, "\n")[:1], "") + "                                                        10.1.0.3\n",
		"some other program": "opteadm: no such command\n",
	} {
		if ports, err := ParsePorts([]byte(bad)); !errors.Is(err, ErrSyntax) {
			t.Errorf("%s: %+v, %v", name, ports, err)
		}
	}
}

// An opteadm of years ago had other columns: what omicron's documentation shows is refused, not guessed at.
func TestAnOlderListingIsRefused(t *testing.T) {
	old := "LINK                             MAC ADDRESS              IPv4 ADDRESS     EXTERNAL IPv4    IPv6 ADDRESS                             EXTERNAL IPv6                            STATE\n"
	if ports, err := ParsePorts([]byte(old)); !errors.Is(err, ErrSyntax) {
		t.Errorf("%+v, %v", ports, err)
	}
}

func TestVersions(t *testing.T) {
	for out, ok := range map[string]bool{"opteadm 0.41.503\n": true, "opteadm 0.41\n": true, "opteadm 0.410.1\n": false, "opteadm 0.42.503\n": false, "opteadm 0.41.503": false, "opte 0.41.503\n": false, "": false} {
		if err := ParseVersion([]byte(out)); (err == nil) != ok {
			t.Errorf("%q: %v", out, err)
		}
	}
}

func TestLayersAreReadStrictly(t *testing.T) {
	const good = "Port opte0 - Layer router\n======\nInbound Rules\n------\nID   PRI  HITS  PREDICATES  ACTION\nDEF  --   0     --          \"allow\"\n\nOutbound Rules\n------\n" +
		"ID   PRI  HITS  PREDICATES              ACTION\n1    75   12    inner.ip.dst=0.0.0.0/0  \"Meta: Target = IG(None)\"\nDEF  --   0     --                      \"deny\"\n\n"
	if rows, err := ParseLayer([]byte(good), "opte0", "router"); err != nil || len(rows) != 1 || !(Inside{Router: rows}).HasRoute(route(t, "0.0.0.0/0 ig")) {
		t.Fatalf("%+v, %v", rows, err)
	}
	for name, bad := range map[string]string{
		"nothing": "", "another port": strings.Replace(good, "opte0", "opte1", 1), "another layer": strings.Replace(good, "router", "nat", 1),
		"no default": strings.ReplaceAll(good, "DEF ", "END "), "no outbound rules": good[:strings.Index(good, "Outbound")], "a column more": strings.ReplaceAll(good, "ACTION\n", "ACTION  X\n"),
		"an action without quotes": strings.Replace(good, `"Meta: Target = IG(None)"`, "Meta", 1), "no priority": strings.Replace(good, "75 ", "-- ", 1),
	} {
		if rows, err := ParseLayer([]byte(bad), "opte0", "router"); !errors.Is(err, ErrSyntax) {
			t.Errorf("%s: %+v, %v", name, rows, err)
		}
	}
}

func TestErrorKinds(t *testing.T) {
	for text, kind := range map[string]error{
		"Error: netadm failed not found: link opte0 not found\n":                                                              host.ErrNotFound,
		"Error: command DumpLayer failed: PortNotFound(\"opte0\")\n":                                                          host.ErrNotFound,
		"Error: netadm failed dlmgmtd: link id creation failed: 17\n":                                                         host.ErrExists,
		"Error: netadm failed dlmgmtd: link id creation failed: 22\n":                                                         nil,
		"Error: command CreateXde failed: PortExists(\"opte0\")\n":                                                            host.ErrExists,
		"Error: command CreateXde failed: MacExists { port: \"opte0\", vni: Vni { inner: 9 }, mac: MacAddr { inner: 02 } }\n": ErrMACInUse,
		"Error: command SetXdeUnderlay failed: System { errno: 17, msg: \"underlay already initialized\" }\n":                 host.ErrExists,
		"Error: command DeleteXde failed: System { errno: 16, msg: \"failed to destroy DLS devnet: 16\" }\n":                  host.ErrBusy,
		"Error: command DeleteXde failed: System { errno: 5, msg: \"failed to destroy DLS devnet: 5\" }\n":                    nil,
		"Error: OPTE driver is not attached\n":                                                                                ErrNoDriver,
		"Error: ioctl ListPorts failed: permission denied\n":                                                                  host.ErrPrivileges,
		"Error: ioctl ListPorts failed: API version mismatch\n":                                                               nil,
		"OPTE driver is not attached\n":                                                                                       nil,
		"Error: x\nError: OPTE driver is not attached\n":                                                                      nil,
		"": nil,
	} {
		e, _ := errors.AsType[*host.CommandError](failure(listCommand(), host.Result{Exit: 1, Stderr: []byte(text)}))
		if e == nil || e.Means != kind {
			t.Errorf("%q: %+v, want %v", text, e, kind)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(listing))
	f.Fuzz(func(t *testing.T, out []byte) {
		_, ports := ParsePorts(out)
		_, layer := ParseLayer(out, "opte0", "router")
		for _, err := range []error{ports, layer} {
			if err != nil && !errors.Is(err, ErrSyntax) {
				t.Error(err)
			}
		}
	})
}
