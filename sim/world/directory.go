package world

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world/scf"
)

// What lies in the directory of a sled:
//
//	world.json  the state: what each transaction has changed, see log.go
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
	if err := onlyEntries(dir); err != nil {
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
	err = errors.Join(host.MkdirAll(files, "/"+LocksDir, 0o755), host.MkdirAll(files, "/"+RootDir, 0o755))
	if err != nil {
		return err
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
	if err := onlyEntries(dir); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", dir, ErrNoWorld, err)
	}
	d := &directory{dir: dir, lock: host.Dir(dir)}
	if err := d.view(context.Background(), func(*State) error { return nil }); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w: %w", ErrNoWorld, err)
		}
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return &World{store: d, files: host.Dir(filepath.Join(dir, RootDir)), locks: host.Dir(dir), dir: dir, decoded: &scf.Cache{}}, nil
}

// onlyEntries refuses a directory with an entry that is not known. What a
// transaction leaves when it is killed is known.
func onlyEntries(dir string) error {
	known := []string{stateFile, LockFile, LocksDir, RootDir, BinDir, KeeperFile}
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

// directory is a store that processes share. Of the state is read what others have
// written since, and written what a transaction has touched.
type directory struct {
	dir  string
	lock host.Files

	writing sync.Mutex // one transaction of this process at a time

	mu      sync.RWMutex // guards what follows; a reader waits for no other process
	state   *State
	entries *entries
	log     *logFile // the file that they were read from
	tidy    bool     // nothing is left of a writer that was killed

	watching sync.Mutex
	watchers int
	changed  chan struct{}
	stop     chan struct{}
}

// watchPause is how often the file is looked at while anyone waits.
const watchPause = 4 * time.Millisecond

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
