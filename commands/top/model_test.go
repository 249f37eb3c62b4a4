package top

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/sleds"
	"github.com/sledctl/sledctl/commands/terminal"
)

func plain(_ terminal.Style, text string) string { return text }

// forty are VMs of which ten have one reason.
func forty() []cli.Instance {
	var all []cli.Instance
	for i := range 40 {
		vm := cli.Instance{}
		vm.Name, vm.State, vm.CPUs, vm.Memory, vm.Address = fmt.Sprintf("web%02d", i), "running", 4, 8<<30, "127.77.0.2/16"
		switch {
		case i%4 == 1:
			vm.Reason = "its pool oxp_6eb758c7-ee2e-4e47-ae36-2884c421fb31 is UNAVAIL: disk u2:3 is absent"
		case i == 2:
			vm.State, vm.Reason = "failed", "its zone is installed, not running"
		}
		all = append(all, vm)
	}
	return all
}

func shown(width, height int) *model {
	m := &model{width: width, height: height, now: time.Unix(1000000, 0), verdict: verdict{"sled", "TROUBLE", 7, 40}}
	m.list(forty())
	return m
}

// typed has keys typed one after the other, and gives what they have the loop do.
func typed(m *model, keys ...string) (all []effect) {
	for _, key := range keys {
		all = append(all, m.key(key)...)
	}
	return all
}

// letters are the keys of a word.
func letters(word string) []string { return strings.Split(word, "") }

// At every size the screen has its lines, none is wider, and no name and no reason is cut,
// wherever the cursor is.
func TestTheScreenFitsAndCutsNoReason(t *testing.T) {
	for width := 60; width <= 160; width += 7 {
		for _, height := range []int{12, 24, 50} {
			m := shown(width, height)
			for at := range m.vms {
				m.at = m.vms[at].Name
				lines := m.draw(plain)
				if len(lines) != height {
					t.Fatalf("%dx%d: %d lines", width, height, len(lines))
				}
				for _, l := range lines {
					if ansi.StringWidth(l) > width || strings.Contains(l, "…") {
						t.Fatalf("%dx%d: %q", width, height, l)
					}
				}
				text := strings.Join(strings.Fields(strings.Join(lines[2:height-3], " ")), " ")
				if !strings.Contains(text, ">"+m.at) {
					t.Fatalf("%dx%d: the cursor is on %s, which is not seen:\n%s", width, height, m.at, strings.Join(lines, "\n"))
				}
				if why := m.vms[at].Reason; why != "" && !strings.Contains(text, strings.ReplaceAll(why, "-ee2e-4e47-ae36-2884c421fb31", "")) {
					t.Fatalf("%dx%d: the reason of %s is not whole:\n%s", width, height, m.at, strings.Join(lines, "\n"))
				}
			}
		}
	}
}

// A verb is shown as the command that it is, and only y has it run.
func TestAVerbIsAskedFor(t *testing.T) {
	for _, c := range []struct {
		keys  []string
		shown string // on the line above the keys
		runs  string
	}{
		{[]string{"e"}, "sledctl instance ensure web00   run it?", ""},
		{[]string{"e", "n"}, "not run: sledctl instance ensure web00", ""},
		{[]string{"e", "enter"}, "not run", ""},
		{[]string{"j", "s", "y"}, "at work: sledctl instance stop web01", "instance stop web01"},
		{[]string{" ", "j", " ", "r", "y"}, "at work", "instance reboot web00 web02"},
		{[]string{"G", "x", "y"}, "at work", "instance delete web39"},
		{append(append([]string{"m"}, letters("sledX")...), "backspace", "2", "enter"), "sledctl instance migrate web00 --to sled2   run it?", ""},
		{[]string{"m", "enter"}, "", ""},
		{[]string{"m", "x", "esc"}, "", ""},
		{[]string{"c"}, "", "instance console web00"},
	} {
		m, runs := shown(80, 24), ""
		for _, do := range typed(m, c.keys...) {
			if do.run != nil {
				runs = strings.Join(do.run.words, " ")
			}
		}
		if got := strings.Join(m.status(plain), " "); !strings.Contains(got, c.shown) || c.shown == "" && strings.Contains(got, "sledctl") {
			t.Errorf("%q: shows %q, not %q", c.keys, got, c.shown)
		}
		if runs != c.runs {
			t.Errorf("%q: runs %q, not %q", c.keys, runs, c.runs)
		}
	}
}

