// Package screen is a full screen on a terminal: lines are shown, keys and new sizes
// come. It is all that sledctl knows of tcell, and nothing of it runs before Open.
package screen

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/gdamore/tcell/v2"
)

// Event is a key, or a new size.
type Event struct {
	Key           string // "a", "enter", "pgdn"; empty: it is a size
	Width, Height int
}

// Screen is a terminal that is taken.
type Screen struct {
	cells  tcell.Screen
	events chan Event
}

// Open takes the terminal of this process. Close it, whatever happens.
func Open() (*Screen, error) {
	cells, err := tcell.NewScreen()
	if err != nil {
		return nil, err
	}
	return On(cells)
}

// On takes a screen of tcell's, as a simulated one.
func On(cells tcell.Screen) (*Screen, error) {
	if err := cells.Init(); err != nil {
		return nil, err
	}
	s := &Screen{cells: cells, events: make(chan Event, 16)}
	go s.listen()
	return s, nil
}

// listen passes on what happens, until the screen is closed.
func (s *Screen) listen() {
	defer close(s.events)
	for {
		switch e := s.cells.PollEvent().(type) {
		case nil:
			return
		case *tcell.EventResize:
			s.cells.Sync()
			width, height := e.Size()
			s.events <- Event{Width: width, Height: height}
		case *tcell.EventKey:
			if key := nameOf(e); key != "" {
				s.events <- Event{Key: key}
			}
		}
	}
}

// Events are those of the terminal; closed: the screen is.
func (s *Screen) Events() <-chan Event { return s.events }

// Size is that of the terminal, in cells.
func (s *Screen) Size() (width, height int) { return s.cells.Size() }

// Close gives the terminal back as it was.
func (s *Screen) Close() {
	s.cells.Fini()
	for range s.events { // until listen has seen it
	}
}

// Lend gives the terminal to somebody else, as it was, until use returns.
func (s *Screen) Lend(use func() error) error {
	if err := s.cells.Suspend(); err != nil {
		return err
	}
	err := use()
	if again := s.cells.Resume(); err == nil {
		err = again
	}
	return err
}

// names are those of the keys that have no letter.
var names = map[tcell.Key]string{
	tcell.KeyEnter: "enter", tcell.KeyEscape: "esc", tcell.KeyTab: "tab", tcell.KeyBacktab: "backtab",
	tcell.KeyBackspace: "backspace", tcell.KeyBackspace2: "backspace", tcell.KeyDelete: "backspace",
	tcell.KeyUp: "up", tcell.KeyDown: "down", tcell.KeyPgUp: "pgup", tcell.KeyPgDn: "pgdn", tcell.KeyHome: "home", tcell.KeyEnd: "end",
	tcell.KeyCtrlC: "^C", tcell.KeyCtrlU: "^U",
}

func nameOf(e *tcell.EventKey) string {
	if e.Key() == tcell.KeyRune && e.Modifiers()&(tcell.ModAlt|tcell.ModCtrl|tcell.ModMeta) == 0 {
		return string(e.Rune())
	}
	return names[e.Key()]
}

// Show shows lines from the upper edge on. Their looks are SGR sequences, as
// terminal.Stream.Style writes them.
func (s *Screen) Show(lines []string) {
	s.cells.Clear()
	for y, line := range lines {
		s.line(y, line)
	}
	s.cells.Show()
}

func (s *Screen) line(y int, text string) {
	style, x := tcell.StyleDefault, 0
	parser := ansi.NewParser()
	for len(text) > 0 {
		part, width, n, _ := ansi.DecodeSequence(text, ansi.NormalState, parser)
		text = text[n:]
		switch {
		case width > 0:
			letters := []rune(part)
			s.cells.SetContent(x, y, letters[0], letters[1:], style)
			x += width
		case strings.HasPrefix(part, "\x1b[") && strings.HasSuffix(part, "m"):
			style = restyled(style, parser.Params())
		}
	}
}

// restyled is a style after an SGR sequence: the looks that sledctl has.
func restyled(style tcell.Style, params ansi.Params) tcell.Style {
	if len(params) == 0 {
		return tcell.StyleDefault
	}
	for _, p := range params {
		switch n := p.Param(0); {
		case n == 0:
			style = tcell.StyleDefault
		case n == 1:
			style = style.Bold(true)
		case n == 2:
			style = style.Dim(true)
		case n == 7:
			style = style.Reverse(true)
		case n >= 30 && n <= 37:
			style = style.Foreground(tcell.PaletteColor(n - 30))
		}
	}
	return style
}
