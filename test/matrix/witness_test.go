package matrix

import (
	"context"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/sledtest"
)

// witnessing sees that what changes the host is written down, and flushed, before.
type witnessing struct {
	host.Host
	files *flushes
	scene *scene
}

func (s *scene) witness(h host.Host) *witnessing {
	w := &witnessing{Host: h, scene: s}
	w.files = newFlushes(h.Files())
	for _, name := range s.Copies() {
		if info, err := h.Files().Stat(name); err == nil {
			w.files.sizes[name] = info.Size
		}
	}
	return w
}

// Files remembers how much of the ledger was flushed.
func (w *witnessing) Files() host.Files { return w.files }

// law fails the test if a command changed the host that nothing had announced.
func (w *witnessing) law(t testing.TB, at string) {
	t.Helper()
	w.files.mu.Lock()
	defer w.files.mu.Unlock()
	for _, line := range w.files.unannounced {
		t.Errorf("%s: no intent was flushed before %s", at, line)
	}
}

// needs fails the test if the verb ran a program that needs privileges which its rights do
// not name.
func (w *witnessing) needs(t testing.TB) {
	t.Helper()
	w.files.mu.Lock()
	defer w.files.mu.Unlock()
	line := w.scene.line
	verb := sledtest.Rights(line)
	for _, c := range w.files.ran {
		program := c.Argv()[0]
		if !slices.Contains(verb.Programs(true), program) {
			t.Errorf("sledctl %s runs %s; the rights of %q name %v", line, program, verb.Name, verb.Programs(true))
		}
	}
}

// announced says whether an intent is open in what is flushed.
func (w *witnessing) announced() bool {
	for name, size := range w.files.flushed() {
		data, err := host.ReadFile(w.Host.Files(), name)
		if err != nil {
			continue
		}
		for key := range sledtest.FactsOf(w.scene.T, data[:min(int(size), len(data))]) {
			if strings.HasPrefix(key, "intent/") {
				return true
			}
		}
	}
	return len(openBeforeLedger(w.scene.Operator)) > 0
}

// Run is also the law that what changes something was announced. The witness of
// the ledger itself is no business of an intent's.
func (w *witnessing) Run(ctx context.Context, c host.Command) (host.Result, error) {
	line := strings.Join(append([]string{c.Program}, c.Args...), " ")
	if !c.ReadOnly || c.Zone != "" { // who enters a zone needs the same, to look
		w.files.mu.Lock()
		w.files.ran = append(w.files.ran, c)
		w.files.mu.Unlock()
	}
	if !c.ReadOnly && !strings.Contains(line, "sledctl:ledger=") && !w.announced() {
		w.files.mu.Lock()
		w.files.unannounced = append(w.files.unannounced, line)
		w.files.mu.Unlock()
	}
	return w.Host.Run(ctx, c)
}

// flushes are files that remember how much of each was flushed.
type flushes struct {
	host.Files
	*flushing
}

type flushing struct {
	mu          sync.Mutex
	sizes       map[string]int64 // by name
	unannounced []string
	ran         []host.Command // what changes something, and what enters a zone
}

func newFlushes(files host.Files) *flushes {
	return &flushes{files, &flushing{sizes: map[string]int64{}}}
}

// flushed are the copies of the ledger, with how much of them is certain.
func (f *flushing) flushed() map[string]int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := map[string]int64{}
	for name, size := range f.sizes {
		if strings.HasSuffix(name, "/ledger.jsonl") {
			all[name] = size
		}
	}
	return all
}

func (f *flushes) certain(name string, size int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sizes[name] = size
}

func (f *flushes) Sync(name string) error {
	info, err := f.Files.Stat(name)
	if err == nil {
		err = f.Files.Sync(name)
	}
	if err == nil {
		f.certain(name, info.Size)
	}
	return err
}

func (f *flushes) Rename(from, to string) error {
	err := f.Files.Rename(from, to)
	if err == nil {
		f.mu.Lock()
		f.sizes[to] = f.sizes[from]
		f.mu.Unlock()
	}
	return err
}

// Open remembers a file that is seen for the first time as it is: its pool was not imported before.
func (f *flushes) Open(name string, flag int, perm fs.FileMode) (host.File, error) {
	size := int64(0)
	if info, err := f.Files.Stat(name); err == nil {
		size = info.Size
	}
	file, err := f.Files.Open(name, flag, perm)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	if _, known := f.sizes[name]; !known {
		f.sizes[name] = size
	}
	f.mu.Unlock()
	return &flushingFile{file, f, name}, nil
}

type flushingFile struct {
	host.File
	files *flushes
	name  string
}

func (f *flushingFile) Sync() error {
	info, err := f.File.Stat()
	if err == nil {
		err = f.File.Sync()
	}
	if err == nil {
		f.files.certain(f.name, info.Size)
	}
	return err
}
