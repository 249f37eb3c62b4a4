package bundle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/zone"
)

// Take takes a bundle of a zone and writes it durably: temporary file, flush,
// rename, flush of the directory. It removes older ones of the same place if all
// together would be larger than Max, and those of an instance's starts but the newest
// few: a start may be tried again forever. It never changes the zone.
type Take struct {
	Zone     string
	Zonepath string
	Running  bool // it is asked for what runs in it
	ID       string
	Reason   string
	Dir      string // of the place
	Max      int64  // bytes that the bundles of the place may have together
	Lock     string // file whose flock keeps two from making room at once
}

// Verb names the step.
func (Take) Verb() string { return "bundle.take" }

// Undo is nil: what was found out is kept.
func (Take) Undo() any { return nil }

// Explain is the file. Which older ones it replaces is known when it is written.
func (s Take) Explain() []host.Line {
	name := s.file()
	return []host.Line{
		{Kind: host.LineWait, Text: "# collects what zone " + s.Zone + " shows about itself"},
		host.MkdirLine(path.Dir(name), dirMode),
		host.SecretLine(host.Temporary(name), what),
		host.RenameLine(host.Temporary(name), name),
	}
}

// Path is where the bundle lies.
func (s Take) Path() string { return s.file() }

func (s Take) file() string { return fileOf(s.Dir, s.Zone, s.ID) }

const (
	dirMode fs.FileMode = 0o700
	// what is a bundle's content in traces: logs do not belong there.
	what = "the bundle"
)

// Do takes it.
func (s Take) Do(ctx context.Context, h host.Host) error {
	if err := s.do(ctx, h); err != nil {
		return fmt.Errorf("take a bundle of zone %s: %w", s.Zone, err)
	}
	return nil
}

func (s Take) do(ctx context.Context, h host.Host) error {
	if err := zone.ValidateName(s.Zone); err != nil {
		return err // it is a part of a file's name
	}
	at, cause, ok := parseID(s.ID)
	if !ok {
		return fmt.Errorf("%q is no bundle's id", s.ID)
	}
	data, err := pack(s.collect(ctx, h, at, cause))
	if err != nil {
		return err
	}
	lock, err := h.Files().Lock(ctx, s.Lock, host.LockExclusive)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	if err := s.makeRoom(h.Files(), int64(len(data))); err != nil {
		return err
	}
	return s.write(h.Files(), data)
}

func (s Take) collect(ctx context.Context, h host.Host, at time.Time, cause Cause) Metadata {
	var c collection
	c.file(h.Files(), path.Join(zone.Dir, s.Zone+".xml"), "zone.xml")
	if s.Running {
		c.ask(ctx, h, s.Zone, at)
	}
	c.logs(h.Files(), path.Join(s.Zonepath, "root"))
	return Metadata{
		Format: 1, ID: s.ID, Zone: s.Zone, Cause: cause, Reason: s.Reason, Time: at, Zonepath: s.Zonepath,
		Files: append([]Member{}, c.members...), Problems: append([]string{}, c.problems...),
	}
}

// makeRoom removes the oldest bundles, and what writers left that were killed:
// none is at work while the lock is held.
func (s Take) makeRoom(f host.Files, size int64) error {
	if size > s.Max {
		return fmt.Errorf("%d bytes: %w", size, errTooLarge)
	}
	if err := sweep(f, s.Dir); err != nil {
		return err
	}
	all, err := listIn(f, s.Dir)
	if err != nil {
		return err
	}
	oldestFirst(all)
	tries := s.tries(all)
	var gone, rest []Bundle
	for i, b := range all {
		if slices.Contains(tries, i) {
			gone = append(gone, b)
		} else {
			rest = append(rest, b)
		}
	}
	for _, b := range append(gone, Oldest(rest, s.Max-size)...) {
		if err := f.Remove(b.Path); err != nil {
			return err
		}
		_ = f.Remove(path.Dir(b.Path)) // if it was the zone's last
	}
	return nil
}

// Starts is how many bundles are kept of an instance that does not come up.
const Starts = 3

// tries picks the bundles of earlier starts of the same instance that are one too
// many next to this one, and those of the same millisecond, which have its id.
func (s Take) tries(oldestFirst []Bundle) []int {
	_, cause, _ := parseID(s.ID)
	if cause != Start {
		return nil
	}
	var same, again []int
	for i, b := range oldestFirst {
		switch {
		case b.ID == s.ID:
			again = append(again, i)
		case b.Cause == Start && ofOne(b.ID, s.ID):
			same = append(same, i)
		}
	}
	return append(again, same[:max(0, len(same)-(Starts-1))]...)
}

// ofOne says whether two ids derive from the same seed.
func ofOne(a, b string) bool {
	return a[strings.LastIndexByte(a, '-'):] == b[strings.LastIndexByte(b, '-'):]
}

// sweep removes temporary files of bundles.
func sweep(f host.Files, place string) error {
	top := path.Join(place, topDir)
	zones, err := readDir(f, top)
	if err != nil {
		return err
	}
	temporary := path.Base(host.Temporary("*"))
	_, end, _ := strings.Cut(temporary, "*")
	for _, z := range zones {
		if !z.Mode.IsDir() {
			continue
		}
		files, err := readDir(f, path.Join(top, z.Name))
		if err != nil {
			return err
		}
		for _, i := range slices.DeleteFunc(files, func(i host.Info) bool { return !strings.HasSuffix(i.Name, suffix+end) }) {
			if err := f.Remove(path.Join(top, z.Name, i.Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

func (s Take) write(f host.Files, data []byte) error {
	name := s.file()
	if err := host.MkdirAll(f, path.Dir(name), dirMode); err != nil {
		return err
	}
	if err := host.WriteSecret(f, host.Temporary(name), data, what); err != nil {
		return err
	}
	if err := f.Rename(host.Temporary(name), name); err != nil {
		return errors.Join(err, f.Remove(host.Temporary(name)))
	}
	// The directory of the zone may be new, too.
	return errors.Join(f.SyncDir(path.Dir(name)), f.SyncDir(path.Dir(path.Dir(name))))
}
