package naming

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

const (
	propolisText = "3c7f5393-7c69-4c7c-bc81-cb7aca031ff1"
	instanceText = "54f1cc77-68f1-42ab-acac-5c4f64f5d6e0"
)

// doubt is what a test wants of a doubted claim: which words, it does not say.
const doubt = "some"

// comparable replaces the text of a doubt.
func (c Owner) comparable() Owner {
	if c.Doubt != "" {
		c.Doubt = doubt
	}
	return c
}

func TestOwnerOfZone(t *testing.T) {
	propolis, instance := uuid.MustParse(propolisText), uuid.MustParse(instanceText)
	mark := map[string]string{AttrInstance: instanceText}
	const ours = "propolis_instance_" + propolisText
	byName := Owner{Evidence: ByName, Role: RoleInstance, Propolis: propolis}
	base := Owner{Evidence: ByName, Role: RoleBase, Base: Base{"rpool", 3}}
	alike := Owner{Evidence: Alike, Doubt: doubt}
	doubted := func(c Owner) Owner { c.Evidence, c.Doubt = Alike, doubt; return c }
	for _, c := range []struct {
		name, path string
		attrs      map[string]string
		want       Owner
	}{
		{ours, "/zone/" + ours, nil, byName},
		{ours, "/pool/ext/e4b4dc87-ab46-49fb-a4b4-d361ae214c03/crypt/zone/" + ours, nil, byName},
		{ours, "/zone/" + ours, mark, Owner{Evidence: ByMark, Role: RoleInstance, Propolis: propolis, Instance: instance}},
		{ours, "/zone/" + ours, map[string]string{"sledctl-name": "web1"}, byName},
		{"web1", "/zones/web1", mark, Owner{Evidence: ByMark, Role: RoleInstance, Instance: instance}},
		{"web1", "/zone/web1", map[string]string{AttrInstance: "web1"}, Owner{}},
		{"web1", "/zone/web1", map[string]string{"billing-id": instanceText}, Owner{}},
		{"propolis_base_rpool_3", "/zone/propolis_base_rpool_3", nil, base},
		{"propolis_base_rpool_3", "/elsewhere", map[string]string{AttrBase: "rpool"}, Owner{Evidence: ByMark, Role: RoleBase, Base: Base{"rpool", 3}}},
		{"oxz_switch", "/zone/oxz_switch", nil, Owner{}},
		{"oxz_propolis-server_" + propolisText, "/zone/oxz_propolis-server_" + propolisText, nil, Owner{}},
		{"global", "/", nil, Owner{}},

		// Called like ours, and not for certain.
		{"propolis_base", "/zone/propolis_base", nil, alike},
		{"propolis_baseball", "/zone/propolis_baseball", nil, alike},
		{"propolis_instance_mine", "/zone/propolis_instance_mine", nil, alike},
		{ours + "x", "/zone/" + ours + "x", nil, alike},
		{"propolis_base_rpool_03", "/zone/propolis_base_rpool_03", nil, alike},
		{ours, "/zones/" + ours, nil, doubted(byName)},
		{ours, "/zone/other", nil, doubted(byName)},
		{ours, "/data/zone/" + ours, nil, doubted(byName)}, // no pool of that name
		{ours, "/zone/" + ours, map[string]string{"owner-uuid": instanceText}, doubted(byName)},
		{"propolis_base_tank_3", "/zone/propolis_base_tank_3", nil, doubted(Owner{Role: RoleBase, Base: Base{"tank", 3}})},
	} {
		got := DefaultPrefixes().OwnerOfZone(Place{Name: c.name, Path: c.path, Attrs: maps.All(c.attrs)}, []string{"rpool", u2})
		if diff := cmp.Diff(c.want, got.comparable()); diff != "" {
			t.Errorf("%s at %s %v: %s", c.name, c.path, c.attrs, diff)
		}
	}
	const theirs = "oxz_propolis-server_" + propolisText
	if c := others().OwnerOfZone(Place{Name: theirs, Path: "/zone/" + theirs}, []string{"rpool"}); !c.Ours() {
		t.Errorf("another tool's, which the configuration names: %+v", c)
	}
	if c := others().OwnerOfZone(Place{Name: theirs, Path: "/zones/" + theirs}, []string{"rpool"}); c.Ours() {
		t.Errorf("another tool's, elsewhere: %+v", c)
	}
}

