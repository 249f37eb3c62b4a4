package fault_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/host/fault"
)

func TestTheKindThatCountsMost(t *testing.T) {
	refused, usage := fault.New(fault.Refused, "no"), fault.New(fault.Usage, "what?")
	for text, c := range map[string]struct {
		err  error
		want fault.Kind
	}{
		"none":              {nil, fault.Failed},
		"plain":             {errors.New("x"), fault.Failed},
		"wrapped":           {fmt.Errorf("do it: %w", refused), fault.Refused},
		"joined":            {errors.Join(errors.New("x"), refused, fmt.Errorf("y: %w", usage)), fault.Usage},
		"below another":     {wrapper{usage}, fault.Usage},
		"canceled":          {fmt.Errorf("x: %w", context.Canceled), fault.Interrupted},
		"deadline":          {context.DeadlineExceeded, fault.Deadline},
		"refused in time":   {errors.Join(context.Canceled, refused), fault.Refused},
		"wrapped by nobody": {wrapper{}, fault.Refused},
	} {
		if got := fault.Of(c.err); got != c.want {
			t.Errorf("%s: %v, want %v", text, got, c.want)
		}
	}
}

// wrapper has a kind that counts less than what it wraps.
type wrapper struct{ error }

func (wrapper) Kind() fault.Kind { return fault.Refused }
func (w wrapper) Unwrap() error  { return w.error }

func TestEachKindHasAWordOfItsOwn(t *testing.T) {
	words := map[string]bool{}
	for k := fault.Failed; k <= fault.Trouble; k++ {
		words[k.String()] = true
	}
	if len(words) != int(fault.Trouble)+1 {
		t.Errorf("%v", words)
	}
}

// Of each error that the product exports somebody may have to decide what to do.
func TestEachExportedErrorSaysItsKind(t *testing.T) {
	errs, kinds := errorTypes(t, "../..")
	if len(errs) < 100 {
		t.Fatalf("only %d types of errors found", len(errs))
	}
	for _, name := range errs {
		if !slices.Contains(kinds, name) {
			t.Errorf("%s has no method Kind", name)
		}
	}
}

// errorTypes are the exported types of the product, the fleet apart, with a method Error, and those
// with a method Kind.
func errorTypes(t *testing.T, root string) (errs, kinds []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (slices.Contains([]string{"sim", "test", "tools", "testdata", "fleet"}, d.Name()) || strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2):
			return filepath.SkipDir
		case !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Recv == nil {
				continue
			}
			recv := f.Recv.List[0].Type
			if star, ok := recv.(*ast.StarExpr); ok {
				recv = star.X
			}
			ident, ok := recv.(*ast.Ident)
			if !ok || !ident.IsExported() {
				continue
			}
			typ := filepath.Dir(name) + "." + ident.Name
			switch f.Name.Name {
			case "Error":
				errs = append(errs, typ)
			case "Kind":
				kinds = append(kinds, typ)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return errs, kinds
}
