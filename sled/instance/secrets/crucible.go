package secrets

import (
	"maps"
	"slices"

	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// WithRequests is a record with the digests of what Propolis is asked for to open its volumes in a
// Crucible with a generation; the requests are added to what is fresh. Those of an incarnation that
// stays, with a generation of 0, stay too. The error is a *record.InputError.
func WithRequests(old, next record.Record, had Vault, fresh map[string]string, generation uint64) (record.Record, error) {
	if len(next.Spec.Crucible) == 0 || generation == 0 {
		return next, nil
	}
	all := maps.Clone(had.Held)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, fresh)
	open, own := next.Unseal(all).Spec.Crucible, old.Digests()
	disks := slices.Clone(next.Spec.Crucible)
	for i, d := range open {
		if spec.IsSealed(d.Key) && !slices.Contains(own, d.Key) {
			return next, &record.InputError{
				Field: "crucible key", Value: d.Key,
				Want: "the key itself: this is the digest of a secret, as sledctl prints it, and not one of this instance",
			}
		}
		if spec.IsSealed(d.Key) { // it is lost: Check says so where something is sent
			continue
		}
		request := d.RequestAt(generation)
		disks[i].Generation = generation
		disks[i].Request = spec.Digest(had.Key, request)
		fresh[disks[i].Request] = request
	}
	next.Spec.Crucible = disks
	return next, nil
}
