// Package fence decides when a VM may be started again on another sled: generation G+1
// starts only if the end of generation G is proven, or, under storage, if G cannot write once
// G+1 has opened its volumes. It is pure. What it is given was read
// by others, and Decide says what is proven by it.
//
// Six things have to be true of what is given, or the rule proves nothing:
//
//   - A sled starts a generation once, and none that is not above the last it has started
//     for that VM. Its ledger remembers.
//   - Under a lease, a sled starts a generation within Fence of having read that its claim
//     was not revoked, and only while its lease holds.
//   - A sled whose BMC reports it off for as long as Terms.Settle is off, or was meanwhile.
//   - A volume in a Crucible is opened with the generation of the run, and its downstairs refuse
//     one that is not above the last, and cut off the one before: see sim/world/crucible.
//   - Renewals and beats are read from the API server itself, not from a cache.
//   - A store that is restored from a snapshot is restored from one that is older than the
//     last beat that the controller and most sleds have seen.
package fence

import (
	"fmt"
	"time"
)

// Policy says what proves the end of a generation whose sled does not answer.
type Policy string

// The policies. Hold is the default, and what anything unknown counts as.
const (
	Hold    Policy = "hold"    // nothing but its sled: an outage touches no VM
	Power   Policy = "power"   // the sled's BMC reports that its power is off
	Storage Policy = "storage" // the next one takes its volumes over: the earlier copy may go on, and cannot write
	Lease   Policy = "lease"   // the guard of its sled halts it once the sled's lease is over
)

// Terms are those of a lease, and of power.
type Terms struct {
	Fence  time.Duration // the guard halts VMs if no renewal that was asked for later succeeded
	Halt   time.Duration // how long halting takes at most, a restart of the guard included
	Margin time.Duration // for clocks that run at different speeds
	Settle time.Duration // for how long a BMC has to report its sled off
}

// Wait is how long a lease has to be silent until its VMs have ended.
func (t Terms) Wait() time.Duration { return t.Fence + t.Halt + t.Margin }

// Check refuses terms by which nothing can be proven.
func (t Terms) Check() error {
	if t.Fence <= 0 || t.Halt <= 0 || t.Margin <= 0 {
		return fmt.Errorf("lease terms %v, %v, %v: want durations above zero", t.Fence, t.Halt, t.Margin)
	}
	return nil
}

// Run is the generation that may still be running.
type Run struct {
	Generation int64 // 0: the VM never ran
	Sled       string
	Policy     Policy
	Local      bool // it has a volume that is on its sled only
	// Crucible is set if it has a disk in a Crucible, and the next generation opens all of those that
	// it writes to.
	Crucible bool
	Terms    Terms
	// Started is set once its sled has reported that it started the generation. Before, the
	// sled may start it at any time, unless the claim is revoked.
	Started bool
}

// Evidence is what is known of a run.
type Evidence struct {
	// Confirmed is the generation whose end its own sled reported, or which it no longer
	// has because a migration arrived. 0: none.
	Confirmed int64
	// Revoked is set if the claim of a run that was not started was revoked. Silent is then
	// from after that.
	Revoked bool
	// Off is the sled whose BMC reported that it is off, for OffFor. All of that was asked for
	// after the run was known to be Started or Revoked.
	Off    string
	OffFor time.Duration
	// Lost is the sled of which a person has stated that it never runs again: it is destroyed, or
	// its disks are. The statement is believed only while the sled does not answer.
	Lost string
	// Silent is for how long the sled's lease was read and found not renewed: see Silence.
	Silent time.Duration
	// Braked is why no volumes are taken over now, although nothing would write twice; empty: they may be.
	Braked string
	// Uncounted are sleds that have not yet said what they run, after the store was found
	// restored or before enough of them have answered the present controller: see Census.
	Uncounted []string
}

// Proof is what proves the end of a generation.
type Proof string

