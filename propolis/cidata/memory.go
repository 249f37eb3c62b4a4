package cidata

import (
	"io"
	"io/fs"
	"os"

	"github.com/diskfs/go-diskfs/backend"
)

// memory is a disk that go-diskfs writes a file system to: bytes, whose number stays.
type memory struct {
	data []byte
	at   int64
}

var _ backend.Storage = (*memory)(nil)

// ReadAt reads what is there.
func (m *memory) ReadAt(p []byte, at int64) (int, error) {
	if at < 0 || at >= int64(len(m.data)) {
		return 0, io.EOF
	}
	n := copy(p, m.data[at:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt writes within the disk.
func (m *memory) WriteAt(p []byte, at int64) (int, error) {
	if at < 0 || at+int64(len(p)) > int64(len(m.data)) {
		return 0, io.ErrShortWrite
	}
	return copy(m.data[at:], p), nil
}

// Read and the other methods complete the interface.
func (m *memory) Read(p []byte) (int, error) {
	n, err := m.ReadAt(p, m.at)
	m.at += int64(n)
	return n, err
}

// Seek is of no use to a file system that is read and written at offsets.
func (m *memory) Seek(int64, int) (int64, error) { return 0, fs.ErrInvalid }

// Stat is none.
func (m *memory) Stat() (fs.FileInfo, error) { return nil, fs.ErrInvalid }

// Close does nothing.
func (m *memory) Close() error { return nil }

// Sys is none: no file of the host is behind it.
func (m *memory) Sys() (*os.File, error) { return nil, fs.ErrInvalid }

// Writable is the disk itself.
func (m *memory) Writable() (backend.WritableFile, error) { return m, nil }

// Path is empty.
func (m *memory) Path() string { return "" }
