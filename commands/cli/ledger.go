package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/illumos/system"
	"github.com/sledctl/sledctl/sled/failure"
	"github.com/sledctl/sledctl/sled/storage"
)

// How the ledger is found, opened, made and moved.

// book is the ledger, opened by the first caller that needs it.
type book struct {
	open func(context.Context) (*ledger.Ledger, ledger.View, error)
	tell func(error)

	mu   sync.Mutex
	here *ledger.Ledger
	read uint64 // its last line when it was first read; 0: it was not

	words    sync.Mutex      // over what follows: who opens the ledger holds mu, and may warn
	said     map[string]bool // warnings
	scripted func() bool     // a program reads the output: doubts are objects of their own
	doubted  []string
	told     bool
}

// now is what the ledger says at last; the zero View where nobody has asked.
func (b *book) now(ctx context.Context) (ledger.View, error) {
	b.mu.Lock()
	here := b.here
	b.mu.Unlock()
	if here == nil {
		return ledger.View{}, nil
	}
	return here.Read(ctx)
}

// doubts are why what was read may lack something. The caller prints them.
func (b *book) doubts() []string {
	b.words.Lock()
	defer b.words.Unlock()
	b.told = true
	return b.doubted
}

// untold are those that nobody has told.
func (b *book) untold() []string {
	b.words.Lock()
	defer b.words.Unlock()
	if b.told {
		return nil
	}
	return b.doubted
}

// changed says whether the ledger has another last line than when this run
// opened it.
func (b *book) changed(ctx context.Context) bool {
	b.mu.Lock()
	here, read := b.here, b.read
	b.mu.Unlock()
	if here == nil || read == 0 {
		return false
	}
	view, err := here.Read(ctx)
	return err == nil && view.Seq() != read
}

// warn tells something that is wrong with the ledger, once.
func (b *book) warn(text string) {
	b.words.Lock()
	defer b.words.Unlock()
	if b.said[text] {
		return
	}
	if b.said == nil {
		b.said = map[string]bool{}
	}
	b.said[text] = true
	if why, ok := strings.CutPrefix(text, ledger.Unconfirmed); ok && b.scripted() {
		b.doubted = append(b.doubted, why)
		return
	}
	b.tell(errors.New(text))
}

// get also gives what was read where nobody had opened it before.
func (b *book) get(ctx context.Context) (*ledger.Ledger, *ledger.View, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.here != nil {
		return b.here, nil, nil
	}
	opened, view, err := b.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	b.here, b.read = opened, cmp.Or(b.read, view.Seq())
	return opened, &view, nil
}

// forget has the next caller look for its places again: pools may have
// been imported since.
func (b *book) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.here = nil
}

// openedLedger is the ledger; its opener is warned of what is wrong with it.
func (e *Env) openedLedger(ctx context.Context) (*ledger.Ledger, error) {
	opened, view, err := e.book.get(ctx)
	if view != nil {
		e.WarnOf(*view)
	}
	return opened, err
}

// View reads the ledger and warns of what is wrong with it.
func (e *Env) View(ctx context.Context) (ledger.View, error) {
	book, opened, err := e.book.get(ctx)
	if err != nil {
		return ledger.View{}, err
	}
	var view ledger.View
	if opened != nil {
		view = *opened
	} else {
		view, err = book.Read(ctx)
	}
	e.WarnOf(view)
	return view, err
}

// unconfirmed is the end of a command: what was not found in a ledger that may
// lack it is not known to be absent. Scripts are told what is unconfirmed, where
// no object that was printed has said so.
func (e *Env) unconfirmed(ctx context.Context, err error) error {
	if fault.Of(err) == fault.NotFound && !e.Flags.degraded {
		if view, rerr := e.book.now(context.WithoutCancel(ctx)); rerr == nil {
			err = view.Absent(err)
		}
	}
	if reasons := e.book.untold(); len(reasons) > 0 {
		encoder := json.NewEncoder(e.Streams.Err)
		encoder.SetEscapeHTML(false)
		_ = encoder.Encode(struct {
			Kind        string   `json:"kind"`
			Unconfirmed []string `json:"unconfirmed"`
		}{"Unconfirmed", reasons}) // stderr is the last resort
	}
	return err
}

