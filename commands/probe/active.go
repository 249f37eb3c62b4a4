package probe

import (
	"context"
	"errors"
	"fmt"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/failure"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/probe"
)

// active is the name of the instance that record --active makes and removes.
const active = "sledctl-probe"

// makeAndRemove makes the zone of an instance, up to its boot, and removes it. What a run
// that was killed has left is removed first.
func makeAndRemove(ctx context.Context, e *cli.Env) ([]probe.Answer, error) {
	s, env, err := e.Instances(ctx)
	if err != nil {
		return nil, err
	}
	view, err := e.View(ctx)
	if err != nil {
		return nil, err
	}
	for r, err := range record.Records(view) {
		if err == nil && r.Name == active && !madeByProbe(r) {
			return nil, &failure.RefusedError{Err: fmt.Errorf("instance %q is not one that sledctl probe has made", active), Advice: "to remove it, run: sledctl instance delete " + active}
		}
	}
	s.Probe = true
	tape := &probe.Tape{Host: env.Host, Now: e.Now}
	env.Host = tape
	remove := func(ctx context.Context) error {
		_, err := s.Delete(ctx, env, instance.DeleteRequest{Verb: "probe record", Ref: active})
		if _, missing := errors.AsType[*record.NotFoundError](err); missing {
			return nil
		}
		return err
	}
	if err := remove(ctx); err != nil {
		return nil, err
	}
	for _, stage := range []instance.Stage{instance.StageVNIC, instance.StageZone, instance.StageBoot} {
		if _, err := s.Ensure(ctx, env, instance.EnsureRequest{Verb: "probe record", Wanted: instance.Wanted{Ref: active}, Only: stage}); err != nil {
			return nil, errors.Join(err, remove(context.WithoutCancel(ctx)))
		}
	}
	err = remove(ctx)
	return tape.Answers(), err
}

// madeByProbe says whether all that an instance has are a probe's objects, by their names.
func madeByProbe(r record.Record) bool {
	all := r.Incarnations()
	for _, i := range all {
		if i.Ensured || !naming.IsProbe(i.Zone) {
			return false
		}
	}
	return len(all) > 0
}
