package cli

import (
	"cmp"
	"context"
	"errors"

	"github.com/sledctl/sledctl/engine/bundle"
	"github.com/sledctl/sledctl/sled/bundles"
	"github.com/sledctl/sledctl/sled/failure"
)

// Bundles lists the bundles of zones in all places that are there, the oldest first.
func (e *Env) Bundles(ctx context.Context) ([]bundle.Bundle, error) {
	c, h, err := e.Reach()
	if err != nil {
		return nil, err
	}
	all, err := bundles.List(ctx, h, BundleSettings(c))
	if _, nowhere := errors.AsType[*bundle.NowhereError](err); nowhere {
		return nil, cmp.Or(e.StateFile(ctx), NoBundlePlace(err))
	}
	return all, err
}

// NoBundlePlace says what helps where there is no place for bundles.
func NoBundlePlace(err error) error {
	if _, ok := errors.AsType[*bundle.NowhereError](err); ok {
		return &failure.RefusedError{Err: err, Advice: "set bundle.directory to another directory; or, to mount the debug datasets, run: sledctl bootstrap"}
	}
	return err
}
