package shell

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"mvdan.cc/sh/v3/interp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
)

// place is where a path inside the zone lies.
type place struct {
	files    host.Files
	name     string
	readOnly bool
}

// find resolves a path inside the zone. What the zone's root lacks below /usr,
// /lib and /sbin is the global zone's: a sparse zone has them by loopback
// mounts, an omicron1 zone by links into one.
func (s *shell) find(ctx context.Context, name string) (place, error) {
	var p place
	var inErr error
	err := s.machine.View(ctx, func(tx *world.Tx) {
		p.name, p.readOnly = tx.ZonePathOf(s.zone, name), tx.ReadOnlyIn(s.zone, name)
		// A view: a link in a zone must not lead out of the sled.
		p.files, inErr = tx.Files.In("/")
	})
	if err != nil || inErr != nil {
		return p, errors.Join(err, inErr)
	}
	if top, _, _ := strings.Cut(strings.TrimPrefix(name, "/"), "/"); top == "usr" || top == "lib" || top == "sbin" {
		if _, err := p.files.Stat(p.name); errors.Is(err, fs.ErrNotExist) {
			p.name, p.readOnly = name, true
		}
	}
	return p, nil
}

func (s *shell) readFile(ctx context.Context, name string) (host.Info, []byte, error) {
	p, err := s.find(ctx, name)
	if err != nil {
		return host.Info{}, nil, err
	}
	info, err := p.files.Stat(p.name)
	if err != nil {
		return info, nil, err
	}
	if !info.Mode.IsRegular() {
		return info, nil, nil
	}
	data, err := host.ReadFile(p.files, p.name)
	return info, data, err
}

// open is the shell's redirections.
func (s *shell) open(ctx context.Context, name string, flag int, perm fs.FileMode) (io.ReadWriteCloser, error) {
	if name == "/dev/null" {
		return struct {
			io.Reader
			io.Writer
			io.Closer
		}{strings.NewReader(""), io.Discard, io.NopCloser(nil)}, nil
	}
	s.mu.Lock() // a redirection is outside of commands
	defer s.mu.Unlock()
	if s.ended {
		return nil, cli.ErrKilled
	}
	p, err := s.find(ctx, absolute(interp.HandlerCtx(ctx).Dir, name))
	if err != nil {
		return nil, err
	}
	if p.readOnly && flag&(os.O_WRONLY|os.O_RDWR) != 0 {
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EROFS}
	}
	f, err := p.files.Open(p.name, flag, perm)
	return f, asSeen(err, name)
}

// asSeen gives an error the name that the zone knows.
func asSeen(err error, name string) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return &fs.PathError{Op: e.Op, Path: name, Err: e.Err}
	}
	return err
}

// input is what the interpreter reads: a file, as a program's standard input is, or
// nothing. Of bytes it would make a pipe that nobody closes.
func input(stdin io.Reader) (file io.Reader, done func(), err error) {
	in, ok := stdin.(*bytes.Reader)
	switch {
	case !ok:
		return stdin, func() {}, nil
	case in.Len() == 0:
		return nil, func() {}, nil
	}
	from, to, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	written := make(chan struct{})
	go func() {
		_, _ = io.Copy(to, in)
		_ = to.Close()
		close(written)
	}()
	return from, func() {
		_ = from.Close() // who still writes is told
		<-written
	}, nil
}
