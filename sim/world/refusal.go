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
