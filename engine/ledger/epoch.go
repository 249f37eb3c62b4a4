package ledger

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// membersKey is the key of the fact that an epoch line holds, alone.
const membersKey = "members"

// Epoch is a span of the ledger's life in which the same copies counted. It
// begins with the line that names them.
type Epoch struct {
	N      uint64 `json:"n"` // 1, 2, …; some are left out where copies were given up
	ID     string `json:"id"`
	Copies []Seat `json:"copies"`
	// Lost are former members that a sled went on without and that no new copy
	// has replaced yet.
	Lost []Seat `json:"lost,omitempty"`
	// Despite is the mark that a witness had when an operator gave up, on
	// purpose, what it stands for.
	Despite *Mark  `json:"despite,omitempty"`
	Who     string `json:"who"`
	Why     string `json:"why"`

	Seq  uint64    `json:"-"` // of its line
	Time time.Time `json:"-"`
	hash string
}

// Seat is a copy's place among the members. It is written as [copy, pool].
type Seat struct{ Copy, Pool string }

// MarshalJSON writes the seat as an array of two.
func (s Seat) MarshalJSON() ([]byte, error) { return json.Marshal([2]string{s.Copy, s.Pool}) }

// UnmarshalJSON reads an array of two.
func (s *Seat) UnmarshalJSON(data []byte) error {
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
func (s Seat) String() string {
	if s.Pool == "" {
		return "copy " + s.Copy
	}
	return fmt.Sprintf("copy %s (pool %s)", s.Copy, s.Pool)
}

// seated says whether the copy is a member.
func (e Epoch) seated(copyID string) bool {
	return slices.ContainsFunc(e.Copies, func(s Seat) bool { return s.Copy == copyID })
}

// fact is the one fact of the epoch's line.
func (e Epoch) fact() Fact {
	value, err := json.Marshal(e)
	if err != nil {
		panic(err) // strings and numbers only
	}
	return Fact{membersKey, value}
}

// next is the epoch that follows e, with other members.
func (e Epoch) next(copies, lost []Seat, by reason) Epoch {
	return Epoch{N: e.N + 1, ID: newID(), Copies: copies, Lost: lost, Who: by.who, Why: by.why}
}

// mark is what the witness is told of the epoch.
func (e Epoch) mark(ledger string) Mark { return Mark{Ledger: ledger, N: e.N, Epoch: e.ID} }

// isEpochLine says whether a line's facts are those of an epoch line.
func isEpochLine(facts []byte) bool {
	return bytes.HasPrefix(facts, []byte(openKey+membersKey+openValue))
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

// sameEpochs says whether a is how b began.
func sameEpochs(a, b []Epoch) bool {
	return len(a) <= len(b) && slices.EqualFunc(a, b[:len(a)], func(x, y Epoch) bool { return x.hash == y.hash && x.Seq == y.Seq })
}

// newID is a random name for a ledger, a copy or an epoch.
func newID() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
