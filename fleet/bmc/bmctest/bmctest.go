// Package bmctest has simulated BMCs: one that speaks Redfish over TLS, and one that speaks IPMI 2.0.
// Each has a sled whose power it cuts, and the faults that real ones have.
package bmctest

import (
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"
)

// The account of each BMC.
const (
	Username = "fleet"
	Password = "not-the-factory-one"
)

// Faults are how a BMC misbehaves.
type Faults struct {
	Slow    time.Duration // each answer takes so long
	Late    time.Duration // it reports the sled off as soon as it is asked, and so long before it is
	Refuses bool          // it reads, and powers nothing off
	Ignores bool          // it takes the request, and does nothing
	Gone    bool          // it does not answer
}

// Sled is what a BMC powers. Its zero value is on.
type Sled struct {
	ID  string // its UUID
	Cut func() // ends the sled when its power goes

	mu     sync.Mutex
	faults Faults
	off    bool // what the BMC reports
	gone   sync.WaitGroup
	hurry  chan struct{} // closed to end what is late
	asked  int
}

// Fail has the BMC misbehave from now on.
func (s *Sled) Fail(f Faults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = f
}

// Asked is how often the BMC was asked to power the sled off.
func (s *Sled) Asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// On is the power button. A sled that is still to lose its power loses it first.
func (s *Sled) On() {
	s.mu.Lock()
	if s.hurry != nil {
		close(s.hurry)
		s.hurry = nil
	}
	s.mu.Unlock()
	s.gone.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.off = false
}

// Off reports whether the BMC reports that the sled is off.
func (s *Sled) Off() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.off
}

func (s *Sled) now() Faults {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults
}

// powerOff is what the request to power the sled off does; false: the BMC refuses it.
func (s *Sled) powerOff() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	switch {
	case s.faults.Refuses:
		return false
	case s.faults.Ignores, s.off:
		return true
	}
	s.off = true
	late, cut, hurry := s.faults.Late, s.Cut, make(chan struct{})
	s.hurry = hurry
	s.gone.Go(func() {
		select {
		case <-time.After(late):
		case <-hurry:
		}
		if cut != nil {
			cut()
		}
	})
	if late == 0 {
		s.mu.Unlock()
		s.gone.Wait() // it is off when the BMC answers
		s.mu.Lock()
	}
	return true
}

func fingerprint(certificate []byte) string {
	sum := sha256.Sum256(certificate)
	return hex.EncodeToString(sum[:])
}
