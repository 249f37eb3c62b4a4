// Package fault sorts errors by what their reader can do about them. Each type of
// error says its own kind; what decides asks for it with Of, and knows no type.
package fault

import (
	"context"
	"errors"
)

// Kind is what can be done about an error.
type Kind int

// The kinds. Of several in one error the last of these counts.
const (
	Failed      Kind = iota // nothing of it stays: again, once the cause is gone
	Deadline                // again, with more time
	Interrupted             // again, if it is wanted
	Refused                 // something must be so first: bootstrap, --yes, privileges, room
	Conflict                // it is there, and differs from what was asked for
	NotFound                // the object does not exist
	Usage                   // the request makes no sense as it is
	Locked                  // another run is at work: again when that has ended
	Partial                 // some of it stays: again, it goes on from there
	Ledger                  // the ledger must be seen to first
	Differences             // nothing failed: there is something to do
	Trouble                 // nothing failed: the sled is in trouble
)

// String is the kind as scripts read it.
func (k Kind) String() string {
	return [...]string{"failed", "deadline", "interrupted", "refused", "conflict", "not_found", "usage", "locked", "partial", "ledger", "differences", "trouble"}[k]
}

// New is an error of a kind, to be compared with errors.Is.
func New(kind Kind, text string) error { return &sentinel{kind, text} }

type sentinel struct {
	kind Kind
	text string
}

func (s *sentinel) Error() string { return s.text }
func (s *sentinel) Kind() Kind    { return s.kind }

// Of is the kind of an error: of all that it wraps and joins, the one that counts
// most.
func Of(err error) Kind {
	kind := Failed
	switch {
	case errors.Is(err, context.Canceled):
		kind = Interrupted
	case errors.Is(err, context.DeadlineExceeded):
		kind = Deadline
	}
	for _, one := range tree(err) {
		if k, ok := one.(interface{ Kind() Kind }); ok {
			kind = max(kind, k.Kind())
		}
	}
	return kind
}

// tree is an error with all that it wraps and joins.
func tree(err error) []error {
	all := []error{err}
	switch wraps := err.(type) {
	case interface{ Unwrap() error }:
		if inner := wraps.Unwrap(); inner != nil {
			all = append(all, tree(inner)...)
		}
	case interface{ Unwrap() []error }:
		for _, inner := range wraps.Unwrap() {
			all = append(all, tree(inner)...)
		}
	}
	return all
}
