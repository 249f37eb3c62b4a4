package world

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/sledctl/sledctl/host"
)

func (d *directory) update(ctx context.Context, fn func(*State, *Touched) error) error {
	d.writing.Lock()
	defer d.writing.Unlock()
	l, err := d.lock.Lock(ctx, "/"+LockFile, host.LockExclusive)
	if err != nil {
		return err
	}
	defer func() { _ = l.Unlock() }()

	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.refresh(); err != nil {
		return err
	}
	failed := fn(d.state, nil)
	if err := d.keep(); err != nil {
		d.forget()
		return fmt.Errorf("store the simulated sled: %w", err)
	}
	return failed
}

// keep stores the state if it has changed.
func (d *directory) keep() error {
	version := d.state.Version
	d.state.Version = 0
	plain, err := encode(d.state)
	d.state.Version = version
	if err != nil || bytes.Equal(plain, d.plain) {
		return err
	}
	d.state.Version++
	if err := replace(filepath.Join(d.dir, stateFile), versioned(plain, d.state.Version)); err != nil {
		return err
	}
	d.plain = plain
	d.ring()
	return d.reopen()
}

func (d *directory) view(_ context.Context, fn func(*State) error) error {
	d.mu.RLock()
	current, err := d.current()
	if err == nil && current {
		defer d.mu.RUnlock()
		return fn(d.state)
	}
	d.mu.RUnlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.refresh(); err != nil {
		return err
	}
	return fn(d.state)
}

// current tells whether the state in memory is the one on disk.
func (d *directory) current() (bool, error) {
	if d.file == nil {
		return false, nil
	}
	return Stands(d.file)
}

// Stands says whether an open file has its name still. As long as it is open, no
// other file gets its inode.
func Stands(f *os.File) (bool, error) {
	now, err := os.Stat(f.Name())
	if err != nil {
		return false, err
	}
	then, err := f.Stat()
	return err == nil && os.SameFile(now, then), err
}

// refresh reads the state if another process has changed it.
func (d *directory) refresh() error {
	if current, err := d.current(); err != nil || current {
		return err
	}
	d.forget()
	if err := d.reopen(); err != nil {
		return err
	}
	data, err := io.ReadAll(d.file)
	if err == nil {
		d.state, err = decode(data)
	}
	if err == nil {
		d.plain = versioned(data, 0)
		d.ring()
		return nil
	}
	d.forget()
	return fmt.Errorf("read %s: %w", stateFile, err)
}

func (d *directory) forget() {
	if d.file != nil {
		_ = d.file.Close()
	}
	d.state, d.plain, d.file = nil, nil, nil
}

func (d *directory) reopen() error {
	file, err := os.Open(filepath.Join(d.dir, stateFile))
	if err != nil {
		d.forget()
		return err
	}
	if d.file != nil {
		_ = d.file.Close()
	}
	d.file = file
	return nil
}

// unversioned is how an encoded state without version opens its member; no
// member before it can hold these bytes.
const unversioned = `"version":`

// versioned is an encoded state with another version.
func versioned(data []byte, version uint64) []byte {
	head, tail, ok := bytes.Cut(data, []byte(unversioned))
	if !ok {
		return data
	}
	tail = bytes.TrimLeft(tail, "0123456789")
	out := make([]byte, 0, len(data)+20)
	out = append(append(out, head...), unversioned...)
	return append(strconv.AppendUint(out, version, 10), tail...)
}

func encode(s *State) ([]byte, error) { return json.Marshal(s) }

// decode refuses a state of a newer format, and one with members that this
// program would lose.
func decode(data []byte) (*State, error) {
	in := json.NewDecoder(bytes.NewReader(data))
	in.DisallowUnknownFields()
	s := &State{
		Counters: map[string]uint64{}, Datasets: map[string]*Dataset{}, Stacks: map[string]*Stack{}, Services: map[string]*Repository{},
	}
	err := in.Decode(s)
	if rest := bytes.TrimSpace(data[in.InputOffset():]); err == nil && len(rest) > 0 {
		err = fmt.Errorf("%d bytes stand behind the state", len(rest))
	}
	if err == nil && s.Format <= Format {
		return s, nil
	}
	var head struct{ Format int }
	if herr := json.Unmarshal(data, &head); herr == nil && head.Format > Format {
		err = fmt.Errorf("%w: its format is %d, this one knows up to %d", ErrNewer, head.Format, Format)
	}
	return nil, err
}

// replace writes a file by rename, for the holder of the sled's lock: what a killed
// holder leaves, the next overwrites. It is not flushed: a simulated sled
// need not outlive a power cut of the machine that it lives on.
func replace(name string, data []byte) error {
	temp := name + ".new"
	if err := os.WriteFile(temp, data, 0o644); err != nil {
		return err
	}
	return os.Rename(temp, name)
}
