package fence

import "time"

// Silence counts for how long the lease of a sled was not renewed, on the monotonic clock of
// the one who reads it. Only time between two reads counts. The zero value has counted nothing.
type Silence struct {
	Renewal string // the value of the lease when it was last read
	Counted time.Duration
	read    bool
	last    time.Duration
}

// Read adds what was read at now, which was asked for at now or later, so that a renewal
// that the reader cannot see yet has not reached its sled yet. Between two reads that are
// further apart than gap, nothing is counted: an API server that did not answer the reader
// may not have answered the sled.
func (s Silence) Read(now time.Duration, renewal string, gap time.Duration) Silence {
	next := Silence{Renewal: renewal, read: true, last: now}
	if !s.read || s.Renewal != renewal || now < s.last {
		return next
	}
	next.Counted = s.Counted
	if now-s.last <= gap {
		next.Counted += now - s.last
	}
	return next
}
