package record

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/naming"
)

// Keeper is who decides about a sled, or about an instance. There is one at a time, and
// nobody else changes what it keeps.
type Keeper string

// The keepers.
const (
	Operator Keeper = "operator" // by commands, and by the agent's requests that name no other
	Fleet    Keeper = "fleet"    // an engine that places VMs on many sleds
	Nexus    Keeper = "nexus"    // the control plane of a rack
)

// Text is the keeper in a sentence.
func (k Keeper) Text() string {
	if k == Nexus {
		return "Nexus"
	}
	return "the " + string(k)
}

// Keepers are all of them.
func Keepers() []Keeper { return []Keeper{Operator, Fleet, Nexus} }

// ParseKeeper reads a keeper.
func ParseKeeper(text string) (Keeper, error) {
	if k := Keeper(text); slices.Contains(Keepers(), k) {
		return k, nil
	}
	return "", &InputError{Field: "keeper", Value: text, Want: "operator, fleet or nexus"}
}

// KeptBy is who keeps the instance. A record from before there were keepers is the
// operator's, or the control plane's while that has a VM of it.
func (r Record) KeptBy() Keeper {
	switch {
	case r.Keeper != "":
		return r.Keeper
	case r.VMM != nil:
		return Nexus
	}
	return Operator
}

// Freed is the record as the operator's: its VM is none that another keeper runs.
func (r Record) Freed() Record {
	r.VMM, r.Keeper, r.KeeperGeneration = nil, "", 0
	return r
}

// SledKeeper is who keeps the sled: who may place new instances on it.
type SledKeeper struct {
	Keeper Keeper    `json:"keeper"`
	Since  time.Time `json:"since"`
}

// KeeperOf is who keeps a sled. Known says that it was written down: while it is not, the sled is
// the operator's, and a control plane may register VMs as it could before there were keepers.
func KeeperOf(view ledger.View) (k SledKeeper, known bool, err error) {
	value, known := view.Get(naming.KeyKeeper)
	if !known {
		return SledKeeper{Keeper: Operator}, false, nil
	}
	if err := json.Unmarshal(value, &k); err != nil {
		return SledKeeper{}, true, fmt.Errorf("%s in the ledger: %w", naming.KeyKeeper, err)
	}
	return k, true, nil
}

// CheckPlace refuses that somebody places a new instance on a sled which another one keeps.
func CheckPlace(view ledger.View, asks Keeper) error {
	k, known, err := KeeperOf(view)
	switch {
	case err != nil:
		return err
	case asks == "", asks == k.Keeper, asks == Nexus && !known:
		return nil
	}
	return &KeeperError{Keeper: k.Keeper, Asks: asks}
}

// CheckKeeper refuses that somebody changes an instance which another one keeps.
func (r Record) CheckKeeper(asks Keeper) error {
	if k := r.KeptBy(); asks != "" && asks != k {
		return &KeeperError{Name: r.Name, Keeper: k, Asks: asks}
	}
	return nil
}

// KeeperError is a sled, or an instance on it, that somebody else keeps.
type KeeperError struct {
	Name         string // of the instance; empty: the sled
	Keeper, Asks Keeper
}

// Error says who keeps it.
func (e *KeeperError) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("the sled is kept by %s: %s cannot place an instance on it", e.Keeper.Text(), e.Asks.Text())
	}
	return fmt.Sprintf("instance %q is kept by %s: %s cannot change it", e.Name, e.Keeper.Text(), e.Asks.Text())
}

func (*KeeperError) Kind() fault.Kind { return fault.Refused }

// Hint says how it is changed, and how it is taken over.
func (e *KeeperError) Hint() string {
	if e.Name == "" {
		return fmt.Sprintf("to hand the sled over, run: sledctl sled keeper %s", e.Asks)
	}
	over := fmt.Sprintf("to hand it over, run: sledctl instance keeper %s %s", e.Name, e.Asks)
	switch e.Keeper {
	case Fleet:
		return "use kubectl to change its VirtualMachine; " + over
	case Nexus:
		return "ask the control plane to change it; " + over
	}
	return over
}

// LastGeneration is the last generation that a keeper has given an instance; 0: none. It
// outlives the instance.
func LastGeneration(view ledger.View, id string) (n uint64, err error) {
	value, there := view.Get(naming.KeyGeneration + id)
	if !there {
		return 0, nil
	}
	if err := json.Unmarshal(value, &n); err != nil {
		return 0, fmt.Errorf("%s in the ledger: %w", naming.KeyGeneration+id, err)
	}
	return n, nil
}

// GenerationFact writes down the last generation of an instance.
func GenerationFact(id string, n uint64) (ledger.Fact, error) {
	value, err := json.Marshal(n)
	return ledger.Fact{Key: naming.KeyGeneration + id, Value: value}, err
}

// MaxGeneration bounds generations: every JSON reader can tell those below apart.
const MaxGeneration = 1<<53 - 1

// CheckGeneration refuses a generation that is not above the last one of an instance.
func CheckGeneration(view ledger.View, id string, n uint64) error {
	last, err := LastGeneration(view, id)
	switch {
	case err != nil:
		return err
	case n < 1 || n > MaxGeneration:
		return &InputError{Field: "generation", Value: fmt.Sprint(n), Want: fmt.Sprintf("1 to %d", uint64(MaxGeneration))}
	case n <= last:
		return &GenerationError{ID: id, Given: n, Last: last}
	}
	return nil
}

// GenerationError is a generation of an instance that has passed: the sled has taken a
// higher one, or this one, and a VM of it may have run.
type GenerationError struct {
	ID          string // of the instance
	Given, Last uint64
}

// Error shows both.
func (e *GenerationError) Error() string {
	return fmt.Sprintf("instance %s: generation %d is not above %d, the last one on this sled", e.ID, e.Given, e.Last)
}

func (*GenerationError) Kind() fault.Kind { return fault.Conflict }

// Hint says what would be right.
func (e *GenerationError) Hint() string {
	return fmt.Sprintf("give a generation above %d", e.Last)
}
