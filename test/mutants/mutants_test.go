package mutants

import (
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sledctl/sledctl/test/sledtest"
)

// The mutants are found: with each of them, its tests fail, and say what is
// wrong; without any, they pass.
func TestMutants(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the tests of a program with defects")
	}
	root := look(t)
	files, err := overlay(All(), from(root))
	if err != nil {
		t.Fatal(err)
	}
	var here []Mutant // that are looked for in this run
	var packages []string
	sound := map[string]By{}
	for _, m := range All() {
		if m.today() {
			here, packages = append(here, m), append(packages, m.Found.Package)
			if !m.Soak && !m.Rule { // that is sound, the same tests say by themselves
				sound[m.Found.Package] = sound[m.Found.Package].and(m.Found)
			}
		}
	}
	start := time.Now()
	dir := build(t, root, files, slices.Compact(slices.Sorted(slices.Values(packages))))
	t.Logf("%v for the build", time.Since(start).Round(time.Second))
	found := tally{by: map[string]string{}}
	t.Run("all", func(t *testing.T) {
		for _, m := range here {
			t.Run(m.Name, func(t *testing.T) {
				t.Parallel()
				said, failed := m.Found.run(t, root, dir, strings.Trim(m.Name+"+"+m.With, "+"), m.Soak)
				if !failed || !strings.Contains(said, m.Found.Told) {
					t.Errorf("no test of %s in %s finds it, saying %q: failed is %v:\n%s", m.Found.Run, m.Found.Package, m.Found.Told, failed, said)
					return
				}
				found.add(m.Name, m.Found.Package+" "+strings.Join(failures(said), ", "))
			})
		}
		for pkg, all := range sound {
			t.Run("none of "+pkg, func(t *testing.T) {
				t.Parallel()
				if said, failed := all.run(t, root, dir, "", false); failed {
					t.Errorf("a test fails without a defect:\n%s", said)
				}
			})
		}
	})
	found.print(t)
}

// from reads the files of the repository.
func from(root string) func(string) (string, error) {
	return func(file string) (string, error) {
		data, err := os.ReadFile(filepath.Join(root, file))
		return string(data), err
	}
}

// look lets go test know of every directory that this depends on, so that its
// result is not taken from the cache when a file is another. It returns the root
// of the repository.
func look(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(root, func(name string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && (slices.Contains([]string{"bin", "dist"}, d.Name()) || strings.HasPrefix(d.Name(), ".") && name != root) {
			return filepath.SkipDir
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// half is which half of the mutants beyond the first forty is looked for, 0 or 1; empty: both. It is
// the day's in .ci/run, whose time is bounded.
const half = "SLEDCTL_MUTANTS_HALF"

// today says whether a mutant is looked for in this run.
func (m Mutant) today() bool {
	if m.Soak || !m.Besides && !m.Rule {
		return soak() || !m.Soak
	}
	return soak() || os.Getenv(half) == "" || os.Getenv(half) == strconv.Itoa(int(crc32.ChecksumIEEE([]byte(m.Name))%2))
}

// soak says whether time is no matter.
func soak() bool { return os.Getenv("SLEDCTL_SOAK") != "" }

// and is the tests of both.
func (by By) and(other By) By {
	other.Run = strings.Trim(by.Run+"|"+other.Run, "|")
	other.Stories = max(by.Stories, other.Stories)
	return other
}

// run runs the tests as they are built with everything planted, and one mutant;
// if long, as they are when soaking.
func (by By) run(t *testing.T, root, dir, name string, long bool) (said string, failed bool) {
	t.Helper()
	args := []string{"-test.count=1", "-test.timeout=30m", "-test.run", by.Run}
	if by.Stories > 0 {
		args = append(args, "-histories", strconv.Itoa(by.Stories))
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, path.Base(by.Package)+".test"), args...)
	cmd.Dir = filepath.Join(root, by.Package)
	own := []string{"SLEDCTL_KILL_MATRIX", "SLEDCTL_LATTICE", "SLEDCTL_HISTORIES", "SLEDCTL_SOAK", variable}
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(own, name)
	})
	cmd.Env = append(cmd.Env, variable+"="+name, sledtest.Program+"="+filepath.Join(dir, program))
	if long {
		cmd.Env = append(cmd.Env, "SLEDCTL_SOAK=1")
	}
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "no tests to run") {
		t.Fatalf("%s has no tests %s", by.Package, by.Run)
	}
	return string(out), err != nil
}

// failures are the tests that failed, without those around them.
func failures(said string) []string {
	var all []string
	for line := range strings.Lines(said) {
		if _, rest, ok := strings.Cut(line, "--- FAIL: "); ok {
			name, _, _ := strings.Cut(rest, " ")
			all = append(all, name)
		}
	}
	return slices.DeleteFunc(all, func(outer string) bool {
		return slices.ContainsFunc(all, func(name string) bool { return strings.HasPrefix(name, outer+"/") })
	})
}

