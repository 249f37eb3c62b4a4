package steptest

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"sync/atomic"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/peer/exchange/exchangetest"
)

// nobodysWords is a text that no program and no server says.
const nobodysWords = "the moon is in the wrong house"

// failing is a host on which the first change of one sort fails: the first command, the
// first request, or the first change of a file. All that only looks succeeds.
type failing struct {
	host.Host
	sort   host.LineKind
	failed atomic.Bool
}

// first reports whether this change is the one that fails.
func (f *failing) first(sort host.LineKind) bool {
	return sort == f.sort && f.failed.CompareAndSwap(false, true)
}

// Run runs a command, or fails.
func (f *failing) Run(ctx context.Context, c host.Command) (host.Result, error) {
	if !c.ReadOnly && f.first(host.LineRun) {
		return host.Result{Exit: 1, Stderr: []byte(nobodysWords + "\n")}, nil
	}
	return f.Host.Run(ctx, c)
}

// Dial connects to the server, with somebody in between who refuses a request.
func (f *failing) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	server, err := f.Host.Dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return exchangetest.Connect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer server.Close()
		if r.Method != http.MethodGet && f.first(host.LineRequest) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"request_id":"1","message":"` + nobodysWords + `"}`))
			return
		}
		pass(w, r, server)
	})), nil
}

// pass has the server answer. One that says nothing is hung up on, as its client would.
func pass(w http.ResponseWriter, r *http.Request, server net.Conn) {
	stop := context.AfterFunc(r.Context(), func() { _ = server.Close() })
	defer stop()
	if r.Write(server) != nil {
		panic(http.ErrAbortHandler)
	}
	reply, err := http.ReadResponse(bufio.NewReader(server), r)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer reply.Body.Close()
	for name, values := range reply.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(reply.StatusCode)
	if _, err := io.Copy(w, reply.Body); err != nil {
		panic(http.ErrAbortHandler)
	}
}

// Files is the sled's file system, where the first change may fail.
func (f *failing) Files() host.Files { return failingFiles{f.Host.Files(), f} }

type failingFiles struct {
	host.Files
	host *failing
}

func (f failingFiles) change(op, name string, do func() error) error {
	if f.host.first(host.LineFile) {
		return &fs.PathError{Op: op, Path: name, Err: errors.New(nobodysWords)}
	}
	return do()
}

// Open opens a file. To open one for writing is a change.
func (f failingFiles) Open(name string, flag int, perm fs.FileMode) (host.File, error) {
	writes := flag&(os.O_WRONLY|os.O_RDWR|os.O_CREATE|os.O_TRUNC) != 0
	if writes && f.host.first(host.LineFile) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New(nobodysWords)}
	}
	return f.Files.Open(name, flag, perm)
}

// Append is a change.
func (f failingFiles) Append(name string, data []byte) error {
	return f.change("append", name, func() error { return f.Files.Append(name, data) })
}

// Rename is a change.
func (f failingFiles) Rename(from, to string) error {
	return f.change("rename", from, func() error { return f.Files.Rename(from, to) })
}

// Remove is a change.
func (f failingFiles) Remove(name string) error {
	return f.change("remove", name, func() error { return f.Files.Remove(name) })
}

// Mkdir is a change.
func (f failingFiles) Mkdir(name string, perm fs.FileMode) error {
	return f.change("mkdir", name, func() error { return f.Files.Mkdir(name, perm) })
}

// Chmod is a change.
func (f failingFiles) Chmod(name string, mode fs.FileMode) error {
	return f.change("chmod", name, func() error { return f.Files.Chmod(name, mode) })
}

// In is such a view, too.
func (f failingFiles) In(dir string) (host.Files, error) {
	in, err := f.Files.In(dir)
	if err != nil {
		return nil, err
	}
	return failingFiles{in, f.host}, nil
}
