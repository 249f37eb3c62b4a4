package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/host/fault"
)

// The refusals. Each comes as a typed error that names the files; its Hint
// says what would be right.
var (
	ErrAbsent      = fault.New(fault.Refused, "no copy of the ledger")                             // *AbsentError
	ErrMissing     = fault.New(fault.Ledger, "a copy of the ledger is missing")                    // *MissingError
	ErrForked      = fault.New(fault.Ledger, "copies of the ledger disagree")                      // *ForkedError
	ErrTwins       = fault.New(fault.Ledger, "one copy of the ledger is there twice")              // *TwinsError
	ErrBroken      = fault.New(fault.Ledger, "a copy of the ledger is broken")                     // *BrokenError
	ErrExists      = errors.New("there is a ledger already")                                       // *ExistsError
	ErrSuperseded  = fault.New(fault.Ledger, "the sled continued with other copies of the ledger") // *SupersededError
	ErrCheckFailed = fault.New(fault.Ledger, "the ledger is not sound")                            // *CheckFailedError

	ErrDamaged      = fault.New(fault.Ledger, "the end of the ledger is damaged")                        // *DamagedError
	ErrRewound      = fault.New(fault.Ledger, "the ledger lacks what was in it")                         // *RewoundError
	ErrForeign      = fault.New(fault.Ledger, "these copies of the ledger are another sled's")           // *ForeignError
	ErrContradicted = fault.New(fault.Ledger, "the sled's disks contradict each other about the ledger") // *ContradictionError
	// ErrUnconfirmed is that something is not in the ledger as far as it is known.
	ErrUnconfirmed = fault.New(fault.Ledger, "what the ledger says is not confirmed") // *UnconfirmedError
	// ErrWriteFailed is a write that failed halfway, and every use of the same Ledger
	// after it. Whether the facts were written is unknown until the next Open.
	ErrWriteFailed = fault.New(fault.Ledger, "the ledger was not written as it should have been") // *WriteError
)

// Absence is why there is no copy in one place.
type Absence struct {
	File string
	Pool string
	Err  error // ErrNotMounted, fs.ErrNotExist, ErrBroken, an error of the disk
}

func (a Absence) String() string { return fmt.Sprintf("%s: %v", a.File, cause(a.Err)) }

// AbsentError is ErrAbsent.
type AbsentError struct {
	Places []Absence
	Tag    *EpochTag // what the witness knows of a ledger; nil: nothing
}

// Error names every place that was looked at.
func (e *AbsentError) Error() string {
	for _, at := range e.Places {
		if Newer(at.Err) {
			return at.Err.Error()
		}
	}
	said := ErrAbsent.Error() + ": no place to look for one"
	if len(e.Places) > 0 {
		said = fmt.Sprintf("%v: %s", ErrAbsent, join(e.Places))
	}
	if e.Tag != nil {
		said += fmt.Sprintf("; but the sled's disks record ledger %s, epoch %d", e.Tag.Ledger, e.Tag.N)
	}
	return said
}

// Kind tells a new sled, which needs a bootstrap, from one whose copies are not
// there.
func (e *AbsentError) Kind() fault.Kind {
	if len(e.Places) > 0 || e.Tag != nil {
		return fault.Ledger
	}
	return fault.Refused
}

// Unwrap gives ErrAbsent and the causes.
func (e *AbsentError) Unwrap() []error { return causes(ErrAbsent, e.Places) }

// Hint says what would be right.
func (e *AbsentError) Hint() string {
	if slices.ContainsFunc(e.Places, func(at Absence) bool { return Newer(at.Err) }) {
		return newerHint
	}
	if e.Tag != nil {
		return (&SupersededError{}).Hint()
	}
	for _, at := range e.Places {
		if !errors.Is(at.Err, errNoFile) && !errors.Is(at.Err, errUnfinished) {
			return "bring the disks back that hold it: sledctl never takes a file for empty that it cannot read"
		}
	}
	return "bring the disks back that hold the ledger; to prepare a new sled, run: sledctl bootstrap"
}

// MissingError is ErrMissing.
type MissingError struct {
	Missing []Member
	Present []Member
	Head    Head      // of the best copy that is present
	Epoch   Epoch     // the one that made them members
	Others  []Absence // places without a copy
}

// Error names the members on both sides.
func (e *MissingError) Error() string {
	return fmt.Sprintf("%v: %s; present: %s; at %v", ErrMissing, join(e.Missing), cmp.Or(join(e.Present), "none"), e.Head)
}

func (*MissingError) Kind() fault.Kind { return fault.Ledger }

