package world

import "fmt"

// Refusal is what a function of this package returns when the real thing would
// refuse: the words for standard error, without the program's prefix, and the
// exit code.
type Refusal struct {
	Text string
	Exit int
}

// Error is the text.
func (r *Refusal) Error() string { return r.Text }

// NotSimulated is the refusal of what the real thing can do and this one cannot.
func NotSimulated(format string, args ...any) *Refusal {
	return &Refusal{Text: "not simulated: " + fmt.Sprintf(format, args...), Exit: 70}
}

// Unsimulated is what the simulated sled panics with where the real one has more
// than sledctl, its scripts or its manual pages use. The command that came there
// is refused, whatever it has done so far: it is neither imitated nor passed over.
type Unsimulated struct {
	What string // empty: the command as it was called
}

// Error says what the sled has not.
func (u Unsimulated) Error() string { return "not simulated: " + u.What }

// Simulated panics with Unsimulated unless what a command asks for is simulated.
func Simulated(is bool) {
	if !is {
		panic(Unsimulated{})
	}
}
