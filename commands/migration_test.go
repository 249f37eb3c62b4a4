package commands_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/commands"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/smf"
	"github.com/sledctl/sledctl/sled/instance/migration"
)

// The migration matrix: a machine moves between two simulated sleds by the real
// commands, and whatever happens to it in whatever phase, afterwards it runs on one
// of them, and nothing of it is on the other.

// moving are two sleds, and a machine that runs on the first.
type moving struct {
	source, target *sim.Sled
	at             time.Time
	sourceEmpty    string // the sleds without the machine
	targetEmpty    string
}

// otherNetwork is tuned with a network that the first sled does not have.
func otherNetwork() string { return strings.ReplaceAll(tuned, "10.77.", "10.78.") }

func newMoving(t *testing.T) *moving {
	a, b := newSled(t, small(), tuned), newSled(t, small(), otherNetwork())
	a.run("bootstrap")
	b.run("bootstrap")
	m := &moving{sourceEmpty: a.world(), targetEmpty: b.world()}
	a.run(web1)
	m.source, m.target, m.at = a.Clone(), b.Clone(), time.Now()
	return m
}

// open are the sleds of one case.
func (m *moving) open(t *testing.T) *move {
	a, b := &sled{Sled: m.source.Clone(), t: t}, &sled{Sled: m.target.Clone(), t: t}
	t.Cleanup(a.Close)
	t.Cleanup(b.Close)
	time.Sleep(time.Until(m.at))
	a.meet(b)
	return &move{moving: m, t: t, source: a, target: b, here: host.Crash(a.Host(), 0, host.CrashBefore), there: host.Crash(b.Host(), 0, host.CrashBefore)}
}

// move is one migration.
type move struct {
	*moving
	t              *testing.T
	source, target *sled
	here, there    *host.Crashing // each side's client dies with its host
	cancel         context.CancelCauseFunc
	ended          chan answer
}

const migrateWeb1 = "instance migrate web1 --to-command there"

// begin runs the command, in which each stage takes a second.
func (m *move) begin() {
	m.target.arm(world.Fault{Name: world.FaultSlowMigrate, Match: "propolis * migrate", Delay: time.Second})
	ctx, cancel := context.WithCancelCause(m.t.Context())
	m.cancel, m.ended = cancel, make(chan answer, 1)
	go func() {
		env, out, errs := commands.On(m.here, nil)
		env.Remote = func(ctx context.Context, words []string, stdin []byte) (migration.Answer, error) {
			if m.here.Crashed() {
				return migration.Answer{Exit: -1}, host.ErrCrashed
			}
			return m.target.answers(ctx, m.there, words[1:], stdin), nil
		}
		exit := commands.Run(ctx, env, strings.Fields(migrateWeb1))
		m.ended <- answer{exit, out.String(), errs.String()}
	}()
}

