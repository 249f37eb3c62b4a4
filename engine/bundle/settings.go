package bundle

import (
	"path"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/zone"
)

// Settings say where bundles go, and how much of them is kept.
type Settings struct {
	Dir  string // configured; empty: the debug datasets
	Max  int64  // bytes, of all bundles of a place; 0: none are taken by themselves
	Lock string // file whose flock keeps two from making room at once; see LockName
}

// DefaultMax is how much all bundles of a place may take: a hundredth of the
// quota that its dataset has on a sled of Oxide's.
const DefaultMax = 1 << 30

// LockName is the file that is locked, below the run directory.
func LockName(runDir string) string { return path.Join(runDir, "lock", lockName) }

// Ready looks which places there are, given the names of the imported pools.
// The error is a *NowhereError; that bundles are not wanted is none.
func (s Settings) Ready(f host.Files, pools []string) ([]Place, error) {
	if s.Max == 0 {
		return nil, nil
	}
	return Ready(f, Places(s.Dir, pools))
}

// Of is the step that takes a bundle of a zone as it was listed; false if none
// is to be taken: none is wanted, there is no place, the zone was never
// installed. It is pure; seed is what its id derives from.
func (s Settings) Of(ready []Place, z zone.Zone, cause Cause, reason string, now time.Time, seed string) (Take, bool) {
	place, ok := Best(ready, naming.PoolAt(z.Path))
	if s.Max == 0 || !ok || z.State == zone.Configured || zone.ValidateName(z.Name) != nil {
		return Take{}, false
	}
	return Take{
		Zone: z.Name, Zonepath: z.Path, Running: z.State == zone.Running, ID: ID(now, cause, seed+z.Name), Reason: reason,
		Dir: place.Dir, Max: s.Max, Lock: s.Lock,
	}, true
}

// OfStart is the step that takes a bundle of a zone whose instance does not come
// up; false as of Of.
func (s Settings) OfStart(ready []Place, zoneName, zonepath, instance string, running bool, now time.Time) (Take, bool) {
	state := zone.Installed
	if running {
		state = zone.Running
	}
	step, ok := s.Of(ready, zone.Zone{Name: zoneName, Path: zonepath, State: state}, Start, "its instance did not come up", now, "")
	step.ID = ID(now, Start, instance)
	return step, ok
}
