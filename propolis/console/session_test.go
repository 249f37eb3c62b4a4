package console

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// far is a console whose text exists from the start. Its streams break after as many
// bytes as breaks says, one after the other; the last one ends as end says.
type far struct {
	text    string
	lost    uint64 // bytes before it are not kept
	breaks  []int
	end     error
	finds   []error // of the next attempts to connect
	opened  int
	taken   bytes.Buffer
	refuses int // writes that fail
}

func (f *far) Find(_ context.Context, p Place) (uint64, error) {
	if len(f.finds) > 0 {
		err := f.finds[0]
		f.finds = f.finds[1:]
		if err != nil {
			return 0, err
		}
	}
	at := min(p.Byte, uint64(len(f.text)))
	if p.Back {
		at = uint64(len(f.text)) - at
		if p.Byte == Kept {
			at = max(at, f.lost)
		}
	}
	if at < f.lost {
		return 0, &LostError{p}
	}
	return at, nil
}

func (f *far) Page(_ context.Context, offset uint64) ([]byte, error) {
	return []byte(f.text[offset:min(offset+7, uint64(len(f.text)))]), nil
}

func (f *far) Open(_ context.Context, offset uint64) (Stream, error) {
	s := &stream{far: f, rest: f.text[offset:], left: -1, end: f.end, closed: make(chan struct{})}
	if f.opened < len(f.breaks) {
		s.left, s.end = f.breaks[f.opened], errors.New("reset by peer")
	}
	f.opened++
	return s, nil
}

type stream struct {
	far  *far
	rest string
	left int
	end  error

	closed chan struct{}
	once   sync.Once
}

func (s *stream) Read(ctx context.Context) ([]byte, error) {
	n := min(5, len(s.rest))
	if s.left >= 0 {
		n = min(n, s.left)
	}
	if n == 0 && s.end == nil {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-s.closed:
			return nil, errors.New("closed")
		}
	}
	if n == 0 {
		return nil, s.end
	}
	data := []byte(s.rest[:n])
	s.rest, s.left = s.rest[n:], max(-1, s.left-n)
	return data, nil
}

func (s *stream) Write(_ context.Context, data []byte) error {
	if s.far.refuses > 0 {
		s.far.refuses--
		return errors.New("broken")
	}
	s.far.taken.Write(data)
	return nil
}

func (s *stream) Close() { s.once.Do(func() { close(s.closed) }) }

// session runs one in a bubble and gives what it showed and told.
func session(t *testing.T, f *far, set func(*Session)) (out string, told string, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var shown bytes.Buffer
		var said []string
		s := Session{Line: f, Out: &shown, Tell: func(line string) { said = append(said, line) }, Patience: time.Minute}
		if set != nil {
			set(&s)
		}
		err = s.Run(t.Context())
		out, told = shown.String(), strings.Join(said, "\n")
	})
	return out, told, err
}

const text = "The quick brown fox jumps over the lazy dog.\r\n\xff\x00"

func TestWhatIsShownIsWhatWasWritten(t *testing.T) {
	for name, f := range map[string]*far{
		"unbroken":               {},
		"broken":                 {breaks: []int{7}},
		"broken again and again": {breaks: []int{1, 1, 3, 0, 0, 20, 2}},
		"a server that restarts": {breaks: []int{9}, finds: []error{nil, io.EOF, io.EOF, io.ErrUnexpectedEOF}},
	} {
		f.text, f.end = text, ErrStopped
		out, told, err := session(t, f, nil)
		if out != text || !errors.Is(err, ErrStopped) {
			t.Errorf("%s: %q, %v", name, out, err)
		}
		if want := len(f.breaks); strings.Count(told, "the connection broke at byte ") != want {
			t.Errorf("%s: told %q, want %d breaks", name, told, want)
		}
	}
}

func TestWhereItBegins(t *testing.T) {
	for _, c := range []struct {
		since Place
		want  string
	}{{Place{Byte: 4}, text[4:]}, {Place{Byte: 6, Back: true}, text[len(text)-6:]}, {Place{Byte: 999}, ""}, {Place{Byte: 999, Back: true}, text}} {
		out, _, err := session(t, &far{text: text, end: ErrStopped, breaks: []int{3}}, func(s *Session) { s.Since = c.since })
		if out != c.want || !errors.Is(err, ErrStopped) {
			t.Errorf("%v: %q, %v", c.since, out, err)
		}
	}
}

