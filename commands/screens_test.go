package commands_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/charmbracelet/x/ansi"

	"github.com/sledctl/sledctl/commands"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/test/sledtest"
)

// on runs a command line on a terminal of this many columns, with these variables.
func on(s *sledtest.Operator, width int, environ []string, line string) sledtest.Answer {
	env, _, _ := commands.On(s.Host(), nil)
	streams, out, errs := terminal.Buffers(terminal.Pretended{Terminal: true, Width: width, Environ: environ})
	*env.Streams = *streams
	exit := commands.Run(s.T.Context(), env, strings.Fields(line))
	return sledtest.Answer{Exit: exit, Out: out.String(), Errs: errs.String()}
}

// looks are the commands that print a table, or something as wide.
var looks = []string{
	"instance list", "instance get web1", "zone list", "vnic list", "base list", "storage list", "storage check",
	"trace --list", "ledger show", "ledger check", "reap -n", "zone bundle list",
}

// No table is wider than its terminal, and no cell of one is cut.
func TestEachTableFitsAndIsComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sledtest.New(t, sledtest.Small(), "")
		s.Run("bootstrap")
		s.Run("instance ensure web1 --nic over=net0,vlan=100")
		s.Run("instance ensure web2 --cpus 4")
		for _, line := range looks {
			for _, width := range []int{60, 80, 140} {
				fits(t, s, line, width)
			}
		}
	})
}

// fits says what is wrong with how a command is printed on a terminal of a width.
func fits(t *testing.T, s *sledtest.Operator, line string, width int) {
	t.Helper()
	a := on(s, width, []string{"TERM=xterm"}, line)
	for text := range strings.Lines(a.Out) {
		if w := ansi.StringWidth(strings.TrimSuffix(text, "\n")); w > width {
			t.Errorf("%s at %d: %d columns: %s", line, width, w, text)
		}
	}
	if strings.Contains(a.Out, "…") {
		t.Errorf("%s at %d: something is cut:\n%s", line, width, a.Out)
	}
	for _, plain := range [][]string{{"TERM=dumb"}, {"TERM=xterm", "NO_COLOR=1"}} {
		b := on(s, width, plain, line)
		if strings.Contains(b.Out, "\x1b") || b.Out == "" {
			t.Errorf("%s at %d with %v: %q, %s", line, width, plain, b.Out, b.Errs)
		}
		if plain[0] == "TERM=dumb" {
			t.Logf("%s at %d:\n%s", line, width, b.Out)
		}
	}
}