// Unwrap gives ErrMissing and the causes.
func (e *MissingError) Unwrap() []error {
	out := []error{ErrMissing}
	for _, m := range e.Missing {
		out = append(out, m.Err)
	}
	return out
}

// Hint says what would be right.
func (e *MissingError) Hint() string {
	if slices.ContainsFunc(e.Missing, func(m Member) bool { return Newer(m.Err) }) {
		return newerHint
	}
	for _, at := range e.Others {
		if errors.Is(at.Err, errUnfinished) {
			return "to complete the ledger, run: sledctl bootstrap"
		}
	}
	if len(e.Present) == 0 {
		return "bring a disk back that holds one of the missing copies; to mount it, run: sledctl bootstrap"
	}
	if slices.ContainsFunc(e.Missing, func(m Member) bool { return errors.Is(m.Err, ErrNotMounted) }) {
		return "bring the disk back; to mount it, run: sledctl bootstrap; to continue without it, add --degraded"
	}
	return "bring the disk back; to continue without it, add --degraded; to add a new disk, run: sledctl ledger heal --degraded"
}

// String names the copy, where it is, or why it is not.
func (m Member) String() string {
	if m.Err != nil {
		return fmt.Sprintf("%v: %v", m.MemberRef, cause(m.Err))
	}
	return fmt.Sprintf("%v at %s", m.MemberRef, m.File)
}

// ForkedError is ErrForked: two copies of which neither continues the other.
type ForkedError struct {
	Best, Other string // files
	BestHead    Head
	OtherHead   Head
	BestEpoch   Epoch
	OtherEpoch  Epoch
	Reason      string
}

// Error names both sides.
func (e *ForkedError) Error() string {
	return fmt.Sprintf("%v: %s is at %v, epoch %d; %s is at %v, epoch %d: %s", ErrForked,
		e.Best, e.BestHead, e.BestEpoch.N, e.Other, e.OtherHead, e.OtherEpoch.N, e.Reason)
}

func (*ForkedError) Kind() fault.Kind { return fault.Ledger }

// Unwrap gives ErrForked.
func (e *ForkedError) Unwrap() error { return ErrForked }

// Hint says what would be right.
func (e *ForkedError) Hint() string {
	return "to compare the copies, run: sledctl ledger check; to keep one, after a list of what only the others hold, run: sledctl ledger heal --keep COPY"
}

// TwinsError is ErrTwins: two files say that they are the same copy.
type TwinsError struct {
	Copy  string
	Files [2]string
}

// Error names both files.
func (e *TwinsError) Error() string {
	return fmt.Sprintf("%v: copy %s is in %s and in %s", ErrTwins, e.Copy, e.Files[0], e.Files[1])
}

func (*TwinsError) Kind() fault.Kind { return fault.Ledger }

// Unwrap gives ErrTwins.
func (e *TwinsError) Unwrap() error { return ErrTwins }

// Hint says what would be right.
func (e *TwinsError) Hint() string {
	return "to keep one of the files and set its duplicate aside, run: sledctl ledger heal --keep FILE"
}

// newerHint is what is right where a newer sledctl has written a copy: none of the ways by which
// a ledger is given up.
const newerHint = "return to the newer sledctl, e.g. run: install.sh rollback"

// Newer says whether an error is that of a copy that a newer sledctl has written.
func Newer(err error) bool {
	e, ok := errors.AsType[*BrokenError](err)
	return ok && e.Newer
}

// BrokenError is ErrBroken: a file that is there and cannot be believed.
type BrokenError struct {
	File   string
	Line   int // from 1, the header
	Reason string
	Last   uint64 // the last line behind it that can be read; 0: none
	Newer  bool   // a newer sledctl has written it: it is not broken
}

// Error names file and line.
func (e *BrokenError) Error() string {
	if e.Newer {
		return fmt.Sprintf("a newer sledctl has written the ledger: %s: %s", e.File, e.Reason)
	}
	said := fmt.Sprintf("%v: %s: line %d: %s", ErrBroken, e.File, e.Line, e.Reason)
	if e.Last > 0 {
		said += fmt.Sprintf("; behind it lines up to seq %d can be read", e.Last)
	}
	return said
}

func (*BrokenError) Kind() fault.Kind { return fault.Ledger }

// Unwrap gives ErrBroken.
func (e *BrokenError) Unwrap() error { return ErrBroken }

// Hint says what would be right.
func (e *BrokenError) Hint() string {
	if e.Newer {
		return newerHint
	}
	return "keep the file as it is: the other copies hold the same facts; to compare them, run: sledctl ledger check"
}

// ExistsError is ErrExists: nothing is created where something is.
type ExistsError struct{ Files []string }

