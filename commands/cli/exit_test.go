package cli

import (
	"strings"
	"testing"

	"github.com/sledctl/sledctl/commands/config"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/sled/failure"
)

// The command line's own errors end with a hint that names what comes next.
func TestAnErrorOfTheCommandLineHasAHint(t *testing.T) {
	for _, c := range []struct {
		err  error
		exit int
		want string
	}{
		{&UsageError{Text: "want a number"}, failure.ExitUsage, "sledctl instance get --help"},
		{&UsageError{Text: "no", Advice: "add --all"}, failure.ExitUsage, "add --all"},
		{&config.Error{Where: "config.toml", Problem: "unknown"}, failure.ExitUsage, "correct the setting"},
		{&NotFoundError{What: "base b1", List: "sledctl base list"}, failure.ExitNotFound, "sledctl base list"},
		{&terminal.RefusedError{What: "format disk c1"}, failure.ExitRefused, "--yes"},
		{&ExistsError{What: "VNIC v0", Advice: "run: sledctl vnic list"}, failure.ExitConflict, "sledctl vnic list"},
	} {
		streams, _, errs := terminal.Buffers(terminal.Pretended{})
		e := NewEnv(streams, nil, "")
		e.Called = "sledctl instance get"
		exit := e.End(c.err)
		if _, hint, _ := strings.Cut(errs.String(), "sledctl: hint: "); exit != c.exit || !strings.Contains(hint, c.want) {
			t.Errorf("%T: exit %d, want %d and the hint %q: %s", c.err, exit, c.exit, c.want, errs)
		}
	}
}
