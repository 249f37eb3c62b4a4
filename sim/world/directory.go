package world

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sledctl/sledctl/host"
)

// What lies in the directory of a sled:
//
//	world.json  the state, replaced by rename in every transaction
//	lock        whose flock(2) a transaction holds
//	locks/      one file per zone, whose flock zoneadm holds, and one per
//	            server, which it holds while it lives
//	root/       the files of the global zone
//	bin/        the stand-in commands
//	keeper      whose flock the process that lets time pass holds
const (
	stateFile  = "world.json"
	LockFile   = "lock"
	LocksDir   = "locks"
	RootDir    = "root"
	BinDir     = "bin"
	KeeperFile = "keeper"
)

// The ways in which a directory is not a sled.
var (
	ErrNoWorld = errors.New("not a simulated sled")
	ErrNewer   = errors.New("made by a newer sledctl")
)

// IsWorld reports whether a directory holds a sled.
func IsWorld(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, stateFile))
	return err == nil
}

// CreateDirectory makes a sled in a directory that is absent, empty, or was left
// by a process that was killed meanwhile. Lay writes the files of the global
// zone and returns the state. If a sled is there: fs.ErrExist.
func CreateDirectory(dir string, lay func(root host.Files) (*State, error)) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := onlyEntries(dir, stateFile, LockFile, LocksDir, RootDir, BinDir, KeeperFile); err != nil {
		return err
	}
	files := host.Dir(dir)
	l, err := files.Lock(context.Background(), "/"+LockFile, host.LockExclusive)
	if err != nil {
		return err
	}
	defer func() { _ = l.Unlock() }()
	if _, err := files.Stat("/" + stateFile); err == nil {
		return &fs.PathError{Op: "create", Path: stateFile, Err: fs.ErrExist}
	}
	for _, name := range []string{LocksDir, RootDir} {
		if err := host.MkdirAll(files, "/"+name, 0o755); err != nil {
			return err
		}
	}
	s, err := lay(host.Dir(filepath.Join(dir, RootDir)))
	if err != nil {
		return err
	}
	data, err := encode(s)
	if err != nil {
		return err
	}
	// Last, so that a directory that was made halfway is not a sled.
	return replace(filepath.Join(dir, stateFile), data)
}

// OpenDirectory opens the sled in a directory as it is.
func OpenDirectory(dir string) (*World, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := onlyEntries(dir, stateFile, LockFile, LocksDir, RootDir, BinDir, KeeperFile); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", dir, ErrNoWorld, err)
	}
	d := &directory{dir: dir, lock: host.Dir(dir)}
	if err := d.view(context.Background(), func(*State) error { return nil }); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w: %w", ErrNoWorld, err)
		}
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return &World{store: d, files: host.Dir(filepath.Join(dir, RootDir)), locks: host.Dir(dir), dir: dir}, nil
}

// onlyEntries refuses a directory with an entry that is not known. What a
// transaction leaves when it is killed is known.
func onlyEntries(dir string, known ...string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !slices.Contains(known, e.Name()) && !strings.HasPrefix(e.Name(), stateFile+".") {
			return fmt.Errorf("it holds %q", e.Name())
		}
	}
	return nil
}

// directory is a store that processes share. The state is read again only when
// its file is another one.
type directory struct {
	dir  string
	lock host.Files

	writing sync.Mutex // one transaction of this process at a time

	mu    sync.RWMutex // guards what follows; a reader waits for no other process
	state *State
	plain []byte   // the state as it was read or written, but for its version
	file  *os.File // the file that it was read from; open, so that its inode is not used again

	watching sync.Mutex
	watchers int
	changed  chan struct{}
	stop     chan struct{}
}

func (d *directory) update(ctx context.Context, fn func(*State) error) error {
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
	failed := fn(d.state)
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

// watchPause is how often the file is looked at while anyone waits.
const watchPause = 2 * time.Millisecond

func (d *directory) watch() (<-chan struct{}, func()) {
	d.watching.Lock()
	defer d.watching.Unlock()
	if d.changed == nil {
		d.changed = make(chan struct{})
	}
	if d.watchers++; d.watchers == 1 {
		d.stop = make(chan struct{})
		go d.poll(d.stop)
	}
	return d.changed, sync.OnceFunc(d.unwatch)
}

func (d *directory) unwatch() {
	d.watching.Lock()
	defer d.watching.Unlock()
	if d.watchers--; d.watchers == 0 {
		close(d.stop)
	}
}

// ring tells everybody who waits that the state has changed.
func (d *directory) ring() {
	d.watching.Lock()
	defer d.watching.Unlock()
	if d.changed != nil {
		close(d.changed)
	}
	d.changed = make(chan struct{})
}

// poll rings when another process has changed the state.
func (d *directory) poll(stop <-chan struct{}) {
	tick := time.NewTicker(watchPause)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			d.mu.RLock()
			current, _ := d.current()
			d.mu.RUnlock()
			if !current {
				d.ring()
			}
		}
	}
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

// replace writes a file by rename. It is not flushed: a simulated sled need
// not outlive a power cut of the machine that it lives on.
func replace(name string, data []byte) error {
	temp := name + "." + strconv.Itoa(os.Getpid())
	if err := os.WriteFile(temp, data, 0o644); err != nil {
		return err
	}
	return os.Rename(temp, name)
}
