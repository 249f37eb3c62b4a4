package doctor

import (
	"context"
	"errors"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/sled/doctor"
)

// BeforeFirst runs the checks if the sled has never been prepared: the first bootstrap is
// refused where no VM could run, before anything is changed. With dry it is only told.
func BeforeFirst(ctx context.Context, e *cli.Env, dry bool) error {
	s, h, err := settings(e)
	if err != nil {
		return err
	}
	if known, err := s.Records(ctx); err != nil || known.Prepared {
		return nil // what is wrong with the ledger, bootstrap says
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
