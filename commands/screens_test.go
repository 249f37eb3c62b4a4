package commands_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/sledctl/sledctl/commands"
	"github.com/sledctl/sledctl/commands/cli"
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

// golden screens of the drill sled are those of this time after it was made.
const afterTheDrill = 17*time.Minute + 2*time.Second

// The screens of the drill sled are as they are in testdata/golden: at 80 columns, at 140,
// on a terminal that cannot do more than print, and in a pipe.
func TestScreensOfTheDrill(t *testing.T) {
	if testing.Short() {
		t.Skip(unraced)
	}
	environ := []string{"SLEDCTL_HOST=sim:" + filepath.Join(t.TempDir(), "drill"), "TERM=dumb", "HOME=" + t.TempDir()}
	now := time.Now
	run := func(p terminal.Pretended, words ...string) sledtest.Answer {
		p.Environ = append(environ, p.Environ...)
		streams, out, errs := terminal.Buffers(p)
		env := cli.NewEnv(streams, p.Environ, "")
		env.Now = func() time.Time { return now().Add(afterTheDrill) }
		exit := commands.Run(t.Context(), env, words)
		return sledtest.Answer{Exit: exit, Out: out.String(), Errs: errs.String()}
	}
	if a := run(terminal.Pretended{}, "sim", "drill", "--ram-push", "1h", strings.TrimPrefix(environ[0], "SLEDCTL_HOST=sim:")); a.Exit != 0 {
		t.Fatal(a.Errs)
	}
	made := time.Now() // all screens are of one moment, however slow the machine is
	now = func() time.Time { return made }
	for _, screen := range []struct{ name, line string }{
		{"instance_list", "instance list"},
		{"instance_list_failed", "instance list --failed"},
		{"instance_get_changed", "instance get web10 --events 0"},
		{"instance_get_diff", "instance get web10 --diff"},
		{"instance_get_failed", "instance get web06 --events 0"},
		{"instance_get_departs", "instance get web12 --events 0"},
		{"instance_get_disk", "instance get db01 --events 0"},
		{"reap", "reap -n"},
		{"storage_list", "storage list"},
		{"storage_list_tree", "storage list --tree=2"},
		{"storage_check", "storage check"},
		{"instance_list_not_running", "instance list --filter state!=running --sort -memory,name"},
	} {
		for _, width := range []int{80, 140} {
			a := run(terminal.Pretended{Terminal: true, Width: width}, strings.Fields(screen.line)...)
			if a.Exit != 0 || strings.Contains(a.Out, "\x1b") {
				t.Errorf("%s: exit %d, %s%q", screen.line, a.Exit, a.Errs, a.Out)
			}
			golden(t, fmt.Sprintf("%s_%d.txt", screen.name, width), strings.Split(strings.TrimSuffix(alike(a.Out), "\n"), "\n"))
			coloured := run(terminal.Pretended{Terminal: true, Width: width, Environ: []string{"TERM=xterm"}}, strings.Fields(screen.line)...)
			if strings.Contains(a.Out, "FAILED") != strings.Contains(coloured.Out, "\x1b[31mFAILED\x1b[0m") {
				t.Errorf("%s: FAILED is not red: %q", screen.line, coloured.Out)
			}
			if b := run(terminal.Pretended{Terminal: true, Width: width, Environ: []string{"TERM=xterm", "NO_COLOR=1"}}, strings.Fields(screen.line)...); b.Out != a.Out {
				t.Errorf("%s: other without colours than on a dumb terminal:\n%s", screen.line, b.Out)
			}
		}
	}
	for _, line := range append(slices.Clone(looks), "instance ensure new1 -n", "instance stop web02 -n", "instance delete web02 -n", "instance ensure --all -n",
		"reap -n", "bootstrap -n", "zone halt web02 -n", "vnic list --instance web02", "instance get web02", "config show", "sim fault list", "sim disk list",
		"instance list -o wide", "zone list -o wide", "storage list -o wide", "base list -o wide", "storage list --flat", "events --failed", "instance logs web01 --tail 5",
		"propolis get web02", "sled list --check", "config check", "trace --list -o wide", "zone bundle list -o wide", "ledger check -o wide") {
		line = strings.ReplaceAll(line, "web1", "web01")
		a := run(terminal.Pretended{Terminal: true, Width: 80}, strings.Fields(line)...)
		if all := a.Out + a.Errs; all == "" || strings.Contains(all, "…") {
			t.Errorf("%s at 80: nothing is printed, or something is cut:\n%s", line, all)
		}
		if a.Exit != 0 {
			a.Errs = "" // a dumb terminal gets errors as they are
		}
		for text := range strings.Lines(a.Out + a.Errs) {
			if wide := strings.TrimSpace(text); ansi.StringWidth(strings.TrimSuffix(text, "\n")) > 80 && strings.Contains(wide, " ") {
				t.Errorf("%s at 80: %d columns: %s", line, ansi.StringWidth(text), text)
			}
		}
	}
	clock := regexp.MustCompile(`\d\d:\d\d:\d\d`)
	for _, line := range []string{"status", "status --problems", ""} {
		for _, width := range []int{80, 140} {
			a := run(terminal.Pretended{Terminal: true, Width: width}, strings.Fields(line)...)
			name := strings.Join(strings.Fields("screen "+strings.ReplaceAll(line, "--", "")), "_")
			golden(t, fmt.Sprintf("%s_%d.txt", name, width), strings.Split(strings.TrimSuffix(clock.ReplaceAllString(a.Out, "hh:mm:ss"), "\n"), "\n"))
			if a.Exit != 0 || a.Errs != "" {
				t.Errorf("%s: exit %d: %s", line, a.Exit, a.Errs)
			}
		}
	}
	if a := run(terminal.Pretended{}, []string{}...); !strings.Contains(a.Out, "Usage:") {
		t.Errorf("sledctl in a pipe prints %s", a.Out)
	}
	piped := run(terminal.Pretended{}, "instance", "list", "--columns", "name,state,cpus,memory,address,reason").Out
	golden(t, "instance_list_piped.txt", strings.Split(strings.TrimSuffix(piped, "\n"), "\n"))
	if head, _, _ := strings.Cut(run(terminal.Pretended{}, "instance", "list").Out, "\n"); head != "NAME\tSTATE\tCPUS\tMEMORY\tADDRESS\tUPDATED\tREASON" {
		t.Errorf("a script gets %q", head)
	}
}

