package doctor

import (
	"context"
	"errors"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sled/doctor"
	"github.com/sledctl/sledctl/sled/network"
	"github.com/sledctl/sledctl/sled/storage"
)

// BeforeFirst runs the checks if the sled has never been prepared: the first bootstrap is
// refused where no VM could run, before anything is changed. With dry it is only told.
func BeforeFirst(ctx context.Context, e *cli.Env, dry bool) error {
	view, err := e.View(ctx)
	if err != nil && !errors.Is(err, ledger.ErrAbsent) {
		return nil // what is wrong with the ledger, bootstrap says
	}
	if _, prepared, err := network.Load(view); err != nil || prepared {
		return nil
	}
	s, h, err := settings(e)
	if err != nil {
		return err
	}
	if waiting, err := storage.Waiting(ctx, host.ReadOnly(h)); err != nil || len(waiting) > 0 {
		return nil // it was prepared before, and its VMs must come back; what is wrong with the pools, bootstrap says, too
	}
	s, ignore := s.Before()
	r, err := s.Examine(ctx, h, e.Now, ignore)
	if err != nil {
		return err
	}
	for _, warning := range r.Warnings() {
		e.Progress.Warn(warning)
	}
	failed := (*doctor.FailedError)(nil)
	if !errors.As(r.Err(), &failed) {
		return nil
	}
	refused := &doctor.NotAbleError{Failed: failed}
	if dry {
		e.Progress.Warn(refused)
		return nil
	}
	return refused
}
