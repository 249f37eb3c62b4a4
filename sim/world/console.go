package world

import (
	"fmt"
	"slices"
	"time"
)

// Console is what a guest has written to its first serial port, and what it
// will: who decides what a guest does writes it down with its time. Of what was
// written, the server keeps the first and the last of it
// (bin/propolis-server/src/lib/serial/history_buffer.rs in oxidecomputer/propolis).
type Console struct {
	Head   []byte        `json:"head,omitempty"`   // from byte 0; empty while Tail has all
	Tail   []byte        `json:"tail,omitempty"`   // up to byte Total
	Total  uint64        `json:"total,omitempty"`  // bytes since the machine was made
	Coming []ConsoleText `json:"coming,omitempty"` // by time
	Typed  []byte        `json:"typed,omitempty"`  // the line that the guest is being given
	// Kept is how much is kept of each end, in bytes; 0: as much as the server
	// does.
	Kept int `json:"kept,omitempty"`
}

// ConsoleText is written from a moment on.
type ConsoleText struct {
	From time.Time `json:"from"`
	Text []byte    `json:"text"`
}

// consoleKept is TTY_BUFFER_SIZE of the server.
const consoleKept = 1 << 20

// Write lets the guest write text from a moment on. Earlier moments come first.
func (c *Console) Write(tx *Tx, from time.Time, text []byte) {
	c.settle(tx.Now)
	i := len(c.Coming)
	for i > 0 && c.Coming[i-1].From.After(from) {
		i--
	}
	c.Coming = slices.Insert(c.Coming, i, ConsoleText{from, text})
	c.settle(tx.Now)
}

// Cut drops what the guest would write at a moment or later.
func (c *Console) Cut(at time.Time) {
	c.Coming = slices.DeleteFunc(c.Coming, func(t ConsoleText) bool { return !t.From.Before(at) })
}

// settle takes what has been written by now out of the future.
func (c *Console) settle(now time.Time) {
	kept := c.Kept
	if kept == 0 {
		kept = consoleKept
	}
	for len(c.Coming) > 0 && !c.Coming[0].From.After(now) {
		text := c.Coming[0].Text
		c.Coming = c.Coming[1:]
		c.Total += uint64(len(text))
		c.Tail = append(slices.Clip(c.Tail), text...) // a copy: others may be reading
		if over := len(c.Tail) - kept; over > 0 {
			head := min(over, kept-len(c.Head))
			c.Head = append(slices.Clip(c.Head), c.Tail[:head]...)
			c.Tail = c.Tail[over:]
		}
	}
}

// Length is how much has been written by now, in bytes.
func (c Console) Length(now time.Time) uint64 {
	c.settle(now)
	return c.Total
}

// Read gives what is there from an offset on, up to where it is no longer kept,
// and the offset at which it begins: that of the end, for one that has not come
// yet. Output that was dropped is an error, in the server's words.
func (c Console) Read(now time.Time, from uint64) (data []byte, start uint64, err error) {
	c.settle(now)
	start = min(from, c.Total)
	back := c.Total - start
	head, tail := uint64(len(c.Head)), uint64(len(c.Tail))
	switch {
	case c.Total == head+tail && start < head:
		return slices.Concat(c.Head[start:], c.Tail), start, nil
	case back <= tail:
		return c.Tail[tail-back:], start, nil
	case start < head:
		return c.Head[start:], start, nil
	}
	return nil, start, &UncachedError{Offset: start, Back: back, Head: head, Tail: tail, Total: c.Total}
}

// UncachedError is output that was dropped.
type UncachedError struct{ Offset, Back, Head, Tail, Total uint64 }

// Error is what the server says (history_buffer.rs).
func (e *UncachedError) Error() string {
	return fmt.Sprintf("Requested byte offset %d (-%d) is no longer cached: Only have first %d + most recent %d saved out of a total %d of output",
		e.Offset, e.Back, e.Head, e.Tail, e.Total)
}

// Clone is an independent copy.
func (c *Console) Clone() Console {
	out := *c
	out.Head, out.Tail, out.Typed = slices.Clone(c.Head), slices.Clone(c.Tail), slices.Clone(c.Typed)
	out.Coming = slices.Clone(c.Coming)
	return out
}

// End is the offset behind all that has been and will be written.
func (c *Console) End() uint64 {
	end := c.Total
	for _, text := range c.Coming {
		end += uint64(len(text.Text))
	}
	return end
}
