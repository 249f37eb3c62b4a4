package logs

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/engine/bundle"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/illumos/smf"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// How much of a log is read, from its end, in bytes: of each of many, less.
const (
	most  = 8 << 20
	least = 16 << 10
)

// Share is how much is read of each of n logs, if that is at most total of all: but a little
// of each.
func Share(total, n int) int { return min(max(total/max(n, 1), least), most) }

// Log is the log of one service of one zone of an instance.
type Log struct {
	Instance string // its name
	Service  string // its FMRI; of any but Propolis' service, what the log is called
	Zone     string
	Root     string // of the zone, as the host names it
	File     string // within it
	Own      bool   // it is that of Propolis
}

// Service says whose logs are meant: Propolis', if it is empty, All, or those of a service
// or an instance of one, e.g. svc:/network/physical:default.
type Service string

// All are all services of a zone.
const All Service = "all"

// fits reports whether a log of a zone is meant, of which own is that of Propolis.
func (s Service) fits(file, own string) bool {
	switch asked := smf.LogFile(string(s)); {
	case path.Dir(file) != smf.LogDir || path.Ext(file) != ".log":
		return false
	case s == "":
		return file == own
	case s == All:
		return true
	case strings.Contains(strings.TrimPrefix(string(s), "svc:/"), ":"):
		return file == asked
	default:
		return strings.HasPrefix(file, strings.TrimSuffix(asked, ".log")+":")
	}
}

// of is the log of another service of the same zone, by its file.
func (l Log) of(file string) Log {
	if file != l.File {
		l.File, l.Own, l.Service = file, false, strings.TrimSuffix(path.Base(file), ".log")
	}
	return l
}

// Of are the logs of a zone that are meant, by one of Propolis', sorted by their names. The
// error is that of a zone without a root, or of its file system.
func (l Log) Of(files host.Files, s Service) ([]Log, error) {
	if s == "" {
		return []Log{l}, nil
	}
	root, err := files.In(l.Root)
	if err != nil {
		return nil, err
	}
	infos, err := root.ReadDir(smf.LogDir)
	if err != nil {
		return nil, err
	}
	var all []Log
	for _, info := range infos {
		if file := path.Join(smf.LogDir, info.Name); info.Mode.IsRegular() && s.fits(file, l.File) {
			all = append(all, l.of(file))
		}
	}
	slices.SortFunc(all, func(a, b Log) int { return strings.Compare(a.File, b.File) })
	return all, nil
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
	fmri := layout.ServiceFMRI(s.Blueprint(), r)
	return Log{
		Instance: r.Name, Service: fmri, Zone: r.Incarnation.Zone, Root: path.Join(r.Incarnation.Zonepath, "root"), File: smf.LogFile(fmri), Own: true,
	}
}

// Chunk is a part of a log, in whole lines but at its beginning.
type Chunk struct {
	Log
	Bundle string // that has it; empty: the zone itself
	Data   []byte
	Cut    bool // there is more before it
	// Another says that it is of another file than what was read before: the zone was made
	// again, or the log rotated.
	Another bool
}

// End is the end of a part, of at most so many bytes.
func (c Chunk) End(limit int) Chunk {
	if over := len(c.Data) - limit; over > 0 {
		c.Data, c.Cut = c.Data[over:], true
	}
	return c
}

// Read is the end of the log, of at most so many bytes. It is read through a view that cannot leave the zone: a guest
// may have planted links there.
func (l Log) Read(files host.Files, limit int) (Chunk, error) {
	root, err := files.In(l.Root)
	if err != nil {
		return Chunk{}, err
	}
	data, info, err := host.Tail(root, l.File, int64(limit))
	return Chunk{Log: l, Data: data, Cut: info.Size > int64(limit)}, err
}

// Kept is the newest bundle that has one of the zones' logs that are meant, with those logs;
// fs.ErrNotExist if none has.
func Kept(files host.Files, past []Log, oldestFirst []bundle.Bundle, s Service) (bundle.Bundle, []Chunk, error) {
	for _, b := range slices.Backward(oldestFirst) {
		i := slices.IndexFunc(past, func(l Log) bool { return l.Zone == b.Zone })
		if i < 0 {
			continue
		}
		in := func(name string) string { return strings.TrimPrefix(name, "root") }
		kept, err := bundle.Read(files, b, func(name string) bool { return s.fits(in(name), past[i].File) })
		if err != nil {
			return b, nil, err
		}
		var all []Chunk
		for _, f := range kept {
			all = append(all, Chunk{Log: past[i].of(in(f.Name)), Bundle: b.ID, Data: f.Data})
		}
		if len(all) > 0 {
			return b, all, nil
		}
	}
	return bundle.Bundle{}, nil, fs.ErrNotExist
}
