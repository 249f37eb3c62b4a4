package documents

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// What becomes of a fact that was exported.
const (
	ImportTaken    = "take"
	ImportReplaced = "replace"
	ImportSame     = "same"     // it is there, as it was
	ImportLeft     = "left out" // it is the sled's own, which the sled has again
)

// Import is what a ledger takes back of what another one said.
type Import struct {
	Facts []ledger.Fact
	Told  []Imported // by key
}

// Imported is one fact of those that were exported.
type Imported struct {
	Key    string `json:"key"`
	Action string `json:"action"`
	Name   string `json:"name,omitempty"` // of the instance whose record it is
}

// ImportError is an export that cannot be taken: it is not what one says, or other
// than what the ledger knows.
type ImportError struct {
	Key, Reason string
	Differs     bool // the ledger has it otherwise
}

// Error names the fact.
func (e *ImportError) Error() string { return fmt.Sprintf("fact %s: %s", e.Key, e.Reason) }

// Kind separates a bad file from a conflict with the sled.
func (e *ImportError) Kind() fault.Kind {
	if e.Differs {
		return fault.Conflict
	}
	return fault.Usage
}

// Hint says what would be right.
func (e *ImportError) Hint() string {
	if e.Differs {
		return "leave the fact out of the file; or, to take that of the file, run: sledctl ledger import --replace FILE"
	}
	return "give a file that was written with: sledctl ledger export"
}

// TakeBack says what of an export the ledger takes: all that was decided of
// instances. Its disks, bases and network are those of the sled as it was
// then; what had begun and not ended is over. It is pure. Errors: *ImportError; those
// of what others have taken; *BusyError.
func TakeBack(view ledger.View, exported map[string]json.RawMessage, replace bool) (Import, error) {
	i := &importing{view: view, exported: exported, replace: replace, owners: map[string]string{}, busy: map[string]bool{}}
	for _, open := range operation.Open(view) {
		i.busy[open.Subject] = true
	}
	for _, key := range slices.Sorted(maps.Keys(exported)) {
		if err := i.take(key); err != nil {
			return Import{}, err
		}
	}
	return i.Import, nil
}

// importing is an import as far as it has come.
type importing struct {
	Import
	view     ledger.View
	exported map[string]json.RawMessage
	replace  bool
	owners   map[string]string // of what its records reserve, by key
	busy     map[string]bool   // subjects on which something has begun
}

func (i *importing) tell(key, action, name string) {
	i.Told = append(i.Told, Imported{key, action, name})
}

func (i *importing) take(key string) error {
	owner, known := naming.OwnerOfKey(key)
	switch {
	case !known:
		return &ImportError{Key: key, Reason: "no fact has this name"}
	case strings.HasPrefix(key, naming.KeyInstance):
		return i.record(key)
	case key == naming.KeyEpoch:
		return i.starts(key)
	case strings.HasPrefix(key, naming.KeySent), strings.HasPrefix(key, naming.KeyTombstone),
		strings.HasPrefix(key, naming.KeyDeparted), strings.HasPrefix(key, naming.KeyArrived):
		i.listNextTo(key)
	case owner != "instance":
		i.tell(key, ImportLeft, "")
	}
	return nil // a reservation comes with its record
}

// record takes an instance, with all that it reserves.
func (i *importing) record(key string) error {
	r, err := record.Decode(i.exported[key])
	if err == nil {
		err = r.Spec.Validate()
	}
	if err == nil && record.ValidateName(r.Name) != nil {
		err = record.ValidateName(r.Name)
	}
	if err == nil && naming.KeyInstance+r.ID != key {
		err = fmt.Errorf("it is of instance %q", r.ID)
	}
	if err != nil {
		return &ImportError{Key: key, Reason: err.Error()}
	}
	for _, reserved := range r.Reserves() {
		if other := i.owners[reserved]; other != "" && other != r.ID {
			return &ImportError{Key: key, Reason: fmt.Sprintf("instance %s has %s too", other, reserved)}
		}
		i.owners[reserved] = r.ID
	}
	old, known, err := record.Load(i.view, r.ID)
	if err != nil {
		return err
	}
	action := ImportTaken
	if known {
		now, err := json.Marshal(old)
		was, merr := json.Marshal(r)
		switch {
		case err != nil || merr != nil:
			return errors.Join(err, merr)
		case bytes.Equal(now, was):
			i.tell(key, ImportSame, r.Name)
			return nil
		case !i.replace:
			return &ImportError{
				Key: key, Differs: true,
				Reason: fmt.Sprintf(
					"the ledger has another record of instance %q, since %s", old.Name,
					old.Updated.UTC().Format("2006-01-02 15:04:05Z"),
				),
			}
		}
		action = ImportReplaced
	}
	if i.busy[record.Subject(r.ID)] {
		return &BusyError{Name: r.Name}
	}
	if err := instance.Unreserved(i.view, r); err != nil {
		return err
	}
	facts, err := r.Replaces(old)
	if err != nil {
		return err
	}
	i.Facts = append(i.Facts, facts...)
	i.tell(key, action, r.Name)
	return nil
}

// listNextTo takes what is kept of an instance or of its end, where nothing is.
func (i *importing) listNextTo(key string) {
	if _, there := i.view.Get(key); there {
		i.tell(key, ImportSame, "")
		return
	}
	i.put(key)
}

func (i *importing) put(key string) {
	i.Facts = append(i.Facts, ledger.Fact{Key: key, Value: i.exported[key]})
	i.tell(key, ImportTaken, "")
}

// starts takes the count of agents that have been started, which never falls.
func (i *importing) starts(key string) error {
	count := func(value json.RawMessage) (uint64, error) { return strconv.ParseUint(string(value), 10, 64) }
	was, err := count(i.exported[key])
	if err != nil {
		return &ImportError{Key: key, Reason: "it is no number"}
	}
	if value, there := i.view.Get(key); there {
		if now, err := count(value); err != nil || now >= was {
			i.tell(key, ImportSame, "")
			return nil
		}
	}
	i.put(key)
	return nil
}

// BusyError is an instance on which something has begun.
type BusyError struct{ Name string }

// Error names it.
func (e *BusyError) Error() string {
	return fmt.Sprintf("an operation on instance %q is running, or did not finish", e.Name)
}

func (*BusyError) Kind() fault.Kind { return fault.Locked }

// Hint says what would be right.
func (e *BusyError) Hint() string {
	return "wait until it has ended; if it was killed, to close it, run: sledctl reap"
}
