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
}

// Run is a VM of the fleet on the sled.
type Run struct {
	VM         string // the instance id
	Generation int64
	PropolisID string
	State      string // as the agent has it
}

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
	case here == nil:
		return Start
	case here.Generation > c.Generation:
		return Ahead
	case here.Generation < c.Generation:
		return Clear
	case here.over():
		return Remove
	case c.Deleting:
		return Stop
	}
	return Report
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