func TestWhatIsLostIsTold(t *testing.T) {
	out, told, err := session(t, &far{text: text, lost: 10, end: ErrStopped}, nil)
	if out != text[10:] || !strings.Contains(told, "from byte 0 on is no longer kept") || !errors.Is(err, ErrStopped) {
		t.Errorf("%q %q %v", out, told, err)
	}
}

func TestThereIsAnEndToPatience(t *testing.T) {
	refused := errors.New("connection refused")
	many := make([]error, 200)
	for i := range many {
		many[i] = refused
	}
	many[0] = nil
	_, _, err := session(t, &far{text: text, breaks: []int{5}, finds: many}, nil)
	if !errors.Is(err, refused) || !strings.Contains(err.Error(), "for 1m") {
		t.Error(err)
	}
	if _, _, err := session(t, &far{text: text, breaks: []int{5}, finds: []error{nil, ErrAbsent}}, nil); !errors.Is(err, ErrAbsent) {
		t.Errorf("a machine that is gone is waited for: %v", err)
	}
	if _, _, err := session(t, &far{finds: []error{refused}}, nil); !errors.Is(err, refused) {
		t.Errorf("the first connection is tried again: %v", err)
	}
}

func TestAMachineThatMigratesIsFollowed(t *testing.T) {
	here := &far{text: text[:20], end: &MovedError{Destination: "[fd00::5]:12400", Offset: 20}}
	there := &far{text: text, end: ErrStopped}
	out, told, err := session(t, here, func(s *Session) {
		s.Follow = func(to string) (Line, error) {
			if to != "[fd00::5]:12400" {
				t.Errorf("to %q", to)
			}
			return there, nil
		}
	})
	if out != text || !errors.Is(err, ErrStopped) || !strings.Contains(told, "migrated to [fd00::5]:12400") {
		t.Errorf("%q %q %v", out, told, err)
	}
	_, _, err = session(t, here, nil)
	if moved, ok := errors.AsType[*MovedError](err); !ok || moved.Offset != 20 {
		t.Error(err)
	}
}

// keys are typed one after the other, each when all is quiet.
func keys(words ...string) (io.Reader, func()) {
	in, out := io.Pipe()
	typed := make(chan struct{})
	go func() {
		defer close(typed)
		for _, w := range words {
			time.Sleep(time.Minute)
			if _, err := out.Write([]byte(w)); err != nil {
				return
			}
		}
	}()
	return in, func() { in.Close(); <-typed; out.Close() }
}

func TestTyping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &far{text: "login: ", breaks: []int{3}, refuses: 1}
		in, done := keys("ro", "ot\r", "~~x\r~?", "exit\r~.", "lost")
		defer done()
		var told []string
		s := Session{Line: f, In: in, Out: io.Discard, Escape: '~', Tell: func(line string) { told = append(told, line) }, Patience: time.Minute}
		if err := s.Run(t.Context()); err != nil {
			t.Error(err)
		}
		if got := f.taken.String(); got != "root\r~x\rexit\r" {
			t.Errorf("typed %q", got)
		}
		if !strings.Contains(strings.Join(told, "\n"), "~. leaves the console") {
			t.Errorf("no help: %q", told)
		}
	})
}

func TestTheOperatorCanAlwaysLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, done := keys("~.")
		defer done()
		s := Session{Line: deaf{}, In: in, Out: io.Discard, Escape: '~', Tell: func(string) {}}
		if err := s.Run(t.Context()); err != nil { // a server that does not answer
			t.Error(err)
		}
	})
}

// deaf is a server that never answers.
type deaf struct{ Line }

func (deaf) Find(ctx context.Context, _ Place) (uint64, error) {
	<-ctx.Done()
	return 0, ctx.Err()
}

func TestASessionEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		s := Session{Line: &far{text: text}, Out: io.Discard, Tell: func(string) {}}
		if err := s.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

func TestOutputThatCannotBeShownEndsIt(t *testing.T) {
	in, out := io.Pipe()
	in.Close()
	_, _, err := session(t, &far{text: text}, func(s *Session) { s.Out = out })
	if !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}

func TestHistoryIsWhatIsKept(t *testing.T) {
	var out bytes.Buffer
	if err := History(t.Context(), &far{text: text}, Place{}, &out, nil); err != nil || out.String() != text {
		t.Errorf("%q %v", out.String(), err)
	}
	out.Reset()
	told := ""
	err := History(t.Context(), &far{text: text, lost: 10}, Place{}, &out, func(line string) { told += line })
	if err != nil || out.String() != text[10:] || !strings.Contains(told, "goes on at byte 10") {
		t.Errorf("%q %q %v", out.String(), told, err)
	}
}
