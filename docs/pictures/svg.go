package main

import (
	"fmt"
	"html"
	"strings"

	"github.com/sledctl/sledctl/docs/pictures/emulator"
)

// The measures of a picture, in its own units.
const (
	cellWidth  = 8.4
	cellHeight = 18.0
	margin     = 12.0
	title      = 26.0
)

// colours are the names of the 16 on a light and on a dark page.
var colours = [16][2]string{
	{"#24292f", "#484f58"}, {"#cf222e", "#ff7b72"}, {"#116329", "#3fb950"}, {"#7d4e00", "#d29922"},
	{"#0969da", "#58a6ff"}, {"#8250df", "#bc8cff"}, {"#1b7c83", "#39c5cf"}, {"#6e7781", "#b1bac4"},
	{"#57606a", "#6e7681"}, {"#a40e26", "#ffa198"}, {"#1a7f37", "#56d364"}, {"#633c01", "#e3b341"},
	{"#218bff", "#79c0ff"}, {"#a475f9", "#d2a8ff"}, {"#3192aa", "#56d4dd"}, {"#8c959f", "#f0f6fc"},
}

// svg draws a screen below the command that was typed.
func svg(typed string, s *emulator.Screen) string {
	rows := s.Used()
	width, height := float64(s.Width)*cellWidth+2*margin, title+float64(rows)*cellHeight+2*margin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="img" aria-label="%s">`+"\n",
		width, height, width, height, html.EscapeString("$ "+typed))
	b.WriteString(sheet())
	fmt.Fprintf(&b, `<rect class="page" width="%.0f" height="%.0f" rx="6"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<text class="typed" x="%.1f" y="%.1f">$ %s</text>`+"\n", margin, margin+13, html.EscapeString(typed))
	for y, row := range s.Rows[:rows] {
		for _, r := range runs(row) {
			fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" textLength="%.1f"%s>%s</text>`+"\n", margin+float64(r.at)*cellWidth,
				title+margin+float64(y)*cellHeight+13, float64(len([]rune(r.text)))*cellWidth, class(r.Style), html.EscapeString(r.text))
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// sheet is the looks, for a light and for a dark page.
func sheet() string {
	var light, dark strings.Builder
	for i, c := range colours {
		fmt.Fprintf(&light, ".c%d{fill:%s}", i, c[0])
		fmt.Fprintf(&dark, ".c%d{fill:%s}", i, c[1])
	}
	return "<style>text{font:14px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre;fill:#24292f}.page{fill:#fff;stroke:#d0d7de}" +
		".typed{font-weight:bold}.b{font-weight:bold}.f{opacity:.6}.u{text-decoration:underline}" + light.String() +
		"@media(prefers-color-scheme:dark){text{fill:#c9d1d9}.page{fill:#0d1117;stroke:#30363d}" + dark.String() + "}</style>\n"
}

func class(s emulator.Style) string {
	var all []string
	if s.Fg >= 0 {
		all = append(all, fmt.Sprintf("c%d", s.Fg))
	}
	if s.Bold || s.Reversed {
		all = append(all, "b")
	}
	if s.Faint {
		all = append(all, "f")
	}
	if s.Underlined || s.Reversed {
		all = append(all, "u")
	}
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf(` class="%s"`, strings.Join(all, " "))
}

// run is text of one look that stands together.
type run struct {
	at   int // its first column
	text string
	emulator.Style
}

// runs are those of a row. Two spaces part them, so that the columns of a table stay where
// they are, whatever the font is.
func runs(row []emulator.Cell) []run {
	var all []run
	var open *run
	blanks := 0
	for x, c := range row {
		if c.Text == "" || c.Text == " " {
			blanks++
			continue
		}
		if open != nil && open.Style == c.Style && blanks < 2 {
			open.text += strings.Repeat(" ", blanks) + c.Text
		} else {
			all = append(all, run{x, c.Text, c.Style})
			open = &all[len(all)-1]
		}
		blanks = 0
	}
	return all
}
