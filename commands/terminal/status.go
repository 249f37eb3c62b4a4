package terminal

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/charmbracelet/x/ansi"
)

// Status is what is going on, in lines at the bottom of a terminal that are gone
// afterwards. On what is no terminal, or cannot erase, there is
// none, and only Println shows. It is safe for concurrent use.
type Status struct {
	stream *Stream
	mu     sync.Mutex
	text   string
	shown  int // lines that are on the terminal
}

// NewStatus is the status of a stream, which should be Err. While it is
// there, write to the stream through it only.
func NewStatus(s *Stream) *Status { return &Status{stream: s} }

const (
	eraseLine  = "\r\x1b[K"
	eraseAbove = "\x1b[1A\x1b[K"
)

// Set shows text, each line cut to the width, in place of what was there. Empty text
// removes it.
func (s *Status) Set(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stream.Erase || text == s.text {
		return
	}
	s.text = text
	s.show("")
}

// Clear removes what is shown.
func (s *Status) Clear() { s.Set("") }

// Println writes a whole line above the status, which stays.
func (s *Status) Println(line string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.text == "" {
		_, err := fmt.Fprintln(s.stream, line)
		return err
	}
	return s.show(line + "\n")
}

// show writes what comes before and the status over what was there, in one write.
func (s *Status) show(before string) error {
	erase := eraseLine + strings.Repeat(eraseAbove, max(0, s.shown-1))
	lines := strings.Split(s.text, "\n")
	for i, line := range lines {
		// The last column is left free: some terminals wrap when it is filled.
		lines[i] = ansi.Truncate(printable(line), s.stream.Width()-1, "…")
	}
	s.shown = len(lines)
	_, err := io.WriteString(s.stream, erase+before+strings.Join(lines, "\n"))
	return err
}
