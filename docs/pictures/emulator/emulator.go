// Package emulator is a terminal that nobody sits at: it takes what a program writes, and says what
// would be seen.
package emulator

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// Style is how a cell looks. Colours are the 16 of a plain terminal; -1: its own.
type Style struct {
	Fg                      int
	Bold, Faint, Underlined bool
	Reversed                bool
}

// Cell is one of the screen.
type Cell struct {
	Text string // "": nothing has been written
	Style
}

// plain is a cell's style at first.
var plain = Style{Fg: -1}

// Screen is what a terminal shows.
type Screen struct {
	Width, Height int
	Rows          [][]Cell
	x, y          int
	now           Style
	state         byte
	parser        *ansi.Parser
	rest          string // of a sequence that has not ended
	sx, sy        int    // where the cursor was saved
}

// New is an empty screen.
func New(width, height int) *Screen {
	s := &Screen{Width: width, Height: height, now: plain, parser: ansi.NewParser()}
	s.clear(0, height)
	return s
}

// clear empties rows.
func (s *Screen) clear(from, to int) {
	for len(s.Rows) < s.Height {
		s.Rows = append(s.Rows, nil)
	}
	for y := from; y < to; y++ {
		s.Rows[y] = make([]Cell, s.Width)
	}
}

// Text is what is seen, without how.
func (s *Screen) Text() string {
	var b strings.Builder
	for _, row := range s.Rows {
		line := ""
		for _, c := range row {
			if c.Text == "" {
				c.Text = " "
			}
			line += c.Text
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

// Used is how many rows have something.
func (s *Screen) Used() int {
	for y := s.Height; y > 0; y-- {
		for _, c := range s.Rows[y-1] {
			if strings.TrimSpace(c.Text) != "" {
				return y
			}
		}
	}
	return 0
}

// Write shows what a program has written. The error names a sequence that it does not know.
func (s *Screen) Write(said string) error {
	said, s.rest = s.rest+said, ""
	for len(said) > 0 {
		sequence, width, n, state := ansi.DecodeSequence(said, s.state, s.parser)
		if state != ansi.NormalState || !utf8.FullRuneInString(said) { // the rest of it comes with the next
			s.rest = said
			return nil
		}
		said = said[n:]
		switch {
		case width > 0:
			s.put(sequence, width)
		case strings.HasPrefix(sequence, "\x1b["):
			if err := s.control(sequence); err != nil {
				return err
			}
		default:
			if err := s.single(sequence); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Screen) put(text string, width int) {
	if s.x+width > s.Width {
		s.x = 0
		s.down()
	}
	s.Rows[s.y][s.x] = Cell{text, s.now}
	s.x += width
}

// down is a line feed: at the lower edge all goes up.
func (s *Screen) down() {
	if s.y++; s.y < s.Height {
		return
	}
	s.y = s.Height - 1
	s.Rows = append(s.Rows[1:], make([]Cell, s.Width))
}

// single are the sequences that have no parameters.
func (s *Screen) single(sequence string) error {
	switch sequence {
	case "\n":
		s.down()
	case "\r":
		s.x = 0
	case "\b":
		s.x = max(0, s.x-1)
	case "\x1b7":
		s.sx, s.sy = s.x, s.y
	case "\x1b8":
		s.x, s.y = s.sx, s.sy
	case "\a", "\x0e", "\x0f", "\x1b=", "\x1b>", "\x1b(B", "\x1b(0", "\x1b)0": // nothing that is seen here
	default:
		if !strings.HasPrefix(sequence, "\x1b]") { // a title
			return fmt.Errorf("%q is not known here", sequence)
		}
	}
	return nil
}

// control are those that begin with ESC [.
func (s *Screen) control(sequence string) error {
	command := ansi.Cmd(s.parser.Command())
	if command.Prefix() != 0 || command.Intermediate() != 0 {
		if command.Final() == 'h' || command.Final() == 'l' {
			s.mode(command.Final() == 'h')
		}
		return nil // what the keyboard and the mouse do
	}
	arg := func(i, standard int) int {
		n, _ := s.parser.Param(i, standard)
		if n == 0 {
			n = standard
		}
		return n
	}
	switch command.Final() {
	case 'm':
		return s.look(sequence)
	case 'A':
		s.y = max(0, s.y-arg(0, 1))
	case 'B':
		s.y = min(s.Height-1, s.y+arg(0, 1))
	case 'C':
		s.x = min(s.Width-1, s.x+arg(0, 1))
	case 'D':
		s.x = max(0, s.x-arg(0, 1))
	case 'G':
		s.x = min(s.Width, arg(0, 1)) - 1
	case 'd':
		s.y = min(s.Height, arg(0, 1)) - 1
	case 'H', 'f':
		s.y, s.x = min(s.Height, arg(0, 1))-1, min(s.Width, arg(1, 1))-1
	case 'J':
		s.erase(arg(0, 0))
	case 'K':
		s.eraseLine(arg(0, 0))
	case 'X':
		for x := s.x; x < min(s.Width, s.x+arg(0, 1)); x++ {
			s.Rows[s.y][x] = Cell{}
		}
	case 't', 'n', 'c', 'q', 'l', 'h': // of windows and reports
	default:
		return fmt.Errorf("%q is not known here", sequence)
	}
	return nil
}

// mode is a private mode: the second screen is empty when it comes.
func (s *Screen) mode(on bool) {
	if n, _ := s.parser.Param(0, 0); on && n == 1049 {
		s.clear(0, s.Height)
		s.x, s.y = 0, 0
	}
}

func (s *Screen) erase(how int) {
	switch how {
	case 0:
		s.eraseLine(0)
		s.clear(s.y+1, s.Height)
	case 1:
		s.eraseLine(1)
		s.clear(0, s.y)
	default:
		s.clear(0, s.Height)
	}
}

func (s *Screen) eraseLine(how int) {
	from, to := s.x, s.Width
	switch how {
	case 1:
		from, to = 0, s.x+1
	case 2:
		from = 0
	}
	for x := from; x < min(to, s.Width); x++ {
		s.Rows[s.y][x] = Cell{}
	}
}

// looks are the changes of a style by one number; colours and two of three numbers are apart.
var looks = map[int]func(*Style){
	0:  func(s *Style) { *s = plain },
	1:  func(s *Style) { s.Bold = true },
	2:  func(s *Style) { s.Faint = true },
	4:  func(s *Style) { s.Underlined = true },
	7:  func(s *Style) { s.Reversed = true },
	22: func(s *Style) { s.Bold, s.Faint = false, false },
	24: func(s *Style) { s.Underlined = false },
	27: func(s *Style) { s.Reversed = false },
	39: func(s *Style) { s.Fg = -1 },
	49: func(*Style) {}, // there is no background
}

// look sets how what follows looks.
func (s *Screen) look(sequence string) error {
	params := s.parser.Params()
	if len(params) == 0 {
		s.now = plain
	}
	for i := 0; i < len(params); i++ {
		n := params[i].Param(0)
		change, known := looks[n]
		switch {
		case known:
			change(&s.now)
		case n >= 30 && n <= 37:
			s.now.Fg = n - 30
		case n >= 90 && n <= 97:
			s.now.Fg = n - 90 + 8
		case n == 38 && i+2 < len(params) && params[i+1].Param(0) == 5 && params[i+2].Param(0) < 16:
			s.now.Fg = params[i+2].Param(0)
			i += 2
		default:
			return fmt.Errorf("%q is none of the looks that sledctl has", sequence)
		}
	}
	return nil
}
