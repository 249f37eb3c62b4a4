package sledtest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sledctl/sledctl/commands"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/propolis"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/crucible"
	"github.com/sledctl/sledctl/sled/instance/migration"
)

// Meet connects the sled with another one.
func (s *Operator) Meet(other *Operator) {
	s.T.Helper()
	if err := sim.Connect(s.T.Context(), s.Sled, other.Sled); err != nil {
		s.T.Fatal(err)
	}
	s.There, other.There = other, s
}

// The migration matrix: a machine moves between two simulated sleds by the real
// commands, and whatever happens to it in whatever phase, afterwards it runs on one
// of them, and nothing of it is on the other.

// Moving are two sleds, and a machine that runs on the first.
type Moving struct {
	Source, Target *sim.Sled
	At             time.Time
	SourceEmpty    string // the sleds without the machine
	targetEmpty    string
	shared         *crucible.Crucible // nil: the machine has no volume in one
}

// OtherNetwork is tuned with a network that the first sled does not have.
func OtherNetwork() string { return strings.ReplaceAll(TunedConfig, "10.77.", "10.78.") }

func NewMoving(t *testing.T) *Moving { return newMoving(t, Web1, "", nil) }

// NewMovingOf is Moving with a machine that a document describes, whose volumes are in a Crucible.
func NewMovingOf(t *testing.T, document string) *Moving {
	return newMoving(t, "instance ensure -f -", document, &crucible.Crucible{})
}

func newMoving(t *testing.T, line, input string, shared *crucible.Crucible) *Moving {
	a, b := New(t, Small(), TunedConfig), New(t, Small(), OtherNetwork())
	a.World().Share(shared)
	a.Run("bootstrap")
	b.Run("bootstrap")
	m := &Moving{SourceEmpty: a.Comparable(), targetEmpty: b.Comparable(), shared: shared}
	if made := a.Fed(t.Context(), a.Host(), line, input); made.Exit != 0 {
		t.Fatalf("%s: exit %d: %s", line, made.Exit, made.Errs)
	}
	m.Source, m.Target, m.At = a.Clone(), b.Clone(), time.Now()
	return m
}

// Open are the sleds of one case.
func (m *Moving) Open(t *testing.T) *Move {
	a, b := &Operator{Sled: m.Source.Clone(), T: t}, &Operator{Sled: m.Target.Clone(), T: t}
	t.Cleanup(a.Close)
	t.Cleanup(b.Close)
	time.Sleep(time.Until(m.At))
	a.Meet(b)
	move := &Move{Moving: m, t: t, Source: a, Target: b, Here: host.Crash(a.Host(), 0, host.CrashBefore), There: host.Crash(b.Host(), 0, host.CrashBefore)}
	if m.shared != nil {
		move.Shared = m.shared.Clone()
		a.World().Share(move.Shared)
		b.World().Share(move.Shared)
	}
	return move
}

// Move is one migration.
type Move struct {
	*Moving
	t              *testing.T
	Source, Target *Operator
	Shared         *crucible.Crucible // in which the machine has its volumes; nil: it has none
	Here, There    *host.Crashing     // each side's client dies with its host
	Cancel         context.CancelCauseFunc
	ended          chan Answer
}

const MigrateWeb1 = "instance migrate web1 --to-command there"

// begin runs the command, in which each stage takes a second.
func (m *Move) begin() {
	m.Target.Arm(world.Fault{Name: world.FaultSlowMigrate, Match: "propolis * migrate", Delay: time.Second})
	ctx, cancel := context.WithCancelCause(m.t.Context())
	m.Cancel, m.ended = cancel, make(chan Answer, 1)
	go func() {
		env, out, errs := commands.On(m.Here, nil)
		env.Remote = func(ctx context.Context, words []string, stdin []byte) (migration.Answer, error) {
			if m.Here.Crashed() {
				return migration.Answer{Exit: -1}, host.ErrCrashed
			}
			return m.Target.Answers(ctx, m.There, words[1:], stdin), nil
		}
		exit := commands.Run(ctx, env, strings.Fields(MigrateWeb1))
		m.ended <- Answer{exit, out.String(), errs.String()}
	}()
}

// writes checks that one machine at most writes to the volumes: that which runs, once it runs.
func (m *Move) writes(runs bool) {
	m.t.Helper()
	if m.Shared == nil {
		return
	}
	n := m.Source.WritingMachines() + m.Target.WritingMachines()
	if n > 1 || runs && n != 1 {
		m.t.Errorf("%d machines can write", n)
	}
}

