package nicsync

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	simnapi "github.com/sledctl/sledctl/sim/napi"
	"github.com/sledctl/sledctl/sim/simtest"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zones"
)

// crowd is a NAPI with this many records of other sleds, and a sled with n NICs,
// ten for each VM.
func crowd(t *testing.T, era string, n, others int) *rig {
	r := newRig(t, t.Context(), era)
	r.change(func(tx *world.Tx) {
		for i := range others {
			tx.State.NAPI.NICs[mac(1<<20|i)] = &world.NAPINIC{Etag: "00000000", BelongsToType: "zone", BelongsToUUID: owner, OwnerUUID: owner, CNUUID: theirs, State: "running"}
		}
		for vm := range n / 10 {
			z := &world.Zone{Name: id(vm), UUID: id(vm), State: "installed", Config: world.Config{Brand: "bhyve", Zonepath: "/zones/" + id(vm), IPType: "exclusive"}}
			for i := vm * 10; i < vm*10+10; i++ {
				z.Config.Resources = append(z.Config.Resources, world.Resource{Type: "net", Properties: []world.Property{
					{Name: "physical", Values: []string{fmt.Sprint("vm", i)}}, {Name: "mac-addr", Values: []string{mac(i)}},
				}})
				simtest.AddNIC(tx, mac(i), world.NAPINIC{BelongsToType: "zone", BelongsToUUID: id(vm), OwnerUUID: owner, CNUUID: ours, State: "stopped"})
			}
			tx.State.Zones = append(tx.State.Zones, z)
			if err := zones.SaveZone(tx, z); err != nil {
				t.Fatal(err)
			}
		}
	})
	return r
}

// A look at 1,000 NICs among very many records (a million, with SLEDCTL_SOAK=1) costs at most 2 lists, and one
// write for each record that changes; its memory follows the sled's own records.
func TestALookAmongManyRecords(t *testing.T) {
	many := 200_000
	switch {
	case os.Getenv("SLEDCTL_SOAK") != "":
		many = 1_000_000
	case testing.Short():
		many = 20_000
	}
	look := func(era string, others int) (allocated uint64, elapsed time.Duration) {
		r := crowd(t, era, 1000, others)
		defer r.sled.Close()
		r.change(func(tx *world.Tx) {
			for i := range 3 {
				tx.State.NAPI.NICs[mac(i)].State = "running"
			}
		})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		_, err := r.sync(all())
		elapsed = time.Since(began)
		runtime.ReadMemStats(&after)
		lists, reads, changes := 0, 0, 0
		for _, q := range r.requests() {
			switch {
			case strings.HasPrefix(q, "PUT "):
				changes++
			case strings.HasPrefix(q, "GET /nics/"):
				reads++
			case strings.HasSuffix(q, " 404"): // whether there is /search/nics
			default:
				lists++
			}
		}
		if err != nil || lists > 2 || changes != 3 || reads > 3+1 { // each that changes, and the sled's link
			t.Errorf("%d lists, %d reads, %d changes, %v", lists, reads, changes, err)
		}
		return after.TotalAlloc - before.TotalAlloc, elapsed
	}
	few, fast := look(simnapi.EraRFD, 1000)
	lot, slow := look(simnapi.EraRFD, many)
	look(simnapi.EraD, many/10)
	t.Logf("among 1,000 records: %d KiB, %v; among %d: %d KiB, %v", few>>10, fast, many, lot>>10, slow)
	if lot > few+few/4+4<<20 {
		t.Errorf("among 1,000 records %d KiB were allocated, among %d %d KiB", few>>10, many, lot>>10)
	}
}
