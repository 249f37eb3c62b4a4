package vnic

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
)

func TestCommandLines(t *testing.T) {
	plain := Create{Name: "v0", Over: "stub0", MAC: "02:08:20:a1:00:0f"}
	tagged := plain
	tagged.VLAN = 7
	for want, c := range map[string]host.Command{
		"dladm show-link -p -o link,class,mtu,state":                                  listLinksCommand(),
		"dladm show-vnic -p -o link,over,macaddress,vid":                              listVNICsCommand(false),
		"dladm show-vnic -p -o link,over,macaddress,vid,zone":                         listVNICsCommand(true),
		"dladm show-linkprop -c -p zone -o value v0":                                  showZoneCommand("v0"),
		"dladm show-phys -m -p -o link,address":                                       listAddressesCommand(),
		"dladm show-aggr -x -p -o link,port,address":                                  listAggregationsCommand(),
		"dladm show-link -p -o link,class v0":                                         showLinkCommand("v0"),
		"dladm show-vnic -p -o over,macaddress v0":                                    showVNICCommand("v0"),
		"dladm show-linkprop -c -p mtu -o value v0":                                   showMTUCommand("v0"),
		"dladm create-vnic -t -l stub0 -m 02:08:20:a1:00:0f v0":                       createCommand(plain),
		"dladm create-vnic -t -l stub0 -m 02:08:20:a1:00:0f -v 7 v0":                  createCommand(tagged),
		"dladm set-linkprop -t -p mtu=9000 v0":                                        setMTUCommand("v0", 9000),
		"dladm show-linkprop -c -p protection,allowed-ips,maxbw -o property,value v0": showLimitsCommand("v0"),
		"dladm set-linkprop -t -p protection=mac-nospoof v0":                          setPropertyCommand("v0", protection, macNoSpoof),
		"dladm delete-vnic v0":                                                        deleteCommand("v0"),
		"dladm create-etherstub -t stub0":                                             createEtherstubCommand("stub0"),
		"dladm delete-etherstub stub0":                                                deleteEtherstubCommand("stub0"),
	} {
		if got := c.Shell(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if looks := c.Args[0][:4] == "show"; c.ReadOnly != looks {
			t.Errorf("%s: ReadOnly is %v", want, c.ReadOnly)
		}
	}
}

func TestExplain(t *testing.T) {
	s := Create{Name: "v0", Over: "stub0", MAC: "02:08:20:a1:00:0f", MTU: 9000}
	want := []host.Line{
		{Kind: host.LineRun, Text: "dladm create-vnic -t -l stub0 -m 02:08:20:a1:00:0f v0"},
		{Kind: host.LineRun, Text: "dladm set-linkprop -t -p mtu=9000 v0"},
	}
	if diff := cmp.Diff(want, s.Explain()); diff != "" {
		t.Error(diff)
	}
	s.Name = "bad-name"
	if lines := s.Explain(); lines != nil {
		t.Errorf("a step that Do refuses explains %v", lines)
	}
}

func TestUndo(t *testing.T) {
	create := Create{Name: "v0", Over: "stub0", MAC: "02:08:20:a1:00:0f", VLAN: 3, MTU: 9000}
	for step, want := range map[interface{ Undo() any }]any{
		create:                      Delete{Name: "v0", Over: "stub0", MAC: "02:08:20:a1:00:0f"},
		CreateEtherstub{Name: "s0"}: DeleteEtherstub{Name: "s0"},
		Delete{Name: "v0"}:          nil,
		DeleteEtherstub{Name: "s0"}: nil,
	} {
		if got := step.Undo(); got != want {
			t.Errorf("%T: undo %#v, want %#v", step, got, want)
		}
	}
}
