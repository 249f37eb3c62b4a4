// Package ledger keeps the ledger of a sled: an append-only file of JSON
// lines, in several copies (one per M.2), any of which may be away, old, torn
// or wrong when it is read.
//
// What holds, whatever is killed, cut off or pulled out: a fact that Update
// acknowledged or that a View showed is never lost, rolled back or forked.
// What remains in the worst case is a refusal that names the files.
//
// The way through the package is the way of one append. A lock (ledger.go),
// a look at every place (look.go, copy.go), each file verified line by line (package
// format), the rules that say which of them to believe (open.go),
// shorter copies brought up (catchup.go), the caller's decision over a View
// (view.go), one line written to all members and flushed (append.go). Who the
// members are is itself kept in lines: create.go, join.go and degrade.go write
// those. rewrite.go keeps the file short, history.go reads what it left out.
package ledger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sync"

	"github.com/sledctl/sledctl/engine/ledger/format"
	"github.com/sledctl/sledctl/host"
)

// What the lines of the ledger are made of.
type (
	Fact      = format.Fact      // one key with its value
	Head      = format.Head      // the last line of a copy
	Epoch     = format.Epoch     // a span with the same members
	MemberRef = format.MemberRef // a member's copy id and pool
	EpochTag  = format.EpochTag  // the latest epoch, as U.2 pools store it
	Entry     = format.Entry     // one append of the past
)

// ParseEpochTag reads what EpochTag.String wrote. Any other text is an error.
func ParseEpochTag(text string) (EpochTag, error) { return format.ParseEpochTag(text) }

// Location is a directory that may hold a copy.
type Location struct {
	Directory string // absolute; the file in it is ledger.jsonl
	// Pool identifies the pool of the dataset whose mountpoint is Directory's
	// parent. Empty: a plain directory, which need not be mounted.
	Pool string
}

// fileName is the name of a copy in its directory.
const fileName = "ledger.jsonl"

// File is the name of the copy that the location may hold.
func (l Location) File() string { return path.Join(l.Directory, fileName) }

// Places says where the copies may be and what guards them.
type Places struct {
	// Lock is the file that is locked: shared by readers, alone by writers. It
	// lies on the RAM disk and never next to a copy, which a rewrite renames and
	// which goes with a pulled disk.
	Lock      string
	Locations []Location
	Witness   Witness // nil: NoWitness
	// Warn gets what does not stop a writer; may be nil.
	Warn func(text string)
}

// Ledger is an open ledger. It is safe for concurrent use, by goroutines
// and by processes.
type Ledger struct {
	files  host.Files
	places Places
	limit  int // bytes of dead lines below which nothing is rewritten
	worth  int // bytes of a copy below which its index is not kept

	mu       sync.Mutex
	seen     map[string]*copyAt // by directory: what was read there last
	absent   []Absence          // the other places
	dead     error              // set by the first failed write
	dropping *reason            // set by Degrade
	doubts   []string           // warnings of every later View
	pure     bool               // Purge has found nothing, or is done
	searched []string           // see stamp
	clean    *Head              // see stamp
	sure     *evidence          // see weighed
}

// rewriteLimit is the amount of dead lines that is worth a rewrite, in bytes.
const rewriteLimit = 256 << 10

// reason says who changes the membership, and why.
type reason struct{ who, why string }

// Open reads every copy and decides which to believe; the view is what it then has
// read, as Read gives it. It changes nothing. The errors are those of Read.
func Open(ctx context.Context, files host.Files, places Places) (*Ledger, View, error) {
	l, err := unopened(files, places)
	if err != nil {
		return nil, View{}, err
	}
	view, err := l.Read(ctx)
	if err != nil {
		return nil, View{}, err
	}
	return l, view, nil
}

// unopened is a ledger nobody has looked at yet.
func unopened(files host.Files, places Places) (*Ledger, error) {
	for _, at := range places.Locations {
		if path.Dir(places.Lock) == path.Clean(at.Directory) {
			return nil, fmt.Errorf("lock file %s lies next to a copy of the ledger", places.Lock)
		}
	}
	if places.Witness == nil {
		places.Witness = NoWitness{}
	}
	places.Locations = cleaned(places.Locations)
	return &Ledger{files: files, places: places, limit: rewriteLimit, worth: worthKeeping, seen: map[string]*copyAt{}}, nil
}

