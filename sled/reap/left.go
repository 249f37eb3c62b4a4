package reap

import "strings"

// The words of a reason around the operation and the instance.
const (
	leftBefore  = "left by "
	leftBetween = " of instance "
	leftAfter   = ", which did not end"
)

// leftBy is the reason for what an operation on an instance left that was killed.
func leftBy(verb, instance string) string {
	return leftBefore + verb + leftBetween + instance + leftAfter
}

// LeftBy finds the operation and the instance in such a reason, so that a screen can print the
// reason once for what several operations left.
func LeftBy(reason string) (verb, instance string, found bool) {
	rest, before := strings.CutPrefix(reason, leftBefore)
	rest, after := strings.CutSuffix(rest, leftAfter)
	verb, instance, between := strings.Cut(rest, leftBetween)
	return verb, instance, before && after && between
}