func TestOwnerOfVNIC(t *testing.T) {
	alike := Owner{Evidence: Alike, Doubt: doubt}
	control, guest := Owner{Evidence: ByName, Role: RoleControl, Number: 7}, Owner{Evidence: ByName, Role: RoleGuest, Number: 7}
	doubted := control
	doubted.Evidence, doubted.Doubt = Alike, doubt
	for _, c := range []struct {
		v    VNIC
		want Owner
	}{
		{VNIC{Name: "vnic_propolis7", Over: "stub0"}, control},
		{VNIC{Name: "vnic_propolis_guest7", Over: "net1"}, guest},
		{VNIC{Name: "net0"}, Owner{}},
		{VNIC{Name: "underlay0", Over: "stub0"}, Owner{}},
		{VNIC{Name: "oxControlInstance7", Over: "stub0"}, Owner{}},
		{VNIC{Name: "oxControlService0", Over: "stub0"}, Owner{}},

		{VNIC{Name: "vnic_propolis_x7", Over: "stub0"}, alike},
		{VNIC{Name: "vnic_propolis_mgmt0", Over: "stub0"}, alike},
		{VNIC{Name: "vnic_propolis007", Over: "stub0"}, alike},
		{VNIC{Name: "vnic_propolis7", Over: "net0"}, doubted},
		{VNIC{Name: "vnic_propolis7"}, doubted},
		{VNIC{Name: "vnic_propolis7", Over: "stub0", Addresses: []string{"10.0.0.1/24"}}, doubted},
	} {
		if diff := cmp.Diff(c.want, DefaultPrefixes().OwnerOfVNIC(c.v, []string{"stub0", "net1"}).comparable()); diff != "" {
			t.Errorf("%+v: %s", c.v, diff)
		}
	}
	if c := others().OwnerOfVNIC(VNIC{Name: "oxControlInstance7", Over: "stub0"}, []string{"stub0"}); !c.Ours() {
		t.Errorf("another tool's, which the configuration names: %+v", c)
	}
}

func TestOwnerOfDataset(t *testing.T) {
	propolis, instance := uuid.MustParse(propolisText), uuid.MustParse(instanceText)
	mark := map[string]string{PropertyInstance: instanceText}
	zone := "rpool/zone/propolis_instance_" + propolisText
	named := Owner{Evidence: ByName, Role: RoleInstance, Propolis: propolis}
	below := named
	below.Below = true
	for _, c := range []struct {
		name  string
		local map[string]string
		want  Owner
	}{
		{zone, nil, named},
		{zone, mark, Owner{Evidence: ByMark, Role: RoleInstance, Propolis: propolis, Instance: instance}},
		{zone + "/ROOT/zbe", nil, below},
		{zone + "@backup", nil, below},
		{zone + "/ROOT/zbe@x_snap", nil, below},
		{u2 + "/crypt/zone/propolis_instance_" + propolisText, nil, named},
		{"tank/vm", mark, Owner{Evidence: ByMark, Role: RoleInstance, Instance: instance}},
		{"tank/vm", map[string]string{PropertyBase: "x"}, Owner{Evidence: ByMark, Role: RoleBase}},
		{"tank/vm", map[string]string{PropertyInstance: "x", "sledctl:other": instanceText}, Owner{}},
		{"rpool/zone/propolis_base_rpool_1/ROOT", nil, Owner{Evidence: ByName, Role: RoleBase, Base: Base{"rpool", 1}, Below: true}},
		{"rpool/zone/propolis_instance_web1", nil, Owner{Evidence: Alike, Doubt: doubt}},
		{"propolis_instance_" + propolisText, nil, Owner{}}, // a pool is never ours by its name
		{"rpool/zone", nil, Owner{}},
		{"rpool/zone@propolis_instance_" + propolisText, nil, Owner{}},
		{"rpool", nil, Owner{}},
	} {
		if diff := cmp.Diff(c.want, DefaultPrefixes().OwnerOfDataset(c.name, c.local).comparable()); diff != "" {
			t.Errorf("%s %v: %s", c.name, c.local, diff)
		}
	}
}