// cleaned names every directory once, with its pool if one of its locations
// does.
func cleaned(locations []Location) []Location {
	var out []Location
	for _, at := range locations {
		at.Directory = path.Clean(at.Directory)
		i := slices.IndexFunc(out, func(o Location) bool { return o.Directory == at.Directory })
		if i < 0 {
			out = append(out, at)
		} else if out[i].Pool == "" {
			out[i].Pool = at.Pool
		}
	}
	return out
}

// Read is what the best copy holds. Why that may not be all that was acknowledged
// is in the View's Unconfirmed. The errors are ErrAbsent, ErrMissing (no member is
// present at all), ErrForked, ErrTwins, ErrBroken, ErrDamaged, ErrRewound,
// ErrForeign, ErrSuperseded, ErrContradicted, ErrWriteFailed, and the context's while
// waiting for a writer.
func (l *Ledger) Read(ctx context.Context) (View, error) {
	p, err := l.lookShared(ctx)
	if err != nil {
		return View{}, err
	}
	return p.view(p.best)
}

// Settled is Read for those who are about to change something, or to say that
// there is nothing to change: what is unconfirmed is settled first, as the next
// Update would. Its errors are those of Update.
func (l *Ledger) Settled(ctx context.Context) (View, error) {
	p, err := l.lookShared(ctx)
	if err != nil {
		return View{}, err
	}
	if p.level() && len(p.missing) == 0 {
		return p.view(p.best)
	}
	return l.Update(ctx, func(View) ([]Fact, error) { return nil, nil })
}

// Unchanged reports whether Read would find no line beyond seq: each copy ends with
// it, and is still the file that l last read. It is false if a location had no copy
// then, or cannot be looked at now. It takes no lock and asks no witness: it serves
// a process that has read the ledger up to seq and follows it.
func (l *Ledger) Unchanged(seq uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, at := range l.places.Locations {
		before := l.seen[at.Directory]
		if before == nil || before.text.Head().Seq != seq {
			return false
		}
		if info, err := l.files.Stat(at.File()); err != nil || !before.is(info) {
			return false
		}
	}
	return l.dead == nil && len(l.seen) > 0
}

func (l *Ledger) lookShared(ctx context.Context) (*survey, error) {
	unlock, err := l.lock(ctx, host.LockShared)
	if err != nil {
		return nil, err
	}
	defer unlock()
	return l.shown(ctx)
}

// shown is what a reader may show. The lock is held.
func (l *Ledger) shown(ctx context.Context) (*survey, error) {
	p, err := l.look(ctx)
	if err != nil {
		return nil, l.missed(ctx, err)
	}
	if len(p.members) == 0 {
		return nil, p.missingError()
	}
	if err := l.weigh(ctx, p, false); err != nil {
		return nil, err
	}
	l.keepIndex(p.best.text, false)
	return p, nil
}

// missed adds to the news that there is no copy what the witness knows of one.
func (l *Ledger) missed(ctx context.Context, err error) error {
	absent, ok := errors.AsType[*AbsentError](err)
	if !ok {
		return err
	}
	said, werr := l.places.Witness.Read(ctx)
	if werr != nil {
		return fmt.Errorf("%w; ask its witness: %w", err, werr)
	}
	if absent.Tag, werr = latest(said); werr != nil {
		return fmt.Errorf("%w; %w", err, werr)
	}
	return absent
}

// Degrade lets later Updates of l continue without the members that are missing:
// the first that has something to write names the present ones as the only
// members. Who and why are kept in that line.
func (l *Ledger) Degrade(who, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropping = &reason{who, why}
}

// lock takes the lock of all copies. Its directory is on the RAM disk and may
// not be there yet.
func (l *Ledger) lock(ctx context.Context, mode host.LockMode) (unlock func(), err error) {
	lock, err := l.files.Lock(ctx, l.places.Lock, mode)
	if errors.Is(err, fs.ErrNotExist) {
		err = host.MkdirAll(l.files, path.Dir(l.places.Lock), 0o755)
		if errors.Is(err, host.ErrReadOnly) && mode == host.LockShared {
			// Nobody has locked anything since the sled booted. Should a writer begin
			// now, we see what a reader sees after that writer was killed.
			return func() {}, nil
		}
		if err == nil {
			lock, err = l.files.Lock(ctx, l.places.Lock, mode)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("lock the ledger: %w", err)
	}
	return func() { lock.Unlock() }, nil
}
