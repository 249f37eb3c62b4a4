package commands_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world/crucible"
	"github.com/sledctl/sledctl/test/sledtest"
)

const (
	crucibleVolume = "7c1e6dd0-2a5f-4f4c-9f0b-0d8a8a3a1f01"
	crucibleKey    = "c3VwZXIgc2VjcmV0IHN1cGVyIHNlY3JldCAgIDMyIDA="
	crucibleDisk   = `
[[crucible]]
id = "` + crucibleVolume + `"
targets = ["10.0.0.1:3810", "10.0.0.2:3810", "10.0.0.3:3810"]
block_size = "4K"
blocks_per_extent = 16384
extents = 160
key_file = "key"
`
)

// Each bring-up opens a volume in a Crucible with a higher generation, also after the instance was
// deleted; and no byte of its key is in the ledger, in plans or in what is printed.
func TestAVolumeInACrucible(t *testing.T) {
	t.Parallel()
	s := sledtest.New(t, sledtest.Small(), "")
	shared := &crucible.Crucible{}
	s.World().Share(shared)
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	write("key", crucibleKey+"\n")
	file := write("web1.toml", "name = \"web1\"\n"+crucibleDisk)
	s.Run("bootstrap")
	said := s.Run("instance ensure --dry-run --explain -f " + file)
	for generation, line := range []string{
		1: "instance ensure -f " + file, 2: "instance stop web1\ninstance start web1", 3: "instance delete web1\ninstance ensure -f " + file,
	} {
		for line := range strings.Lines(line) {
			said += s.Run(strings.TrimSpace(line))
		}
		if last := shared.Last(crucibleVolume); last != uint64(generation) {
			t.Errorf("%s: the volume was opened with generation %d, not %d", line, last, generation)
		}
	}
	if s.Run("instance ensure -f " + file); shared.Last(crucibleVolume) != 3 {
		t.Error("an instance that is as it is described was brought up again")
	}
	said += s.Run("instance get web1 -o toml") + s.Run("instance get web1 -o json") + s.Run("instance get web1 --diff -o json") +
		s.Run("ledger export") + s.Run("history -o json") + s.Run("propolis spec show web1 -o json")
	if strings.Contains(said, crucibleKey) || len(exposed(s, crucibleKey)) > 0 {
		t.Errorf("the key is shown, or in %q", exposed(s, crucibleKey))
	}
	if is := s.Run("instance get web1 -o json"); !strings.Contains(is, `"generation":3`) || !strings.Contains(is, crucibleVolume) {
		t.Errorf("the generation is not shown: %s", is)
	}
	printed := write("printed.toml", s.Run("instance get web1 -o toml"))
	if s.Run("instance ensure -f " + printed); shared.Last(crucibleVolume) != 3 {
		t.Error("what is printed is another instance")
	}
	s.Run("instance delete web1")
	if left := s.SecretFiles(); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
	if err := shared.Activate(crucibleVolume, "another", 57); err != nil {
		t.Fatal(err)
	}
	above := write("above.toml", "name = \"web1\"\n"+crucibleDisk+"above = 57\n")
	if s.Run("instance ensure -f " + above); shared.Last(crucibleVolume) != 58 {
		t.Errorf("above 57, the volume was opened with generation %d", shared.Last(crucibleVolume))
	}
}

// What is wrong with a volume is said with the line, and a key is not quoted.
func TestAVolumeInACrucibleIsRefused(t *testing.T) {
	t.Parallel()
	s := sledtest.New(t, sledtest.Small(), "")
	dir := t.TempDir()
	for _, x := range []struct{ from, to, want string }{
		{`"10.0.0.1:3810", `, "", `crucible targets "10.0.0.2:3810 10.0.0.3:3810": want the 3 addresses`},
		{"10.0.0.1:3810", "sled1", `crucible targets "sled1": want IP:PORT`},
		{crucibleVolume, "v", `crucible id "v": want the UUID`},
		{`"4K"`, `1000`, `crucible block_size "1000": want a power of two`},
		{"block_size = \"4K\"\n", "", "block_size: want that with which the region was created"},
		{"extents = 160\n", "", `crucible extents "0": want more than 0`},
		{`key_file = "key"`, `key = "c2VjcmV0"`, `crucible key "…": want 32 bytes in base64`},
		{`key_file = "key"`, `key = "c2VjcmV0"` + "\nkey_file = \"key\"", "want key or key_file, not both"},
		{"extents", "generation", "unknown key"},
	} {
		file := filepath.Join(dir, "web1.toml")
		if err := os.WriteFile(file, []byte("name = \"web1\"\n"+strings.Replace(crucibleDisk, x.from, x.to, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		answer := s.Try("instance ensure -f " + file)
		if answer.Exit != 2 || !strings.Contains(answer.Errs, x.want) || !strings.Contains(answer.Errs, "line ") || strings.Contains(answer.Errs, "c2VjcmV0") {
			t.Errorf("%s for %s: exit %d: %s", x.to, x.from, answer.Exit, answer.Errs)
		}
	}
}

// A bring-up may be killed at any change: run again, it opens the volume with a generation that the
// downstairs take, and leaves neither a secret in the open nor a file of secrets that nothing names.
func TestAKilledBringUpOpensItsVolume(t *testing.T) {
	t.Parallel()
	if sledtest.Quick() {
		t.Skip("takes seconds")
	}
	s := sledtest.New(t, sledtest.Small(), "")
	file := filepath.Join(t.TempDir(), "web1.toml")
	if err := os.WriteFile(file, []byte("name = \"web1\"\n"+strings.Replace(crucibleDisk, `key_file = "key"`, `key = "`+crucibleKey+`"`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Run("bootstrap")
	s.Run("instance ensure -f " + file)
	s.Run("instance stop web1")
	for n, crashed := 1, true; crashed; n++ {
		c := &sledtest.Operator{Sled: s.Clone(), T: t}
		t.Cleanup(c.Close)
		var shared crucible.Crucible
		c.World().Share(&shared)
		if err := shared.Activate(crucibleVolume, "of the first bring-up", 1); err != nil {
			t.Fatal(err)
		}
		dying := host.Crash(c.Host(), n, host.CrashAfter)
		c.On(t.Context(), dying, "instance start web1")
		dying.Wait()
		crashed = dying.Crashed()
		c.Run("instance start web1")
		if all := exposed(c, crucibleKey); len(all) > 0 || len(c.SecretFiles()) != 1 {
			t.Errorf("killed %s: the key is in %q, and secrets in %q", dying.Where(), all, c.SecretFiles())
		}
		last := shared.Last(crucibleVolume)
		if c.Run("instance ensure -f " + file); shared.Last(crucibleVolume) != last || last < 2 {
			t.Errorf("killed %s: opened with generation %d, then with %d", dying.Where(), last, shared.Last(crucibleVolume))
		}
		c.Run("instance delete web1")
		if left := c.SecretFiles(); len(left) > 0 {
			t.Errorf("killed %s: %q are left", dying.Where(), left)
		}
	}
}
