package host

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
)

// tracedFiles reports changes of files.
type tracedFiles struct {
	files Files
	trace *traced
	top   string // where a view begins
}

var (
	_ Files      = (*tracedFiles)(nil)
	_ wholeFiles = (*tracedFiles)(nil)
	_ fileCopier = (*tracedFiles)(nil)

	_ secretFiles = (*tracedFiles)(nil)
)

// name is the name from the top of the sled's files.
func (f *tracedFiles) name(name string) string { return path.Join(f.top, path.Clean("/"+name)) }

func (f *tracedFiles) writeFile(name string, data []byte, perm fs.FileMode, how keeping) error {
	return f.trace.event(FileLine(f.name(name), data), func() error { return replace(f.files, name, data, perm, how) })
}

func (f *tracedFiles) copyFile(from, to string, perm fs.FileMode) error {
	return f.trace.event(CopyLine(f.name(from), f.name(to)), func() error { return CopyFile(f.files, from, to, perm) })
}

func (f *tracedFiles) mkdirAll(name string, perm fs.FileMode) error {
	return f.trace.event(MkdirLine(f.name(name), perm), func() error { return MkdirAll(f.files, name, perm) })
}

func (f *tracedFiles) Open(name string, flag int, perm fs.FileMode) (File, error) {
	file, err := f.files.Open(name, flag, perm)
	if err != nil || flag&accessMode == os.O_RDONLY {
		return file, err
	}
	return &tracedFile{
		File:    file,
		files:   f,
		name:    name,
		append:  flag&os.O_APPEND != 0,
		changed: flag&(os.O_CREATE|os.O_TRUNC) != 0,
	}, nil
}

func (f *tracedFiles) openSecret(name string, flag int, line Line) (File, error) {
	file, err := openSecret(f.files, name, flag, line)
	if err != nil {
		return nil, err
	}
	line.Text = strings.ReplaceAll(line.Text, Quote(name), Quote(f.name(name)))
	return &tracedSecret{File: file, files: f, line: line}, nil
}

func (f *tracedFiles) Append(name string, data []byte) error {
	return f.trace.event(AppendLine(f.name(name), data), func() error { return f.files.Append(name, data) })
}

func (f *tracedFiles) Rename(from, to string) error {
	return f.trace.event(RenameLine(f.name(from), f.name(to)), func() error { return f.files.Rename(from, to) })
}

func (f *tracedFiles) Remove(name string) error {
	return f.trace.event(RemoveLine(f.name(name)), func() error { return f.files.Remove(name) })
}

func (f *tracedFiles) Mkdir(name string, perm fs.FileMode) error {
	return f.trace.event(MkdirLine(f.name(name), perm), func() error { return f.files.Mkdir(name, perm) })
}

func (f *tracedFiles) Chmod(name string, mode fs.FileMode) error {
	return f.trace.event(ChmodLine(f.name(name), mode), func() error { return f.files.Chmod(name, mode) })
}

func (f *tracedFiles) ReadDir(name string) ([]Info, error) { return f.files.ReadDir(name) }
func (f *tracedFiles) Stat(name string) (Info, error)      { return f.files.Stat(name) }
func (f *tracedFiles) Sync(name string) error              { return f.files.Sync(name) }
func (f *tracedFiles) SyncDir(name string) error           { return f.files.SyncDir(name) }

func (f *tracedFiles) Lock(ctx context.Context, name string, mode LockMode) (Lock, error) {
	return f.files.Lock(ctx, name, mode)
}

func (f *tracedFiles) In(dir string) (Files, error) {
	in, err := f.files.In(dir)
	if err != nil {
		return nil, err
	}
	return &tracedFiles{files: in, trace: f.trace, top: f.name(dir)}, nil
}

// tracedFile tells when it is closed what was written to it.
type tracedFile struct {
	File
	files   *tracedFiles
	name    string
	append  bool
	changed bool
	written []byte
}

func (f *tracedFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	f.written = append(f.written, p[:n]...)
	f.changed = f.changed || n > 0
	return n, err
}

// WriteAt is of OpenDevice: it could not be shown as the text that a file is.
func (f *tracedFile) WriteAt([]byte, int64) (int, error) {
	return 0, &fs.PathError{Op: "write", Path: f.name, Err: errors.ErrUnsupported}
}

func (f *tracedFile) Close() error {
	if !f.changed {
		return f.File.Close()
	}
	f.changed = false
	line := FileLine
	if f.append {
		line = AppendLine
	}
	return f.files.trace.event(line(f.files.name(f.name), f.written), f.File.Close)
}

// tracedSecret tells when it is closed what it was told to, and keeps nothing
// of what is written to it.
type tracedSecret struct {
	File
	files *tracedFiles
	line  Line
	told  bool
}

func (f *tracedSecret) Close() error {
	if f.told {
		return f.File.Close()
	}
	f.told = true
	return f.files.trace.event(f.line, f.File.Close)
}
