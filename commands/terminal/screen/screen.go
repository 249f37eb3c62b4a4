// Package screen is a full screen on a terminal: lines are shown in place, keys and new sizes
// come. It uses what every terminal of a sled has (ECMA-48 and the second screen of xterm; the
// console of illumos, TERM=sun, has no second one), and asks the terminal nothing.
package screen

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/sledctl/sledctl/commands/terminal"
)

// Event is a key, or a new size.
type Event struct {
	Key           string // "a", "enter", "pgdn"; empty: it is a size
	Width, Height int
}

// Screen is a terminal that is taken.
type Screen struct {
	in     terminal.Input
	out    *terminal.Stream
	events chan Event
	gone   func() // ends the events

	restore func()        // the terminal's modes
	stop    chan struct{} // ends listen; nil: it does not run
	stopped chan struct{}

	shown         []string // what stands in each line
	width, height int      // for which it was drawn
}

// beat is how long a sequence of a key may take to come, and how soon a new size is seen.
const beat = 50 * time.Millisecond

// Open takes the terminal. Keys come only if the input is a terminal. Close it, whatever
// happens.
func Open(in terminal.Input, out *terminal.Stream) (*Screen, error) {
	events := make(chan Event, 16)
	s := &Screen{in: in, out: out, events: events, gone: sync.OnceFunc(func() { close(events) })}
	return s, s.take()
}

// take makes the terminal ours, and listens.
func (s *Screen) take() error {
	s.restore = func() {}
	if s.in.Terminal {
		restore, err := s.in.Raw()
		if err != nil {
			return err
		}
		s.restore = restore
	}
	begin := "\x1b[H\x1b[J"
	if s.out.Second {
		begin = ansi.SetAltScreenSaveCursorMode + ansi.HideCursor + begin
	}
	if _, err := fmt.Fprint(s.out, begin); err != nil {
		s.restore()
		return err
	}
	s.shown = nil
	s.stop, s.stopped = make(chan struct{}), make(chan struct{})
	go s.listen(s.stop, s.stopped)
	return nil
}

// give gives the terminal back as it was.
func (s *Screen) give() error {
	close(s.stop)
	for waiting := true; waiting; {
		select {
		case <-s.stopped:
			waiting = false
		case <-s.events: // typed too late
		}
	}
	end := "\x1b[H\x1b[J"
	if s.out.Second {
		end = ansi.ShowCursor + ansi.ResetAltScreenSaveCursorMode
	}
	_, err := fmt.Fprint(s.out, end)
	s.restore()
	return err
}

// listen passes on what is typed, and new sizes, until it is stopped. The events end when the
// terminal is gone.
func (s *Screen) listen(stop <-chan struct{}, stopped chan<- struct{}) {
	defer close(stopped)
	width, height := s.Size()
	var typed []byte
	var some [256]byte
	for {
		n, err := s.wait(stop, some[:])
		if err != nil {
			s.gone()
			return
		}
		keys, rest := decoded(append(typed, some[:n]...), n == 0)
		typed = rest
		for _, key := range keys {
			s.pass(stop, Event{Key: key})
		}
		if w, h := s.Size(); w != width || h != height {
			width, height = w, h
			s.pass(stop, Event{Width: w, Height: h})
		}
		select {
		case <-stop:
			return
		default:
		}
	}
}

// wait is what is typed within a beat.
func (s *Screen) wait(stop <-chan struct{}, p []byte) (int, error) {
	if s.in.Terminal {
		return s.in.ReadWithin(p, beat)
	}
	select {
	case <-stop:
	case <-time.After(beat):
	}
	return 0, nil
}

func (s *Screen) pass(stop <-chan struct{}, e Event) {
	select {
	case s.events <- e:
	case <-stop:
	}
}

// Events are those of the terminal; closed: it is gone.
func (s *Screen) Events() <-chan Event { return s.events }

// Size is that of the terminal, in cells.
func (s *Screen) Size() (width, height int) { return s.out.Width(), s.out.Height() }

// Close gives the terminal back as it was, at the first call.
func (s *Screen) Close() error {
	if s.stop == nil {
		return nil
	}
	err := s.give()
	s.stop = nil
	return err
}

// Lend gives the terminal to somebody else, as it was, until use returns.
func (s *Screen) Lend(use func() error) error {
	err := s.Close()
	if err == nil {
		err = use()
	}
	if again := s.take(); err == nil {
		err = again
	}
	return err
}

// Show shows lines from the upper edge on. Their looks are SGR sequences, as
// terminal.Stream.Style writes them. Only lines that are new are written: a serial console
// takes a millisecond for each letter. What the screen has no room for is left out.
func (s *Screen) Show(lines []string) error {
	width, height := s.Size()
	if s.shown == nil || width != s.width || height != s.height {
		s.shown, s.width, s.height = make([]string, height), width, height
		for y := range s.shown {
			s.shown[y] = "\x00" // nothing that is shown
		}
	}
	var b strings.Builder
	for y, was := range s.shown {
		line := ""
		if y < len(lines) {
			line = ansi.Truncate(lines[y], width, "")
		}
		if line == was {
			continue
		}
		s.shown[y] = line
		b.WriteString(ansi.CursorPosition(1, y+1) + ansi.EraseEntireLine + line)
		if strings.Contains(line, "\x1b[") {
			b.WriteString(ansi.ResetStyle)
		}
	}
	if b.Len() == 0 {
		return nil
	}
	_, err := fmt.Fprint(s.out, b.String())
	return err
}