// A command that has many names is shown wholly, and so is why nothing could be looked at.
func TestWhatIsAskedIsNotCut(t *testing.T) {
	for _, width := range []int{40, 80} {
		m := shown(width, 24)
		for range 20 {
			typed(m, " ")
		}
		typed(m, "s")
		m.trouble = "no copy of the ledger: no place to look for one; to prepare the sled, run: sledctl bootstrap"
		lines := m.draw(plain)
		text := strings.Join(strings.Fields(strings.Join(lines, " ")), " ")
		for _, want := range []string{m.text(m.asked.words) + " run it?", m.trouble, "web19"} {
			if !strings.Contains(text, want) {
				t.Errorf("at %d, %q is not whole:\n%s", width, want, strings.Join(lines, "\n"))
			}
		}
		if len(lines) != 24 {
			t.Errorf("at %d: %d lines", width, len(lines))
		}
		for _, l := range lines {
			if ansi.StringWidth(l) > width {
				t.Errorf("at %d: %q", width, l)
			}
		}
	}
}

// What is listed follows the keys, and what an operator has typed is not lost.
func TestKeysPickWhatIsListed(t *testing.T) {
	m := shown(120, 24)
	typed(m, append(append([]string{"/"}, letters("state!=running")...), "enter")...)
	typed(m, "f", "o")
	if got := strings.Join(m.listing(), " "); got != "instance list --filter state!=running --failed --sort state,name" {
		t.Errorf("lists by %q", got)
	}
	if !strings.Contains(strings.Join(m.second(plain), "\n"), "/filter: state!=running   only failed   sorted by state") {
		t.Errorf("says %q", m.second(plain))
	}
	typed(m, "/", "^U", "x", "esc")
	if m.filter != "state!=running" {
		t.Errorf("giving up changes the filter to %q", m.filter)
	}
	typed(m, "esc")
	if m.filter != "" || m.failed {
		t.Error("esc leaves a filter")
	}
}

// Whatever can be opened is: a command of one word, too. What was logged or done is seen from
// its end.
func TestEachItemOpens(t *testing.T) {
	for words, begins := range map[string]bool{"events": false, "instance logs web1": false, "instance get web1": true, "trace 9e43b037": true} {
		m := shown(80, 24)
		m.opened = opening(strings.Fields(words))
		if p := m.page(); p.title != words || p.begin != begins {
			t.Errorf("%q opens %q, from its beginning: %v", words, p.title, p.begin)
		}
	}
}

// The cursor stays on its VM while others come and go.
func TestTheCursorStaysOnItsVM(t *testing.T) {
	m := shown(80, 24)
	typed(m, "j", "j", "j")
	all := forty()
	m.list(all[2:])
	if m.at != "web03" {
		t.Errorf("it is on %s", m.at)
	}
	m.list(append(all[2:3:3], all[4:]...))
	if m.at != "web04" {
		t.Errorf("its VM is gone, and it is on %s", m.at)
	}
	m.list(nil)
	if effects := typed(m, "e", "enter", " ", "j", "G"); len(effects) > 0 || m.asked != nil {
		t.Error("a verb is about no VM")
	}
}

