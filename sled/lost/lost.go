// Package lost says what the ledger knows of a pool that is gone for good: what it must forget, as
// nothing could ever delete it otherwise.
package lost

import (
	"fmt"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/sled/base"
	"github.com/sledctl/sledctl/sled/image"
	"github.com/sledctl/sledctl/sled/localdisk"
	"github.com/sledctl/sledctl/sled/snapshot"
	"github.com/sledctl/sledctl/sled/volume"
)

// On gives the facts that take what lay on a pool out of the ledger, and names it: volumes, images,
// of which a copy elsewhere becomes the image, snapshots, as far as their disks lay there, local disks and
// bases. Instances stay: what they had there is missing, and the operator decides about them.
func On(view ledger.View, pool string) (facts []ledger.Fact, names []string, err error) {
	add := func(name string, f ledger.Fact) { facts, names = append(facts, f), append(names, name) }
	volumes, err := volume.All(view)
	if err != nil {
		return nil, nil, err
	}
	gone := map[string]bool{}
	for _, r := range volumes {
		if r.Pool == pool {
			gone[r.ID] = true
			add("volume "+r.Name, r.Forget())
		}
	}
	snapshots, err := snapshot.All(view)
	if err != nil {
		return nil, nil, err
	}
	for _, r := range snapshots {
		f, had, err := r.Without(gone)
		if err != nil {
			return nil, nil, err
		}
		if had {
			add(fmt.Sprintf("snapshot %s of %s", r.Name, r.Of), f)
		}
	}
	images, err := image.All(view)
	if err != nil {
		return nil, nil, err
	}
	for _, r := range images {
		f, had, err := r.Without(pool)
		if err != nil {
			return nil, nil, err
		}
		if had {
			add("image "+r.Name, f)
		}
	}
	disks, err := localdisk.All(view)
	if err != nil {
		return nil, nil, err
	}
	for _, r := range disks {
		if r.Pool == pool {
			add("local disk "+r.ID.String(), r.Forget())
		}
	}
	bases, err := base.All(view)
	if err != nil {
		return nil, nil, err
	}
	for _, r := range bases {
		if r.Pool == pool {
			add("base "+r.Zone, base.Forget(r))
		}
	}
	return facts, names, nil
}
