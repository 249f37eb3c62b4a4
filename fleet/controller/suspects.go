package controller

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/sledctl/sledctl/fleet/api"
	"github.com/sledctl/sledctl/fleet/fence"
)

// suspects are the sleds whose BMC has to report them off, so that the end of a run is proven. The
// reconciler of VMs wants that, the one of BMCs asks.
type suspects struct {
	now  func() time.Duration // monotonic
	wake chan event.TypedGenericEvent[*api.SledBMC]

	mu sync.Mutex
	by map[string]*suspect
}

type suspect struct {
	runs   map[types.UID]bool // the pods whose ends are to be proven
	wanted time.Duration      // when one of them was last found to need that
	begun  int                // counts the sets of runs for which answers were gathered
	off    fence.Off          // since the last run was added
	said   string             // what keeps the BMC from reporting the sled off
	cut    time.Duration      // when its BMC was last asked to power it off
}

// isWanted is for how long a sled is asked about after a run has needed it.
const isWanted = 30 * time.Second

func newSuspects() *suspects {
	start := time.Now()
	return &suspects{
		now: func() time.Duration { return time.Since(start) }, by: map[string]*suspect{},
		wake: make(chan event.TypedGenericEvent[*api.SledBMC], 1000),
	}
}

// answersApart is how long after an answer of a BMC the next one may be asked for, for the time between
// them to count.
const answersApart = 10 * time.Second

// want asks for the proof of the end of a run, which is known to be started or revoked. What was
// answered before that is known proves nothing about it. It returns what the BMC says.
func (s *suspects) want(sled string, run types.UID) (said string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	is := s.by[sled]
	if is == nil || now-is.wanted > isWanted {
		is = &suspect{runs: map[types.UID]bool{}, cut: -time.Hour}
		s.by[sled] = is
	}
	is.wanted = now
	if is.runs[run] {
		return is.said
	}
	is.runs[run] = true
	is.begun++
	is.off = fence.Off{}
	select {
	case s.wake <- event.TypedGenericEvent[*api.SledBMC]{Object: &api.SledBMC{ObjectMeta: metav1.ObjectMeta{Name: sled}}}:
	default: // the BMC is asked again by itself, later
	}
	return is.said
}

// asks reports whether a sled is suspected, and names the set of runs that answers are gathered for.
func (s *suspects) asks(sled string) (begun int, wanted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	is := s.by[sled]
	if is == nil || s.now()-is.wanted > isWanted {
		return 0, false
	}
	return is.begun, true
}

// answered takes in an answer of a sled's BMC, or that none came. One that was asked for before a
// run was added is left out.
func (s *suspects) answered(sled string, begun int, asked time.Duration, off bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if is := s.by[sled]; is != nil && is.begun == begun {
		is.off = is.off.Read(asked, s.now(), off, answersApart)
	}
}

// say notes what keeps the BMC of a sled from reporting it off.
func (s *suspects) say(sled, what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if is := s.by[sled]; is != nil {
		is.said = what
	}
}

// cutsAgain is how long a BMC has to do what it was asked for, until it is asked again.
const cutsAgain = 10 * time.Second

// cuts reports whether a BMC may be asked to power its sled off, and notes that it is.
func (s *suspects) cuts(sled string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	is, now := s.by[sled], s.now()
	if is == nil || now-is.cut < cutsAgain {
		return false
	}
	is.cut = now
	return true
}

// evidence adds for how long the BMC of a sled reports it off, as far as that is about a run.
func (s *suspects) evidence(e fence.Evidence, sled string, run types.UID) fence.Evidence {
	s.mu.Lock()
	defer s.mu.Unlock()
	if is := s.by[sled]; is != nil && is.runs[run] && is.off.Reported {
		e.Off, e.OffFor = sled, is.off.Counted
	}
	return e
}
