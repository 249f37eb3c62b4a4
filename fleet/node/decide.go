package node

import (
	"cmp"
	"slices"
)

// Claim is a pod that is bound to the sled: the run that the fleet wants there.
type Claim struct {
	Pod        string // namespace/name
	VM         string // its UID
	Generation int64
	Deleting   bool
	Ended      bool // its end is reported already
	// From is where the run comes from by a migration; the zero Origin: it is started here.
	From    Origin
	Arrived bool // that it has come is reported already
}

// Origin is where a run comes from while it runs.
type Origin struct {
	Migration string // its id
	Address   string // of the Propolis of the generation before, ADDRESS:PORT
}

// Run is a VM of the fleet on the sled.
type Run struct {
	VM         string // the instance id
	Generation int64
	PropolisID string
	State      string // as the agent has it
	Migration  string // the id of the migration that it is in, or came by
	Moves      Moves
}

// Moves says what the migration of a run does.
type Moves string

// What migrations do. Expected is one that was not asked for yet.
const (
	Stays     Moves = ""
	Expected  Moves = "expected"
	Arriving  Moves = "arriving"
	Arrived   Moves = "arrived"
	Departing Moves = "departing"
)

// Fate is what is known of a run that is gone.
type Fate struct {
	Left   bool   // another sled has it now
	Reason string // why it is gone, where something is known
}

// stateRunning is that of a VM that runs.
const stateRunning = "running"

// coming reports whether a run is not here yet.
func (r Run) coming() bool { return r.Moves == Expected || r.Moves == Arriving }

// The states of a VM in which it has ended: it does not come back by itself.
func (r Run) over() bool {
	return slices.Contains([]string{"stopped", "destroyed", "failed", "absent"}, r.State)
}

// Act is what the node does about a claim.
type Act string

// The acts.
const (
	Wait    Act = "wait"    // nothing is to be done
	Start   Act = "start"   // give the VM to the sled, and have it run
	Report  Act = "report"  // tell the state of the VM
	Stop    Act = "stop"    // end the VM
	Remove  Act = "remove"  // remove what is left of a VM that has ended, before its end is told
	Clear   Act = "clear"   // end and remove an earlier generation that is still here
	Finish  Act = "finish"  // tell that the generation has ended here
	Forgone Act = "forgone" // tell that it ended before it started: burn the generation first
	Ahead   Act = "ahead"   // tell that the sled runs a higher generation
	Arrive  Act = "arrive"  // have the VM come from another sled
	Welcome Act = "welcome" // tell that the VM has come
	Refuse  Act = "refuse"  // tell that the VM cannot come
)

// Decide says what to do about a claim, next to what is here of its VM; nil: nothing is.
// The order of the rules is that of what is safe: nothing is started while anything of the
// VM is here, and no end is told while the VM runs.
func Decide(c Claim, here *Run) Act {
	switch {
	case c.Ended:
		return Wait
	case here == nil && c.Deleting:
		return Forgone
	case here == nil && c.From != Origin{}:
		return Arrive
	case here == nil:
		return Start
	case here.Generation > c.Generation:
		return Ahead
	case here.Generation < c.Generation && c.From != Origin{} && !here.over():
		return Refuse // it is the one that would come
	case here.Generation < c.Generation:
		return Clear
	case here.coming():
		return decideComing(c, here)
	case c.From != Origin{} && !c.Arrived && here.Moves == Arrived && here.Migration == c.From.Migration:
		return Welcome // first of all: the generation before has ended by it
	case here.over():
		return Remove
	case c.Deleting:
		return Stop
	}
	return Report
}

// decideComing says what to do about a run that is not here yet. Once its memory moves, nobody
// can take that back: it arrives, or it does not.
func decideComing(c Claim, here *Run) Act {
	switch {
	case here.Moves == Arriving:
		return Report
	case c.Deleting || c.From == Origin{}: // a store that was restored claims what it does not know
		return Remove
	}
	return Arrive
}

// Unclaimed are the runs on the sled without a claim, in order. They are reported, and go on:
// a store that was restored may have forgotten their claims.
func Unclaimed(claims []Claim, runs []Run) (out []Run) {
	for _, r := range runs {
		if !slices.ContainsFunc(claims, func(c Claim) bool { return c.VM == r.VM }) {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b Run) int { return cmp.Compare(a.VM, b.VM) })
	return out
}