// Error names the files.
func (e *ExistsError) Error() string {
	return fmt.Sprintf("%v: %s", ErrExists, strings.Join(e.Files, ", "))
}

func (*ExistsError) Kind() fault.Kind { return fault.Failed }

// Unwrap gives ErrExists.
func (e *ExistsError) Unwrap() error { return ErrExists }

// WriteError is ErrWriteFailed: a write to a copy failed.
type WriteError struct {
	Err error // what failed first
	// Unknown says that facts were being written: whether they count, the next
	// Open decides. Otherwise none of them was.
	Unknown bool
}

// Error says what failed, and what is unknown.
func (e *WriteError) Error() string {
	if e.Unknown {
		return fmt.Sprintf("%v, result unknown: %v", ErrWriteFailed, e.Err)
	}
	return fmt.Sprintf("%v: %v", ErrWriteFailed, e.Err)
}

func (*WriteError) Kind() fault.Kind { return fault.Ledger }

// Unwrap gives ErrWriteFailed and the cause.
func (e *WriteError) Unwrap() []error { return []error{ErrWriteFailed, e.Err} }

// Hint says what would be right.
func (e *WriteError) Hint() string {
	return "run the same command again: it finds out what was written"
}

// DamagedError is ErrDamaged: what was written last cannot be read in any copy.
type DamagedError struct{ Ends []End }

// End is a damaged one.
type End struct {
	File  string
	Head  Head   // the last line that can be read
	Bytes int64  // behind it
	Seq   uint64 // that these bytes give themselves; 0: it cannot be read
}

// String names the file and what stands there.
func (e End) String() string { return e.File + ": " + e.what() }

func (e End) what() string {
	said := fmt.Sprintf("%d bytes behind %v are no line", e.Bytes, e.Head)
	if e.Seq > 0 {
		said += fmt.Sprintf(", and begin as seq %d does", e.Seq)
	}
	return said
}

// Error names the files.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("%v, and what was written there cannot be read in any copy: %s", ErrDamaged, join(e.Ends))
}

func (*DamagedError) Kind() fault.Kind { return fault.Ledger }

// Unwrap gives ErrDamaged.
func (e *DamagedError) Unwrap() error { return ErrDamaged }

// Hint says what would be right.
func (e *DamagedError) Hint() string {
	return "bring a disk back that holds another copy; if there is none, to continue without what cannot be read, run: sledctl ledger heal --keep COPY"
}

// CheckFailedError is ErrCheckFailed: all that Check found wrong.
type CheckFailedError struct{ Faults []error }

// Error tells all of it.
func (e *CheckFailedError) Error() string {
	words := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		words[i] = f.Error()
	}
	return fmt.Sprintf("%v: %s", ErrCheckFailed, strings.Join(words, "; "))
}

func (*CheckFailedError) Kind() fault.Kind { return fault.Ledger }

// Unwrap gives ErrCheckFailed and the faults.
func (e *CheckFailedError) Unwrap() []error { return append([]error{ErrCheckFailed}, e.Faults...) }

// Hint is that of the first fault that has one.
func (e *CheckFailedError) Hint() string {
	for _, f := range e.Faults {
		if h, ok := errors.AsType[interface {
			error
			Hint() string
		}](f); ok {
			return h.Hint()
		}
	}
	return "to repair the copies that can be repaired, run: sledctl ledger heal"
}

// UnconfirmedError is ErrUnconfirmed: something is not in a view that may lack it.
type UnconfirmedError struct {
	Err     error // that it is absent
	Reasons []string
}

// Error says what is not known, and why.
func (e *UnconfirmedError) Error() string {
	return fmt.Sprintf("%v, but %v: %s", e.Err, ErrUnconfirmed, strings.Join(e.Reasons, "; "))
}

func (*UnconfirmedError) Kind() fault.Kind { return fault.Ledger }

// Unwrap gives ErrUnconfirmed. It is not known that anything is absent.
func (e *UnconfirmedError) Unwrap() error { return ErrUnconfirmed }

// Hint says what would be right.
func (e *UnconfirmedError) Hint() string {
	return "bring the missing copy back; to see which it is, run: sledctl ledger check"
}

// cause is the error without the name of the file, which stands next to it.
func cause(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}

func causes(kind error, places []Absence) []error {
	out := []error{kind}
	for _, at := range places {
		out = append(out, at.Err)
	}
	return out
}

func join[T fmt.Stringer](parts []T) string {
	words := make([]string, len(parts))
	for i, p := range parts {
		words[i] = p.String()
	}
	return strings.Join(words, "; ")
}
