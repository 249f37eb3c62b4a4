package logs

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"slices"

	"github.com/sledctl/sledctl/engine/bundle"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/illumos/smf"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// most is how much of a log is read, from its end, in bytes.
const most = 8 << 20

// Log is the log of the service of one zone.
type Log struct {
	Zone string
	Root string // of the zone, as the host names it
	File string // within it
}

// Instance is an instance that has logged something, or may have.
type Instance struct {
	ID, Name string
	Deleted  bool
}

// Find finds an instance, also one that was deleted as long as the history of the ledger
// has it. Errors: *record.NotFoundError, and the ledger's.
func Find(ctx context.Context, files host.Files, places ledger.Places, s instance.Settings, view ledger.View, ref string) (Instance, error) {
	r, err := s.Find(view, ref)
	if gone, ok := errors.AsType[*record.NotFoundError](err); ok {
		id, err := formerly(ctx, files, places, ref)
		if err == nil && id == "" {
			err = gone
		}
		return Instance{ID: id, Name: ref, Deleted: true}, err
	}
	return Instance{ID: r.ID, Name: r.Name}, err
}

// Past are the logs of all zones that the ledger remembers of the instance with this id.
func Past(ctx context.Context, files host.Files, places ledger.Places, s instance.Settings, id string) (all []Log, err error) {
	for entry, err := range ledger.History(ctx, files, places) {
		if err != nil {
			return nil, err
		}
		for _, fact := range entry.Facts {
			if fact.Key != naming.KeyInstance+id || fact.Value == nil {
				continue
			}
			then, err := record.Decode(fact.Value)
			if err == nil && then.Incarnation != nil && !slices.Contains(all, logOf(s, then)) {
				all = append(all, logOf(s, then))
			}
		}
	}
	return all, nil
}

// Current is the log of the zone that an instance has now; false: it has none.
func Current(s instance.Settings, view ledger.View, ref string) (Log, bool) {
	r, err := s.Find(view, ref)
	if err != nil || r.Incarnation == nil {
		return Log{}, false
	}
	return logOf(s, r), true
}

// formerly is the id of the instance that last had this name; empty: none had it.
func formerly(ctx context.Context, files host.Files, places ledger.Places, name string) (id string, err error) {
	for entry, err := range ledger.History(ctx, files, places) {
		if err != nil {
			return "", err
		}
		for _, fact := range entry.Facts {
			if fact.Key == naming.KeyName+name && fact.Value != nil {
				_ = json.Unmarshal(fact.Value, &id) // a fact of another form names nobody
			}
		}
	}
	return id, nil
}

func logOf(s instance.Settings, r record.Record) Log {
	return Log{
		Zone: r.Incarnation.Zone, Root: path.Join(r.Incarnation.Zonepath, "root"), File: smf.LogFile(layout.ServiceFMRI(s.Blueprint(), r)),
	}
}

// Read is the end of the log. It is read through a view that cannot leave the zone: a guest
// may have planted links there.
func (l Log) Read(files host.Files) ([]byte, error) {
	root, err := files.In(l.Root)
	if err != nil {
		return nil, err
	}
	data, _, err := host.Tail(root, l.File, most)
	return data, err
}

// Kept is the newest bundle that has one of the logs, with that log; fs.ErrNotExist if none
// has.
func Kept(files host.Files, past []Log, oldestFirst []bundle.Bundle) (bundle.Bundle, []byte, error) {
	for _, b := range slices.Backward(oldestFirst) {
		i := slices.IndexFunc(past, func(l Log) bool { return l.Zone == b.Zone })
		if i < 0 {
			continue
		}
		data, err := bundle.Read(files, b, "root"+past[i].File)
		if !errors.Is(err, fs.ErrNotExist) {
			return b, data, err
		}
	}
	return bundle.Bundle{}, nil, fs.ErrNotExist
}
