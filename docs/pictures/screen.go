package main

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// style is how a cell looks. Colours are the 16 of a plain terminal; -1: its own.
type style struct {
	fg                      int
	bold, faint, underlined bool
	reversed                bool
}

type cell struct {
	text string // "": nothing has been written
	style
}

// plain is a cell's style at first.
var plain = style{fg: -1}

// screen is what a terminal shows.
type screen struct {
	width, height int
	rows          [][]cell
	x, y          int
	now           style
	state         byte
	parser        *ansi.Parser
	rest          string // of a sequence that has not ended
	sx, sy        int    // where the cursor was saved
}

func newScreen(width, height int) *screen {
	s := &screen{width: width, height: height, now: plain, parser: ansi.NewParser()}
	s.clear(0, height)
	return s
}

// clear empties rows.
func (s *screen) clear(from, to int) {
	for len(s.rows) < s.height {
		s.rows = append(s.rows, nil)
	}
	for y := from; y < to; y++ {
		s.rows[y] = make([]cell, s.width)
	}
}

// text is what is seen, without how.
func (s *screen) text() string {
	var b strings.Builder
	for _, row := range s.rows {
		line := ""
		for _, c := range row {
			if c.text == "" {
				c.text = " "
			}
			line += c.text
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

// used is how many rows have something.
func (s *screen) used() int {
	for y := s.height; y > 0; y-- {
		for _, c := range s.rows[y-1] {
			if strings.TrimSpace(c.text) != "" {
				return y
			}
		}
	}
	return 0
}

// write shows what a program has written.
func (s *screen) write(said string) error {
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

func (s *screen) put(text string, width int) {
	if s.x+width > s.width {
		s.x = 0
		s.down()
	}
	s.rows[s.y][s.x] = cell{text, s.now}
	s.x += width
}

// down is a line feed: at the lower edge all goes up.
func (s *screen) down() {
	if s.y++; s.y < s.height {
		return
	}
	s.y = s.height - 1
	s.rows = append(s.rows[1:], make([]cell, s.width))
}

// single are the sequences that have no parameters.
func (s *screen) single(sequence string) error {
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
func (s *screen) control(sequence string) error {
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
		s.y = min(s.height-1, s.y+arg(0, 1))
	case 'C':
		s.x = min(s.width-1, s.x+arg(0, 1))
	case 'D':
		s.x = max(0, s.x-arg(0, 1))
	case 'G':
		s.x = min(s.width, arg(0, 1)) - 1
	case 'd':
		s.y = min(s.height, arg(0, 1)) - 1
	case 'H', 'f':
		s.y, s.x = min(s.height, arg(0, 1))-1, min(s.width, arg(1, 1))-1
	case 'J':
		s.erase(arg(0, 0))
	case 'K':
		s.eraseLine(arg(0, 0))
	case 'X':
		for x := s.x; x < min(s.width, s.x+arg(0, 1)); x++ {
			s.rows[s.y][x] = cell{}
		}
	case 't', 'n', 'c', 'q', 'l', 'h': // of windows and reports
	default:
		return fmt.Errorf("%q is not known here", sequence)
	}
	return nil
}

// mode is a private mode: the second screen is empty when it comes.
func (s *screen) mode(on bool) {
	if n, _ := s.parser.Param(0, 0); on && n == 1049 {
		s.clear(0, s.height)
		s.x, s.y = 0, 0
	}
}

func (s *screen) erase(how int) {
	switch how {
	case 0:
		s.eraseLine(0)
		s.clear(s.y+1, s.height)
	case 1:
		s.eraseLine(1)
		s.clear(0, s.y)
	default:
		s.clear(0, s.height)
	}
}

func (s *screen) eraseLine(how int) {
	from, to := s.x, s.width
	switch how {
	case 1:
		from, to = 0, s.x+1
	case 2:
		from = 0
	}
	for x := from; x < min(to, s.width); x++ {
		s.rows[s.y][x] = cell{}
	}
}

// looks are the changes of a style by one number; colours and two of three numbers are apart.
var looks = map[int]func(*style){
	0:  func(s *style) { *s = plain },
	1:  func(s *style) { s.bold = true },
	2:  func(s *style) { s.faint = true },
	4:  func(s *style) { s.underlined = true },
	7:  func(s *style) { s.reversed = true },
	22: func(s *style) { s.bold, s.faint = false, false },
	24: func(s *style) { s.underlined = false },
	27: func(s *style) { s.reversed = false },
	39: func(s *style) { s.fg = -1 },
	49: func(*style) {}, // there is no background
}

// look sets how what follows looks.
func (s *screen) look(sequence string) error {
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
			s.now.fg = n - 30
		case n >= 90 && n <= 97:
			s.now.fg = n - 90 + 8
		case n == 38 && i+2 < len(params) && params[i+1].Param(0) == 5 && params[i+2].Param(0) < 16:
			s.now.fg = params[i+2].Param(0)
			i += 2
		default:
			return fmt.Errorf("%q is none of the looks that sledctl has", sequence)
		}
	}
	return nil
}
