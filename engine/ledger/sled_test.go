package ledger

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"
	"testing"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/hosttest"
)

// sled is the file systems of a machine: a RAM disk with the lock, and disks
// whose datasets are mounted or not. All of them can lose their power.
type sled struct {
	ram     *hosttest.PowerCutFiles
	disks   []*disk
	witness *memoryWitness
	note    func() // of a change of the RAM disk
}

// disk is one file system.
type disk struct {
	at      Location
	mount   string // where it is mounted when it is
	files   *hosttest.PowerCutFiles
	mounted bool
	device  uint64
	inode   uint64 // of all its files; 0: each has its own

	mu     sync.Mutex
	budget int          // changes that it still makes before fault answers; -1: any number
	fault  func() error // decides the result of the change after those
	note   func(op string)
	told   []byte // a description of files, if it has been made
}

// errKilled is what a process that was killed would no longer see.
var errKilled = errors.New("killed")

// tb is what testing and rapid have in common.
type tb interface {
	Helper()
	Fatal(args ...any)
}

// newSled has n disks with mounted, empty datasets, and, if plain, one that is
// a plain directory: then it is the first.
func newSled(t tb, n int, plain bool) *sled {
	t.Helper()
	s := &sled{ram: hosttest.PowerCuts(), witness: &memoryWitness{}}
	try(t, host.MkdirAll(s.ram, "/run", 0o755))
	if plain {
		s.disks = append(s.disks, newDisk(Location{Directory: "/var/sledctl"}, "/var", 50))
	}
	for i := range n {
		at := OnPool(fmt.Sprintf("pool%d", i))
		s.disks = append(s.disks, newDisk(at, path.Dir(at.Directory), uint64(100+i)))
	}
	for _, d := range s.disks {
		try(t, host.MkdirAll(s.ram, d.mount, 0o755))
	}
	s.ram.Settle()
	return s
}

func newDisk(at Location, mount string, device uint64) *disk {
	d := &disk{at: at, mount: mount, device: device, mounted: true, budget: -1}
	d.format()
	return d
}

// format makes the disk blank.
func (d *disk) format() { d.files = hosttest.PowerCuts() }

func (s *sled) places() Places {
	p := Places{Lock: "/run/ledger.lock", Witness: s.witness}
	for _, d := range s.disks {
		p.Locations = append(p.Locations, d.at)
	}
	return p
}

func try(t tb, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// powerCut forgets what was not flushed, as choose decides, and all locks.
func (s *sled) powerCut(choose func(int) int) {
	for _, d := range s.disks {
		d.files = d.files.Cut(choose)
		d.working()
	}
	fresh := hosttest.PowerCuts()
	for _, d := range s.disks {
		_ = host.MkdirAll(fresh, d.mount, 0o755)
	}
	_ = host.MkdirAll(fresh, "/run", 0o755)
	s.ram = fresh
}

// revive is what a killed process leaves: all that it did, and no lock.
func (s *sled) revive() {
	for _, d := range s.disks {
		d.working()
	}
}

// forgotten is a sled that has been rebooted since: this boot has seen nothing.
func (s *sled) forgotten() *sled {
	_ = s.ram.Remove("/run/" + stampName)
	return s
}

// on is a name on the disk as it is seen by the sled.
func (d *disk) on(name string) string { return path.Join(d.at.Directory, name) }

// content is the disk's ledger file.
func (s *sled) content(t testing.TB, d *disk) []byte {
	t.Helper()
	data, err := host.ReadFile(s, d.at.File())
	try(t, err)
	return data
}

// put replaces a file of the disk, behind everyone's back.
func (s *sled) put(t testing.TB, name string, data []byte) {
	t.Helper()
	try(t, host.WriteFile(s, name, data, 0o644))
}

// names is the files in the disk's directory.
func (s *sled) names(t testing.TB, d *disk) []string {
	t.Helper()
	infos, err := s.ReadDir(d.at.Directory)
	try(t, err)
	var out []string
	for _, info := range infos {
		out = append(out, info.Name)
	}
	return out
}

// memoryWitness keeps a mark, and never an older one.
type memoryWitness struct {
	mu   sync.Mutex
	mark *EpochTag
	err  error
	note func()
	// forgets makes it none at all.
	forgets bool
	// others are disks that were put in.
	others []WitnessTag
	asked  int
}

func (w *memoryWitness) Read(context.Context) ([]WitnessTag, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked++
	if w.err != nil || w.forgets {
		return nil, w.err
	}
	said := slices.Clone(w.others)
	if w.mark != nil {
		said = append(said, WitnessTag{"oxp", *w.mark, true})
	}
	return said, nil
}

func (w *memoryWitness) Write(_ context.Context, m EpochTag, givenUp ...EpochTag) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.note != nil {
		w.note()
	}
	switch {
	case w.err != nil || w.forgets:
		return w.err
	case w.mark == nil:
		w.mark = &m
		return nil
	case w.mark.N == m.N && *w.mark != m:
		return fmt.Errorf("epoch %d is witnessed as %s and as %s", m.N, w.mark.Epoch, m.Epoch)
	}
	takes, err := m.Over(*w.mark, givenUp...)
	if takes {
		w.mark = &m
	}
	return err
}

// created is a sled whose ledger lies on all its disks.
func created(t testing.TB, n int, plain bool) *sled {
	t.Helper()
	s := newSled(t, n, plain)
	try(t, Create(context.Background(), s, s.places(), Creation{Who: "test"}))
	return s
}

func (s *sled) open(t testing.TB) *Ledger {
	t.Helper()
	l, _, err := Open(context.Background(), s, s.places())
	try(t, err)
	return l
}

// set appends facts and insists.
func set(t testing.TB, l *Ledger, facts ...Fact) View {
	t.Helper()
	v, err := l.Update(context.Background(), always(facts...))
	try(t, err)
	return v
}

func always(facts ...Fact) func(View) ([]Fact, error) {
	return func(View) ([]Fact, error) { return facts, nil }
}

// all is what a view holds.
func all(v View) map[string]string {
	out := map[string]string{}
	for key, value := range v.All("") {
		out[key] = string(value)
	}
	return out
}
