package world

import (
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world/scf"
)

// Tx is one transaction: exclusive use of the state at one time. What a tool
// has changed when it fails stays changed, as on a real sled.
type Tx struct {
	State *State
	Now   time.Time
	Files host.Files // the sled's file system; "/" is the global zone's root
	Write bool       // false in a View: the state must not be changed

	Decoded *scf.Cache       // of repositories; nil: none is kept
	Held    func(*Link) bool // a command of the global zone looks at it; nil: none does
	Moving  bool             // contents of file systems have been moved (dataset_trees.go)
}

// NewTx is a transaction that may write, for those who hold the state
// themselves: tests, and what makes a new sled.
func NewTx(s *State, now time.Time, files host.Files) *Tx {
	return &Tx{State: s, Now: now, Files: files, Write: true}
}

// Now is the wall clock as the state stores it.
func Now() time.Time { return time.Now().UTC().Round(0) }

// Forgets says whether the sled's root is on a RAM disk that a boot makes again.
func (tx *Tx) Forgets() bool {
	return tx.State.Mode == Helios && !tx.State.Installed || tx.State.Ramdisk
}
