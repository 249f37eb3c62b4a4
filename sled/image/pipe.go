package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"strings"

	"github.com/sledctl/sledctl/image"
)

// pipe is what comes from one: what it holds is known when it has ended.
type pipe struct {
	in   io.Reader // all that is read from it is summed up
	hash hash.Hash
	want string // the digest that it must have; empty: any
}

// Pipe recognises what comes from a pipe: a raw disk of so many bytes, packed or not. Its digest is
// compared with what it must be, if that is not empty, when all was written. Nothing is kept of a pipe before:
// that would need as much room again, and to read a packed disk twice. Errors: *image.Refused; those of reading.
func Pipe(ctx context.Context, in io.Reader, size int64, digest string) (Source, error) {
	p := &pipe{hash: sha256.New(), want: strings.ToLower(digest)}
	p.in = io.TeeReader(Arriving(ctx, in), p.hash)
	s := Source{File: "standard input", SHA256: p.want, pipe: p}
	disk, err := image.Stream(p.in, size)
	s.disk = disk
	return s, err
}

// check reads what is left of the pipe, and compares the digest.
func (p *pipe) check() error {
	if _, err := io.Copy(io.Discard, p.in); err != nil {
		return err
	}
	if is := p.sum(); p.want != "" && is != p.want {
		return &DigestError{File: "standard input", Is: is, Want: p.want}
	}
	return nil
}

func (p *pipe) sum() string { return hex.EncodeToString(p.hash.Sum(nil)) }

// Arriving reads until the context ends, also where nothing arrives: then the read that waits is
// left to itself, and to the end of the process.
func Arriving(ctx context.Context, in io.Reader) io.Reader { return &arriving{ctx: ctx, in: in} }

type arriving struct {
	ctx  context.Context
	in   io.Reader
	room []byte
}

func (a *arriving) Read(p []byte) (int, error) {
	if a.room == nil {
		a.room = make([]byte, 64<<10)
	}
	type read struct {
		n   int
		err error
	}
	room, done := a.room[:min(len(p), len(a.room))], make(chan read, 1)
	go func() {
		n, err := a.in.Read(room)
		done <- read{n, err}
	}()
	select {
	case r := <-done:
		copy(p, room[:r.n])
		return r.n, r.err
	case <-a.ctx.Done():
		a.room = nil
		return 0, context.Cause(a.ctx)
	}
}
