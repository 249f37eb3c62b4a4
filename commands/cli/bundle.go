package cli

import (
	"cmp"
	"context"
	"errors"

	"github.com/sledctl/sledctl/engine/bundle"
	"github.com/sledctl/sledctl/sled/failure"
	"github.com/sledctl/sledctl/zfs"
)

// Bundles lists the bundles of zones in all places that are there, the oldest first.
func (e *Env) Bundles(ctx context.Context) ([]bundle.Bundle, error) {
	c, h, err := e.Reach()
	if err != nil {
		return nil, err
	}
	pools, err := zfs.Pools(ctx, h)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, p := range pools {
		if p.Answers() {
			names = append(names, p.Name)
		}
	}
	ready, err := bundle.Ready(h.Files(), bundle.Places(c.Bundle.Directory, names))
	if err != nil {
		return nil, cmp.Or(e.StateFile(ctx), NoBundlePlace(err))
	}
	return bundle.List(h.Files(), ready)
}

// NoBundlePlace says what helps where there is no place for bundles.
func NoBundlePlace(err error) error {
	if _, ok := errors.AsType[*bundle.NowhereError](err); ok {
		return &failure.RefusedError{Err: err, Advice: "set bundle.directory to another directory; or, to mount the debug datasets, run: sledctl bootstrap"}
	}
	return err
}