// alike has zeros in the place of what is random: UUIDs, and the ends of MACs.
func alike(screen string) string {
	id := regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	mac := regexp.MustCompile(`02:08:20(:[0-9a-f]{2}){3}`)
	return mac.ReplaceAllString(id.ReplaceAllString(screen, "00000000-0000-0000-0000-000000000000"), "02:08:20:00:00:00")
}

// looks are the commands that print a table, or something as wide.
var looks = []string{
	"instance list", "instance get web1", "zone list", "vnic list", "base list", "storage list", "storage check",
	"status", "status --problems", "events", "instance history web1", "trace --list", "ledger show", "ledger check", "reap -n", "reap -n --all-objects", "zone bundle list",
}

// No table is wider than its terminal, and no cell of one is cut.
func TestEachTableFitsAndIsComplete(t *testing.T) {
	t.Parallel()
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
		for width, names := range map[int]string{80: "copy .* pool [-0-9a-f]{36}\n", 101: "copy .*/ledger.jsonl\n"} {
			if a := on(s, width, []string{"TERM=dumb"}, "ledger show"); strings.Contains(a.Out, "\n    ") || !regexp.MustCompile(names).MatchString(a.Out) {
				t.Errorf("ledger show at %d is no table:\n%s", width, a.Out)
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
	}
}
