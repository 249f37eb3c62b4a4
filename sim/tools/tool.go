// Package tools holds the commands of the simulated sled, one file each. A
// command is strict: it takes the argv that the real one takes and answers with
// its texts, on its streams, with its exit codes; what the real one would
// refuse is refused. It is written from the manual pages and the gate's
// sources, never from what a driver sends.
package tools

import (
	"time"

	"github.com/sledctl/sledctl/sim/world"
)

// Call is one command line.
type Call struct {
	Tool  string            // base name, "zoneadm"
	Args  []string          // without the tool
	Stdin []byte            // nil: /dev/null
	Env   map[string]string // beyond the clean environment
	Zone  string            // where it runs: "global" or the name of a zone
}

// Reply is what a command printed so far and its exit code, or what it does
// next. Latencies, hangs and zone locks lie between transactions: a command
// that takes time returns a Next, and its transaction ends.
type Reply struct {
	Stdout, Stderr string
	Exit           int
	Next           *Next // nil: the command has ended
}

// Next is the rest of a command that is not finished.
type Next struct {
	// Lock names a zone whose lock is taken before Do and held until the
	// command ends. Taking it waits (IC §3.18).
	Lock string
	// After is how long the work takes before Do runs.
	After time.Duration
	// Until, if set, waits until it says true, looking again whenever the
	// world changes; it must not change anything.
	Until func(*world.Tx) bool
	// Do is the next transaction. What it prints is added.
	Do func(*world.Tx) Reply
}

// Tool is a command: one transaction, or the first of several.
type Tool func(tx *world.Tx, c Call) Reply
