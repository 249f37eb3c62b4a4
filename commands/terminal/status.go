package terminal

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/charmbracelet/x/ansi"
)

// Status is one line at the bottom of a terminal that says what is going on,
// and is gone afterwards. On what is no terminal, or cannot erase, there is
// none, and only Println shows. It is safe for concurrent use.
type Status struct {
	stream *Stream
	mu     sync.Mutex
	text   string
}

// NewStatus is the status line of a stream, which should be Err. While it is
// there, write to the stream through it only.
func NewStatus(s *Stream) *Status { return &Status{stream: s} }

const eraseLine = "\r\x1b[K"

// Set shows text, cut to the width, in place of what was there. Empty text
// removes the line.
func (s *Status) Set(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stream.Erase || text == s.text {
		return
	}
	s.text = text
	s.show(eraseLine)
}

// Clear removes the line.
func (s *Status) Clear() { s.Set("") }

// Println writes a whole line above the status line, which stays.
func (s *Status) Println(line string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.text == "" {
		_, err := fmt.Fprintln(s.stream, line)
		return err
	}
	return s.show(eraseLine + line + "\n")
}

// show writes what comes before and the line, in one write.
func (s *Status) show(before string) error {
	// The last column is left free: some terminals wrap when it is filled.
	text := strings.ReplaceAll(printable(s.text), "\n", " ")
	_, err := io.WriteString(s.stream, before+ansi.Truncate(text, s.stream.Width()-1, "…"))
	return err
}
