package terminal

import (
	"context"
	"io"
	"strings"
	"time"
)

// Live is a view that is drawn again and again in one place, on the alternate screen: what
// was on the terminal before is there again afterwards. It needs a stream that can erase.
type Live struct {
	stream *Stream
	keys   <-chan byte
	leave  func()
}

// NewLive shows the view, for Draw and Watch. Close it.
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

// Draw replaces the view by a text, in one write.
func (l *Live) Draw(text string) error {
	_, err := io.WriteString(l.stream, redrawn(text))
	return err
}

// Watch draws a text, and every so often the next that look gives, until q or ^C is typed.
// The error is that of look or of the stream, or the cause of the context's end.
func (l *Live) Watch(ctx context.Context, every time.Duration, text string, look func(context.Context) (string, error)) error {
	const interrupt = 3 // ^C, as a raw terminal gives it
	for {
		if err := l.Draw(text); err != nil {
			return err
		}
		next := time.NewTimer(every)
		for waiting := true; waiting; {
			select {
			case key := <-l.keys:
				if key == 'q' || key == interrupt {
					return nil
				}
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-next.C:
				waiting = false
			}
		}
		again, err := look(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return err
		}
		text = again
	}
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
