package nicsync

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/peer/napi"
)

// Settings are how the records of this sled are found and told.
type Settings struct {
	Owner
	Server napi.Server
	Names  naming.Prefixes
	// AllowNICs lets GET /nics?cn_uuid= be asked where there is no /search/nics.
	AllowNICs bool
	// WithoutEtag lets leaked records go although the server has no conditional
	// requests: somebody may change one between the look and the removal.
	WithoutEtag bool
	// LockFile is a file that forbids every write.
	LockFile napi.LockFile
	// Recorded are the VMs that the ledger knows, and those that it remembers to
	// have departed; nil: none.
	Recorded func(ledger.View) ([]VM, error)
	// Ledgerless says that the sled has no ledger, and no VM that one would know.
	Ledgerless bool
	// also are VMs that were marked and may be gone, and that the ledger may not know.
	also []VM
	// Again is as that of a napi.Client.
	Again func(n int, err error) (wait time.Duration, more bool)
}

// known are the VMs of the ledger, as it is when asked.
func (s Settings) known(env operation.Env) func(context.Context) ([]VM, error) {
	read := s.bookOf(env)
	return func(ctx context.Context) ([]VM, error) {
		view, err := read(ctx)
		if err != nil {
			return nil, err
		}
		return s.remembered(view)
	}
}

// parallel is how many records are read at once.
const parallel = 8

func (s Settings) client(h host.Host) napi.Client {
	return napi.Client{Host: h, Server: s.Server, Again: s.Again}
}

// discover lists the records that say they are of this sled: by the route of RFD
// 58, else by the one that servers have, if that is allowed. An answer that was
// not filtered is not relied on.
func (s Settings) discover(ctx context.Context, h host.Host) ([]napi.NIC, error) {
	c := s.client(h)
	nics, err := c.List(ctx, napi.RouteSearch, s.CN)
	if unsupported(err) && s.AllowNICs {
		nics, err = c.List(ctx, napi.RouteNICs, s.CN)
	}
	if unsupported(err) {
		err = &UnsupportedError{Err: err, Allowed: s.AllowNICs}
	}
	return nics, err
}

func unsupported(err error) bool {
	return errors.Is(err, napi.ErrNoRoute) || errors.Is(err, napi.ErrNoFilter)
}

// read reads records one by one; one that does not exist is left out.
func (s Settings) read(ctx context.Context, h host.Host, macs []string) (map[string]napi.Record, error) {
	c := s.client(h)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	found := make(map[string]napi.Record, len(macs))
	var mu sync.Mutex
	var all sync.WaitGroup
	room := make(chan struct{}, parallel)
	for _, mac := range macs {
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			if ctx.Err() != nil {
				return
			}
			r, err := c.Get(ctx, mac)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.Is(err, napi.ErrNoNIC):
			case err != nil:
				cancel(err) // the first reason; the others follow from it
			default:
				found[mac] = r
			}
		})
	}
	all.Wait()
	return found, context.Cause(ctx)
}

// seen is what one look has found.
type seen struct {
	first, local Local // at its beginning, and at its end
	records      []napi.Record
	again        map[string]napi.Record // those that were leaked, once more
	own          int                    // how many records say that they are of this sled
	scope        []string               // the addresses that were looked at; nil: all
}

// lookAtAll looks at the sled, at NAPI, and at the sled again: a VM that came
// while NAPI was asked is here. Records that would change are read by themselves:
// lists have no tags, and a list is old when its last page is read.
func (s Settings) lookAtAll(ctx context.Context, h host.Host, read book, wait func(context.Context) error) (seen, error) {
	local, err := s.look(ctx, h, read)
	if err != nil {
		return seen{}, err
	}
	listed, err := s.discover(ctx, h)
	if err != nil {
		return seen{}, err
	}
	records := make(map[string]napi.Record, len(listed))
	for _, n := range listed {
		records[n.MAC] = napi.Record{NIC: n}
	}
	var absent []string
	for _, mac := range local.macs() {
		if _, ok := records[mac]; !ok {
			absent = append(absent, mac)
		}
	}
	byMAC, err := s.read(ctx, h, absent)
	if err != nil {
		return seen{}, err
	}
	maps.Copy(records, byMAC)
	var stale []string
	for _, f := range Judge(s.Owner, local, values(records)) {
		if _, fresh := byMAC[f.MAC]; !fresh && (f.Removed || !f.Change.Empty()) {
			stale = append(stale, f.MAC)
		}
	}
	fresh, err := s.read(ctx, h, stale)
	if err != nil {
		return seen{}, err
	}
	for _, mac := range stale {
		delete(records, mac)
	}
	maps.Copy(records, fresh)
	return s.lookAgain(ctx, h, read, seen{first: local, records: values(records), own: len(listed)}, wait)
}

// lookAt looks at some records only, to whose VMs something happened, or which
// somebody else has changed.
func (s Settings) lookAt(ctx context.Context, h host.Host, read book, of scope, wait func(context.Context) error) (seen, error) {
	local, err := s.look(ctx, h, read)
	if err != nil {
		return seen{}, err
	}
	macs := of.with(local)
	records, err := s.read(ctx, h, macs)
	if err != nil {
		return seen{}, err
	}
	return s.lookAgain(ctx, h, read, seen{first: local, records: values(records), scope: macs}, wait)
}

// lookAgain is the second look, at the sled and at those records that would go.
func (s Settings) lookAgain(ctx context.Context, h host.Host, read book, was seen, wait func(context.Context) error) (seen, error) {
	var going []string
	for _, f := range Judge(s.Owner, was.first, was.records) {
		if f.Removed {
			going = append(going, f.MAC)
		}
	}
	var err error
	if len(going) > 0 && wait != nil {
		if err = wait(ctx); err != nil {
			return was, err
		}
		if was.again, err = s.read(ctx, h, going); err != nil {
			return was, err
		}
	}
	was.local, err = s.look(ctx, h, read)
	return was, err
}

func values(records map[string]napi.Record) []napi.Record {
	all := make([]napi.Record, 0, len(records))
	for _, mac := range slices.Sorted(maps.Keys(records)) {
		all = append(all, records[mac])
	}
	return all
}
