package ipadm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
)

func TestCommandLines(t *testing.T) {
	for want, c := range map[string]host.Command{
		"ipadm show-addr -p -o addrobj,type,state,addr":       listAddressesCommand("z1"),
		"ipadm show-addr -p -o addrobj,type,state,addr v0/v4": showAddressCommand("z1", "v0/v4"),
		"netstat -rn":                 listRoutesCommand("z1"),
		"route -n get -inet6 default": defaultRouteCommand("-inet6"),
		"ipadm delete-if v0":          deleteInterfaceCommand("z1", "v0"),
		"ipadm create-addr -t -T static -a 10.0.0.5/24 v0/v4":   createAddressCommand(CreateAddress{Zone: "z1", Object: "v0/v4", Type: Static, Address: "10.0.0.5/24"}),
		"ipadm create-addr -t -T dhcp -w 0 v0/dhcp":             createAddressCommand(CreateAddress{Zone: "z1", Object: "v0/dhcp", Type: DHCP}),
		"ipadm create-addr -t -T addrconf v0/ll":                createAddressCommand(CreateAddress{Zone: "z1", Object: "v0/ll", Type: Addrconf}),
		"ipadm delete-addr v0/v4":                               deleteAddressCommand("z1", "v0/v4"),
		"route add -inet default -inet 10.0.0.1 -ifp v0":        routeCommand("add", "z1", "default", "10.0.0.1", "v0"),
		"route add -inet6 fd00:1122::/48 -inet6 fd00:1122:1::1": routeCommand("add", "z1", "fd00:1122::/48", "fd00:1122:1::1", ""),
		"route delete -inet6 default -inet6 fd00::1 -ifp v0":    routeCommand("delete", "z1", "default", "fd00::1", "v0"),
	} {
		if got := strings.Join(append([]string{c.Program}, c.Args...), " "); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		looks := strings.Contains(want, "show") || strings.Contains(want, "get") || c.Program == "netstat"
		if c.ReadOnly != looks || c.Zone != "z1" && c.Program != "route" {
			t.Errorf("%s: ReadOnly %v in zone %q", want, c.ReadOnly, c.Zone)
		}
	}
}

// In a zone the words pass a shell.
func TestExplainInAZone(t *testing.T) {
	s := CreateAddress{Zone: "z1", Object: "v0/v4", Type: Static, Address: "10.0.0.5/24"}
	want := []host.Line{host.CommandLine(createAddressCommand(s))}
	if diff := cmp.Diff(want, s.Explain()); diff != "" || !strings.HasPrefix(want[0].Text, "zlogin -n z1 ") {
		t.Errorf("%v %s", want, diff)
	}
	if lines := (AwaitAddress{Zone: "z1", Object: "v0/v4"}).Explain(); lines[0].Text != "# waits until address v0/v4 of zone z1 is ok" || lines[0].Mutates() {
		t.Errorf("await: %v", lines)
	}
}

func TestUndo(t *testing.T) {
	for step, want := range map[interface{ Undo() any }]any{
		CreateAddress{Zone: "z1", Object: "v0/v4", Type: DHCP}: DeleteAddress{Zone: "z1", Object: "v0/v4", Unplumb: true},
		AddRoute{"z1", "default", "10.0.0.1", "v0"}:            DeleteRoute{"z1", "default", "10.0.0.1", "v0"},
		DeleteInterface{}: nil, AwaitAddress{}: nil, DeleteAddress{}: nil, DeleteRoute{}: nil,
	} {
		if got := step.Undo(); got != want {
			t.Errorf("%#v: undo %#v, want %#v", step, got, want)
		}
	}
}
