package instance

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/illumos/ipadm"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// mostElsewhere bounds how many addresses are tried: each costs the boot of a
// zone.
const mostElsewhere = 8

// withOtherAddress makes a new instance with another address, as long as another host
// turns out to have the one that was chosen for it: who else is on the underlay,
// only duplicate address detection tells. One that was asked for, or that an
// instance has had before, is not changed.
func withOtherAddress(
	ctx context.Context, s Settings, env operation.Env, id string, c EnsureRequest, result Result, err error,
) (Result, error) {
	for range mostElsewhere {
		taken := result.Record.Spec.Address
		_, left, lerr := record.Load(result.Report.View, id)
		if !errors.Is(err, ipadm.ErrDuplicate) || c.Wanted.Address != nil || taken.Mode != record.Static || left || lerr != nil || ctx.Err() != nil {
			return result, err
		}
		if env.Warn != nil {
			env.Warn(fmt.Errorf(
				"another host already uses %s: undid %s and is creating it with another address", taken.Prefix.Addr(),
				result.Record.Name,
			))
		}
		s.Reserved = append(append([]netip.Addr(nil), s.Reserved...), taken.Prefix.Addr())
		result, err = bringUp(ctx, s, env, id, c)
	}
	return result, err
}
