// Package terminal is how sledctl talks to its user: streams, tables, colour,
// prompts, the status line, and how sizes and times are written and read. It never
// sends a query to the terminal: on a serial console that does not answer, sledctl
// would hang.
package terminal

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/charmbracelet/lipgloss"
	"golang.org/x/term"
)

// Streams are the three streams of a command. The result goes to Out, all else
// to Err.
type Streams struct {
	In  Input
	Out *Stream
	Err *Stream
}

// Input is where answers and documents come from.
type Input struct {
	io.Reader
	Terminal bool

	file *os.File // if it is one
}

// Stream is one output.
type Stream struct {
	io.Writer
	Terminal bool
	Color    bool // implies Terminal
	// Erase says that a line can be erased, which a dumb terminal cannot.
	Erase bool
	// Second says that there is a second screen, behind which the first one stays as it is.
	Second bool

	file   *os.File // if it is one
	width  func() int
	height func() int // nil: unknown
	styles *lipgloss.Renderer
	failed atomic.Pointer[error]
	wrote  atomic.Bool
}

// Write is part of io.Writer. Failed remembers its first error; that of a terminal that hung up
// (EIO, or ENXIO in write(2) of illumos) is syscall.EPIPE, as that of a pipe that no process reads.
func (s *Stream) Write(p []byte) (int, error) {
	n, err := s.Writer.Write(p)
	s.wrote.Store(true)
	if s.Terminal && (errors.Is(err, syscall.EIO) || errors.Is(err, syscall.ENXIO)) {
		err = syscall.EPIPE
	}
	if err != nil {
		s.failed.CompareAndSwap(nil, &err)
	}
	return n, err
}

// Wrote says whether anything was written yet.
func (s *Stream) Wrote() bool { return s.wrote.Load() }

// Failed is the first error of Write; nil: there was none.
func (s *Stream) Failed() error {
	if err := s.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// defaultWidth is that of a terminal that does not tell its own.
const defaultWidth, defaultHeight = 80, 24

// Width is the number of columns, looked up each time: windows are resized.
func (s *Stream) Width() int {
	if w := s.width(); w > 0 {
		return w
	}
	return defaultWidth
}

// Height is the number of lines, as Width.
func (s *Stream) Height() int {
	if s.height != nil {
		if h := s.height(); h > 0 {
			return h
		}
	}
	return defaultHeight
}

// System is the streams of this process. Environ is as os.Environ: NO_COLOR
// (https://no-color.org) and TERM=dumb turn colour off.
func System(in, out, err *os.File, environ []string) *Streams {
	return &Streams{
		In:  Input{Reader: in, Terminal: isTerminal(in), file: in},
		Out: systemStream(out, environ),
		Err: systemStream(err, environ),
	}
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

func systemStream(f *os.File, environ []string) *Stream {
	terminal := isTerminal(f)
	width := func() int {
		w, _, err := term.GetSize(int(f.Fd()))
		if err == nil && w > 0 || !terminal {
			return w
		}
		w, _ = strconv.Atoi(lookup(environ, "COLUMNS")) // a serial console has no size
		return w
	}
	s := newStream(f, terminal, environ, width)
	s.file = f
	s.height = func() int {
		_, h, err := term.GetSize(int(f.Fd()))
		if err != nil {
			h, _ = strconv.Atoi(lookup(environ, "LINES"))
		}
		return h
	}
	return s
}

func newStream(w io.Writer, terminal bool, environ []string, width func() int) *Stream {
	kind := lookup(environ, "TERM")
	erase := terminal && kind != "" && kind != "dumb"
	s := &Stream{
		Writer:   w,
		Terminal: terminal,
		Color:    erase && lookup(environ, "NO_COLOR") == "",
		Erase:    erase,
		Second:   erase && !strings.HasPrefix(kind, "sun"), // the console of illumos
		width:    width,
	}
	s.styles = newRenderer(w, s.Color)
	return s
}

// lookup finds a variable; the last one counts.
func lookup(environ []string, name string) string {
	value := ""
	for _, e := range environ {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			value = v
		}
	}
	return value
}

// Pretended says what kind of streams Buffers pretends to be.
type Pretended struct {
	In       string
	Terminal bool // all three
	Width    int  // 0: not told
	// Size is instead of Width, and is asked again and again.
	Size    func() (width, height int)
	Environ []string // none means no TERM, so no colour
}

// Buffers are streams for tests, with what was written to Out and Err.
func Buffers(p Pretended) (s *Streams, out, err *bytes.Buffer) {
	out, err = &bytes.Buffer{}, &bytes.Buffer{}
	width, height := func() int { return p.Width }, func() int { return 0 }
	if p.Size != nil {
		width = func() int { w, _ := p.Size(); return w }
		height = func() int { _, h := p.Size(); return h }
	}
	s = &Streams{
		In:  Input{Reader: strings.NewReader(p.In), Terminal: p.Terminal},
		Out: newStream(out, p.Terminal, p.Environ, width),
		Err: newStream(err, p.Terminal, p.Environ, width),
	}
	s.Out.height = height
	return s, out, err
}

// Sheet is streams as of a terminal of a size, with the colours of another one, and what was
// written to Out and Err. Nothing is drawn on it twice, and nobody answers there.
func Sheet(like *Stream, width, height int) (s *Streams, out, err *bytes.Buffer) {
	out, err = &bytes.Buffer{}, &bytes.Buffer{}
	page := &Stream{Writer: out, Terminal: true, Color: like.Color, width: func() int { return width }, height: func() int { return height }}
	page.styles = newRenderer(out, page.Color)
	return &Streams{In: Input{Reader: strings.NewReader("")}, Out: page, Err: newStream(err, false, nil, func() int { return width })}, out, err
}
