package controller

import (
	"fmt"
	"time"
)

// brake is why nothing is done now about a sled that is silent, although that would be safe; empty:
// it may be done. It is the network, or the API server, if many are silent at once: then VMs that
// are well would be ended on one half of the sleds, and the other half may have no room for them.
// And a controller that reads no leases knows nothing about any sled. Silent is for how long a sled
// has to have been silent to be counted.
func (v *view) brake(sled string, silent time.Duration) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	_, known := v.silence[sled]
	switch many, of := v.count(sled, silent); {
	case !known:
		return "it has never renewed a lease"
	case time.Since(v.heard) > v.gap:
		return "the controller cannot read the leases"
	case tooMany(many, of):
		return fmt.Sprintf("%d of %d sleds are silent, so that the fault is not theirs", many, of)
	}
	return ""
}

// braked reports whether so many sleds are silent that the brake holds for each of them.
func (v *view) braked(silent time.Duration) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return tooMany(v.count("", silent))
}

// tooMany is more than half.
func tooMany(silent, of int) bool { return silent*2 > of }

// count is how many sleds are silent, and of how many. Sleds that are aside do not count, unless it
// is about that one.
func (v *view) count(sled string, silent time.Duration) (many, of int) {
	for name, r := range v.reports {
		switch is := v.silence[name].Counted >= silent; {
		case is && r.Aside && name != sled:
		case is:
			many++
			of++
		default:
			of++
		}
	}
	return many, of
}