// reach waits until the target is in a phase, for half a second.
func (m *Move) reach(phase string) {
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

func (m *Move) phase() (phase string) {
	err := m.Target.World().View(m.t.Context(), func(tx *world.Tx) error {
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

// RunningMachines are how many machines run on a sled.
func (s *Operator) RunningMachines() int {
	s.T.Helper()
	return s.machines("Running", func(*world.Tx, *world.VM) bool { return true })
}

// WritingMachines are those of them that can write to all their volumes in a Crucible, and those that
// are in a migration.
func (s *Operator) WritingMachines() int {
	s.T.Helper()
	writes := func(tx *world.Tx, vm *world.VM) bool { return propolis.Write(tx, vm) == nil }
	return s.machines("Running", writes) + s.machines("Migrating", writes)
}

func (s *Operator) machines(state string, are func(*world.Tx, *world.VM) bool) (n int) {
	s.T.Helper()
	err := s.World().View(s.T.Context(), func(tx *world.Tx) error {
		for _, p := range tx.State.Processes {
			if p.VM != nil && world.At(p.VM.Timeline, tx.Now).State == state && are(tx, p.VM) {
				n++
			}
		}
		return nil
	})
	if err != nil {
		s.T.Fatal(err)
	}
	return n
}

// PowerCycle reboots a sled; its client dies with it.
func (m *Move) PowerCycle(s *Operator, client *host.Crashing) {
	m.t.Helper()
	client.Die()
	if err := s.Reboot(m.t.Context()); err != nil {
		m.t.Fatal(err)
	}
}

// Befalling is what happens to a migration in a phase.
type Befalling struct {
	Name   string
	Before func(m *Move, phase string) // arms it
	During func(m *Move)
	Reboot func(m *Move) *Operator // which sled comes up again
	// exit are the codes that the command may end with; nil: it is killed.
	Exit []int
	Stay bool // whatever the phase, the machine is not lost
}

// During runs the command, and something while the target is in a phase.
func (m *Move) During(phase string, do func(*Move)) Answer {
	m.t.Helper()
	m.begin()
	if do != nil {
		m.reach(phase)
		m.writes(true)
		do(m)
	}
	a := <-m.ended
	m.Here.Wait()
	m.There.Wait()
	return a
}

// Suffers runs a case, up to the laws.
func (m *Move) Suffers(phase string, b Befalling) {
	t := m.t
	if b.Before != nil {
		b.Before(m, phase)
	}
	a := m.During(phase, b.During)
	if b.Exit != nil && !slices.Contains(b.Exit, a.Exit) {
		t.Errorf("exit %d: %s", a.Exit, a.Errs)
	}
	if n := m.Source.RunningMachines() + m.Target.RunningMachines(); n > 1 {
		t.Fatalf("%d machines run", n)
	}
	m.writes(false)
	told := strings.Split(strings.TrimSpace(a.Errs), "\n")[0]
	if b.Exit != nil && a.Exit != 0 && !strings.Contains(told, "web1") {
		t.Errorf("told: %s", a.Errs)
	}
	m.recover(b, a)
	t.Logf("exit %d: %s; it runs on the %s", a.Exit, told, m.laws())
}

// recover does what an operator does who comes to it later.
func (m *Move) recover(b Befalling, a Answer) {
	m.t.Helper()
	if b.Reboot != nil {
		b.Reboot(m).Run("bootstrap")
	}
	again := m.Source.Try("instance migrate web1")
	if !slices.Contains([]int{0, 1, 2, 4}, again.Exit) { // done now, undone, nothing to resume, gone
		m.t.Errorf("after %d, %s: again: exit %d: %s", a.Exit, a.Errs, again.Exit, again.Errs)
	}
	if n := m.Source.RunningMachines() + m.Target.RunningMachines(); b.Stay && n != 1 {
		m.t.Errorf("%d machines run", n)
	}
	for _, s := range []*Operator{m.Source, m.Target} {
		s.Run("instance ensure --all")
		s.Run("reap")
	}
}

// laws checks them on both sleds, and returns where the VM runs.
func (m *Move) laws() (where string) {
	t := m.t
	t.Helper()
	a, b := m.Source.RunningMachines(), m.Target.RunningMachines()
	if a+b != 1 {
		t.Fatalf("%d machines run on the source, %d on the target", a, b)
	}
	m.writes(true)
	where, other, with, empty := "source", m.Target, m.Source, m.targetEmpty
	if b == 1 {
		where, other, with, empty = "target", m.Source, m.Target, m.SourceEmpty
	}
	other.Same(empty, "the sled that has it not")
	if out := other.Run("instance list -H"); out != "" {
		t.Errorf("the other one lists %s", out)
	}
	if out := with.Run("instance list -H --columns name,state"); out != "web1\trunning\n" {
		t.Errorf("it is listed as %s", out)
	}
	for _, s := range []*Operator{m.Source, m.Target} {
		for key := range s.Ledger() {
			if strings.HasPrefix(key, "intent/") {
				t.Errorf("%s is still open", key)
			}
		}
		if out := s.Run("reap --dry-run -H --columns kind,name,verdict"); strings.Contains(out, "orphan") || strings.Contains(out, "stale") || strings.Contains(out, "unknown") || strings.Contains(out, "adoptable") {
			t.Errorf("reap would have something to do: %s", out)
		}
	}
	moved := fmt.Sprint(m.Source.trails(), m.Target.trails())
	if where == "target" && moved != "[departed] [arrived]" || where == "source" && moved != "[] []" {
		t.Errorf("it runs on the %s, and the sleds remember %s", where, moved)
	}
	if text := fmt.Sprint(with.Ledger()); strings.Contains(text, `"migration":{`) {
		t.Errorf("the record still says that it migrates: %s", text)
	}
	return where
}
