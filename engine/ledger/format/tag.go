package format

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// EpochTag names an epoch of a ledger, as a witness keeps it. As JSON it is its
// text.
type EpochTag struct {
	Ledger string
	N      uint64
	Epoch  string // the epoch's id
}

// String is the tag as a witness keeps it: LEDGER:N:EPOCH.
func (t EpochTag) String() string { return fmt.Sprintf("%s:%d:%s", t.Ledger, t.N, t.Epoch) }

// ParseEpochTag reads what String wrote. Any other text is an error.
func ParseEpochTag(text string) (EpochTag, error) {
	ledger, rest, one := strings.Cut(text, ":")
	n, epoch, two := strings.Cut(rest, ":")
	number, err := strconv.ParseUint(n, 10, 64)
	if t := (EpochTag{ledger, number, epoch}); one && two && err == nil && number > 0 && ledger != "" && epoch != "" && t.String() == text {
		return t, nil
	}
	return EpochTag{}, fmt.Errorf("%q is not an epoch tag of a ledger, LEDGER:N:EPOCH", text)
}

// MarshalText is String.
func (t EpochTag) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText is ParseEpochTag.
func (t *EpochTag) UnmarshalText(text []byte) (err error) {
	*t, err = ParseEpochTag(string(text))
	return err
}

// Over reports whether t replaces the old tag. It fails if a tag that is no older
// would be lost.
func (t EpochTag) Over(old EpochTag, givenUp ...EpochTag) (bool, error) {
	switch {
	case old == t:
		return false, nil
	case old.Ledger == t.Ledger && old.N >= t.N:
		return false, fmt.Errorf("%v is not older than %v", old, t)
	case old.Ledger == t.Ledger:
		return true, nil
	}
	return slices.ContainsFunc(givenUp, old.EndedBy), nil
}

// EndedBy reports whether giving up the other tag's epoch gives up this one too.
func (t EpochTag) EndedBy(other EpochTag) bool { return t.Ledger == other.Ledger && t.N <= other.N }
