package record

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host/fault"
)

func TestNICsInVPCs(t *testing.T) {
	for in, want := range map[string]string{
		"opte,vni=100,ip=172.30.0.5,subnet=172.30.0.9/24":                                                                            "opte,vni=100,ip=172.30.0.5,subnet=172.30.0.0/24,gateway=172.30.0.1,mac=",
		"subnet=FD77::/64,mac=2:8:20:a1:0:f,opte,ip=fd77::0:5,gateway=fd77::9,vni=16777215":                                          "opte,vni=16777215,ip=fd77::5,subnet=fd77::/64,gateway=fd77::9,mac=02:08:20:a1:00:0f",
		"opte,vni=1,ip=10.0.0.5,subnet=10.0.0.0/8,route=0.0.0.0/0 ig,route=0.0.0.0/0  ig SYSTEM":                                     "",
		"opte,vni=1,ip=fd77::5,subnet=fd77::/64,floating-ip=FD00::9,ephemeral-ip=fd00::8,floating-ip=fd00::7,snat=fd00::0:6/00-9":    "opte,vni=1,ip=fd77::5,subnet=fd77::/64,gateway=fd77::1,snat=fd00::6/0-9,ephemeral-ip=fd00::8,floating-ip=fd00::7,floating-ip=fd00::9,mac=",
		"opte,vni=1,ip=10.0.0.5,subnet=10.0.0.0/8,route=0.0.0.0/0+ig,route=0.0.0.0/0  ig system,rule=priority=2+dir=in action=allow": "opte,vni=1,ip=10.0.0.5,subnet=10.0.0.0/8,gateway=10.0.0.1,rule=dir=in action=allow priority=2 hosts=any protocol=any port=any,route=0.0.0.0/0 ig system,mac=",
	} {
		n, err := ParseNIC(in)
		if want == "" {
			if err == nil {
				t.Errorf("%s is taken", in)
			}
			continue
		}
		if err != nil || NicText([]NIC{n}) != want {
			t.Errorf("%s: %s, %v", in, NicText([]NIC{n}), err)
		}
		again, err := n.Normal()
		if diff := cmp.Diff(n, again); err != nil || diff != "" {
			t.Errorf("%s has two forms: %v %s", in, err, diff)
		}
	}
	for _, bad := range []string{
		"opte", "opte,opte,vni=1,ip=10.0.0.5,subnet=10.0.0.0/8", "vni=1,ip=10.0.0.5,subnet=10.0.0.0/8", "opte,vni=0,ip=10.0.0.5,subnet=10.0.0.0/8", "opte,vni=16777216,ip=10.0.0.5,subnet=10.0.0.0/8",
		"opte,vni=1,vni=2,ip=10.0.0.5,subnet=10.0.0.0/8", "opte,vni=1,ip=fd00::5,subnet=10.0.0.0/8", "opte,vni=1,ip=10.0.0.0,subnet=10.0.0.0/8", "opte,vni=1,ip=10.0.0.5,subnet=10.0.0.0/8,gateway=10.0.0.5",
		"opte,vni=1,ip=10.0.0.5,subnet=10.0.0.0/8,vlan=7", "opte,vni=1,ip=10.0.0.5,subnet=10.0.0.0/8,max-bw=7", "opte,vni=1,ip=10.0.0.5,subnet=10.0.0.0/8,allow-ip=10.0.0.5", "opte,vni=1,ip=10.0.0.5,subnet=10.0.0.0/8,over=net0",
		"opte,vni=1,ip=10.0.0.5,subnet=10.0.0.0/8,snat=fd00::1/0-9", "opte,vni=1,ip=10.0.0.5,subnet=10.0.0.0/8,snat=10.0.0.1/9-8", "opte,vni=1,ip=10.0.0.5,subnet=10.0.0.0/8,floating-ip=fd00::1", "opte,vni=1,ip=10.0.0.5,subnet=10.0.0.0/8,ephemeral-ip=x",
		"opte,vni=1,ip=10.0.0.5,subnet=10.0.0.0/8,rule=", "opte,vni=1,ip=10.0.0.5,subnet=10.0.0.0/8,rule=any", "opte,vni=1,ip=10.0.0.5,subnet=10.0.0.0/8,route=::/0 ig", "opte,vni=1,ip=10.0.0.5",
	} {
		n, err := ParseNIC(bad)
		if kind := fault.Of(err); err == nil || kind != fault.Usage {
			t.Errorf("%s: %+v, %v", bad, n, err)
		}
	}
}

// A NIC in a VPC has a route to its subnet, whether it is asked for or not.
func TestRoutesOfANIC(t *testing.T) {
	for in, want := range map[string][]string{
		"opte,vni=1,ip=10.0.0.5,subnet=10.0.0.0/8":                                            {"10.0.0.0/8 sub4=10.0.0.0/8 system"},
		"opte,vni=1,ip=fd77::5,subnet=fd77::/64,route=::/0 ig,route=fd77::/64 sub6=fd77::/64": {"fd77::/64 sub6=fd77::/64 system", "::/0 ig system"},
	} {
		n, err := ParseNIC(in)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range n.RoutesOf() {
			got = append(got, r.String())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", in, diff)
		}
	}
}

// A record keeps what a NIC has in its VPC.
func TestARecordKeepsPorts(t *testing.T) {
	n, err := ParseNIC("opte,vni=100,ip=172.30.0.5,subnet=172.30.0.0/24,route=0.0.0.0/0 ig")
	if err != nil {
		t.Fatal(err)
	}
	n.MAC = "02:08:20:a1:00:0f"
	r := Record{ID: "768c2a8b-de75-5e1b-9dd3-8bd4af7b3e3b", Name: "web1", Wanted: WantedRunning, Spec: Spec{CPUs: 1, Memory: 1 << 20, NICs: []NIC{n}, Address: Address{Mode: DHCP}},
		Incarnation: &Incarnation{Guests: []VNIC{VNICOf("vnic_propolis_guest0", n)}}}
	facts, err := r.Facts()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(facts[0].Value)
	if err != nil || !cmp.Equal(got.Spec.NICs, r.Spec.NICs) || !got.Incarnation.Guests[0].Port {
		t.Errorf("%+v, %v", got, errors.Join(err))
	}
}