// WarnOf warns of what is wrong with the ledger.
func (e *Env) WarnOf(view ledger.View) {
	for _, w := range view.Warnings() {
		e.book.warn(w)
	}
}

// StateFile says what keeps the ledger from being read, nil if nothing does.
// Commands that show what is on the host, and do not need it for that, end with
// it: after a boot of a root on a RAM disk nothing is there until bootstrap has
// imported the pools, and an empty list would be taken for an empty sled.
func (e *Env) StateFile(ctx context.Context) error {
	_, err := e.View(ctx)
	return err
}

// Places says where the ledger's copies may be.
func (e *Env) Places() (host.Host, ledger.Places, error) {
	c, h, err := e.Reach()
	if err != nil {
		return nil, ledger.Places{}, err
	}
	return h, ledger.Places{
		Lock: path.Join(c.Paths.Run, "ledger.lock"), Locations: ledger.Find(h.Files(), c.Paths.Ledger),
		Witness: storage.Witness{Host: h, Warn: e.Progress.Warn}, Warn: e.book.warn,
	}, nil
}

func (e *Env) openLedger(ctx context.Context) (opened *ledger.Ledger, view ledger.View, err error) {
	h, places, err := e.Places()
	if err != nil {
		return nil, view, err
	}
	c, err := e.Config()
	if err != nil {
		return nil, view, err
	}
	if _, err := h.Files().Stat(c.Paths.Run); err != nil { // most often it is there: then nothing is written
		if err := host.MkdirAll(h.Files(), c.Paths.Run, 0o755); err != nil {
			return nil, view, fmt.Errorf("make %s: %w", c.Paths.Run, err)
		}
	}
	opened, view, err = ledger.Open(ctx, h.Files(), places)
	if err == nil && e.Flags.degraded {
		opened.Degrade(Who(e.Environ), "--degraded")
	}
	return opened, view, err
}

// LedgerWithoutBootstrap says whether there is no ledger and none is needed: on SmartOS
// sledctl runs no VM, so what it remembers is of NIC records alone. With begin the ledger
// is made there, so that operations are remembered.
func (e *Env) LedgerWithoutBootstrap(ctx context.Context, begin bool) (none bool, err error) {
	if _, err := e.Ledger(ctx); !errors.Is(err, ledger.ErrAbsent) {
		return false, nil // reading it says what is wrong
	}
	c, h, err := e.Reach()
	if err != nil {
		return false, err
	}
	if runs, err := system.RunsVMs(ctx, h); err != nil || runs {
		return false, err
	}
	if !begin {
		return true, nil
	}
	if err := host.Privileged(h); err != nil {
		return false, err
	}
	if c.Paths.Ledger == "" {
		if err := host.MkdirAll(h.Files(), naming.SmartOSState, 0o700); err != nil {
			return false, fmt.Errorf("make the place of the ledger: %w", err)
		}
	}
	return false, e.createLedger(ctx)
}

