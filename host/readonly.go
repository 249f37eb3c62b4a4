package host

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"sync"
)

// ReadOnly is h for a run that must change nothing: commands that are not
// ReadOnly, changes of files, exclusive locks and requests other than GET are
// refused with ErrReadOnly. Shared locks and flushing are allowed: readers need
// them.
func ReadOnly(h Host) Host { return readOnly{h} }

type readOnly struct{ host Host }

func (r readOnly) forAction(id string) Host { return readOnly{ForAction(r.host, id)} }

func (r readOnly) Run(ctx context.Context, c Command) (Result, error) {
	if !c.ReadOnly {
		return Result{}, fmt.Errorf("%s: %w", c.Program, ErrReadOnly)
	}
	return r.host.Run(ctx, c)
}

func (r readOnly) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := r.host.Dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := &readOnlyConn{Conn: conn}
	c.requests = httpStream{began: c.asked, ended: func() {}}
	return c, nil
}

func (r readOnly) DeviceVersion(ctx context.Context, d Device) (int, error) {
	return r.host.DeviceVersion(ctx, d)
}

func (r readOnly) Files() Files { return readOnlyFiles{r.host.Files()} }

// readOnlyConn lets GET requests pass. A request is refused before the end of
// its head has left us, so no server acts on it.
type readOnlyConn struct {
	net.Conn
	mu       sync.Mutex
	requests httpStream
	refused  string
}

func (c *readOnlyConn) asked(h httpHead) bool {
	if !h.safe() && c.refused == "" {
		c.refused = h.first
	}
	return h.requestHasBody()
}

func (c *readOnlyConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests.feed(p)
	if c.refused == "" && c.requests.state == opaque {
		c.refused = "what is not HTTP"
	}
	if c.refused != "" {
		return 0, c.refusal()
	}
	return c.Conn.Write(p)
}

// Read fails with the refusal: an HTTP client closes the connection of a write that was
// refused, and may see first that it is closed.
func (c *readOnlyConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err == nil {
		return n, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refused != "" {
		err = c.refusal()
	}
	return n, err
}

func (c *readOnlyConn) refusal() error { return fmt.Errorf("%s: %w", c.refused, ErrReadOnly) }

// readOnlyFiles refuses changes.
type readOnlyFiles struct{ files Files }

func refuse(op, name string) error { return &fs.PathError{Op: op, Path: name, Err: ErrReadOnly} }

func (f readOnlyFiles) Open(name string, flag int, perm fs.FileMode) (File, error) {
	if flag&(accessMode|os.O_CREATE|os.O_TRUNC) != os.O_RDONLY {
		return nil, refuse("open", name)
	}
	return f.files.Open(name, flag, perm)
}

func (f readOnlyFiles) openSecret(name string, _ int, _ Line) (File, error) {
	return nil, refuse("open", name)
}

func (f readOnlyFiles) Append(name string, _ []byte) error     { return refuse("append", name) }
func (f readOnlyFiles) Rename(from, _ string) error            { return refuse("rename", from) }
func (f readOnlyFiles) Remove(name string) error               { return refuse("remove", name) }
func (f readOnlyFiles) Mkdir(name string, _ fs.FileMode) error { return refuse("mkdir", name) }
func (f readOnlyFiles) Chmod(name string, _ fs.FileMode) error { return refuse("chmod", name) }
func (f readOnlyFiles) ReadDir(name string) ([]Info, error)    { return f.files.ReadDir(name) }
func (f readOnlyFiles) Stat(name string) (Info, error)         { return f.files.Stat(name) }
func (f readOnlyFiles) Sync(name string) error                 { return f.files.Sync(name) }
func (f readOnlyFiles) SyncDir(name string) error              { return f.files.SyncDir(name) }

func (f readOnlyFiles) Lock(ctx context.Context, name string, mode LockMode) (Lock, error) {
	if mode.Exclusive() {
		return nil, refuse("lock", name)
	}
	return f.files.Lock(ctx, name, mode)
}

func (f readOnlyFiles) In(dir string) (Files, error) {
	in, err := f.files.In(dir)
	if err != nil {
		return nil, err
	}
	return readOnlyFiles{in}, nil
}
