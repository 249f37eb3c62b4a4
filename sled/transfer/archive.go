// Package transfer writes an instance with its disks to one stream, and makes it of such a stream again: on
// the same sled, on another one, today or in a year.
//
// The stream is a tar file, of which an operator can get at the parts without sledctl: instance.json says what the
// instance is and which disks it has; disk-0 and so on hold what zfs send printed of each, in pieces, since nobody knows
// before how much that will be; and disk-0.sha256 the digest of all pieces together.
package transfer

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/zfs"
)

// version is that of the streams that are written, and the only one that is read.
const version = 1

// Manifest says what a stream holds: instance.json.
type Manifest struct {
	Version  int             `json:"version"`
	Instance json.RawMessage `json:"instance"` // a document, with what is secret, and without disks
	Disks    []Disk          `json:"disks"`
	// Running says that the guest ran: its disks are as after a power failure.
	Running bool      `json:"running"`
	Created time.Time `json:"created"`
}

// Disk is one of them, in their order.
type Disk struct {
	Volume string `json:"volume"`     // its name where it comes from
	Size   uint64 `json:"size"`       // bytes
	Block  uint64 `json:"block_size"` // bytes
	Thin   bool   `json:"thin"`
	// GUID is that of the snapshot that was sent: what has the same was the same.
	GUID string `json:"guid"`
	// Used is about how many bytes are sent of it.
	Used uint64 `json:"used"`
}

const (
	manifestName = "instance.json"
	// piece is how much of a disk is in one file of the stream, in bytes.
	piece = 1 << 20
	// mostManifest bounds what is read of one, in bytes, and mostDisks how many disks it may have.
	mostManifest, mostDisks = 4 << 20, 64
)

func diskName(n int) string         { return "disk-" + strconv.Itoa(n) }
func pieceName(n, at int) string    { return path.Join(diskName(n), fmt.Sprintf("%08d", at)) }
func digestName(n int) string       { return diskName(n) + ".sha256" }
func digestText(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }

// FormatError is a stream that is none of an instance, or not all of one.
type FormatError struct {
	What string
	Err  error // of reading; may be nil
}

// Error says what is wrong with it.
func (e *FormatError) Error() string {
	if e.Err != nil {
		return e.What + ": " + e.Err.Error()
	}
	return e.What
}

func (*FormatError) Kind() fault.Kind { return fault.Refused }

// Unwrap gives the cause.
func (e *FormatError) Unwrap() error { return e.Err }

// Hint says what would do.
func (*FormatError) Hint() string {
	return "to write it again where the instance is, run: sledctl instance export NAME FILE"
}

// writer writes a stream.
type writer struct {
	tar  *tar.Writer
	time time.Time
}

func (w *writer) file(name string, data []byte) error {
	err := w.tar.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(data)), ModTime: w.time, Typeflag: tar.TypeReg, Format: tar.FormatUSTAR})
	if err == nil {
		_, err = w.tar.Write(data)
	}
	return err
}

func (w *writer) manifest(m Manifest) error {
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return w.file(manifestName, append(data, '\n'))
}

// disk writes all that comes of a disk.
func (w *writer) disk(n int, in io.Reader, tell func(bytes int)) error {
	sum, buffer := sha256.New(), make([]byte, piece)
	for at := 0; ; at++ {
		got, err := io.ReadFull(in, buffer)
		if got > 0 {
			sum.Write(buffer[:got])
			if err := w.file(pieceName(n, at), buffer[:got]); err != nil {
				return err
			}
			tell(got)
		}
		switch {
		case err == io.EOF, err == io.ErrUnexpectedEOF: // of ReadFull itself: a stream that breaks off has an error around it
			return w.file(digestName(n), []byte(digestText(sum)+"  "+diskName(n)+"\n"))
		case err != nil:
			return err
		}
	}
}

// Archive is a stream that is read, once and in its order.
type Archive struct {
	Manifest
	Name string // of the file; - is standard input
	tar  *tar.Reader
	tell func(bytes int)
}

