package format

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// MembersKey is the key of the only fact that an epoch line holds.
const MembersKey = "members"

// Epoch is a span of the ledger in which the same copies count. It begins with the
// line that names them.
type Epoch struct {
	N      uint64      `json:"n"` // 1, 2, …; some are left out where copies were given up
	ID     string      `json:"id"`
	Copies []MemberRef `json:"copies"`
	// Lost are former members that a sled has dropped and that no new copy has
	// replaced yet.
	Lost []MemberRef `json:"lost,omitempty"`
	// Overrides is the tag that a witness had when an operator gave up, on purpose,
	// the epoch that it names.
	Overrides *EpochTag `json:"despite,omitempty"`
	Who       string    `json:"who"`
	Why       string    `json:"why"`

	Seq  uint64    `json:"-"` // of its line
	Time time.Time `json:"-"`
	hash string
}

// MemberRef is a member's copy id and pool. It is written as [copy, pool].
type MemberRef struct{ Copy, Pool string }

// MarshalJSON writes an array of two.
func (s MemberRef) MarshalJSON() ([]byte, error) { return json.Marshal([2]string{s.Copy, s.Pool}) }

// UnmarshalJSON reads an array of two.
func (s *MemberRef) UnmarshalJSON(data []byte) error {
	var both []string
	if err := json.Unmarshal(data, &both); err != nil {
		return err
	}
	if len(both) != 2 || both[0] == "" {
		return fmt.Errorf("a member is written as [copy, pool]")
	}
	s.Copy, s.Pool = both[0], both[1]
	return nil
}

// String names the copy and where it lives.
func (s MemberRef) String() string {
	if s.Pool == "" {
		return "copy " + s.Copy
	}
	return fmt.Sprintf("copy %s (pool %s)", s.Copy, s.Pool)
}

// Seated reports whether the copy is a member.
func (e Epoch) Seated(copyID string) bool {
	return slices.ContainsFunc(e.Copies, func(s MemberRef) bool { return s.Copy == copyID })
}

// Fact is the only fact of the epoch's line.
func (e Epoch) Fact() Fact {
	value, err := json.Marshal(e)
	if err != nil {
		panic(err) // strings and numbers only
	}
	return Fact{MembersKey, value}
}

// Next is the epoch that follows e, with other members. It keeps who changes
// them, and why.
func (e Epoch) Next(copies, lost []MemberRef, who, why string) Epoch {
	return Epoch{N: e.N + 1, ID: NewID(), Copies: copies, Lost: lost, Who: who, Why: why}
}

// Tag is what a witness keeps of the epoch.
func (e Epoch) Tag(ledger string) EpochTag { return EpochTag{Ledger: ledger, N: e.N, Epoch: e.ID} }

// isEpochLine reports whether a line's facts are those of an epoch line.
func isEpochLine(facts []byte) bool {
	return bytes.HasPrefix(facts, []byte(openKey+MembersKey+openValue))
}

func cutEpoch(f fields) (Epoch, error) {
	_, value, rest, ok := cutFact(f.facts)
	if !ok || rest != nil {
		return Epoch{}, fmt.Errorf("an epoch line holds one fact")
	}
	var e Epoch
	if err := json.Unmarshal(value, &e); err != nil {
		return Epoch{}, fmt.Errorf("epoch line: %w", err)
	}
	if e.ID == "" || len(e.Copies) == 0 {
		return Epoch{}, fmt.Errorf("the epoch line names no members")
	}
	at, err := time.Parse(timeForm, string(f.time))
	if err != nil {
		return Epoch{}, fmt.Errorf("epoch line: %w", err)
	}
	e.Seq, e.Time, e.hash = f.seq, at, string(f.hash)
	return e, nil
}

// sameEpochs reports whether b begins with the epochs of a.
func sameEpochs(a, b []Epoch) bool {
	return len(a) <= len(b) && slices.EqualFunc(a, b[:len(a)], func(x, y Epoch) bool { return x.hash == y.hash && x.Seq == y.Seq })
}

// NewID is a random name for a ledger, a copy or an epoch.
func NewID() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// Epoch is the text's last epoch: it says which copies are the members.
func (t *Text) Epoch() Epoch { return t.Epochs[len(t.Epochs)-1] }

// GivenUp returns the tags that operators gave up.
func (t *Text) GivenUp() []EpochTag {
	var tags []EpochTag
	for _, e := range t.Epochs {
		if e.Overrides != nil {
			tags = append(tags, *e.Overrides)
		}
	}
	return tags
}

// Knows reports whether the tag's epoch is one of t's, or was given up in t.
func (t *Text) Knows(tag EpochTag) bool {
	return slices.ContainsFunc(t.Epochs, func(e Epoch) bool { return e.Tag(t.Ledger) == tag || e.Overrides != nil && *e.Overrides == tag })
}
