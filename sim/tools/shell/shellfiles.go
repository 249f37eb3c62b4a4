package shell

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

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

// lockedFind is find for the handlers, which run outside of commands.
func (s *shell) lockedFind(ctx context.Context, name string) (place, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return place{}, cli.ErrKilled
	}
	return s.find(ctx, absolute(interp.HandlerCtx(ctx).Dir, name))
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
		return devNull{}, nil
	}
	p, err := s.lockedFind(ctx, name)
	if err != nil {
		return nil, err
	}
	if p.readOnly && flag&(os.O_WRONLY|os.O_RDWR) != 0 {
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EROFS}
	}
	f, err := p.files.Open(p.name, flag, perm)
	return f, asSeen(err, name)
}

func (s *shell) stat(ctx context.Context, name string, _ bool) (fs.FileInfo, error) {
	p, err := s.lockedFind(ctx, name)
	if err != nil {
		return nil, err
	}
	info, err := p.files.Stat(p.name)
	return fileInfo{info}, asSeen(err, name)
}

func (s *shell) access(ctx context.Context, name string, mode interp.AccessMode) error {
	p, err := s.lockedFind(ctx, name)
	if err != nil {
		return err
	}
	info, err := p.files.Stat(p.name)
	switch {
	case err != nil:
		return asSeen(err, name)
	case mode&interp.AccessExec != 0 && info.Mode&0o111 == 0 && !info.Mode.IsDir():
		return &fs.PathError{Op: "access", Path: name, Err: syscall.EACCES}
	case mode&interp.AccessWrite != 0 && p.readOnly:
		return &fs.PathError{Op: "access", Path: name, Err: syscall.EROFS}
	}
	return nil
}

func (s *shell) readDir(ctx context.Context, name string) ([]fs.DirEntry, error) {
	p, err := s.lockedFind(ctx, name)
	if err != nil {
		return nil, err
	}
	infos, err := p.files.ReadDir(p.name)
	entries := make([]fs.DirEntry, len(infos))
	for i, info := range infos {
		entries[i] = fs.FileInfoToDirEntry(fileInfo{info})
	}
	return entries, asSeen(err, name)
}

// asSeen gives an error the name that the zone knows.
func asSeen(err error, name string) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return &fs.PathError{Op: e.Op, Path: name, Err: e.Err}
	}
	return err
}

// fileInfo is a host.Info for those who want an fs.FileInfo.
type fileInfo struct{ info host.Info }

func (f fileInfo) Name() string       { return path.Base(f.info.Name) }
func (f fileInfo) Size() int64        { return f.info.Size }
func (f fileInfo) Mode() fs.FileMode  { return f.info.Mode }
func (f fileInfo) ModTime() time.Time { return f.info.Time }
func (f fileInfo) IsDir() bool        { return f.info.Mode.IsDir() }
func (f fileInfo) Sys() any           { return nil }

// devNull is /dev/null.
type devNull struct{}

func (devNull) Read([]byte) (int, error)    { return 0, io.EOF }
func (devNull) Write(p []byte) (int, error) { return len(p), nil }
func (devNull) Close() error                { return nil }

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
