package world

// Unsimulated is what the simulated sled panics with where the real one has more
// than sledctl, its scripts or its manual pages use. The command that came there
// is refused, whatever it has done so far: it is neither imitated nor passed over.
type Unsimulated struct {
	What string // empty: the command as it was called
}

// Error says what the sled has not.
func (u Unsimulated) Error() string { return "not simulated: " + u.What }
