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

// Known are the logs that an instance has, or had.
type Known struct {
	Name    string
	Deleted bool
	Now     *Log  // of the zone that is recorded; nil: none is
	Past    []Log // of all zones that the ledger remembers, the newest first
}

// Find finds the logs of an instance, also of one that was deleted as long as the history
// of the ledger has it. Errors: *record.NotFoundError, and the ledger's.
func Find(ctx context.Context, files host.Files, places ledger.Places, s instance.Settings, view ledger.View, ref string) (Known, error) {
	r, err := s.Find(view, ref)
	id := r.ID
	known := Known{Name: r.Name}
	if gone, ok := errors.AsType[*record.NotFoundError](err); ok {
		if id, err = formerly(ctx, files, places, ref); err == nil && id == "" {
			err = gone
		}
		known = Known{Name: ref, Deleted: true}
	}
	if err != nil {
		return Known{}, err
	}
	if r.Incarnation != nil {
		now := logOf(s, r)
		known.Now = &now
	}
	for entry, err := range ledger.History(ctx, files, places) {
		if err != nil {
			return known, err
		}
		for _, fact := range entry.Facts {
			if fact.Key != naming.KeyInstance+id || fact.Value == nil {
				continue
			}
			if then, err := record.Decode(fact.Value); err == nil && then.Incarnation != nil {
				known.add(logOf(s, then))
			}
		}
	}
	slices.Reverse(known.Past)
	return known, nil
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

func (k *Known) add(log Log) {
	if !slices.Contains(k.Past, log) {
		k.Past = append(k.Past, log)
	}
}

// Read is the end of the log.
func (l Log) Read(files host.Files) ([]byte, error) {
	data, _, err := l.after(files, 0)
	return data, err
}

// after is what stands behind an offset, and what file that was. It is read through a view
// that cannot leave the zone: a guest may have planted links there.
func (l Log) after(files host.Files, offset int64) ([]byte, host.Info, error) {
	root, err := files.In(l.Root)
	if err != nil {
		return nil, host.Info{}, err
	}
	info, err := root.Stat(l.File)
	if err != nil {
		return nil, info, err
	}
	data, _, err := host.Tail(root, l.File, min(max(info.Size-offset, 0), most))
	return data, info, err
}

// Kept is the newest bundle that has a log of the instance's, with that log;
// fs.ErrNotExist if none has.
func (k Known) Kept(files host.Files, oldestFirst []bundle.Bundle) (bundle.Bundle, []byte, error) {
	for _, b := range slices.Backward(oldestFirst) {
		i := slices.IndexFunc(k.Past, func(l Log) bool { return l.Zone == b.Zone })
		if i < 0 {
			continue
		}
		data, err := bundle.Read(files, b, "root"+k.Past[i].File)
		if !errors.Is(err, fs.ErrNotExist) {
			return b, data, err
		}
	}
	return bundle.Bundle{}, nil, fs.ErrNotExist
}
