package web

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"syscall"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
)

// Kept is a download, whole or not: a file that begins with what it is of, so that both are there or neither.
type Kept struct {
	URL       string `json:"url"`                 // as it was asked for
	For       string `json:"for"`                 // what it will be
	Validator string `json:"validator,omitempty"` // see Part
	Total     int64  `json:"total"`               // bytes; -1: the server did not say
	Length    int64  `json:"-"`                   // bytes that are there
}

// headSize is the length of what stands before the bytes of a download: its Kept, and spaces.
const headSize = 4 << 10

// Whole says whether all that the server has announced is there.
func (k Kept) Whole() bool { return k.Total >= 0 && k.Length == k.Total }

func (k Kept) head() ([]byte, error) {
	text, err := json.Marshal(k)
	if err != nil {
		return nil, err
	}
	if len(text) >= headSize {
		return nil, errLong
	}
	head := bytes.Repeat([]byte{' '}, headSize)
	head[copy(head, text)] = '\n'
	return head, nil
}

// errLong is an address, or a validator, that does not fit.
var errLong = fault.New(fault.Refused, "the address, with what the server knows the file by, is longer than 4096 bytes")

// errNoDownload is a file that is none.
var errNoDownload = errors.New("it is no download")

// Open opens a download, to be read without what stands before it. Errors: those of Files; of what is none.
func Open(f host.Files, name string) (Kept, *io.SectionReader, io.Closer, error) {
	in, err := f.Open(name, os.O_RDONLY, 0)
	if err != nil {
		return Kept{}, nil, nil, err
	}
	var k Kept
	info, err := in.Stat()
	head := make([]byte, headSize)
	if err == nil {
		_, err = in.ReadAt(head, 0)
	}
	switch {
	case err == io.EOF || err == nil && json.Unmarshal(bytes.TrimSpace(head), &k) != nil:
		err = errNoDownload
	case err == nil:
		k.Length = info.Size - headSize
		return k, io.NewSectionReader(in, headSize, k.Length), in, nil
	}
	return k, nil, nil, errors.Join(&fs.PathError{Op: "read", Path: name, Err: err}, in.Close())
}

// Look reads what a download is.
func Look(f host.Files, name string) (Kept, error) {
	k, _, in, err := Open(f, name)
	if err != nil {
		return k, err
	}
	return k, in.Close()
}

// Download gets a file from a web server, or the rest of one that an earlier run has begun. What has come stays, whatever
// happens: ZFS keeps the writes to a file in their order, also over a power failure.
type Download struct {
	From *url.URL
	For  string // what it will be
	File string // see Kept
	Client
	// Progress, if set, is told how many bytes are there, of how many; -1: the server did not say.
	Progress func(done, of int64)
}

// Verb names the step.
func (Download) Verb() string { return "web.download" }

// Limit is the operator's: how long it takes, the file and the network decide. What is interrupted is given up
// at once.
func (Download) Limit() (most time.Duration, waits bool) { return 0, true }

// Undo is nil: what has come is kept, for the next run to continue with.
func (Download) Undo() any { return nil }

// dirMode is for the operator alone: an address may have a secret in it.
const dirMode fs.FileMode = 0o700

// Explain is the file.
func (s Download) Explain() []host.Line {
	return []host.Line{host.MkdirLine(path.Dir(s.File), dirMode), host.ReceiveLine(s.File, Shown(s.From))}
}

// FullError is a file system without room for a download.
type FullError struct {
	File string
	Err  error
}

// Error says which.
func (e *FullError) Error() string {
	return fmt.Sprintf("no room for a download in %s: %v", path.Dir(e.File), e.Err)
}

func (*FullError) Kind() fault.Kind { return fault.Refused }

// Unwrap gives the system's.
func (e *FullError) Unwrap() error { return e.Err }

// Hint says what makes room.
func (*FullError) Hint() string {
	return "set image.directory to a directory with more room; or, to remove images and downloads that nothing needs, run: sledctl image prune"
}

// Do gets it. Errors: those of Get and Body.Read; *FullError; those of Files.
func (s Download) Do(ctx context.Context, h host.Host) error {
	if err := host.MkdirAll(h.Files(), path.Dir(s.File), dirMode); err != nil {
		return fmt.Errorf("download %s: %w", Shown(s.From), err)
	}
	have := Part{Total: -1}
	if k, err := Look(h.Files(), s.File); err == nil && k.URL == s.From.String() {
		have = Part{Length: k.Length, Total: k.Total, Validator: k.Validator}
	}
	body, err := s.Get(ctx, h, s.From, have)
	if err != nil {
		return err
	}
	defer body.Close()
	if body.Complete {
		return nil
	}
	err = s.receive(h.Files(), body)
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return &FullError{File: s.File, Err: err}
	}
	return err
}

// receive writes what comes, as far as it comes.
func (s Download) receive(f host.Files, body *Body) error {
	head, err := Kept{URL: s.From.String(), For: s.For, Validator: body.Validator, Total: body.Total}.head()
	if err != nil {
		return fmt.Errorf("get %s: %w", Shown(s.From), err)
	}
	file, err := host.OpenReceived(f, s.File, Shown(s.From), body.Length > 0)
	if err != nil {
		return err
	}
	if body.Length == 0 {
		_, err = file.Write(head)
	}
	if err == nil {
		to := bufio.NewWriterSize(file, 256<<10)
		_, err = to.ReadFrom(&told{in: body, of: body.Total, done: body.Length, tell: s.Progress})
		err = errors.Join(err, to.Flush())
	}
	return errors.Join(err, file.Sync(), file.Close())
}

// told reports how much has come.
type told struct {
	in       io.Reader
	done, of int64
	tell     func(done, of int64)
}

func (t *told) Read(p []byte) (int, error) {
	n, err := t.in.Read(p)
	t.done += int64(n)
	if t.tell != nil {
		t.tell(t.done, t.of)
	}
	return n, err
}

// Discard removes a download. One that is gone is no failure.
type Discard struct{ File string }

// Verb names the step.
func (Discard) Verb() string { return "web.discard" }

// Undo is nil: what it removes can be downloaded again.
func (Discard) Undo() any { return nil }

// Explain is the file.
func (s Discard) Explain() []host.Line { return []host.Line{host.RemoveLine(s.File)} }

// Do removes it.
func (s Discard) Do(_ context.Context, h host.Host) error {
	if err := h.Files().Remove(s.File); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove download: %w", err)
	}
	return nil
}
