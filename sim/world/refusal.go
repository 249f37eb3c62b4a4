package world

// Refusal is what a function of this package returns when the real thing would
// refuse: the words for standard error, without the program's prefix, and the
// exit code.
type Refusal struct {
	Text string
	Exit int
}

// Error is the text.
func (r *Refusal) Error() string { return r.Text }