// createLedger makes the ledger where there is none.
func (e *Env) createLedger(ctx context.Context) error {
	h, places, err := e.Places()
	if err != nil {
		return err
	}
	if len(places.Locations) == 0 {
		said, err := places.Witness.Read(ctx)
		if i := slices.IndexFunc(said, func(s ledger.WitnessTag) bool { return s.Tagged }); err == nil && i >= 0 && !e.NewLedger {
			return &ledger.SupersededError{Tag: said[i].Tag}
		}
		return &failure.RefusedError{
			Err: errors.New("there is no place for the ledger: no pool of an M.2 disk (oxi_…) is imported, and paths.ledger is not set"),
			Advice: "set paths.ledger in " + naming.ConfigFile + " to a directory that outlives a reboot, on a sled without M.2s; " +
				"to make pools on blank disks, run: sledctl bootstrap --format-blank",
		}
	}
	e.book.forget()
	if _, err := e.Ledger(ctx); errors.Is(err, ledger.ErrAbsent) {
		if err := allImported(ctx, h); err != nil {
			return err
		}
	}
	defer e.book.forget()
	err = ledger.Create(ctx, h.Files(), places, ledger.Creation{Who: Who(e.Environ), On: ledger.WantedLocations(places.Locations), New: e.NewLedger})
	if absent, ok := errors.AsType[*ledger.AbsentError](err); ok && e.NewLedger && len(absent.Places) == 0 {
		return &failure.RefusedError{
			Err: errors.New("no ledger is begun: no M.2 has a pool that answers"),
			Advice: "reboot the sled if an M.2 was replaced while it ran, since the old pool waits for the old disk; " +
				"to make pools on blank M.2s, run: sledctl bootstrap --new-ledger --format-blank",
		}
	}
	if errors.Is(err, ledger.ErrNotMounted) && !errors.Is(err, ledger.ErrExists) {
		return &failure.RefusedError{Err: err, Advice: "bring the disk back; if it is gone for good, run: sledctl bootstrap --new-ledger"}
	}
	return err
}

// allImported refuses while a pool of the sled's is there and not imported: an
// M.2's may hold the ledger, and a U.2's may know that there is one.
func allImported(ctx context.Context, h host.Host) error {
	pools, err := storage.Waiting(ctx, h)
	if err != nil {
		return fmt.Errorf("look for pools that may hold the ledger: %w", err)
	}
	if len(pools) == 0 {
		return nil
	}
	return &failure.RefusedError{
		Err:    fmt.Errorf("no ledger is made while pool %s is not imported: it may hold one, or know of one", pools[0]),
		Advice: "run: zpool import " + pools[0],
	}
}

// relocateLedger moves the copies to where they belong, and returns a line about what
// it did. In a dry run it moves none, and the line says what it would do.
func (e *Env) relocateLedger(ctx context.Context, dryRun bool) (string, error) {
	moves, err := e.Relocate(ctx, dryRun, "bootstrap")
	return tellMoves(moves, dryRun), err
}

// Relocate moves the copies of the ledger to where they belong, and returns those that
// it moved. In a dry run it moves none, and returns those that it would move.
func (e *Env) Relocate(ctx context.Context, dryRun bool, why string) (ledger.Relocation, error) {
	_, places, err := e.Places()
	if err != nil {
		return ledger.Relocation{}, err
	}
	e.book.forget()
	opened, err := e.Ledger(ctx)
	if err != nil {
		return ledger.Relocation{}, err
	}
	wanted := ledger.WantedLocations(places.Locations)
	moves, err := opened.Relocation(ctx, wanted)
	if err == nil && !dryRun {
		moves, err = opened.Relocate(ctx, wanted, Who(e.Environ), why)
	}
	return moves, err
}

// RefreshWitness tells the U.2 pools which ledger the sled has; some may be new.
func (e *Env) RefreshWitness(ctx context.Context) error {
	opened, err := e.Ledger(ctx)
	if err != nil {
		return err
	}
	return opened.RefreshWitness(ctx)
}

// tellMoves returns the moves of copies as one line, which is empty if there are
// none. After a dry run the line says what would be moved.
func tellMoves(m ledger.Relocation, dryRun bool) string {
	joins, leaves := "created a copy in ", "dropped the copy in "
	if dryRun {
		joins, leaves = "would create a copy in ", "would drop the copy in "
	}
	var said []string
	for _, at := range m.Join {
		said = append(said, joins+at.Directory)
	}
	for _, at := range m.Leave {
		said = append(said, leaves+at.Directory)
	}
	return strings.Join(said, "; ")
}
