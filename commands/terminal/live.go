package terminal

import (
	"io"
	"strings"
)

// Live is a view that is drawn again and again in one place, on the alternate screen: what
// was on the terminal before is there again afterwards. It needs a stream that can erase.
type Live struct {
	stream *Stream
	keys   <-chan byte
	leave  func()
}

// NewLive shows the view. Each key that is typed, ^C too, comes by Keys. Close it.
func NewLive(in Input, out *Stream) (*Live, error) {
	restore, keys := func() {}, make(chan byte)
	if in.Terminal {
		var err error
		if restore, err = in.Raw(); err != nil {
			return nil, err
		}
		go func() { // a read cannot be given up; the process ends soon after
			var key [1]byte
			for {
				if _, err := in.Read(key[:]); err != nil {
					return
				}
				keys <- key[0]
			}
		}()
	}
	_, err := io.WriteString(out, "\x1b[?1049h\x1b[?25l")
	return &Live{stream: out, keys: keys, leave: restore}, err
}

// Keys are those that are typed.
func (l *Live) Keys() <-chan byte { return l.keys }

// Draw replaces the view by a text, in one write.
func (l *Live) Draw(text string) error {
	_, err := io.WriteString(l.stream, redrawn(text))
	return err
}

// redrawn is a text over one that was there: each line erases what was behind it.
func redrawn(text string) string {
	return "\x1b[H" + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\x1b[K\r\n") + "\x1b[K\x1b[J"
}

// Close gives the terminal back as it was.
func (l *Live) Close() error {
	_, err := io.WriteString(l.stream, "\x1b[?25h\x1b[?1049l")
	l.leave()
	return err
}
