package sled

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

const (
	propolisText = "3c7f5393-7c69-4c7c-bc81-cb7aca031ff1"
	instanceText = "54f1cc77-68f1-42ab-acac-5c4f64f5d6e0"
)

func TestWhoseZone(t *testing.T) {
	propolis, instance := uuid.MustParse(propolisText), uuid.MustParse(instanceText)
	mark := map[string]string{AttrInstance: instanceText}
	for _, c := range []struct {
		name  string
		attrs map[string]string
		want  Claim
	}{
		{"propolis_instance_" + propolisText, nil, Claim{Evidence: ByName, Role: RoleInstance, Propolis: propolis}},
		{"propolis_instance_" + propolisText, mark, Claim{Evidence: ByMark, Role: RoleInstance, Propolis: propolis, Instance: instance}},
		{"oxz_propolis-server_" + propolisText, nil, Claim{Evidence: ByName, Role: RoleInstance, Propolis: propolis}},
		{"web1", mark, Claim{Evidence: ByMark, Role: RoleInstance, Instance: instance}},
		{"web1", map[string]string{AttrInstance: "web1"}, Claim{}},
		{"web1", map[string]string{"billing-id": instanceText}, Claim{}},
		{"propolis_base_rpool_3", nil, Claim{Evidence: ByName, Role: RoleBase, Base: Base{"rpool", 3}}},
		{"propolis_base_rpool_3", map[string]string{AttrBase: "rpool"}, Claim{Evidence: ByMark, Role: RoleBase, Base: Base{"rpool", 3}}},
		{"propolis_base", nil, Claim{Evidence: ByPrefix}},
		{"propolis_instance_web1", nil, Claim{Evidence: ByPrefix}},
		{"oxz_switch", nil, Claim{}},
		{"global", nil, Claim{}},
	} {
		if diff := cmp.Diff(c.want, DefaultPrefixes().WhoseZone(c.name, c.attrs)); diff != "" {
			t.Errorf("%s %v: %s", c.name, c.attrs, diff)
		}
	}
}

func TestWhoseVNIC(t *testing.T) {
	for name, want := range map[string]Claim{
		"vnic_propolis7":       {Evidence: ByName, Role: RoleControl, Number: 7},
		"vnic_propolis_guest7": {Evidence: ByName, Role: RoleGuest, Number: 7},
		"oxControlInstance7":   {Evidence: ByName, Role: RoleControl, Number: 7},
		"vnic_propolis_x7":     {Evidence: ByPrefix},
		"net0":                 {},
		"underlay0":            {},
		"oxControlService0":    {},
	} {
		if diff := cmp.Diff(want, DefaultPrefixes().WhoseVNIC(name)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestWhoseDataset(t *testing.T) {
	propolis, instance := uuid.MustParse(propolisText), uuid.MustParse(instanceText)
	mark := map[string]string{PropertyInstance: instanceText}
	zone := "rpool/zone/propolis_instance_" + propolisText
	named := Claim{Evidence: ByName, Role: RoleInstance, Propolis: propolis}
	below := named
	below.Below = true
	for _, c := range []struct {
		name  string
		local map[string]string
		want  Claim
	}{
		{zone, nil, named},
		{zone, mark, Claim{Evidence: ByMark, Role: RoleInstance, Propolis: propolis, Instance: instance}},
		{zone + "/ROOT/zbe", nil, below},
		{zone + "@backup", nil, below},
		{zone + "/ROOT/zbe@x_snap", nil, below},
		{u2 + "/crypt/zone/propolis_instance_" + propolisText, nil, named},
		{"tank/vm", mark, Claim{Evidence: ByMark, Role: RoleInstance, Instance: instance}},
		{"tank/vm", map[string]string{PropertyBase: "x"}, Claim{Evidence: ByMark, Role: RoleBase}},
		{"tank/vm", map[string]string{PropertyInstance: "x", "sledctl:other": instanceText}, Claim{}},
		{"rpool/zone/propolis_base_rpool_1/ROOT", nil, Claim{Evidence: ByName, Role: RoleBase, Base: Base{"rpool", 1}, Below: true}},
		{"rpool/zone/propolis_instance_web1", nil, Claim{Evidence: ByPrefix}},
		{"propolis_instance_" + propolisText, nil, Claim{}}, // a pool is never ours by its name
		{"rpool/zone", nil, Claim{}},
		{"rpool/zone@propolis_instance_" + propolisText, nil, Claim{}},
		{"rpool", nil, Claim{}},
	} {
		if diff := cmp.Diff(c.want, DefaultPrefixes().WhoseDataset(c.name, c.local)); diff != "" {
			t.Errorf("%s %v: %s", c.name, c.local, diff)
		}
	}
}
