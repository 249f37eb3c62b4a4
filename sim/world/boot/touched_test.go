package boot_test

import (
	"strings"
	"testing"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/boot"
	"github.com/sledctl/sledctl/sim/world/zones"
	"github.com/sledctl/sledctl/test/hosttest"
)

// A sled in a directory stores what a transaction says that it has touched: what it
// does not say is lost. So each kind of change that is not said is found.
func TestAChangeThatATransactionDoesNotNoteIsFound(t *testing.T) {
	for name, c := range map[string]struct{ silent, noted func(*world.Tx) }{
		"zone": {
			func(tx *world.Tx) { tx.State.Zones[0].UUID = "x" },
			func(tx *world.Tx) { tx.FindZone("z1").UUID = "x" },
		},
		"link": {
			func(tx *world.Tx) { tx.State.Links[0].Zone = "z1" },
			func(tx *world.Tx) { tx.TouchLink(tx.State.Links[0]); tx.State.Links[0].Zone = "z1" },
		},
		"process": {
			func(tx *world.Tx) { tx.State.Processes[0].OSPID = 7 },
			func(tx *world.Tx) { tx.TouchProcess(tx.State.Processes[0]); tx.State.Processes[0].OSPID = 7 },
		},
		"dataset": {
			func(tx *world.Tx) { tx.State.Datasets["rpool"].Used++ },
			func(tx *world.Tx) { tx.TouchDataset("rpool"); tx.State.Datasets["rpool"].Used++ },
		},
		"dataset rpool/new is new": {
			func(tx *world.Tx) { tx.State.Datasets["rpool/new"] = &world.Dataset{} },
			func(tx *world.Tx) { tx.TouchDataset("rpool/new"); tx.State.Datasets["rpool/new"] = &world.Dataset{} },
		},
		"dataset rpool": {
			func(tx *world.Tx) { delete(tx.State.Datasets, "rpool") },
			func(tx *world.Tx) { tx.TouchDataset("rpool"); delete(tx.State.Datasets, "rpool") },
		},
		"stack global": {
			func(tx *world.Tx) { tx.State.Stacks[world.GlobalZone].Routes = nil },
			func(tx *world.Tx) { tx.TouchStack(world.GlobalZone); tx.State.Stacks[world.GlobalZone].Routes = nil },
		},
		"services global": {
			func(tx *world.Tx) { clear(tx.State.Services[world.GlobalZone].Instances) },
			func(tx *world.Tx) {
				tx.TouchServices(world.GlobalZone)
				clear(tx.State.Services[world.GlobalZone].Instances)
			},
		},
		"NAPI or Nexus": {
			func(tx *world.Tx) { tx.State.NAPI = &world.NAPI{} },
			func(tx *world.Tx) { tx.TouchAround(); tx.State.NAPI = &world.NAPI{} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			found := func(change func(*world.Tx)) (all []string) {
				w := boot.Memory(boot.Options{}, hosttest.Files)
				err := w.Update(t.Context(), func(tx *world.Tx) error {
					tx.State.Processes = append(tx.State.Processes, &world.Process{PID: 1001})
					_, err := zones.AddZone(tx, "z1", world.Config{})
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
				w.Checked(func(what string) { all = append(all, what) })
				if err := w.Update(t.Context(), func(tx *world.Tx) error { change(tx); return nil }); err != nil {
					t.Fatal(err)
				}
				return all
			}
			if all := found(c.silent); len(all) != 1 || !strings.HasPrefix(all[0], name) {
				t.Errorf("found instead: %q", all)
			}
			if all := found(c.noted); len(all) != 0 {
				t.Errorf("found although it was noted: %q", all)
			}
		})
	}
}