// The proofs, in the order in which they are looked for.
const (
	NeverRan  Proof = "never-ran"
	Confirmed Proof = "confirmed"
	Stated    Proof = "stated"
	PowerOff  Proof = "power"
	Volumes   Proof = "storage"
	Expired   Proof = "lease"
)

// Verdict is what Decide found.
type Verdict struct {
	Proof  Proof         // empty: the end is not proven, and Reason says what is missing
	Reason string        // a sentence for events and conditions
	Wait   time.Duration // above zero: ask again after it
	Revoke bool          // the claim must be revoked first
	Power  bool          // the BMC of its sled has to report that it is off
}

// Proven reports whether the next generation may start.
func (v Verdict) Proven() bool { return v.Proof != "" }

// Effective is the policy that holds for a run: a VM with a volume on its sled only can
// run nowhere else.
func (r Run) Effective() Policy {
	if r.Forced() == "" {
		return r.Policy
	}
	return Hold
}

// Forced is why the policy that is asked for counts as hold; empty: it does not.
func (r Run) Forced() string {
	switch {
	case r.Policy == Hold:
	case r.Policy != Power && r.Policy != Storage && r.Policy != Lease:
		return "the policy is not known"
	case r.Local:
		return fmt.Sprintf("restart: %s counts as hold: it has a volume on its sled", r.Policy)
	case r.Policy == Storage && !r.Crucible:
		return "restart: storage counts as hold: it has no disk in a Crucible, or is to have others than it runs with"
	}
	return ""
}

// Decide says whether the end of a run is proven.
func Decide(r Run, e Evidence) Verdict {
	if len(e.Uncounted) > 0 {
		return Verdict{Reason: fmt.Sprintf("%d sleds have not yet reported what they run, %s among them", len(e.Uncounted), e.Uncounted[0])}
	}
	switch {
	case r.Generation == 0:
		return Verdict{Proof: NeverRan, Reason: "no generation was started"}
	case e.Confirmed >= r.Generation:
		return Verdict{Proof: Confirmed, Reason: fmt.Sprintf("sled %s reported the end of generation %d", r.Sled, r.Generation)}
	}
	if e.Lost == r.Sled && e.Lost != "" {
		return Verdict{Proof: Stated, Reason: fmt.Sprintf("it was stated that sled %s is lost for good", r.Sled)}
	}
	policy := r.Effective()
	if policy != Hold && !r.Started && !e.Revoked {
		return Verdict{Reason: fmt.Sprintf("sled %s may still start generation %d: its claim is not revoked", r.Sled, r.Generation), Revoke: true}
	}
	switch policy {
	case Power:
		return byPower(r, e)
	case Storage:
		return byStorage(r, e)
	case Lease:
		return byLease(r, e)
	}
	reason := fmt.Sprintf("sled %s does not answer, and policy hold waits for it", r.Sled)
	if why := r.Forced(); why != "" {
		reason += ": " + why
	}
	return Verdict{Reason: reason}
}

func byPower(r Run, e Evidence) Verdict {
	switch {
	case e.Off != r.Sled || e.Off == "":
		return Verdict{Reason: fmt.Sprintf("the BMC of sled %s does not report that it is off", r.Sled), Power: true}
	case e.OffFor < r.Terms.Settle:
		return Verdict{Reason: fmt.Sprintf("the BMC of sled %s has to report that it is off for %v", r.Sled, r.Terms.Settle), Power: true}
	}
	return Verdict{Proof: PowerOff, Reason: fmt.Sprintf("the BMC of sled %s reports that it is off", r.Sled)}
}

func byLease(r Run, e Evidence) Verdict {
	if err := r.Terms.Check(); err != nil {
		return Verdict{Reason: err.Error()}
	}
	if left := r.Terms.Wait() - e.Silent; left > 0 {
		return Verdict{Reason: fmt.Sprintf("the lease of sled %s is over in %v at the earliest", r.Sled, left), Wait: left}
	}
	return Verdict{Proof: Expired, Reason: fmt.Sprintf("the lease of sled %s was silent for %v", r.Sled, r.Terms.Wait())}
}
