package propolis

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/crucible"
)

const sharedVolume = "6f0f2f9f-7d3a-4d6e-8a55-0f5a1de3d1aa"

// volumeAt is the request for a volume with a generation, as a text in JSON.
func volumeAt(generation int) string {
	return fmt.Sprintf(`"{\"type\":\"volume\",\"id\":\"%s\",\"sub_volumes\":[{\"type\":\"region\",\"gen\":%d,\"opts\":{\"target\":[\"[::1]:1\",\"[::1]:2\",\"[::1]:3\"]}}]}"`, sharedVolume, generation)
}

// writes reports whether the machine of a server can write to its volumes.
func (r *rig) writes() (can bool) {
	r.t.Helper()
	r.change(func(tx *world.Tx) {
		vm := tx.State.Processes[0].VM
		can = vm != nil && Write(tx, vm) == nil
	})
	return can
}

// A target opens the volumes of a machine once its source has let it go, and not before; with a
// generation that is not above the source's, it has a machine that fails, and the source has none.
func TestAMachineTakesItsVolumesAlong(t *testing.T) {
	for name, c := range map[string]struct {
		generation     int
		fails          string // the stage
		target, source string
		last           uint64
		writes         string
	}{
		"a higher generation": {2, "", "11 Running in:Finish", "18 Destroyed out:Finish", 2, "target"},
		"the same":            {1, "", "11 Failed in:Finish", "18 Destroyed out:Finish", 1, ""},
		"it breaks off":       {2, "Finish", "13 Failed in:Error", "18 Running out:Error", 1, "source"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, shared := newPair(t), &crucible.Crucible{}
				p.source.world.Share(shared)
				p.target.world.Share(shared)
				p.target.change(func(tx *world.Tx) { tx.State.Seed++ }) // or its upstairs would be the source's
				disk := `"disk1":{"type":"nvme_disk","component":{"backend_id":"disk1-backend","pci_path":{"bus":0,"device":17,"function":0},"serial_number":[` + strings.Repeat("32,", 19) + `32]}}`
				if got := p.source.v5("PUT", "/instance", movable(t, disk, `"disk1-backend":{"type":"crucible_storage_backend","component":{"request_json":`+volumeAt(1)+`,"readonly":false}}`)); got.status != 201 {
					t.Fatalf("ensure: %+v", got)
				}
				p.source.v5("PUT", "/instance/state", `"Run"`)
				p.slow()
				if c.fails != "" {
					p.target.change(func(tx *world.Tx) {
						tx.Arm(world.Fault{Name: world.FaultFail, Match: "propolis * migrate " + c.fails, Times: 1})
					})
				}
				replace := otherNIC + `,"disk1-backend":{"component":"CrucibleStorageBackend","spec":{"readonly":false,"request_json":` + volumeAt(c.generation) + `}}`
				if got := p.target.v5("PUT", "/instance", migrationBody(address, replace)); got.status != 201 {
					t.Fatalf("%+v", got)
				}
				for range 6 {
					if !p.source.writes() || p.target.writes() || shared.Last(sharedVolume) != 1 {
						t.Fatalf("on its way, the volume was opened with generation %d", shared.Last(sharedVolume))
					}
					time.Sleep(time.Second)
				}
				if got := state(t, p.target.v5("GET", "/instance/state-monitor", `{"gen":11}`)); got != c.target {
					t.Errorf("target %s, want %s", got, c.target)
				}
				if got := p.source.now(); got != c.source {
					t.Errorf("source %s, want %s", got, c.source)
				}
				if last := shared.Last(sharedVolume); last != c.last || p.target.writes() != (c.writes == "target") || p.source.writes() != (c.writes == "source") && c.writes != "" {
					t.Errorf("opened with generation %d; the target writes: %v, the source: %v", last, p.target.writes(), p.source.writes())
				}
			})
		})
	}
}
