package cli_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/host/fault"
)

func TestAFileThatCannotBeUsedIsToldInOurWords(t *testing.T) {
	dir := t.TempDir()
	there := filepath.Join(dir, "there")
	if err := os.WriteFile(there, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	read := func(name string) error {
		_, err := os.Open(name)
		return cli.NamedFile(name, err)
	}
	made := func(name string) error {
		_, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL, 0o600)
		return cli.NewFile(name, err)
	}
	for _, c := range []struct {
		err  error
		want string
		kind fault.Kind
	}{
		{read(filepath.Join(dir, "none")), "file " + filepath.Join(dir, "none") + " does not exist", fault.Usage},
		{made(filepath.Join(dir, "none", "new")), "directory " + filepath.Join(dir, "none") + " does not exist", fault.Usage},
		{made(there), "file " + there + " exists", fault.Conflict},
	} {
		if c.err.Error() != c.want || fault.Of(c.err) != c.kind {
			t.Errorf("%q, %v; want %q, %v", c.err, fault.Of(c.err), c.want, c.kind)
		}
		if hint, ok := c.err.(interface{ Hint() string }); !ok || hint.Hint() == "" {
			t.Errorf("%q: no hint", c.err)
		}
	}
}
