package inventory

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/illumos/disk"
	"github.com/sledctl/sledctl/peer/dropshot/dropshottest"
	"github.com/sledctl/sledctl/peer/nexus"
	"github.com/sledctl/sledctl/sled/storage"
	"github.com/sledctl/sledctl/zfs"
)

const external, internal = "oxp_101964cb-a8ae-45ea-8aa0-399e4ead2671", "oxi_bac38764-28d0-421b-a095-bca14b68f98e"

func seen() Seen {
	marked := zfs.Dataset{Name: external + "/crypt/debug", Type: zfs.TypeFilesystem, Used: 1, Available: 2, Quota: 3, Reservation: 4, Compression: "gzip-9"}
	marked.User = map[string]zfs.Value{storage.PropertyUUID: {Value: "7b1c2f3e-0d4a-4a55-9b0e-5f3d2c1b0a99"}}
	return Seen{
		ID: uuid.MustParse("5b6f33bb-9c0c-4a3c-8e5f-2d6b1c0b7a11"),
		Sled: nexus.Sled{
			Address: "[fd00:1122:3344:101::1]:12345", Role: nexus.RoleGimlet, Baseboard: nexus.Baseboard{Part: "913-0000019", Serial: "BRM42220014", Revision: 6},
			Threads: 128, RAM: 1 << 40, Reservoir: 1 << 39, CPUFamily: "amd_milan",
		},
		Disks: []storage.Found{
			{Disk: disk.Disk{Kind: disk.M2, Slot: 17, Identity: disk.Identity{Vendor: "1b96", Model: "WUS4C6432DSP3X3", Serial: "A079E3F8"}}},
			{Disk: disk.Disk{Kind: disk.U2, Slot: 3, Identity: disk.Identity{Vendor: "1b96", Model: "WUS4BA196D7P3E2", Serial: "A190MVW4"}}},
			{Disk: disk.Disk{Kind: disk.U2, Name: "u2_9", Absent: true}},
		},
		Pools: []zfs.Pool{{Name: "rpool", Health: "ONLINE"}, {Name: external, Size: 1 << 40, Health: "ONLINE"}, {Name: internal, Size: 1 << 38, Health: "SUSPENDED"}},
		Datasets: []zfs.Dataset{
			{Name: "rpool", Type: zfs.TypeFilesystem}, {Name: external, Type: zfs.TypeFilesystem, Compression: "on"}, marked, {Name: external + "/v", Type: zfs.TypeVolume},
		},
	}
}

// What is not the sled's is left out: the pool that it boots from, disks that are absent, volumes.
func TestWhatIsInIt(t *testing.T) {
	id, quota, reservation := uuid.MustParse("7b1c2f3e-0d4a-4a55-9b0e-5f3d2c1b0a99"), uint64(3), uint64(4)
	got := Of(seen())
	if diff := cmp.Diff([]api.InventoryZpool{
		{ID: uuid.MustParse(external[4:]), Size: 1 << 40, Health: "online"}, {ID: uuid.MustParse(internal[4:]), Size: 1 << 38, Health: "faulted"},
	}, got.Zpools); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]api.InventoryDataset{
		{Name: external, Compression: "on"},
		{Name: external + "/crypt/debug", ID: &id, Used: 1, Available: 2, Quota: &quota, Reservation: &reservation, Compression: "gzip-9"},
	}, got.Datasets); diff != "" {
		t.Error(diff)
	}
	if len(got.Disks) != 2 || got.Disks[0].Variant != "M2" || got.Disks[0].Slot != 17 || got.Disks[1].Variant != "U2" || got.Disks[1].Identity.Serial != "A190MVW4" {
		t.Errorf("%+v", got.Disks)
	}
}

// The inventory is as the sled agent's API has it, also where the sled has nothing.
func TestConforms(t *testing.T) {
	doc := dropshottest.Published(t, "sled-agent-48.0.0.json")
	for name, s := range map[string]Seen{"a sled": seen(), "nothing": {Sled: nexus.Sled{Role: nexus.RoleGimlet, CPUFamily: "unknown"}}} {
		data, err := json.Marshal(Of(s))
		if err == nil {
			err = doc.Answer(httptest.NewRequest(http.MethodGet, "/inventory", nil), http.StatusOK, http.Header{"Content-Type": {"application/json"}}, data)
		}
		if err != nil {
			t.Errorf("%s: %v: %s", name, err, data)
		}
	}
	data, err := json.Marshal(api.Identifiers{SledID: seen().ID, Model: "i86pc", Serial: "sled1"})
	if err == nil {
		err = doc.Answer(httptest.NewRequest(http.MethodGet, "/sled-identifiers", nil), http.StatusOK, http.Header{"Content-Type": {"application/json"}}, data)
	}
	if err != nil {
		t.Error(err)
	}
}
