package failure

import (
	"cmp"
	"regexp"
	"slices"

	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/sled/instance"
)

// manyHint returns what to do about several instances: the hint of each of them, if
// all have the same; else how to retry.
func manyHint(many *instance.PartialError, d Document) string {
	one, first := many.One(), many.Failures[0]
	hint := func(f instance.Failure) string { return causeHint(f.Err) }
	if one != nil {
		d.Exit = codeOf(one)
		hint = func(f instance.Failure) string { return hintOf(f.Err, d) }
	}
	if len(many.Failures) == 1 {
		return cmp.Or(hint(first), retryHint(many))
	}
	common := ofAny(hint(first), first.Name)
	if common == "" || slices.ContainsFunc(many.Failures, func(f instance.Failure) bool { return ofAny(hint(f), f.Name) != common }) {
		return retryHint(many)
	}
	return common
}

// ofAny returns the hint of one instance for any of several.
func ofAny(hint, name string) string {
	return regexp.MustCompile(` `+regexp.QuoteMeta(name)+`( |;|$)`).ReplaceAllString(hint, " NAME$1")
}

// retryHint returns what to do about several instances that failed for different
// reasons. A name that does not exist would fail again.
func retryHint(many *instance.PartialError) string {
	absent := func(f instance.Failure) bool { return fault.Of(f.Err) == fault.NotFound }
	const reason = "; for the reason, run: sledctl instance get NAME"
	if slices.ContainsFunc(many.Failures, absent) {
		return "to retry those that exist, run the command again without the other names" + reason
	}
	return "to retry these, run the command again" + reason
}
