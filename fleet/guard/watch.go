// Package guard halts VMs whose sled's lease is over. It needs no network, no agent and no
// node: the node writes down, before a VM under a lease is started and whenever a renewal has
// succeeded, until when they may run, and the guard reads that file and the machine's
// monotonic clock. A guard that is restarted finds both as they were.
package guard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/sledctl/sledctl/fleet/node"
)

// Lease is what the node has written down. It lies where a reboot of the sled removes it, as
// the clock begins again with each.
type Lease struct {
	Asked int64         `json:"asked"` // when the last renewal that succeeded was asked for
	Fence time.Duration `json:"fence"` // how long VMs may run without a later one
	VMs   []string      `json:"vms"`   // Propolis ids
}

// Over reports whether the VMs may not run any longer.
func (l Lease) Over(now int64) bool { return len(l.VMs) > 0 && now-l.Asked > int64(l.Fence) }

// Read reads what the node has written down. There may be nothing.
func Read(file string) (l Lease, there bool, err error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return l, false, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &l)
	}
	if err == nil && (l.Fence <= 0 || l.Asked <= 0) {
		err = errors.New("want asked and fence above zero")
	}
	if err != nil {
		return Lease{}, false, fmt.Errorf("read the lease in %s: %w", file, err)
	}
	return l, true, nil
}

// Writer is the node's side: it writes the file.
type Writer struct {
	File  string
	Fence time.Duration
	Now   func() int64

	mu    sync.Mutex
	lease Lease
	read  bool
}

var _ node.Guard = (*Writer)(nil)

// Clock is the guard's clock.
func (w *Writer) Clock() int64 { return w.Now() }

// Watch has the guard halt a run, too. It refuses where the lease is over or was never renewed,
// and where the claim was read too long ago: it may be revoked by now.
func (w *Writer) Watch(_ context.Context, r node.Run, read int64) (time.Duration, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.load(); err != nil {
		return 0, err
	}
	next := w.lease
	if !slices.Contains(next.VMs, r.PropolisID) {
		next.VMs = append(slices.Clone(next.VMs), r.PropolisID)
	}
	now := w.Now()
	left := w.Fence - time.Duration(now-min(read, next.Asked))
	if next.Asked == 0 || left <= 0 {
		return 0, errors.New("the lease of the sled is over: no VM is started under it")
	}
	return left, w.write(next)
}

// Renewed writes down that a renewal has succeeded which was asked for then. One that comes
// when the lease is over already saves what is not halted yet: package fence has it in its model.
func (w *Writer) Renewed(_ context.Context, asked int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.load(); err != nil {
		return err
	}
	next := w.lease
	next.Asked, next.Fence = max(next.Asked, asked), w.Fence
	return w.write(next)
}

// load reads what an earlier node has written down.
func (w *Writer) load() error {
	if w.read {
		return nil
	}
	l, _, err := Read(w.File)
	if err != nil {
		return err
	}
	w.lease, w.read = l, true
	return nil
}

func (w *Writer) write(l Lease) error {
	data, err := json.Marshal(l)
	if err != nil {
		return err
	}
	if err := replace(w.File, data); err != nil {
		return err
	}
	w.lease = l
	return nil
}

func replace(name string, data []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name()) // fails once it is renamed
	_, err = temp.Write(data)
	if err = errors.Join(err, temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), name)
}