// reach waits until the target is in a phase, for half a second.
func (m *move) reach(phase string) {
	m.t.Helper()
	for range 2000 {
		if m.phase() == phase {
			time.Sleep(time.Second / 2)
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	m.t.Fatalf("the target does not come to %s: it is in %q", phase, m.phase())
}

func (m *move) phase() (phase string) {
	err := m.target.World().View(m.t.Context(), func(tx *world.Tx) error {
		for _, p := range tx.State.Processes {
			if p.VM != nil && p.VM.In != nil {
				phase = world.At(p.VM.In.Stages, tx.Now).State
			}
		}
		return nil
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return phase
}

// running are the machines that run on a sled.
func (s *sled) runningMachines() (n int) {
	s.t.Helper()
	err := s.World().View(s.t.Context(), func(tx *world.Tx) error {
		for _, p := range tx.State.Processes {
			if p.VM != nil && world.At(p.VM.Timeline, tx.Now).State == "Running" {
				n++
			}
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

// killServer ends the sled's propolis-servers.
func (s *sled) killServer() {
	s.t.Helper()
	err := s.World().Update(s.t.Context(), func(tx *world.Tx) error {
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
		s.t.Fatal(err)
	}
}

// powerCycle reboots a sled; its client dies with it.
func (m *move) powerCycle(s *sled, client *host.Crashing) {
	m.t.Helper()
	client.Die()
	if err := s.Reboot(m.t.Context()); err != nil {
		m.t.Fatal(err)
	}
}

// befalling is what happens to a migration in a phase.
type befalling struct {
	name   string
	before func(m *move, phase string) // arms it
	during func(m *move)
	reboot func(m *move) *sled // which sled comes up again
	// exit are the codes that the command may end with; nil: it is killed.
	exit []int
	stay bool // whatever the phase, the machine is not lost
}

func befallings() []befalling {
	return []befalling{
		{name: "nothing", during: func(*move) {}, exit: []int{0}, stay: true},
		{name: "source dies", during: func(m *move) { m.source.killServer() }, exit: []int{1, 3}},
		{name: "target dies", during: func(m *move) { m.target.killServer() }, exit: []int{1}, stay: true},
		{name: "source's sled is cut off its power", during: func(m *move) { m.powerCycle(m.source, m.here) }, reboot: func(m *move) *sled { return m.source }},
		{name: "target's sled is cut off its power", during: func(m *move) { m.powerCycle(m.target, m.there) }, reboot: func(m *move) *sled { return m.target }, exit: []int{1, 3}, stay: true},
		{name: "connection cut", before: func(m *move, phase string) {
			m.source.arm(world.Fault{Name: world.FaultDrop, Match: "propolis * migrate " + phase, Times: 1})
		}, exit: []int{1}, stay: true},
		{name: "target fails", before: func(m *move, phase string) {
			m.target.arm(world.Fault{Name: world.FaultFail, Match: "propolis * migrate " + phase, Times: 1})
		}, exit: []int{1}, stay: true},
		{name: "cancelled", during: func(m *move) { m.cancel(context.Canceled) }, exit: []int{3}, stay: true},
		{name: "client on the source killed", during: func(m *move) { m.here.Die() }, stay: true},
		{name: "client on the target killed", during: func(m *move) { m.there.Die() }, exit: []int{0, 1, 3}, stay: true},
		{name: "both clients killed", during: func(m *move) { m.here.Die(); m.there.Die() }, stay: true},
	}
}

func TestMigrationMatrix(t *testing.T) {
	var g *moving
	synctest.Test(t, func(t *testing.T) { g = newMoving(t) })
	phases := []string{"RamPush", "Pause", "RamPushDirty", "Device", "RamPull", "Server", "Finish"}
	for n, phase := range phases {
		for k, b := range befallings() {
			if testing.Short() && (n+k)%len(phases) != 0 {
				continue
			}
			t.Run(phase+", "+b.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { g.open(t).suffers(phase, b) })
			})
		}
	}
}

// suffers runs a case, up to the laws.
func (m *move) suffers(phase string, b befalling) {
	t := m.t
	if b.before != nil {
		b.before(m, phase)
	}
	m.begin()
	if b.during != nil {
		m.reach(phase)
		b.during(m)
	}
	a := <-m.ended
	m.here.Wait()
	m.there.Wait()
	if b.exit != nil && !slices.Contains(b.exit, a.exit) {
		t.Errorf("exit %d: %s", a.exit, a.errs)
	}
	if n := m.source.runningMachines() + m.target.runningMachines(); n > 1 {
		t.Fatalf("%d machines run", n)
	}
	told := strings.Split(strings.TrimSpace(a.errs), "\n")[0]
	if b.exit != nil && a.exit != 0 && !strings.Contains(told, "web1") {
		t.Errorf("told: %s", a.errs)
	}
	m.recover(b, a)
	t.Logf("exit %d: %s; it runs on the %s", a.exit, told, m.laws())
}

// recover does what an operator does who comes to it later.
func (m *move) recover(b befalling, a answer) {
	m.t.Helper()
	if b.reboot != nil {
		b.reboot(m).run("bootstrap")
	}
	again := m.source.try("instance migrate web1")
	if !slices.Contains([]int{0, 1, 2, 4}, again.exit) { // done now, taken back, nothing to go on with, gone
		m.t.Errorf("after %d, %s: again: exit %d: %s", a.exit, a.errs, again.exit, again.errs)
	}
	if n := m.source.runningMachines() + m.target.runningMachines(); b.stay && n != 1 {
		m.t.Errorf("%d machines run", n)
	}
	for _, s := range []*sled{m.source, m.target} {
		s.run("instance ensure --all")
		s.run("reap")
	}
}

// laws holds both sleds against them, and tells where the machine is.
func (m *move) laws() (where string) {
	t := m.t
	t.Helper()
	a, b := m.source.runningMachines(), m.target.runningMachines()
	if a+b != 1 {
		t.Fatalf("%d machines run on the source, %d on the target", a, b)
	}
	where, other, with, empty := "source", m.target, m.source, m.targetEmpty
	if b == 1 {
		where, other, with, empty = "target", m.source, m.target, m.sourceEmpty
	}
	other.same(empty, "the sled that has it not")
	if out := other.run("instance list -H"); out != "" {
		t.Errorf("the other one lists %s", out)
	}
	if out := with.run("instance list -H --columns name,state"); out != "web1\trunning\n" {
		t.Errorf("it is listed as %s", out)
	}
	for _, s := range []*sled{m.source, m.target} {
		for key := range s.ledger() {
			if strings.HasPrefix(key, "intent/") {
				t.Errorf("%s is still open", key)
			}
		}
		if out := s.run("reap --dry-run -H --columns kind,name,verdict"); strings.Contains(out, "orphan") || strings.Contains(out, "stale") || strings.Contains(out, "unknown") || strings.Contains(out, "adoptable") {
			t.Errorf("reap would have something to do: %s", out)
		}
	}
	moved := fmt.Sprint(m.source.trails(), m.target.trails())
	if where == "target" && moved != "[departed] [arrived]" || where == "source" && moved != "[] []" {
		t.Errorf("it runs on the %s, and the sleds remember %s", where, moved)
	}
	if text := fmt.Sprint(with.ledger()); strings.Contains(text, `"migration":{`) {
		t.Errorf("the record still says that it migrates: %s", text)
	}
	return where
}

// What a target says is held against what the source's Propolis says: a machine
// that runs here has not left, whoever says so.
func TestATargetIsNotBelieved(t *testing.T) {
	var g *moving
	synctest.Test(t, func(t *testing.T) { g = newMoving(t) })
	const arrived = `{"kind":"Instance","id":"ID","state":"running","migration":{"id":"MIGRATION","state":"arrived"}}`
	for name, c := range map[string]struct {
		ensure, remove migration.Answer
		exit           int
		told           string
		departs        bool // the record still says so afterwards
	}{
		"it says that the machine is there": {migration.Answer{Stdout: []byte(arrived)}, migration.Answer{}, 3, "the machine here has not left", true},
		"it says what nobody asked for":     {migration.Answer{Stdout: []byte("ok")}, migration.Answer{}, 1, "what it printed is not the instance", false},
		"it says nothing any more":          {migration.Answer{Exit: 255}, migration.Answer{Exit: 255}, 3, "the target may take it yet", true},
		"it fails, and is silent then":      {migration.Answer{Exit: 1, Stderr: []byte(`{"kind":"Error","exit":1,"message":"not today","left":[]}`)}, migration.Answer{Exit: 255}, 1, "there: not today", false},
		"it fails, and keeps what it has":   {migration.Answer{Exit: 1, Stderr: []byte(`{"kind":"Error","exit":1,"message":"not today","left":[]}`)}, migration.Answer{Exit: 8, Stderr: []byte(`{"kind":"Error","exit":8,"message":"it has arrived","left":[]}`)}, 3, "the target may take it yet", true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := g.open(t)
				id := strings.TrimSpace(m.source.run("instance get web1 -H --columns id"))
				env, _, errs := commands.On(m.source.Host(), nil)
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
				if exit := commands.Run(t.Context(), env, strings.Fields(migrateWeb1)); exit != c.exit || !strings.Contains(errs.String(), c.told) {
					t.Errorf("exit %d: %s", exit, errs)
				}
				if m.source.runningMachines() != 1 {
					t.Error("the machine does not run any more")
				}
				if departs := strings.Contains(m.source.run("instance get web1 -o json"), "departing"); departs != c.departs {
					t.Errorf("it departs: %v", departs)
				}
				if !c.departs {
					return
				}
				if a := m.source.try("instance stop web1"); a.exit != 8 {
					t.Errorf("stop: exit %d: %s", a.exit, a.errs)
				}
				m.source.run("instance migrate web1 --cancel --yes")
				m.source.run("instance delete web1")
				m.source.same(m.sourceEmpty, "in the end")
			})
		})
	}
}
