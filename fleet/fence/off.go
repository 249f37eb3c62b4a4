package fence

import "time"

// Off counts for how long the BMC of a sled has reported it off, without another answer between.
// Some report it as soon as they are asked to power it off, while it still runs. So only what it
// reports for as long as Terms.Settle proves anything. The zero value has counted nothing.
type Off struct {
	Counted  time.Duration
	Reported bool // its last answer was that the sled is off
	answered time.Duration
}

// Read adds an answer that was asked for and came then, on the monotonic clock of the one who asks.
// An answer that did not come is none that the sled is off. Between two answers that are further
// apart than gap, nothing is counted: it may have been on.
func (o Off) Read(asked, answered time.Duration, off bool, gap time.Duration) Off {
	if !off {
		return Off{}
	}
	next := Off{Reported: true, answered: answered}
	if since := asked - o.answered; o.Reported && since >= 0 && since <= gap {
		next.Counted = o.Counted + since
	}
	return next
}
