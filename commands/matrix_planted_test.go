package commands_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// defect is one that is planted in a copy of a file, and that the matrix must find.
type defect struct {
	name     string
	file     string   // of the repository
	old, new string   // what is there once, and what is planted instead
	rows     []string // of the matrix, with their mode: what is run
	told     string   // what the matrix says then
}

// defects are planted side by side in one build. Each waits until it is named.
func defects() []defect {
	return []defect{
		{
			name: "an undo left out", file: "plan/apply.go",
			old:  `err := attempt(ctx, host.ForAction(r.h, "undo "+a.ID), b.Step)`,
			new:  `if planted("an undo left out") { continue }; err := attempt(ctx, host.ForAction(r.h, "undo "+a.ID), b.Step)`,
			rows: []string{"vnic_create/" + string(refuses)},
			told: "but (-before +after)",
		},
		{
			name: "an intent not written", file: "operation/operation.go",
			old:  `return append(d.Before, ledger.Fact{Key: intentKey(id), Value: value}), nil`,
			new:  `if planted("an intent not written") { return d.Before, nil }; return append(d.Before, ledger.Fact{Key: intentKey(id), Value: value}), nil`,
			rows: []string{"a_VNIC/killed_before"},
			told: "no intent was flushed before",
		},
		{
			name: "a line not flushed", file: "ledger/append.go",
			old:  `group.Go(func() error { return l.files.Sync(c.File()) })`,
			new:  `if planted("a line not flushed") { continue }; group.Go(func() error { return l.files.Sync(c.File()) })`,
			rows: []string{"a_VNIC/killed_before"},
			told: "no intent was flushed before",
		},
		{
			name: "an outcome without its line", file: "operation/operation.go",
			old:  `func(ledger.View) ([]ledger.Fact, error) { return facts, nil })`,
			new:  `func(ledger.View) ([]ledger.Fact, error) { if planted("an outcome without its line") { return nil, nil }; return facts, nil })`,
			rows: []string{"a_VNIC/killed_after"},
			told: "after delete and reap",
		},
		{
			name: "others' zones taken for ours", file: "reap/judge_zone.go",
			old:  `if !claim.Ours() && !r.named(z, claim)`,
			new:  `if !planted("others' zones taken for ours") && !claim.Ours() && !r.named(z, claim)`,
			rows: []string{"bootstrap/" + string(silent)},
			told: "what is not sledctl's",
		},
	}
}

// The matrix finds what is wrong: it fails of builds with a defect, and says
// which law is broken.
func TestKillMatrixFindsDefects(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the tests of a program with defects")
	}
	binary := plantedBuild(t, defects())
	sound := defect{name: "none"}
	for _, d := range defects() {
		sound.rows = append(sound.rows, d.rows...)
		t.Run(d.name, func(t *testing.T) {
			if said, err := d.run(t, binary); err == nil || !strings.Contains(said, d.told) {
				t.Errorf("the matrix does not find it: %v; want it to say %q:\n%s", err, d.told, said)
			}
		})
	}
	if said, err := sound.run(t, binary); err != nil {
		t.Errorf("the matrix finds what is not there: %v:\n%s", err, said)
	}
}

// run runs the defect's rows of the matrix.
func (d defect) run(t *testing.T, binary string) (said string, err error) {
	t.Helper()
	pattern := func(part int) string {
		var all []string
		for _, r := range d.rows {
			all = append(all, "^"+strings.Split(r, "/")[part]+"$")
		}
		return strings.ReplaceAll(strings.Join(all, "|"), " ", "_")
	}
	cmd := exec.CommandContext(t.Context(), binary, "-test.count=1", "-test.run", "^TestKillMatrix$/^rows$/"+pattern(0)+"/"+pattern(1))
	cmd.Env = append(os.Environ(), "PLANTED="+d.name, "SLEDCTL_KILL_MATRIX=")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// plantedBuild builds this package's tests over copies of the files of the defects.
func plantedBuild(t *testing.T, all []defect) (binary string) {
	t.Helper()
	dir := t.TempDir()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	replace := map[string]string{}
	put := func(name, content string) {
		copied := filepath.Join(dir, fmt.Sprint(len(replace), ".go"))
		if err := os.WriteFile(copied, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(root, name)] = copied
	}
	sources := map[string]string{}
	for _, d := range all {
		if sources[d.file] == "" {
			data, err := os.ReadFile(filepath.Join(root, d.file))
			if err != nil {
				t.Fatal(err)
			}
			sources[d.file] = string(data)
		}
		if n := strings.Count(sources[d.file], d.old); n != 1 {
			t.Fatalf("%s has %d times what %q is to be planted in: %s", d.file, n, d.name, d.old)
		}
		sources[d.file] = strings.Replace(sources[d.file], d.old, d.new, 1)
	}
	for file, source := range sources {
		put(file, source)
		pkg := filepath.Dir(file)
		put(pkg+"/planted.go", "package "+pkg+"\n\nimport \"os\"\n\nfunc planted(name string) bool { return os.Getenv(\"PLANTED\") == name }\n")
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(name, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	binary = filepath.Join(dir, "planted.test")
	if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", name, "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return binary
}
