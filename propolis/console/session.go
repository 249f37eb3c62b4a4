package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Session shows a console and gives it what is typed.
type Session struct {
	Line Line
	In   io.Reader // nil: nothing is typed
	Out  io.Writer
	// Escape begins the sequences that are for the session; 0: none does.
	Escape byte
	Since  Place
	// Tell is given what happens to the connection, one line each.
	Tell func(string)
	// Follow gives the line of a machine that has migrated; nil: it ends there.
	Follow func(destination string) (Line, error)
	// Patience is for how long a broken connection is tried again.
	Patience time.Duration
}

// The pauses between attempts: a server that dropped one client answers the
// next at once, one that is being restarted does not.
const (
	firstPause   = 10 * time.Millisecond
	longestPause = time.Second
	typeTime     = 10 * time.Second // a server that takes nothing for so long is gone
)

// errLeft is the end that the operator asked for.
var errLeft = errors.New("left")

// Run lasts until the operator leaves by the escape sequence (nil), the machine
// stops (ErrStopped), or there is no way to go on. The end of the input is none.
// A Read of In may be left waiting.
func (s *Session) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var typing sync.WaitGroup
	link := &link{attached: make(chan struct{})}
	if s.In != nil {
		input := make(chan []byte)
		go read(ctx, s.In, input)
		typing.Go(func() { s.give(ctx, cancel, link, input) })
	}
	err := s.show(ctx, link)
	if context.Cause(ctx) == errLeft {
		err = nil
	}
	cancel(nil)
	typing.Wait()
	return err
}

