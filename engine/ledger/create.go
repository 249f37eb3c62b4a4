package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sledctl/sledctl/engine/ledger/format"
	"github.com/sledctl/sledctl/host"
)

// Creation says how a ledger is made.
type Creation struct {
	Who string
	// On are the locations that get a copy; none: all. The others must hold no
	// file either.
	On []Location
	// New makes a new ledger although the witness knows of one: its copies are
	// lost, and with them all that was decided. Places that are not mounted are
	// passed over.
	New bool
}

// Create makes a new ledger. Only bootstrap may call it: no other command takes
// "nothing found" for "nothing existed". It finishes a creation that was
// interrupted.
//
// The errors are ErrExists if any location holds a file, whatever is in it,
// ErrNotMounted, ErrSuperseded if the witness knows a ledger, and those of the
// file system.
func Create(ctx context.Context, files host.Files, places Places, c Creation) error {
	l, err := unopened(files, places)
	if err != nil {
		return err
	}
	if c.On = cleaned(c.On); len(c.On) == 0 {
		c.On = l.places.Locations
	}
	unlock, err := l.lock(ctx, host.LockExclusive)
	if err != nil {
		return err
	}
	defer unlock()
	if err := l.create(ctx, c); err != nil {
		return fmt.Errorf("create the ledger: %w", err)
	}
	return nil
}

func (l *Ledger) create(ctx context.Context, c Creation) error {
	if c.New {
		l.places.Locations, c.On = l.atHand(l.places.Locations), l.atHand(c.On)
	}
	there, err := l.there()
	if len(there) > 0 {
		return l.finish(ctx, there, c.On) // whatever is wrong elsewhere: this is no new sled
	}
	mark, werr := l.before(ctx)
	if werr != nil {
		return werr
	}
	if mark != nil && !c.New {
		return &SupersededError{Tag: *mark}
	}
	if err == nil {
		err = l.makeRoom(c.On)
	}
	if err != nil {
		return err
	}
	first := Epoch{N: 1, ID: format.NewID(), Who: c.Who, Why: "created"}
	if mark != nil {
		first.N, first.Overrides, first.Why = mark.N+1, mark, "created again"
		if err := l.forgetStamp(); err != nil {
			return err
		}
	}
	t := format.New(poolsOf(c.On), first, time.Now())
	for i, at := range c.On {
		prepared := t.As(t.Epochs[0].Copies[i].Copy)
		if err := host.WriteFile(l.files, at.File()+firstSuffix, prepared, fileMode); err != nil {
			return err
		}
	}
	return l.begin(ctx, t, c.On)
}

// before is the mark of the ledger that the sled had: what its witness says, or
// else what this boot has seen.
func (l *Ledger) before(ctx context.Context) (*EpochTag, error) {
	said, err := l.places.Witness.Read(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask its witness: %w", err)
	}
	mark, err := latest(said)
	if s := l.stamped(); err == nil && mark == nil && s != nil {
		mark = &EpochTag{Ledger: s.Ledger, N: s.N, Epoch: s.Epoch}
	}
	return mark, err
}

// atHand is the locations whose dataset is mounted.
func (l *Ledger) atHand(all []Location) []Location {
	return slices.DeleteFunc(slices.Clone(all), func(at Location) bool { return at.Mounted(l.files) != nil })
}

// makeRoom makes the directories.
func (l *Ledger) makeRoom(on []Location) error {
	for _, at := range on {
		if err := l.ensureDirectory(at); err != nil {
			return err
		}
	}
	if len(on) == 0 {
		return &AbsentError{}
	}
	return nil
}

func poolsOf(locations []Location) (pools []string) {
	for _, at := range locations {
		pools = append(pools, at.Pool)
	}
	return pools
}

// begin gives the prepared files their name. With the first of them the ledger
// is there; all of them are on disk, so that finish can do the others.
func (l *Ledger) begin(ctx context.Context, first *format.Text, locations []Location) error {
	for _, at := range locations {
		if err := rename(l.files, at.File()+firstSuffix, at.File()); err != nil {
			return err
		}
	}
	return l.places.Witness.Write(ctx, first.Epochs[0].Tag(first.Ledger), first.GivenUp()...)
}

// there is the locations that hold a file. Every place must be at hand, also
// those that get no copy: what cannot be seen may hold one.
func (l *Ledger) there() ([]Location, error) {
	var out []Location
	var failed error
	for _, at := range l.places.Locations {
		if err := at.Mounted(l.files); err != nil {
			failed = cmp.Or(failed, fmt.Errorf("%s: %w", at.File(), cause(err)))
			continue
		}
		switch found, err := exists(l.files, at.File()); {
		case err != nil:
			failed = cmp.Or(failed, err)
		case found:
			out = append(out, at)
		}
	}
	return out, failed
}

// finish completes a creation that was killed between two renames. It is one
// if the files that are there hold the first line and no other, and every
// other location holds its prepared file, which has had no other name: then
// nothing was ever written to this ledger.
func (l *Ledger) finish(ctx context.Context, there, on []Location) error {
	exist := &ExistsError{}
	for _, at := range there {
		exist.Files = append(exist.Files, at.File())
	}
	if len(there) >= len(on) || slices.ContainsFunc(there, func(at Location) bool { return !slices.Contains(on, at) }) {
		return exist
	}
	var first *format.Text
	var rest []Location
	for _, at := range on {
		name := at.File()
		if err := at.Mounted(l.files); err != nil {
			return errors.Join(exist, err)
		}
		if ok, err := exists(l.files, name); err != nil {
			return errors.Join(exist, err)
		} else if !ok {
			name, rest = name+firstSuffix, append(rest, at)
		}
		t, err := readText(l.files, name)
		if err != nil {
			return errors.Join(exist, err)
		}
		if !t.Fresh(first) {
			return exist
		}
		first = t
	}
	if len(first.Epochs[0].Copies) != len(on) {
		return exist
	}
	return l.begin(ctx, first, rest)
}

func readText(files host.Files, name string) (*format.Text, error) {
	data, err := host.ReadAtMost(files, name, maxFile)
	if err != nil {
		return nil, err
	}
	t, err := format.Verify(data, nil)
	if err != nil {
		return nil, broken(name, err)
	}
	return t, nil
}
