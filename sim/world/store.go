package world

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"

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
	touched := newTouched()
	failed := fn(d.state, touched)
	if err := d.keep(touched); err != nil {
		d.forget()
		return fmt.Errorf("store the simulated sled: %w", err)
	}
	return failed
}

// keep stores what has changed.
func (d *directory) keep(touched *Touched) error {
	out := &writer{log: d.log}
	if err := d.entries.note(d.state, touched, out); err != nil || len(out.new) == 0 {
		return err
	}
	d.state.Version++
	defer d.ring()
	if d.log.old != nil || d.log.torn() {
		return d.rewrite(out.new)
	}
	if !d.tidy { // a process that was killed may have left one
		if err := os.Remove(d.name() + fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		d.tidy = true
	}
	if err := d.log.append(out.commit(d.state.Version)); err != nil {
		return err
	}
	if _, _, err := d.log.read(); err != nil || !d.log.wasteful() {
		return err
	}
	return d.rewrite(nil)
}

// rewrite stores the state in a new file, which has what is stored and what is new.
func (d *directory) rewrite(changed map[string][]byte) error {
	whole := newFile()
	for _, key := range d.log.keys() {
		if _, again := changed[key]; again {
			continue
		}
		data, err := d.log.value(key)
		if err != nil {
			return err
		}
		whole.line(key, data)
	}
	for _, key := range slices.Sorted(maps.Keys(changed)) {
		if changed[key] != nil {
			whole.line(key, changed[key])
		}
	}
	if err := replace(d.name(), whole.commit(d.state.Version)); err != nil {
		return err
	}
	d.log.close()
	var err error
	if d.log, err = openLog(d.name()); err != nil {
		return err
	}
	_, _, err = d.log.read()
	return err
}

func (d *directory) name() string { return filepath.Join(d.dir, stateFile) }

func (d *directory) view(_ context.Context, fn func(*State) error) error {
	d.mu.RLock()
	if current, err := d.current(); err == nil && current {
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
	if d.log == nil {
		return false, nil
	}
	current, _, err := d.log.current()
	return current, err
}

// refresh reads what other processes have changed.
func (d *directory) refresh() error {
	if d.log != nil {
		current, same, err := d.log.current()
		if err != nil || current {
			return err
		}
		if !same {
			d.forget()
		}
	}
	if d.log == nil {
		log, err := openLog(d.name())
		if err != nil {
			return err
		}
		d.log, d.state, d.entries = log, emptyState(), newEntries()
	}
	if err := d.follow(); err != nil {
		d.forget()
		return fmt.Errorf("read %s: %w", stateFile, err)
	}
	return nil
}

// follow brings the state up to date with its file.
func (d *directory) follow() error {
	read, version, err := d.log.read()
	switch {
	case err != nil:
		return err
	case d.log.end == 0:
		return io.ErrUnexpectedEOF // nothing was ever committed
	case read == nil:
		return nil
	}
	if d.log.old != nil {
		if d.state, err = decodeOld([]byte(read[0].text)); err != nil {
			return err
		}
		all := &writer{}
		err = d.entries.note(d.state, nil, all)
		d.log.old = all.new
	} else if err = d.entries.take(d.state, read); err == nil {
		d.state.Version = version
	}
	d.ring()
	return err
}

func (d *directory) forget() {
	d.log.close()
	d.log, d.state, d.entries = nil, nil, nil
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

func emptyState() *State {
	return &State{
		undecoded: &undecoded{text: map[*Repository]string{}, shapes: shapes{}},
		datasets:  &datasetIndex{},
		Counters:  map[string]uint64{}, Datasets: map[string]*Dataset{}, Stacks: map[string]*Stack{}, Services: map[string]*Repository{},
	}
}

// encode is the file of a state that is not stored yet.
func encode(s *State) ([]byte, error) {
	out := newFile()
	err := newEntries().note(s, nil, out)
	return out.commit(s.Version), err
}

// decode reads an entry into what a pointer leads to, which must be zero.
func (all shapes) decode(text string, into any) error {
	if all.read(text, into) {
		return nil
	}
	reflect.ValueOf(into).Elem().SetZero()
	return decodeInto([]byte(text), into)
}

// decodeInto reads JSON, and refuses it if this program would lose something of it.
func decodeInto(data []byte, into any) error {
	in := json.NewDecoder(bytes.NewReader(data))
	in.DisallowUnknownFields()
	if err := in.Decode(into); err != nil {
		return err
	}
	if rest := bytes.TrimSpace(data[in.InputOffset():]); len(rest) > 0 {
		return fmt.Errorf("%d bytes stand behind the state", len(rest))
	}
	return nil
}

// decodeOld reads a file of format 1.
func decodeOld(data []byte) (*State, error) {
	s := emptyState()
	err := decodeInto(data, s)
	s.Format = Format
	return s, err
}

// fresh is what is behind the name of a file that is about to replace another.
const fresh = ".new"

// replace writes a file by rename, for the holder of the sled's lock: what a killed
// holder leaves, the next overwrites. It is not flushed: a simulated sled
// need not outlive a power cut of the machine that it lives on.
func replace(name string, data []byte) error {
	temp := name + fresh
	if err := os.WriteFile(temp, data, 0o644); err != nil {
		return err
	}
	return os.Rename(temp, name)
}
