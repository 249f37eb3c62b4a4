package world

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world/crucible"
	"github.com/sledctl/sledctl/sim/world/scf"
)

// Tx is one transaction: exclusive use of the state at one time. What a tool
// has changed when it fails stays changed, as on a real sled.
type Tx struct {
	State *State
	Now   time.Time
	Files host.Files // the sled's file system; "/" is the global zone's root
	Write bool       // false in a View: the state must not be changed

	Decoded  *scf.Cache         // of repositories; nil: none is kept
	Held     func(*Link) bool   // a command of the global zone looks at it; nil: none does
	Crucible *crucible.Crucible // that the sled shares with others; nil: every volume opens
	Moving   bool               // contents of file systems have been moved (dataset_trees.go)

	touched *Touched // nil: nobody wants to know
	trees   []string // see Discard
}

// Discard has a tree removed behind the transaction, when others may have the sled again.
// It stays where this process is killed meanwhile: it lies where nobody looks.
func (tx *Tx) Discard(tree string) { tx.trees = append(tx.trees, tree) }

// sweep removes what a transaction has discarded: in a directory while others go on.
func (w *World) sweep(tx *Tx) {
	if tx == nil { // nothing was begun
		return
	}
	for _, tree := range tx.trees {
		if w.dir == "" {
			_ = RemoveTree(w.files, tree)
			continue
		}
		w.swept.Go(func() { _ = os.RemoveAll(filepath.Join(w.dir, RootDir, tree)) })
	}
}

// Close waits until what was discarded is removed.
func (w *World) Close() { w.swept.Wait() }

// NewTx is a transaction that may write, for those who hold the state
// themselves: tests, and what makes a new sled.
func NewTx(s *State, now time.Time, files host.Files) *Tx {
	if s.datasets == nil {
		s.datasets = &datasetIndex{}
	}
	return &Tx{State: s, Now: now, Files: files, Write: true}
}

// Now is the wall clock as the state stores it.
func Now() time.Time { return time.Now().UTC().Round(0) }

// The facts that a recording has about its sled.
const (
	FactKernel   = "kernel"    // uname -v
	FactBootDisk = "boot_disk" // serial number of the disk with the root pool
	FactBoard    = "board"     // serial number of the board
)

// Fact is a fact about the sled, or what is true of all simulated sleds.
func (tx *Tx) Fact(name, usual string) string { return cmp.Or(tx.State.Facts[name], usual) }

// Forgets says whether the sled's root is on a RAM disk that a boot makes again.
func (tx *Tx) Forgets() bool {
	return tx.State.Mode == Helios && !tx.State.Installed || tx.State.Ramdisk
}

// Draw gives the next number of a sequence that only the state's seed, the
// purpose and the number of draws so far decide: two sleds with one seed that
// live through the same commands are equal, and a draw for one purpose does
// not shift those for another.
func (tx *Tx) Draw(purpose string) uint64 {
	sum := tx.draw(purpose)
	return binary.BigEndian.Uint64(sum[:])
}

// UUID draws a random (version 4) UUID.
func (tx *Tx) UUID() string {
	sum := tx.draw("uuid")
	id := uuid.UUID(sum[:16])
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return id.String()
}

func (tx *Tx) draw(purpose string) [sha256.Size]byte {
	in := binary.BigEndian.AppendUint64(nil, tx.State.Seed)
	in = strconv.AppendUint(in, tx.Count("draw "+purpose), 10)
	in = append(in, ' ')
	return sha256.Sum256(append(in, purpose...))
}

// Count raises the named counter and returns it: 1 the first time.
func (tx *Tx) Count(name string) uint64 {
	if tx.State.Counters == nil {
		tx.State.Counters = map[string]uint64{}
	}
	tx.State.Counters[name]++
	return tx.State.Counters[name]
}

// LinkID tells a link from another one, whatever zone it is in: names are not
// unique on the sled.
type LinkID struct{ Name, MAC string }

// ID is the link's.
func (l *Link) ID() LinkID { return LinkID{l.Name, l.MAC} }

// lock is the file whose lock those have who hold the link. No zone's name begins
// with a dot.
func (id LinkID) lock() string { return "/locks/.link-" + id.Name + "-" + id.MAC }

// Refusal is what a function of this package returns when the real thing would
// refuse: the words for standard error, without the program's prefix, and the
// exit code.
type Refusal struct {
	Text string
	Exit int
}

// Error is the text.
func (r *Refusal) Error() string { return r.Text }

// NotSimulated is the refusal of what the real thing can do and this one cannot.
func NotSimulated(format string, args ...any) *Refusal {
	return &Refusal{Text: "not simulated: " + fmt.Sprintf(format, args...), Exit: 70}
}

// Unsimulated is what the simulated sled panics with where the real one has more
// than sledctl, its scripts or its manual pages use. The command that came there
// is refused, whatever it has done so far: it is neither imitated nor passed over.
type Unsimulated struct {
	What string // empty: the command as it was called
}

// Error says what the sled has not.
func (u Unsimulated) Error() string { return "not simulated: " + u.What }

// Simulated panics with Unsimulated unless what a command asks for is simulated.
func Simulated(is bool) {
	if !is {
		panic(Unsimulated{})
	}
}
