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

// onTerminal runs a command line for somebody who sits at a terminal of 80
// columns and types this.
func onTerminal(s *sledtest.Operator, line, typed string) sledtest.Answer {
	env, _, _ := commands.On(s.Host(), nil)
	streams, out, errs := terminal.Buffers(terminal.Pretended{Terminal: true, Width: 80, In: typed})
	*env.Streams = *streams
	exit := commands.Run(s.T.Context(), env, strings.Fields(line))
	return sledtest.Answer{Exit: exit, Out: out.String(), Errs: errs.String()}
}

// reap --all asks if there is a terminal, and changes nothing if the answer is no.
func TestReapingAllAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sledtest.New(t, sledtest.Small(), "")
		s.Run("bootstrap")
		s.Run("instance ensure web1")
		running := func() string { return s.Run("instance list -H --columns name,state") }
		for _, typed := range []string{"", "n\n", "no\n", "all\n"} {
			if a := onTerminal(s, "reap --all", typed); a.Exit != 8 || !strings.Contains(a.Errs, "Zones among them that run: 1.") {
				t.Errorf("%q: exit %d, %s", typed, a.Exit, a.Errs)
			}
		}
		if got := running(); got != "web1\trunning\n" {
			t.Fatalf("after a no: %s", got)
		}
		if a := onTerminal(s, "reap --all", "y\n"); a.Exit != 0 {
			t.Errorf("exit %d, %s", a.Exit, a.Errs)
		}
		if got := running(); !strings.HasPrefix(got, "web1\tabsent") {
			t.Errorf("after a yes: %s", got)
		}
	})
}

// At 80 columns every name is whole and no line of what is said is cut or
// wrapped by the terminal.
func TestReapIsReadableAt80Columns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sledtest.New(t, sledtest.Small(), "")
		s.Run("bootstrap")
		s.Run("instance ensure web1")
		zone := s.Value("instance get web1 -H --columns zone")
		a := onTerminal(s, "reap --dry-run --all-objects", "")
		lines := strings.Split(ansi.Strip(a.Out), "\n")
		said := false
		for i, line := range lines {
			if strings.Contains(line, "…") {
				t.Errorf("cut: %s", line)
			}
			if strings.HasPrefix(line, " ") && ansi.StringWidth(line) > 80 {
				t.Errorf("%d columns: %s", ansi.StringWidth(line), line)
			}
			said = said || line == "zone "+zone && lines[i+1] == "    in use: instance web1"
		}
		if a.Exit != 0 || !said {
			t.Errorf("exit %d\n%s%s", a.Exit, a.Out, a.Errs)
		}
	})
}
