package top

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/host"
)

// view is one of the pages that have a number.
type view int

const (
	viewVMs view = iota
	viewStorage
	viewWork
	viewEvents
	viewLog
)

// views are their titles. What each shows is what a command prints.
var views = [...]struct {
	title string
	words []string // of the command; nil: it is not one's
}{
	{"VMs", nil},
	{"Storage", []string{"storage", "list"}},
	{"Work", nil},
	{"Events", []string{"events", "--last", strconv.Itoa(newest)}},
	{"Log", nil},
}

// newest is how many events are shown.
const newest = 200

// sorts are the keys that o goes through; the first is by name.
var sorts = []string{"", "state", byCPU, byNet, "-memory", "-cpus", "since"}

// command is what an operator is asked whether she wants it.
type command struct {
	words []string
	lends bool // it has the terminal until it ends
}

// verdict is how the sled is; zero: not looked at yet.
type verdict struct {
	name, word string
	problems   int
	vms        int // there are, whatever is filtered
}

// count says how many problems there are.
func (v verdict) count() string {
	switch v.problems {
	case 0:
		return ""
	case 1:
		return " 1 problem"
	}
	return fmt.Sprintf(" %d problems", v.problems)
}

// model is all that the screen shows.
type model struct {
	width, height int
	now           time.Time
	afar          cli.Afar // how commands are typed that act on the sled

	verdict verdict
	vms     []cli.Instance
	was, is reading            // the last two of the kernel's counters
	shares  map[string]sharing // of their reasons
	trouble string             // why the VMs could not be looked at
	view    view
	pages   [len(views)]page
	opened  *page // over the view

	drawn  []string        // the table, when it was drawn last
	still  bool            // nothing but the clock has moved since
	at     string          // the name of the VM that the cursor is on
	first  int             // the first VM that is seen
	marked map[string]bool // VMs by name
	filter string
	failed bool
	sort   int

	asked  *command // that waits for y
	typed  *entry   // what is being typed
	said   string   // what happened last
	paused bool
	help   bool
}

// entry is a line that is typed.
type entry struct {
	prompt, text string
	done         func(*model, string) []effect
}

// effect is what a key has the loop do.
type effect struct {
	quit  bool
	look  bool     // now, not at the next beat
	open  []string // a command whose text is opened
	run   *command
	write string // the screen, to this file
}

var lookNow = []effect{{look: true}}

// text is how the operator would type a command where she is.
func (m *model) text(words []string) string {
	text := "sledctl"
	for _, word := range words {
		text += " " + host.Quote(word)
	}
	return m.afar.Typed(text)
}

// listing is the command that lists the VMs as they are shown.
func (m *model) listing() []string {
	words := []string{"instance", "list"}
	if m.filter != "" {
		words = append(words, "--filter", m.filter)
	}
	if m.failed {
		words = append(words, "--failed")
	}
	if key := sorts[m.sort]; key != "" && key != byCPU && key != byNet {
		words = append(words, "--sort", key+",name")
	}
	return words
}

// list takes the VMs as they are now. The cursor stays on its VM, or else goes to the next.
func (m *model) list(vms []cli.Instance) {
	was := m.index()
	vms = m.sorted(vms)
	m.vms, m.shares, m.trouble = vms, shares(vms), ""
	if m.index() < 0 {
		m.at = ""
		if len(vms) > 0 {
			m.at = vms[min(max(was, 0), len(vms)-1)].Name
		}
	}
}

// index is where the cursor is; -1: on no VM.
func (m *model) index() int {
	return slices.IndexFunc(m.vms, func(i cli.Instance) bool { return i.Name == m.at })
}

// chosen are the VMs that a verb is about: those that are marked, else that of the cursor.
func (m *model) chosen() []string {
	var names []string
	for _, i := range m.vms {
		if m.marked[i.Name] {
			names = append(names, i.Name)
		}
	}
	if len(names) == 0 && m.index() >= 0 {
		names = []string{m.at}
	}
	return names
}

// key is what happens at a key.
func (m *model) key(key string) []effect {
	switch {
	case m.typed != nil:
		return m.typing(key)
	case m.asked != nil:
		return m.answer(key)
	case key == "q" || key == "^C":
		if m.opened != nil || m.help {
			m.opened, m.help = nil, false
			return nil
		}
		return []effect{{quit: true}}
	case m.help || key == "?":
		m.help = !m.help
		return nil
	}
	m.said = ""
	if m.opened == nil && m.view == viewVMs {
		if effects, known := m.vmKey(key); known {
			return effects
		}
	}
	return m.anyKey(key)
}

