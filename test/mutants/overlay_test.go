package mutants

import (
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/test/sledtest"
)

// variable names the mutants that are wanted, with a plus between them. What is
// planted knows it as mutantVariable.
const variable = "SLEDCTL_MUTANT"

// program is the sledctl that the scripts of a package run, with everything planted.
const program = "sledctl"

// helper is the file that a package with patches gets next to its own.
const helper = `package %s

import (
	"os"
	"slices"
	"strings"
)

const mutantVariable = %q

var mutantsWanted = strings.Split(os.Getenv(mutantVariable), "+")

func mutant(name string) bool { return slices.Contains(mutantsWanted, name) }
`

// edit is a patch in its place in a file.
type edit struct {
	at    int
	patch Patch
	new   string // with OLD where what stood there goes
}

// planted is the source of a file with the patches in it. Where several are in one
// place, each goes around those before it.
func planted(file, source string, edits []edit) (string, error) {
	slices.SortStableFunc(edits, func(a, b edit) int { return a.at - b.at })
	var out strings.Builder
	end := 0
	for len(edits) > 0 {
		e := edits[0]
		if e.at < end {
			return "", fmt.Errorf("%s: two patches meet at %q", file, e.patch.Old)
		}
		text := e.patch.Old
		for len(edits) > 0 && edits[0].patch.Old == e.patch.Old {
			if text != e.patch.Old && !strings.Contains(edits[0].new, "OLD") {
				return "", fmt.Errorf("%s: two patches meet at %q, and the second has no room for the first", file, e.patch.Old)
			}
			text = strings.ReplaceAll(edits[0].new, "OLD", text)
			edits = edits[1:]
		}
		out.WriteString(source[end:e.at])
		out.WriteString(text)
		end = e.at + len(e.patch.Old)
	}
	out.WriteString(source[end:])
	return out.String(), nil
}

// placed finds the place of a patch. A file that has changed there is an error:
// the patch would silently stop working.
func (p Patch) placed(source, name string) (edit, error) {
	if n := strings.Count(source, p.Old); n != 1 {
		return edit{}, fmt.Errorf("%s has %d times, not once, what %q is planted in: %s", p.File, n, name, p.Old)
	}
	if name != "" && !strings.Contains(p.New, "MUTANT") {
		return edit{}, fmt.Errorf("%s: what %q plants is there also if it is not wanted: %s", p.File, name, p.New)
	}
	text := strings.ReplaceAll(p.New, "MUTANT", fmt.Sprintf("mutant(%q)", name))
	return edit{strings.Index(source, p.Old), p, text}, nil
}

// overlay gives the sources with all that is planted, by file of the repository,
// and the files that go next to them.
func overlay(all []Mutant, read func(file string) (string, error)) (map[string]string, error) {
	sources, edits := map[string]string{}, map[string][]edit{}
	add := func(p Patch, name string) error {
		if _, known := sources[p.File]; !known {
			text, err := read(p.File)
			if err != nil {
				return err
			}
			sources[p.File] = text
		}
		e, err := p.placed(sources[p.File], name)
		edits[p.File] = append(edits[p.File], e)
		return err
	}
	for _, m := range all {
		for _, p := range m.Plant {
			if err := add(p, m.Name); err != nil {
				return nil, err
			}
		}
	}
	for _, p := range together() {
		if err := add(p, ""); err != nil {
			return nil, err
		}
	}
	out := map[string]string{}
	for file, source := range sources {
		text, err := planted(file, source, edits[file])
		if err != nil {
			return nil, err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.PackageClauseOnly)
		if err != nil {
			return nil, err
		}
		name := "zz_mutant.go"
		if strings.HasSuffix(file, "_test.go") {
			name = "zz_mutant_test.go"
		}
		out[file] = text
		out[path.Join(path.Dir(file), name)] = fmt.Sprintf(helper, parsed.Name, variable)
	}
	return out, nil
}

// build makes the test binaries of the packages over an overlay, and says where
// they are.
func build(t *testing.T, root string, files map[string]string, packages []string) string {
	t.Helper()
	dir := t.TempDir()
	replace := map[string]string{}
	for file, text := range files {
		copied := filepath.Join(dir, fmt.Sprint(len(replace), ".go"))
		if err := os.WriteFile(copied, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(root, file)] = copied
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []string{"test", "-c", "-vet=off", "-overlay", name, "-o", dir + "/"}
	for _, p := range packages {
		tests = append(tests, "./"+p)
	}
	compile := exec.CommandContext(t.Context(), "go", tests...)
	compile.Dir = root
	for _, cmd := range []*exec.Cmd{compile, sledtest.Build(t.Context(), root, filepath.Join(dir, program), "-overlay", name)} {
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	return dir
}