// tally is who found which mutant.
type tally struct {
	mu sync.Mutex
	by map[string]string
}

func (f *tally) add(name, by string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.by[name] = by
}

// print says how many were found, and by whom, in the order of the table.
func (f *tally) print(t *testing.T) {
	t.Helper()
	text := f.of("mutants", func(m Mutant) bool { return !m.Besides && !m.Rule }) +
		f.of("mutants besides", func(m Mutant) bool { return m.Besides }) +
		f.of("rules of the ledger left out", func(m Mutant) bool { return m.Rule })
	fmt.Print(text)
	if name := os.Getenv("SLEDCTL_MUTANTS"); name != "" { // go test hides what a package prints that passes
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Error(err)
		}
	}
}

// of is print, of some.
func (f *tally) of(what string, these func(Mutant) bool) string {
	all, later, found, by := 0, 0, 0, ""
	for _, m := range All() {
		if !these(m) {
			continue
		}
		all++
		if who, ok := f.by[m.Name]; ok {
			found++
			by += fmt.Sprintf("    %s: %s\n", m.Name, who)
		} else if !m.today() {
			later++
		}
	}
	text := fmt.Sprintf("%s: %d of %d found", what, found, all)
	if later > 0 {
		text += fmt.Sprintf(" (%d are for another day, or make soak)", later)
	}
	return text + "\n" + by
}

// Each mutant has a name of its own, and the files with all of them are Go.
func TestAllTogether(t *testing.T) {
	if _, err := overlay(All(), from("../..")); err != nil {
		t.Error(err)
	}
	names := map[string]bool{}
	for _, m := range All() {
		if names[m.Name] || m.Found.Told == "" || m.Found.Run == "" {
			t.Errorf("%q is there twice, or nobody is to find it", m.Name)
		}
		if at, err := os.Stat(filepath.Join("../..", m.Found.Package)); err != nil || !at.IsDir() {
			t.Errorf("%q is to be found by a missing package: %s", m.Name, m.Found.Package)
		}
		names[m.Name] = true
	}
	for _, m := range All() {
		if m.With != "" && !names[m.With] {
			t.Errorf("%q is to be seen with %q, which is missing", m.Name, m.With)
		}
	}
}

// Each rule that the ledger's own tests say is needed is left out by a mutant.
func TestNoRuleIsKeptInAnyCase(t *testing.T) {
	out := map[string]bool{}
	for _, m := range ofRules() {
		out[m.Found.Run] = true
	}
	rows := 0
	for file, is := range map[string]struct {
		row   *regexp.Regexp
		found func(row, told string) By
	}{
		"needed_test.go":  {regexp.MustCompile(`(?m)^\t\t\{"(.+?)", \d+, config`), needed},
		"reading_test.go": {regexp.MustCompile(`(?m)^\t\t\{"(.+?)", \d, func`), story},
	} {
		source, err := from("../..")("engine/ledger/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range is.row.FindAllStringSubmatch(source, -1) {
			rows++
			name := strings.ReplaceAll(row[1], " ", "_")
			both, _, _ := strings.Cut(name, ",") // two rows of one rule
			if !out[is.found(name, "").Run] && !out[is.found(both+",_(read|written)", "").Run] {
				t.Errorf("no mutant leaves out what the row %q of engine/ledger/%s is for", row[1], file)
			}
		}
	}
	if rows < 59 {
		t.Errorf("only %d rows were found in the ledger's tests", rows)
	}
}

// A patch whose place has changed fails, and so do a patch without a switch
// and two that meet; two in one place go around each other.
func TestPatchesMustFit(t *testing.T) {
	const file = "package x\n\nfunc f() { a(); b(); a() }\n"
	read := func(string) (string, error) {
		return file + `func g() { env.Setenv("TZ", "UTC") }` + "\n" + overwrite().Old, nil
	}
	patch := func(old, new string) Mutant { return Mutant{Name: "m", Plant: []Patch{{"x/x.go", old, new}}} }
	for want, all := range map[string][]Mutant{
		"":                      {patch("b()", "if !MUTANT { OLD }")},
		"has 2 times, not once": {patch("a()", "if !MUTANT { OLD }")},
		"has 0 times, not once": {patch("c()", "if !MUTANT { OLD }")},
		"also if it is not":     {patch("b()", "")},
		"two patches meet":      {patch("b()", "if !MUTANT { OLD }"), patch("b(); a", "if !MUTANT { c() }; a")},
		"no room for the first": {patch("b()", "if !MUTANT { OLD }"), patch("b()", "if !MUTANT { c() }")},
		"expected":              {patch("package x", "if !MUTANT { OLD }")},
	} {
		files, err := overlay(all, read)
		if want == "" {
			if err != nil || !strings.Contains(files["x/x.go"], `a(); if !mutant("m") { b() }; a()`) || !strings.Contains(files["x/zz_mutant.go"], "package x\n") {
				t.Errorf("%v, %v", files, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
