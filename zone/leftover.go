package zone

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/host"
)

// RemoveConfig removes the configuration of a zone that no index names: what a
// zonecfg leaves that is killed between the two (zonecfg_save and zonecfg_destroy in
// usr/src/lib/libzonecfg/common/libzonecfg.c). zoneadm does not know such a zone,
// and zonecfg delete cannot be relied on: it goes by a state that nobody has set.
type RemoveConfig struct {
	Name  string
	Inode uint64 // of the file that is meant
}

// Verb names the step.
func (RemoveConfig) Verb() string { return "zone.remove-configuration" }

// Undo is nil: no zone had the file.
func (RemoveConfig) Undo() any { return nil }

// Explain is the removal.
func (s RemoveConfig) Explain() []host.Line { return []host.Line{host.RemoveLine(configFile(s.Name))} }

// Do removes the file. A missing file is host.ErrNotFound; one that has changed since,
// or that the index names, is host.ErrRefused.
func (s RemoveConfig) Do(_ context.Context, h host.Host) error {
	info, err := h.Files().Stat(configFile(s.Name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("configuration of zone %s: %w", s.Name, host.ErrNotFound)
	case err == nil && info.Inode != s.Inode:
		err = fmt.Errorf("it was written again since: %w", host.ErrRefused)
	case err == nil:
		err = removeUnnamed(h.Files(), s.Name)
	}
	if err != nil {
		return fmt.Errorf("remove the configuration of zone %s: %w", s.Name, err)
	}
	return nil
}

// removeUnnamed removes the file of a zone that the index does not name, if there
// is one. That the index names it is host.ErrRefused.
func removeUnnamed(f host.Files, name string) error {
	if _, err := f.Stat(configFile(name)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	entries, err := readIndex(f)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(entries, func(e Entry) bool { return e.Name == name }) {
		return fmt.Errorf("the index names it: %w", host.ErrRefused)
	}
	if err := f.Remove(configFile(name)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func configFile(name string) string { return path.Join(Dir, name+".xml") }

// ConfigOf is the zone whose configuration a file is, by the file's name.
func ConfigOf(file string) (zone string, ok bool) {
	base, here := strings.CutPrefix(file, Dir+"/")
	zone, ok = strings.CutSuffix(base, ".xml")
	return zone, here && ok && ValidateName(zone) == nil
}
