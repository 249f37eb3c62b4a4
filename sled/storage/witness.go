package storage

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/zfs"
)

// Witness keeps the mark of the ledger on the root dataset of every U.2 pool
// that is imported, as a user property. It needs no key: a root is not
// encrypted. Reading is one command; writing is one more per pool whose mark
// is older.
type Witness struct {
	Host host.Host
	Warn func(error) // gets the error of a pool that could not be written to; may be nil
}

var _ ledger.Witness = Witness{}

// MarkError is a witness that does not say what one says.
type MarkError struct {
	Pool string
	Err  error
}

// Error names the pool.
func (e *MarkError) Error() string {
	return fmt.Sprintf("pool %s: property %s: %v", e.Pool, naming.PropertyLedger, e.Err)
}

func (*MarkError) Kind() fault.Kind { return fault.Ledger }

// Unwrap gives the cause.
func (e *MarkError) Unwrap() error { return e.Err }

// Hint says what would be right.
func (e *MarkError) Hint() string {
	return fmt.Sprintf("find out what wrote this: it was not sledctl; to remove it, run: zfs inherit %s %s", naming.PropertyLedger, e.Pool)
}

// Read returns what each pool says. A sled without U.2 pools has no witness. The
// errors are *MarkError and those of zfs: what could not be seen is not absent.
func (w Witness) Read(ctx context.Context) ([]ledger.WitnessTag, error) {
	roots, err := zfs.Roots(ctx, w.Host, naming.PropertyLedger)
	if err != nil {
		return nil, err
	}
	var seen []ledger.WitnessTag
	for _, r := range roots {
		if kind, _ := naming.ParsePool(r.Name); kind != naming.ExternalPool {
			continue
		}
		p := ledger.WitnessTag{Pool: r.Name}
		if value, ok := r.User[naming.PropertyLedger]; ok {
			if p.Tag, err = ledger.ParseEpochTag(value.Value); err != nil {
				return nil, &MarkError{r.Name, err}
			}
			p.Tagged = true
		}
		seen = append(seen, p)
	}
	return seen, nil
}

// Write puts the mark on every pool that has none, or one that it replaces. One
// pool that took it is enough, since the newest mark counts; of the others Warn is
// told. The errors are those of Read, and that no pool took it. A newer mark is
// left alone, and an error; another sled's is left alone.
func (w Witness) Write(ctx context.Context, m ledger.EpochTag, givenUp ...ledger.EpochTag) error {
	seen, err := w.Read(ctx)
	if err != nil {
		return err
	}
	var takers []ledger.WitnessTag
	told := true // a sled without such pools has nobody to tell
	for _, p := range seen {
		takes := !p.Tagged
		if p.Tagged {
			if takes, err = m.Over(p.Tag, givenUp...); err != nil {
				return &MarkError{p.Pool, err}
			}
		}
		if takes {
			takers, told = append(takers, p), false
		}
	}
	for _, p := range seen {
		told = told || p.Tagged && p.Tag == m
	}
	failed := make([]error, len(takers))
	var wg sync.WaitGroup
	for i, p := range takers {
		wg.Go(func() { failed[i] = w.set(ctx, p, m) })
	}
	wg.Wait()
	return w.enough(failed, told)
}

// enough is nil if some pool took the mark, or one had it.
func (w Witness) enough(failed []error, told bool) error {
	for _, err := range failed {
		told = told || err == nil
	}
	if !told {
		return errors.Join(failed...)
	}
	for _, err := range failed {
		if err != nil && w.Warn != nil {
			w.Warn(err)
		}
	}
	return nil
}

// witnessTime is how long a pool may take: one that hangs must not keep the others
// from being told.
const witnessTime = time.Minute

// Guess root-property-without-key: a user property of a pool's root can be set while its `crypt` is
// locked.
// Check: `zfs set sledctl:test=1 oxp_UUID` right after the import
func (w Witness) set(ctx context.Context, p ledger.WitnessTag, m ledger.EpochTag) error {
	ctx, cancel := context.WithTimeout(ctx, witnessTime)
	defer cancel()
	set := zfs.Set{Dataset: p.Pool, Name: naming.PropertyLedger, Value: m.String()}
	if p.Tagged {
		set.Old, set.OldSource = p.Tag.String(), zfs.Local
	}
	return set.Do(ctx, w.Host)
}