// read reads until the end of the input, or until no reader wants more.
func read(ctx context.Context, in io.Reader, to chan<- []byte) {
	defer close(to)
	for {
		buffer := make([]byte, 4<<10)
		n, err := in.Read(buffer)
		if n > 0 {
			select {
			case to <- buffer[:n]:
			case <-ctx.Done():
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// give types the input, except for the escape sequences. What is typed while
// there is no connection waits for the next one.
func (s *Session) give(ctx context.Context, cancel context.CancelCauseFunc, link *link, input <-chan []byte) {
	keys := escapes{char: s.Escape}
	var waiting []byte
	for {
		stream, attached := link.now()
		if len(waiting) > 0 && stream != nil {
			if write(ctx, stream, waiting) == nil {
				waiting = nil
			} else {
				link.detach(stream)
				stream.Close() // so that the reader notices, too
			}
			continue
		}
		select {
		case typed, more := <-input:
			if !more {
				input = nil
			}
			for len(typed) > 0 {
				var send []byte
				var asks act
				send, asks, typed = keys.feed(typed)
				waiting = append(waiting, send...)
				switch asks {
				case actLeave:
					if stream != nil && len(waiting) > 0 {
						_ = write(ctx, stream, waiting) // what was typed before it
					}
					cancel(errLeft)
					return
				case actHelp:
					s.Tell(help(s.Escape))
				}
			}
		case <-attached:
		case <-ctx.Done():
			return
		}
		if input == nil && len(waiting) == 0 {
			return
		}
	}
}

func help(escape byte) string {
	return fmt.Sprintf("%[1]c. leaves the console, %[1]c%[1]c types %[1]c, %[1]c? is this; each at the beginning of a line", escape)
}

func write(ctx context.Context, stream Stream, data []byte) error {
	ctx, release := context.WithTimeout(ctx, typeTime)
	defer release()
	return stream.Write(ctx, data)
}

// place is where the console is shown from, and what has been tried.
type place struct {
	since            Place
	found, connected bool          // ever
	pause            time.Duration // before the next try
	up               time.Time     // when a connection was last there
}

// rest waits before the next try, and longer each time.
func (p *place) rest(ctx context.Context) error {
	if err := sleep(ctx, p.pause); err != nil {
		return err
	}
	p.pause = min(2*p.pause, longestPause)
	return nil
}

// show connects, and connects again, from where it was.
func (s *Session) show(ctx context.Context, link *link) error {
	p := place{since: s.Since, pause: firstPause, up: time.Now()}
	for {
		offset, stream, err := s.connect(ctx, p.since)
		p.found = p.found || err == nil || is[*openError](err)
		if ctx.Err() != nil || err != nil {
			if err = s.unconnected(ctx, &p, stream, err); err != nil {
				return err
			}
			continue
		}
		switch {
		case p.connected && offset < p.since.Byte && !p.since.Back:
			s.Tell(fmt.Sprintf("this is another machine's console: it has %d bytes", offset))
		case p.connected:
			s.Tell(fmt.Sprintf("connected again, from byte %d", offset))
		}
		p.connected = true
		link.attach(stream)
		end, err := s.copy(ctx, stream, offset)
		link.detach(stream)
		stream.Close()
		if end, err = s.disconnected(ctx, end, err); err != nil {
			return err
		}
		p.since, p.up = Place{Byte: end}, time.Now()
		if end > offset {
			p.pause = firstPause
		} else if err := p.rest(ctx); err != nil { // it came to nothing: not at once again
			return err
		}
	}
}

// unconnected is what follows from a connection that was not made, or too late.
// Without an error it is tried again.
func (s *Session) unconnected(ctx context.Context, p *place, stream Stream, err error) error {
	switch {
	case ctx.Err() != nil:
		if stream != nil {
			stream.Close()
		}
		if !p.connected && err != nil {
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		return context.Cause(ctx)
	case is[*LostError](err):
		s.Tell(err.Error())
		offset, err := skip(ctx, s.Line, p.since)
		if err == nil {
			p.since = Place{Byte: offset}
		}
		return err
	case !p.found, errors.Is(err, ErrAbsent):
		return err
	case time.Since(p.up) >= s.Patience:
		return fmt.Errorf("the console could not be connected to again for %s: %w", time.Since(p.up).Round(time.Second), err)
	}
	return p.rest(ctx)
}

// disconnected is where to go on after a connection that has ended at a byte.
func (s *Session) disconnected(ctx context.Context, end uint64, err error) (uint64, error) {
	moved, isMoved := errors.AsType[*MovedError](err)
	shown, isShown := errors.AsType[*showError](err)
	switch {
	case ctx.Err() != nil:
		return end, context.Cause(ctx)
	case isShown:
		return end, shown.err
	case errors.Is(err, ErrStopped):
		return end, ErrStopped
	case !isMoved:
		s.Tell(fmt.Sprintf("the connection broke at byte %d", end))
		return end, nil
	case s.Follow == nil:
		return end, moved
	}
	if s.Line, err = s.Follow(moved.Destination); err != nil {
		return end, err
	}
	s.Tell(moved.Error())
	return moved.Offset, nil
}

func (s *Session) connect(ctx context.Context, since Place) (uint64, Stream, error) {
	offset, err := s.Line.Find(ctx, since)
	if err != nil {
		return 0, nil, err
	}
	stream, err := s.Line.Open(ctx, offset)
	if err != nil {
		return 0, nil, &openError{err}
	}
	return offset, stream, nil
}

// openError is a place that was found, and no connection to it: what answered
// once may do so again.
type openError struct{ err error }

// Error is the cause.
func (e *openError) Error() string { return e.err.Error() }

// Unwrap gives the cause.
func (e *openError) Unwrap() error { return e.err }

// copy shows what is written, and gives the offset of its end.
func (s *Session) copy(ctx context.Context, stream Stream, offset uint64) (uint64, error) {
	for {
		data, err := stream.Read(ctx)
		if err != nil {
			return offset, err
		}
		if _, err := s.Out.Write(data); err != nil {
			return offset, &showError{err}
		}
		offset += uint64(len(data))
	}
}

// showError is output that could not be written on our side.
type showError struct{ err error }

// Error is the cause.
func (e *showError) Error() string { return e.err.Error() }

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func sleep(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// History shows what is kept from a place on. If something between is not kept, tell
// gets a line about it.
func History(ctx context.Context, line Line, since Place, out io.Writer, tell func(string)) error {
	offset, err := line.Find(ctx, since)
	for {
		if is[*LostError](err) {
			tell(err.Error())
			if offset, err = skip(ctx, line, Place{Byte: offset}); err == nil {
				tell(fmt.Sprintf("it goes on at byte %d", offset))
			}
		}
		if err != nil {
			return err
		}
		var data []byte
		data, err = line.Page(ctx, offset)
		if err == nil && len(data) == 0 {
			return nil
		}
		if _, err := out.Write(data); err != nil {
			return err
		}
		offset += uint64(len(data))
	}
}

// skip finds what is kept behind a place that is lost.
func skip(ctx context.Context, line Line, lost Place) (uint64, error) {
	offset, err := line.Find(ctx, Place{Byte: Kept, Back: true})
	if err == nil && (lost.Back || offset <= lost.Byte) {
		err = &LostError{lost}
	}
	return offset, err
}

// link is the connection that there is, if there is one.
type link struct {
	mu       sync.Mutex
	stream   Stream
	attached chan struct{} // closed when there is one
}

func (l *link) now() (Stream, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stream != nil {
		return l.stream, nil
	}
	return nil, l.attached
}

func (l *link) attach(s Stream) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stream = s
	close(l.attached)
	l.attached = make(chan struct{})
}

// detach ends the use of a connection, if it still is the one.
func (l *link) detach(s Stream) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stream == s {
		l.stream = nil
	}
}