// A log shows its end until somebody moves away from it.
func TestALogShowsItsEnd(t *testing.T) {
	m := shown(80, 12)
	typed(m, "5")
	p := &m.pages[viewLog]
	for i := range 100 {
		p.raw = append(p.raw, fmt.Sprint("line ", i))
	}
	if text := strings.Join(m.draw(plain), "\n"); !strings.Contains(text, "line 99") {
		t.Errorf("shows\n%s", text)
	}
	typed(m, "pgup")
	p.raw = append(p.raw, "line 100")
	if text := strings.Join(m.draw(plain), "\n"); strings.Contains(text, "line 100") {
		t.Error("jumps to the end while somebody reads")
	}
	typed(m, "G")
	if text := strings.Join(m.draw(plain), "\n"); !strings.Contains(text, "line 100") {
		t.Errorf("G shows\n%s", text)
	}
}

// A command is asked for only if all of it is seen, however many VMs it is about.
func TestACommandIsAskedForWhole(t *testing.T) {
	m := shown(60, 24)
	for range 20 {
		typed(m, " ")
	}
	typed(m, "x")
	text := strings.Join(strings.Fields(strings.Join(m.draw(plain), " ")), " ")
	if want := "sledctl instance delete " + strings.Join(m.chosen(), " ") + " run it? [y/N]"; len(m.chosen()) != 20 || !strings.Contains(text, want) {
		t.Errorf("%q is not in\n%s", want, text)
	}
	m.height = 6 // meanwhile
	if effects := typed(m, "y"); len(effects) > 0 {
		t.Error("it runs although it is not seen")
	}
	if typed(m, "x"); m.asked != nil || !strings.Contains(m.said, "mark fewer VMs") {
		t.Errorf("it is asked for where there is no room; said is %q", m.said)
	}
	m = shown(60, 24)
	typed(m, append(append([]string{"m"}, letters("a sled;")...), "enter")...)
	if got := m.text(m.asked.words); got != "sledctl instance migrate web00 --to 'a sled;'" {
		t.Errorf("a shell would read %s otherwise", got)
	}
}

// An operator who named the sled reads its name on every page, and each command as she would type
// it where she is.
func TestTopOfASledThatWasNamed(t *testing.T) {
	m := shown(80, 24)
	m.afar = sleds.Of([]string{"instance", "storage", "trace"}).Named("two", sleds.Sled{SSH: "root@two"})
	for _, c := range []struct{ key, want string }{
		{"1", "two TROUBLE 7 problems"},
		{"2", "sledctl --sled two storage list"},
		{"3", "two TROUBLE 7 problems"},
		{"1", "40 VMs"},
		{"e", "sledctl --sled two instance ensure web00   run it? [y/N]"},
		{"n", "not run: sledctl --sled two instance ensure web00"},
	} {
		typed(m, c.key)
		if text := strings.Join(m.draw(plain), "\n"); !strings.Contains(text, c.want) {
			t.Errorf("%s: %q is not in\n%s", c.key, c.want, text)
		}
	}
	m.opened = opening([]string{"instance", "get", "web00"})
	if text := strings.Join(m.draw(plain), "\n"); !strings.Contains(text, "sledctl --sled two instance get web00") {
		t.Errorf("the page of a VM is\n%s", text)
	}
}

// What is wrong with a filter is shown whole, and so is what is typed.
func TestNothingThatIsSaidIsCut(t *testing.T) {
	m := shown(60, 24)
	m.trouble = `--filter "memroy>4G": unknown key "memroy"; did you mean "memory"? Keys are address, cpus, disk, last, mac, memory, name`
	typed(m, append([]string{"/"}, letters(strings.Repeat("name~^web", 10))...)...)
	text := strings.Join(m.draw(plain), "")
	for _, want := range []string{m.trouble, m.typed.text + "_"} {
		if !strings.Contains(strings.ReplaceAll(text, " ", ""), strings.ReplaceAll(want, " ", "")) {
			t.Errorf("%q is not in\n%s", want, strings.Join(m.draw(plain), "\n"))
		}
	}
}

// A window of any size is drawn.
func TestAnySizeIsDrawn(t *testing.T) {
	for width := range 30 {
		for height := range 12 {
			for _, key := range []string{"j", "?", "/", "e", "m", "2", "5", "enter"} {
				m := shown(width, height)
				typed(m, key)
				m.draw(plain)
			}
		}
	}
}