// Open reads what a stream holds. Errors: *FormatError.
func Open(name string, in io.Reader, tell func(bytes int)) (*Archive, error) {
	a := &Archive{Name: name, tar: tar.NewReader(in), tell: tell}
	h, err := a.tar.Next()
	switch {
	case errors.Is(err, tar.ErrHeader), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return a, &FormatError{What: a.spoken() + " is no exported instance"}
	case err != nil:
		return a, &FormatError{What: a.spoken() + " cannot be read", Err: err}
	case h.Name != manifestName || h.Typeflag != tar.TypeReg || h.Size > mostManifest:
		return a, &FormatError{What: a.spoken() + " is no exported instance: it does not begin with " + manifestName}
	}
	data, err := io.ReadAll(a.tar)
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(data))
		d.DisallowUnknownFields()
		err = d.Decode(&a.Manifest)
	}
	if err != nil {
		return a, &FormatError{What: manifestName + " cannot be read", Err: err}
	}
	return a, a.Manifest.check()
}

func (a *Archive) spoken() string {
	if a.Name == "-" {
		return "standard input"
	}
	return "file " + a.Name
}

// unexpected is the end of a stream that has not ended.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (m Manifest) check() error {
	switch {
	case m.Version != version:
		return &FormatError{What: fmt.Sprintf("the exported instance is of version %d, and this sledctl reads version %d", m.Version, version)}
	case len(m.Disks) > mostDisks:
		return &FormatError{What: fmt.Sprintf("the exported instance has %d disks, which is more than %d", len(m.Disks), mostDisks)}
	}
	for n, d := range m.Disks {
		if _, err := strconv.ParseUint(d.GUID, 10, 64); err != nil || d.GUID == "0" || !naming.ValidVolume(d.Volume) ||
			d.Block < zfs.LeastBlock || d.Block > zfs.MostBlock || d.Block&(d.Block-1) != 0 || d.Size == 0 || d.Size > zfs.MostVolume || d.Size%d.Block != 0 {
			return &FormatError{What: fmt.Sprintf("disk %d of the exported instance is no volume: %q of %d bytes in blocks of %d, guid %q", n, d.Volume, d.Size, d.Block, d.GUID)}
		}
	}
	return nil
}

// Source is the stream of a disk. It fails where a part of it is missing, or its digest is another one.
func (a *Archive) Source(n int) zfs.Source {
	line := "gtar -xOf " + host.Quote(a.Name) + " " + diskName(n)
	return zfs.Source{Line: line, Open: func(context.Context, host.Host) (io.ReadCloser, error) {
		return io.NopCloser(&reading{archive: a, disk: n, sum: sha256.New()}), nil
	}}
}

// Skip reads past a disk that an earlier run has made.
func (a *Archive) Skip(n int) error {
	_, err := io.Copy(io.Discard, &reading{archive: a, disk: n, sum: sha256.New()})
	return err
}

// reading puts the pieces of a disk together.
type reading struct {
	archive *Archive
	disk    int
	sum     hash.Hash
	at      int  // the piece that is next
	within  bool // a piece is being read
	err     error
}

func (r *reading) Read(p []byte) (int, error) {
	for r.err == nil {
		if !r.within {
			r.err = r.next()
			continue
		}
		n, err := r.archive.tar.Read(p)
		r.sum.Write(p[:n])
		if r.archive.tell != nil {
			r.archive.tell(n)
		}
		switch {
		case errors.Is(err, io.EOF):
			r.within = false
		case err != nil:
			r.err = &FormatError{What: "the exported instance is not whole", Err: err}
		}
		if n > 0 {
			return n, nil
		}
	}
	return 0, r.err
}

// next begins the next piece; io.EOF: there is none, and all of it was what was written.
func (r *reading) next() error {
	h, err := r.archive.tar.Next()
	if err != nil {
		return &FormatError{What: fmt.Sprintf("the exported instance is not whole: it ends within %s", diskName(r.disk)), Err: unexpected(err)}
	}
	switch {
	case h.Typeflag != tar.TypeReg:
	case h.Name == pieceName(r.disk, r.at):
		r.at++
		r.within = true
		return nil
	case h.Name == digestName(r.disk) && h.Size < 1<<10:
		data, err := io.ReadAll(r.archive.tar)
		if err != nil {
			return &FormatError{What: "the exported instance is not whole", Err: err}
		}
		if want, _, _ := strings.Cut(string(data), " "); want != digestText(r.sum) {
			return &FormatError{What: fmt.Sprintf("%s is not as it was written: its SHA-256 is %s, and not %s", diskName(r.disk), digestText(r.sum), want)}
		}
		return io.EOF
	}
	return &FormatError{What: fmt.Sprintf("the exported instance is not whole: %q follows in %s", h.Name, diskName(r.disk))}
}
