package napi

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net/http"
	"strings"

	"github.com/sledctl/sledctl/host"
)

// LockFile is a file that forbids every write as long as it is there; empty: none.
// It is looked at before each one.
type LockFile string

// Check fails with a *WritesDisabledError if the file is there, or if that cannot be
// told.
func (b LockFile) Check(files host.Files) error {
	if b == "" {
		return nil
	}
	data, err := host.ReadFile(files, string(b))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return &WritesDisabledError{File: string(b), Reason: err.Error()}
	}
	line, _, _ := bytes.Cut(bytes.TrimSpace(data), []byte("\n"))
	return &WritesDisabledError{File: string(b), Reason: strings.TrimSpace(string(line))}
}

// Guard is asked right before each write whether it may be made.
type Guard interface {
	Check(context.Context, host.Files) error
}

// UpdateNIC changes a record, if it is still of this version: ErrChanged.
type UpdateNIC struct {
	Server   Server
	MAC      string
	Etag     string // empty: the server has none
	Change   Change
	LockFile LockFile
	Guard    Guard // nil: none but the lock file
}

// DeleteNIC removes a record, if it is still of this version: ErrChanged. NAPI
// frees its address, too.
type DeleteNIC struct {
	Server   Server
	MAC      string
	Etag     string // empty: the server has none
	LockFile LockFile
	Guard    Guard // nil: none but the lock file
}

// Verb names the step.
func (UpdateNIC) Verb() string { return "napi.update" }

// Verb names the step.
func (DeleteNIC) Verb() string { return "napi.delete" }

// Undo is nil: a change says what is so on the sled.
func (UpdateNIC) Undo() any { return nil }

// Undo is nil: a record cannot be made as it was.
func (DeleteNIC) Undo() any { return nil }

// Explain is the request.
func (s UpdateNIC) Explain() []host.Line {
	body := s.Change.body()
	return []host.Line{host.RequestLine(http.MethodPut, s.Server.url(pathNIC(s.MAC)), headers(s.Etag, body), body)}
}

// Explain is the request.
func (s DeleteNIC) Explain() []host.Line {
	return []host.Line{host.RequestLine(http.MethodDelete, s.Server.url(pathNIC(s.MAC)), headers(s.Etag, nil), nil)}
}

// Do asks for it.
func (s UpdateNIC) Do(ctx context.Context, h host.Host) error {
	if err := allowed(ctx, h.Files(), s.LockFile, s.Guard); err != nil {
		return err
	}
	_, err := Client{Host: h, Server: s.Server}.Update(ctx, s.MAC, s.Etag, s.Change)
	return err
}

// Do asks for it.
func (s DeleteNIC) Do(ctx context.Context, h host.Host) error {
	if err := allowed(ctx, h.Files(), s.LockFile, s.Guard); err != nil {
		return err
	}
	return Client{Host: h, Server: s.Server}.Delete(ctx, s.MAC, s.Etag)
}

// allowed asks who may forbid a write.
func allowed(ctx context.Context, files host.Files, b LockFile, g Guard) error {
	if err := b.Check(files); err != nil || g == nil {
		return err
	}
	return g.Check(ctx, files)
}
