package ledger

import (
	"encoding/json"
	"iter"
	"slices"

	"github.com/sledctl/sledctl/engine/ledger/format"
)

// View is what the ledger held at one moment. It never changes. The zero View
// holds nothing.
type View struct {
	facts    format.Facts
	head     Head
	ledger   string
	epochs   []Epoch // the last of them counts
	members  []Member
	warnings []string
	// unconfirmed is why it may lack what was acknowledged.
	unconfirmed []string
}

// Member is a copy that counts.
type Member struct {
	MemberRef
	File string // empty if it is missing
	Err  error  // why it is missing, nil if it is present
}

// Get is the value of a key. It lies in the ledger's memory: do not change it.
func (v View) Get(key string) (json.RawMessage, bool) {
	return v.facts.Get(key)
}

// All is the keys that open with prefix, sorted, with their values.
func (v View) All(prefix string) iter.Seq2[string, json.RawMessage] {
	return v.facts.All(prefix)
}

// Seq is the number of the last append that the view contains; 0 for the zero
// View.
func (v View) Seq() uint64 { return v.head.Seq }

// Head is the last line that the view contains.
func (v View) Head() Head { return v.head }

// Epoch says since when the same copies count, and who made it so.
func (v View) Epoch() Epoch {
	if len(v.epochs) == 0 {
		return Epoch{}
	}
	return v.epochs[len(v.epochs)-1]
}

// Epochs are all of them, the first one first.
func (v View) Epochs() []Epoch { return slices.Clone(v.epochs) }

// Ledger is the id of the ledger. It stays when copies come and go.
func (v View) Ledger() string { return v.ledger }

// Members are the copies that count, the missing ones too.
func (v View) Members() []Member { return slices.Clone(v.members) }

// Unconfirmed is why the view may lack something that was acknowledged: what it
// does not hold is not known to be absent. None: it is sure.
func (v View) Unconfirmed() []string { return slices.Clone(v.unconfirmed) }

// Unconfirmed begins the warning that a view may lack something.
const Unconfirmed = "unconfirmed: "

// Absent is err, which says that something is not in the view, or an
// *UnconfirmedError where that is not known.
func (v View) Absent(err error) error {
	if err == nil || len(v.unconfirmed) == 0 {
		return err
	}
	return &UnconfirmedError{Err: err, Reasons: v.Unconfirmed()}
}

// Warnings are sentences for stderr: why the view is unconfirmed, members that
// were given up, copies that are not used.
func (v View) Warnings() []string {
	var said []string
	for _, why := range v.unconfirmed {
		said = append(said, Unconfirmed+why)
	}
	return append(said, v.warnings...)
}
