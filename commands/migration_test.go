package commands_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sledctl/sledctl/commands"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/smf"
	"github.com/sledctl/sledctl/sled/instance/migration"
	"github.com/sledctl/sledctl/test/sledtest"
)

// killServer ends the sled's propolis-servers.
func killServer(s *sledtest.Operator) {
	s.T.Helper()
	err := s.World().Update(s.T.Context(), func(tx *world.Tx) error {
		var pids []int
		for _, p := range tx.State.Processes {
			pids = append(pids, p.PID)
		}
		for _, pid := range pids {
			smf.Exit(tx, pid)
		}
		return nil
	})
	if err != nil {
		s.T.Fatal(err)
	}
}

func befallings() []sledtest.Befalling {
	return []sledtest.Befalling{
		{Name: "nothing", During: func(*sledtest.Move) {}, Exit: []int{0}, Stay: true},
		{Name: "source dies", During: func(m *sledtest.Move) { killServer(m.Source) }, Exit: []int{1, 3}},
		{Name: "target dies", During: func(m *sledtest.Move) { killServer(m.Target) }, Exit: []int{1}, Stay: true},
		{Name: "source's sled is cut off its power", During: func(m *sledtest.Move) { m.PowerCycle(m.Source, m.Here) }, Reboot: func(m *sledtest.Move) *sledtest.Operator { return m.Source }},
		{Name: "target's sled is cut off its power", During: func(m *sledtest.Move) { m.PowerCycle(m.Target, m.There) }, Reboot: func(m *sledtest.Move) *sledtest.Operator { return m.Target }, Exit: []int{1, 3}, Stay: true},
		{Name: "connection cut", Before: func(m *sledtest.Move, phase string) {
			m.Source.Arm(world.Fault{Name: world.FaultDrop, Match: "propolis * migrate " + phase, Times: 1})
		}, Exit: []int{1}, Stay: true},
		{Name: "target fails", Before: func(m *sledtest.Move, phase string) {
			m.Target.Arm(world.Fault{Name: world.FaultFail, Match: "propolis * migrate " + phase, Times: 1})
		}, Exit: []int{1}, Stay: true},
		{Name: "cancelled", During: func(m *sledtest.Move) { m.Cancel(context.Canceled) }, Exit: []int{3}, Stay: true},
		{Name: "client on the source killed", During: func(m *sledtest.Move) { m.Here.Die() }, Stay: true},
		{Name: "client on the target killed", During: func(m *sledtest.Move) { m.There.Die() }, Exit: []int{0, 1, 3}, Stay: true},
		{Name: "both clients killed", During: func(m *sledtest.Move) { m.Here.Die(); m.There.Die() }, Stay: true},
	}
}

func TestMigrationMatrix(t *testing.T) {
	t.Parallel()
	var g *sledtest.Moving
	synctest.Test(t, func(t *testing.T) { g = sledtest.NewMoving(t) })
	phases := []string{"RamPush", "Pause", "RamPushDirty", "Device", "RamPull", "Server", "Finish"}
	for n, phase := range phases {
		for k, b := range befallings() {
			if testing.Short() && (n+k)%len(phases) != 0 {
				continue
			}
			t.Run(phase+", "+b.Name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { g.Open(t).Suffers(phase, b) })
			})
		}
	}
}

// sledctl compares what a target reports with what the source's Propolis reports: a VM
// that runs here has not left, whatever the target claims.
func TestATargetIsNotBelieved(t *testing.T) {
	t.Parallel()
	var g *sledtest.Moving
	synctest.Test(t, func(t *testing.T) { g = sledtest.NewMoving(t) })
	const arrived = `{"kind":"Instance","id":"ID","state":"running","migration":{"id":"MIGRATION","state":"arrived"}}`
	for name, c := range map[string]struct {
		ensure, remove migration.Answer
		exit           int
		told           string
		departs        bool // the record still says so afterwards
	}{
		"it says that the machine is there": {migration.Answer{Stdout: []byte(arrived)}, migration.Answer{}, 3, "the machine here has not left", true},
		"it says what nobody asked for":     {migration.Answer{Stdout: []byte("ok")}, migration.Answer{}, 1, "what it printed is not the instance", false},
		"it stops answering":                {migration.Answer{Exit: 255}, migration.Answer{Exit: 255}, 3, "the target may take it yet", true},
		"it fails, and is silent then":      {migration.Answer{Exit: 1, Stderr: []byte(`{"kind":"Error","exit":1,"message":"not today","left":[]}`)}, migration.Answer{Exit: 255}, 1, "there: not today", false},
		"it fails, and keeps what it has":   {migration.Answer{Exit: 1, Stderr: []byte(`{"kind":"Error","exit":1,"message":"not today","left":[]}`)}, migration.Answer{Exit: 8, Stderr: []byte(`{"kind":"Error","exit":8,"message":"it has arrived","left":[]}`)}, 3, "the target may take it yet", true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := g.Open(t)
				id := strings.TrimSpace(m.Source.Run("instance get web1 -H --columns id"))
				env, _, errs := commands.On(m.Source.Host(), nil)
				env.Remote = func(_ context.Context, words []string, _ []byte) (migration.Answer, error) {
					switch {
					case slices.Contains(words, "--dry-run"):
						return migration.Answer{Stdout: []byte(`{"kind":"ActionList","items":[]}`)}, nil
					case words[2] == "delete":
						return c.remove, nil
					}
					a := c.ensure
					a.Stdout = []byte(strings.NewReplacer("ID", id, "MIGRATION", words[slices.Index(words, "--migration-id")+1]).Replace(string(a.Stdout)))
					return a, nil
				}
				if exit := commands.Run(t.Context(), env, strings.Fields(sledtest.MigrateWeb1)); exit != c.exit || !strings.Contains(errs.String(), c.told) {
					t.Errorf("exit %d: %s", exit, errs)
				}
				if m.Source.RunningMachines() != 1 {
					t.Error("the machine has stopped")
				}
				if departs := strings.Contains(m.Source.Run("instance get web1 -o json"), "departing"); departs != c.departs {
					t.Errorf("it departs: %v", departs)
				}
				if !c.departs {
					return
				}
				if a := m.Source.Try("instance stop web1"); a.Exit != 8 {
					t.Errorf("stop: exit %d: %s", a.Exit, a.Errs)
				}
				m.Source.Run("instance migrate web1 --cancel --yes")
				m.Source.Run("instance delete web1")
				m.Source.Same(m.SourceEmpty, "in the end")
			})
		})
	}
}
