package bundle

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/naming"
)

// Place is a directory for bundles.
type Place struct {
	Dir     string
	Pool    string // on which it lies; empty: a configured directory
	Dataset string // that must be mounted there
}

// Top is the directory in which the bundles of a place lie.
func (p Place) Top() string { return path.Join(p.Dir, topDir) }

// Places lists where bundles may lie, best first: the configured directory, or,
// if there is none, the debug datasets of the U.2s, then those of the M.2s.
func Places(configured string, pools []string) []Place {
	if configured != "" {
		return []Place{{Dir: configured}}
	}
	var places []Place
	for _, kind := range []naming.PoolKind{naming.ExternalPool, naming.InternalPool} {
		for _, pool := range slices.Sorted(slices.Values(pools)) {
			if k, _ := naming.ParsePool(pool); k == kind {
				at, _ := naming.Debug(pool)
				places = append(places, Place{Dir: at.Mountpoint, Pool: pool, Dataset: at.Dataset})
			}
		}
	}
	return places
}

// NowhereError is a sled without a place for bundles.
type NowhereError struct{ Reasons []error }

// Error says why no place will do.
func (e *NowhereError) Error() string {
	words := make([]string, len(e.Reasons))
	for i, err := range e.Reasons {
		words[i] = err.Error()
	}
	if len(words) == 0 {
		words = []string{"no pool of a U.2 or an M.2 is imported, and bundle.directory is not set"}
	}
	return "there is no place for bundles: " + strings.Join(words, "; ")
}

func (*NowhereError) Kind() fault.Kind { return fault.Failed }

// Ready leaves the places that can be written to. Without any that could be one, that is
// the directory of the package, if it is there. If there is none, the error is a
// *NowhereError.
func Ready(f host.Files, places []Place) ([]Place, error) {
	nowhere := &NowhereError{}
	var ready []Place
	if len(places) == 0 {
		for _, dir := range naming.StateDirectories() {
			if p := (Place{Dir: dir}); p.check(f) == nil {
				return []Place{p}, nil
			}
		}
	}
	for _, p := range places {
		if err := p.check(f); err != nil {
			nowhere.Reasons = append(nowhere.Reasons, err)
		} else {
			ready = append(ready, p)
		}
	}
	if len(ready) == 0 {
		return nil, nowhere
	}
	return ready, nil
}

// check says why a place cannot be used: what is written below a mountpoint
// without its dataset lands on the file system under it, which may be in
// memory, and is hidden once the dataset is mounted.
func (p Place) check(f host.Files) error {
	info, err := f.Stat(p.Dir)
	switch {
	case err != nil:
		return err
	case !info.Mode.IsDir():
		return fmt.Errorf("%s is no directory", p.Dir)
	case p.Dataset == "":
		return nil
	}
	above, err := f.Stat(path.Dir(p.Dir))
	if err != nil {
		return err
	}
	if above.Device == info.Device {
		return fmt.Errorf("dataset %s is not mounted on %s", p.Dataset, p.Dir)
	}
	return nil
}

// Best is the place for bundles of a zone that lies on a pool: that of its own
// pool, else the first.
func Best(ready []Place, pool string) (Place, bool) {
	i := slices.IndexFunc(ready, func(p Place) bool { return p.Pool == pool && pool != "" })
	if i < 0 && len(ready) == 0 {
		return Place{}, false
	}
	return ready[max(i, 0)], true
}

// errTooLarge is a bundle that alone is larger than all may be.
var errTooLarge = errors.New("larger than all bundles of its place may be together")
