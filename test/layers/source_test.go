package layers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// forbidden is what bypasses package host: by import path, the names that do,
// or "*" for all of a package. Error numbers, flags and environment are
// harmless, and os.Exit is main's.
func forbidden() map[string]map[string]use {
	each := func(u use, names ...string) map[string]use {
		m := make(map[string]use, len(names))
		for _, n := range names {
			m[n] = u
		}
		return m
	}
	osFiles := each(useFiles, "Chdir", "Chmod", "Chown", "Chtimes", "CopyFS", "Create", "CreateTemp", "DirFS", "Getwd", "Lchown", "Link", "Lstat",
		"Mkdir", "MkdirAll", "MkdirTemp", "NewFile", "Open", "OpenFile", "OpenInRoot", "OpenRoot", "ReadDir", "ReadFile", "Readlink", "Remove",
		"RemoveAll", "Rename", "Stat", "Symlink", "Truncate", "WriteFile")
	maps.Copy(osFiles, each(useExec, "StartProcess", "FindProcess"))
	osFiles["Root"] = useFiles
	return map[string]map[string]use{
		"os":            osFiles,
		"os/exec":       {"*": useExec},
		"io/ioutil":     {"*": useFiles},
		"path/filepath": each(useFiles, "EvalSymlinks", "Glob", "Walk", "WalkDir"),
		"net":           each(useDial, "Dial", "DialIP", "DialTCP", "DialTimeout", "DialUDP", "DialUnix", "Dialer"),
		"net/http":      each(useDial, "DefaultClient", "DefaultTransport", "Get", "Head", "Post", "PostForm"),
		"syscall": each(useSignals, "Exec", "Flock", "ForkExec", "Kill", "Mkdir", "Mount", "Open", "Rename", "StartProcess", "Stat", "Unlink",
			"Unmount", "Write"),
	}
}

// readSources reads every package below root as it stands in its files, whatever
// they are built for; tests and nested modules are left out.
func readSources(root string) ([]source, error) {
	byName := map[string]*source{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skipped(root, name, d.Name())
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		from, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		pkg := path.Dir(filepath.ToSlash(from))
		if byName[pkg] == nil {
			byName[pkg] = &source{name: pkg, uses: map[use][]string{}}
		}
		return byName[pkg].add(name, data)
	})
	var sources []source
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		sources = append(sources, *byName[name])
	}
	return sources, err
}

func skipped(root, name, base string) error {
	if name == root {
		return nil
	}
	if strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata" {
		return filepath.SkipDir
	}
	if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil {
		return filepath.SkipDir
	}
	return nil
}

// add takes in one file.
func (s *source) add(name string, data []byte) error {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, data, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	banned := map[string]map[string]use{} // by the package's name in this file
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		s.imports = append(s.imports, imported)
		names := forbidden()[imported]
		if names == nil {
			continue
		}
		local := path.Base(imported)
		if spec.Name != nil {
			local = spec.Name.Name
		}
		if all, ok := names["*"]; ok || local == "." {
			s.found(files, spec.Pos(), all, imported)
			continue
		}
		banned[local] = names
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok {
			if pkg, ok := selector.X.(*ast.Ident); ok {
				if u, ok := banned[pkg.Name][selector.Sel.Name]; ok {
					s.found(files, selector.Pos(), u, pkg.Name+"."+selector.Sel.Name)
				}
			}
		}
		return true
	})
	return nil
}

func (s *source) found(files *token.FileSet, at token.Pos, u use, what string) {
	if u == "" { // a dot import hides which: take the worst
		u = useExec
	}
	s.uses[u] = append(s.uses[u], what+" at "+files.Position(at).String())
}

func TestSourcesAreReadForWhatTheyUse(t *testing.T) {
	const file = `package zone
import (
	"errors"
	sys "os"
	"os/exec"
	"net"
	"syscall"
	. "path/filepath"
)
var read = sys.ReadFile
var _ = errors.Is(nil, syscall.ENOSPC)
func f() { exec.Command("zoneadm"); (&net.Dialer{}).Dial("tcp", ""); net.ParseIP(""); sys.Exit(1); syscall.Kill(1, 9) }
`
	s := source{name: "zone", uses: map[use][]string{}}
	if err := s.add("f.go", []byte(file)); err != nil {
		t.Fatal(err)
	}
	want := map[use][]string{
		useFiles:   {"sys.ReadFile at f.go:10:12"},
		useExec:    {"os/exec at f.go:5:2", "path/filepath at f.go:8:2"},
		useDial:    {"net.Dialer at f.go:12:39"},
		useSignals: {"syscall.Kill at f.go:12:100"},
	}
	if diff := cmp.Diff(want, s.uses); diff != "" {
		t.Error(diff)
	}
	if want := []string{"errors", "os", "os/exec", "net", "syscall", "path/filepath"}; !slices.Equal(s.imports, want) {
		t.Errorf("imports %v, want %v", s.imports, want)
	}
}
