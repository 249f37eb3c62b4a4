package commands_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/sledtest"
)

// movingVolume describes a VM with a volume in a Crucible.
func movingVolume() string {
	return "name = \"web1\"\n" + strings.Replace(crucibleDisk, `key_file = "key"`, `key = "`+crucibleKey+`"`, 1)
}

// Whatever happens to a VM with a volume in a Crucible while it moves, one can write to that at each
// instant, and it is the one that runs.
func TestMigrationMatrixOfAVolumeInACrucible(t *testing.T) {
	t.Parallel()
	var g *sledtest.Moving
	synctest.Test(t, func(t *testing.T) { g = sledtest.NewMovingOf(t, movingVolume()) })
	phases := []string{"RamPush", "Pause", "RamPushDirty", "Device", "RamPull", "Server", "Finish"}
	for n, phase := range phases {
		for k, b := range befallings() {
			if testing.Short() && (n+k)%len(phases) != 3 {
				continue
			}
			t.Run(phase+", "+b.Name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { g.Open(t).Suffers(phase, b) })
			})
		}
	}
}

// generationOf is the last generation that a sled has counted.
func generationOf(s *sledtest.Operator) string {
	s.T.Helper()
	for key, value := range s.Ledger() {
		if strings.HasPrefix(key, "generation/") {
			return value
		}
	}
	return ""
}

// A VM takes its volume along: the target opens it with the next generation, which both sleds have
// counted, and so it comes back. A try that fails has opened nothing. No byte of the key is in the open.
func TestAVMTakesItsVolumeInACrucibleAlong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := sledtest.NewMovingOf(t, movingVolume()).Open(t)
		opened := func(want uint64) {
			t.Helper()
			if last := m.Shared.Last(crucibleVolume); last != want {
				t.Errorf("the volume was opened with generation %d, not %d", last, want)
			}
			if n := m.Source.WritingMachines() + m.Target.WritingMachines(); n != 1 {
				t.Errorf("%d machines can write", n)
			}
		}
		counted := func(source, target string) {
			t.Helper()
			if a, b := generationOf(m.Source), generationOf(m.Target); a != source || b != target {
				t.Errorf("the source has counted %s, the target %s, not %s and %s", a, b, source, target)
			}
		}
		opened(1)
		if said := m.Source.Run(sledtest.MigrateWeb1 + " --dry-run --explain"); !strings.Contains(said, `"above":1`) && !strings.Contains(said, `"above": 1`) || strings.Contains(said, crucibleKey) {
			t.Errorf("it would be sent as %s", said)
		}
		counted("1", "")
		m.Target.Arm(world.Fault{Name: world.FaultFail, Match: "propolis * migrate Server", Times: 1})
		if a := m.Source.Try(sledtest.MigrateWeb1); a.Exit != 1 || !strings.Contains(a.Errs, "web1") {
			t.Errorf("exit %d: %s", a.Exit, a.Errs)
		}
		opened(1)
		counted("2", "2")
		m.Source.Run(sledtest.MigrateWeb1)
		opened(3)
		counted("3", "3")
		if left := m.Source.SecretFiles(); len(left) > 0 || len(m.Target.SecretFiles()) != 1 {
			t.Errorf("secrets: %q on the source, %q on the target", left, m.Target.SecretFiles())
		}
		for _, s := range []*sledtest.Operator{m.Source, m.Target} {
			if all := exposed(s, crucibleKey); len(all) > 0 {
				t.Errorf("the key is in %q", all)
			}
		}
		m.Target.Run(sledtest.MigrateWeb1)
		opened(4)
		m.Source.Run("instance stop web1")
		m.Source.Run("instance start web1")
		opened(5)
		m.Source.Run("instance delete web1")
		m.Source.Same(m.SourceEmpty, "in the end")
	})
}

// A VM whose volume others open while it moves has arrived, and failed: it runs on neither sled, and
// the target starts it again with a generation above.
func TestAVolumeThatOthersOpenWhileItsVMMoves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := sledtest.NewMovingOf(t, movingVolume()).Open(t)
		a := m.During("RamPull", func(m *sledtest.Move) {
			if err := m.Shared.Activate(crucibleVolume, "another", 2); err != nil {
				t.Error(err)
			}
		})
		if a.Exit != 1 || !strings.Contains(a.Errs, "it runs on neither sled") || !strings.Contains(a.Errs, "instance ensure web1") {
			t.Errorf("exit %d: %s", a.Exit, a.Errs)
		}
		if out := m.Source.Run("instance list -H"); out != "" {
			t.Errorf("the source has it: %s", out)
		}
		if out := m.Target.Run("instance list -H --columns name,state"); out != "web1\tfailed\n" {
			t.Errorf("the target has it as %s", out)
		}
		m.Target.Run("instance ensure web1")
		if n := m.Target.WritingMachines(); n != 1 || m.Shared.Last(crucibleVolume) != 3 {
			t.Errorf("%d can write, opened with generation %d", n, m.Shared.Last(crucibleVolume))
		}
	})
}
