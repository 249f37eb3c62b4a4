package ledger

import "context"

// Mark says which epoch of which ledger was last in force.
type Mark struct {
	Ledger string
	N      uint64
	Epoch  string // the epoch's id
}

// Witness keeps a Mark outside the copies, so that a copy which slept while
// others went on is known for what it is. It is asked before the ledger is
// created, before a sled goes on alone, and before anything is appended behind
// an epoch line; it is told of each epoch once that is on disk.
type Witness interface {
	// Read returns the newest mark; false if there is none or nothing to keep
	// one on.
	Read(ctx context.Context) (Mark, bool, error)
	Write(ctx context.Context, m Mark) error
}

// NoWitness is the witness of a sled that has none yet: it remembers nothing.
// With it, nobody can tell whether a missing copy went on alone meanwhile.
type NoWitness struct{}

// Read finds no mark.
func (NoWitness) Read(context.Context) (Mark, bool, error) { return Mark{}, false, nil }

// Write forgets the mark.
func (NoWitness) Write(context.Context, Mark) error { return nil }
