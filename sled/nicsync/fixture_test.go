package nicsync

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/peer/napi"
	"github.com/sledctl/sledctl/test/refdata"
)

// The labelled records of shared/samples: what a pass over this sled must make of
// each, one by one.
func TestTheLabelledFixture(t *testing.T) {
	data := refdata.File(t, "samples/napi/fixture-nics.json")
	var fixture struct {
		CN    string            `json:"cn_uuid"`
		Admin string            `json:"admin_uuid"`
		VMs   map[string]string `json:"vms"`
		NICs  []struct {
			Label string `json:"label"`
			NIC   struct {
				MAC     string `json:"mac"`
				Type    string `json:"belongs_to_type"`
				Belongs string `json:"belongs_to_uuid"`
				Owner   string `json:"owner_uuid"`
				CN      string `json:"cn_uuid"`
				State   string `json:"state"`
			} `json:"nic"`
			Expect string `json:"expect"`
		} `json:"nics"`
	}
	if err := json.Unmarshal(data, &fixture); err != nil {
		t.Fatal(err)
	}
	states := map[string]string{"V0": napi.StateRunning, "V1": napi.StateStopped, "V2": "", "V3": napi.StateRunning}
	vms := map[string]*VM{}
	for name, state := range states {
		vms[fixture.VMs[name]] = &VM{Name: name, IDs: []string{fixture.VMs[name]}, State: state}
	}
	vms[fixture.VMs["V3"]].Moving = "it is marked do-not-inventory"
	var own []NIC
	var records []napi.Record
	labels, expect := map[string]string{}, map[string]string{}
	for _, n := range fixture.NICs {
		labels[n.NIC.MAC], expect[n.Label] = n.Label, n.Expect
		records = append(records, napi.Record{Etag: "E", NIC: napi.NIC{MAC: n.NIC.MAC, BelongsToType: n.NIC.Type, BelongsToUUID: n.NIC.Belongs, OwnerUUID: n.NIC.Owner, CNUUID: n.NIC.CN, State: n.NIC.State}})
		holder := vms[n.NIC.Belongs]
		if n.Label == "moved-mac" {
			holder = vms[fixture.VMs["V0"]]
		}
		switch {
		case holder != nil:
			holder.NICs = append(holder.NICs, NIC{MAC: n.NIC.MAC, Link: "net0"})
		case n.Label == "server-provisioning" || n.Label == "other-booter":
			own = append(own, NIC{MAC: n.NIC.MAC, Link: "e1000g0"})
		}
	}
	var all []VM
	for _, vm := range vms {
		all = append(all, *vm)
	}
	want := map[string]struct {
		verdict Verdict
		change  napi.Change
		goes    bool
	}{
		"healthy":                 {InUse, napi.Change{}, false},
		"leaked":                  {Leaked, napi.Change{}, true},
		"leaked-stopped":          {Leaked, napi.Change{}, true},
		"leaked-but-provisioning": {InProgress, napi.Change{}, false},
		"other-cn":                {NotOurs, napi.Change{}, false},
		"no-cn-present-locally":   {NeedsCN, napi.Change{CNUUID: fixture.CN}, false},
		"no-cn-absent-locally":    {NotOurs, napi.Change{}, false},
		"stuck-provisioning":      {Stuck, napi.Change{State: napi.StateRunning}, false},
		"stopped-vm":              {InUse, napi.Change{}, false},
		"vm-provisioning":         {InProgress, napi.Change{}, false},
		"dni":                     {Migrating, napi.Change{}, false},
		"server-provisioning":     {Stuck, napi.Change{State: napi.StateRunning}, false},
		"server-foreign":          {NotOurs, napi.Change{}, false},
		"other-booter":            {Unclaimed, napi.Change{BelongsToType: napi.TypeServer, BelongsToUUID: fixture.CN, State: napi.StateRunning}, false},
		"pre-timestamps":          {InUse, napi.Change{}, false},
		"moved-mac":               {Conflict, napi.Change{}, false},
	}
	judged := 0
	for _, f := range Judge(Owner{CN: fixture.CN, Admin: fixture.Admin}, newLocal(all, own), records) {
		if f.Record == nil {
			continue
		}
		judged++
		label := labels[f.MAC]
		w, known := want[label]
		if !known || f.Verdict != w.verdict || f.Change != w.change || f.Removed != w.goes || f.Reason == "" {
			t.Errorf("%s (%s): %s: %s, change %+v, goes %v; want %+v", label, expect[label], f.Verdict, f.Reason, f.Change, f.Removed, w)
		}
		// The words of the fixture say the same.
		reaps, puts := strings.HasPrefix(expect[label], "reap"), strings.Contains(expect[label], "PUT") || strings.Contains(expect[label], "claim")
		if f.Removed != reaps || f.Change.Empty() == puts {
			t.Errorf("%s: %s", label, expect[label])
		}
		t.Logf("%-24s %-22s %s", label, f.Verdict, f.Reason)
	}
	if judged != len(want) {
		t.Errorf("%d of %d were judged", judged, len(want))
	}
}