// anyKey are the keys of every view.
func (m *model) anyKey(key string) []effect {
	switch key {
	case "1", "2", "3", "4", "5":
		return m.show(view(key[0] - '1'))
	case "tab":
		return m.show((m.view + 1) % view(len(views)))
	case "backtab":
		return m.show((m.view + view(len(views)) - 1) % view(len(views)))
	case "esc", "backspace":
		m.opened = nil
	case "enter":
		if p := m.page(); p != nil && len(p.items) > 0 {
			return []effect{{open: p.items[p.at].open}}
		}
	case "p":
		m.paused = !m.paused
	case "w":
		m.typed = &entry{prompt: "write the screen to the file ", done: func(_ *model, name string) []effect { return []effect{{write: name}} }}
	default:
		if p := m.page(); p != nil {
			p.move(key, m.room())
		}
	}
	return nil
}

func (m *model) show(v view) []effect {
	m.view, m.opened = v, nil
	return lookNow
}

// page is the one that is seen; nil: the VMs are.
func (m *model) page() *page {
	switch {
	case m.opened != nil:
		return m.opened
	case m.view == viewVMs:
		return nil
	}
	return &m.pages[m.view]
}

// vmKey are the keys of the VMs.
func (m *model) vmKey(key string) (effects []effect, known bool) {
	switch key {
	case "/":
		m.typed = &entry{prompt: "filter: ", text: m.filter, done: func(m *model, text string) []effect { m.filter = strings.TrimSpace(text); return lookNow }}
	case "o":
		m.sort = (m.sort + 1) % len(sorts)
		return lookNow, true
	case "f":
		m.failed = !m.failed
		return lookNow, true
	case "esc": // all VMs again
		m.filter, m.failed, m.marked = "", false, nil
		return lookNow, true
	case " ":
		if m.index() >= 0 {
			if m.marked == nil {
				m.marked = map[string]bool{}
			}
			m.marked[m.at] = !m.marked[m.at]
			m.move("down")
		}
	case "enter", "l", "d", "c", "L", "e", "s", "r", "x", "m":
		if m.index() >= 0 {
			return m.verb(key), true
		}
	case "up", "down", "k", "j", "pgup", "pgdn", "g", "G", "home", "end":
		m.move(key)
	default:
		return nil, false
	}
	return nil, true
}

func (m *model) move(key string) {
	if len(m.vms) > 0 {
		m.at = m.vms[moved(m.index(), key, len(m.vms)-1, max(1, m.room()/2))].Name
	}
}

// verb is what a key does with the VM of the cursor, or with those that are marked.
func (m *model) verb(key string) []effect {
	ask := func(verb string) []effect {
		m.ask(command{words: append([]string{"instance", verb}, m.chosen()...)})
		return nil
	}
	switch key {
	case "enter":
		return []effect{{open: []string{"instance", "get", m.at}}}
	case "l":
		return []effect{{open: []string{"instance", "logs", m.at, "--tail", "500"}}}
	case "d":
		return []effect{{open: []string{"instance", "get", m.at, "--diff"}}}
	case "c":
		return []effect{{run: &command{words: []string{"instance", "console", m.at}, lends: true}}}
	case "L":
		return []effect{{run: &command{words: []string{"instance", "logs", m.at, "--follow"}, lends: true}}}
	case "e":
		return ask("ensure")
	case "s":
		return ask("stop")
	case "r":
		return ask("reboot")
	case "x":
		return ask("delete")
	}
	names := m.chosen()
	m.typed = &entry{prompt: "to which sled? ", done: func(m *model, target string) []effect {
		if target = strings.TrimSpace(target); target != "" {
			m.ask(command{words: append(append([]string{"instance", "migrate"}, names...), "--to", target)})
		}
		return nil
	}}
	return nil
}

// ask asks for a command, if all of it can be shown.
func (m *model) ask(c command) {
	if m.asked = &c; !m.showsAll(c) {
		m.asked, m.said = nil, "this command is longer than the screen: mark fewer VMs"
	}
}

// showsAll says whether there is room for a command, and for a line of what is looked at.
func (m *model) showsAll(c command) bool {
	return len(m.above(unpainted))+len(m.question(c, unpainted))+3 <= m.height
}

// answer is a key after a command was shown: only y has it run, if all of it is seen.
func (m *model) answer(key string) []effect {
	c := m.asked
	m.asked = nil
	if key != "y" || !m.showsAll(*c) {
		m.said = "not run: " + m.text(c.words)
		return nil
	}
	m.marked = nil
	m.said = "at work: " + m.text(c.words)
	return []effect{{run: c}}
}

func (m *model) typing(key string) []effect {
	t := m.typed
	switch key {
	case "enter":
		m.typed = nil
		return t.done(m, t.text)
	case "esc", "^C":
		m.typed = nil
	case "backspace":
		if letters := []rune(t.text); len(letters) > 0 {
			t.text = string(letters[:len(letters)-1])
		}
	case "^U":
		t.text = ""
	default:
		if len([]rune(key)) == 1 {
			t.text += key
		}
	}
	return nil
}
