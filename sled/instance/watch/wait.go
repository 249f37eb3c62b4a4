package watch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// Goals are the states that can be waited for.
func Goals() []record.State {
	return []record.State{record.Running, record.Stopped, record.Failed, record.Absent}
}

// Wait waits until each of the instances is as wanted, one of Goals: stopped is
// also a machine that has ended and whose zone is still there; absent is also
// what is not recorded. It gives them as they are then. Errors: *NotFoundError;
// a *GoalUnreachableError as soon as one will not come to it; the context's, with those
// that do not exist yet.
func Wait(ctx context.Context, s instance.Settings, env operation.Env, refs []string, goal record.State) ([]instance.Instance, error) {
	wanted, err := awaitedIDs(ctx, s, env, refs, goal)
	if err != nil || len(wanted) == 0 {
		return nil, err
	}
	now := map[string]instance.Instance{}
	all := errors.New("all are")
	err = Watch(ctx, s, env, func(r record.Record) bool { return slices.Contains(wanted, r.ID) }, func(i instance.Instance) error {
		if _, told := now[i.ID]; told && ctx.Err() != nil {
			return ctx.Err() // what is seen from here on is only that there is no more time
		}
		now[i.ID] = i
		if err := checkReachable(i, goal); err != nil {
			return err
		}
		for _, id := range wanted {
			if one, told := now[id]; !told || !Reached(one.State, goal) {
				return nil
			}
		}
		return all
	}, nil)
	var list []instance.Instance
	var missing []string
	for _, id := range wanted {
		i, told := now[id]
		if told {
			list = append(list, i)
		}
		if told && !Reached(i.State, goal) {
			missing = append(missing, i.Name+" is "+i.Status.String())
		}
	}
	switch {
	case errors.Is(err, all):
		return list, nil
	case ctx.Err() != nil && len(missing) > 0:
		return list, NotYet(goal, missing, ctx.Err()) // not what was under way when it ended
	}
	return list, err
}

// NotYet is the end of a wait, by cause, before the instances reached the state for which it
// is said how they are.
func NotYet(goal record.State, missing []string, cause error) error {
	return fmt.Errorf("not yet %s: %s: %w", goal, strings.Join(missing, ", "), cause)
}

// awaitedIDs are the ids of the instances. Those that are not recorded are absent
// already, and nothing else can be waited for of them.
func awaitedIDs(ctx context.Context, s instance.Settings, env operation.Env, refs []string, goal record.State) ([]string, error) {
	book, err := env.Ledger(ctx)
	if err != nil {
		return nil, err
	}
	view, err := book.Read(ctx)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, ref := range refs {
		r, err := s.Find(view, ref)
		if _, unknown := errors.AsType[*record.NotFoundError](err); unknown {
			r, err = instance.FindRecorded(ctx, s, env, ref, true)
		}
		if _, unknown := errors.AsType[*record.NotFoundError](err); unknown {
			if err = view.Absent(err); goal == record.Absent && !errors.Is(err, ledger.ErrUnconfirmed) {
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		if !slices.Contains(ids, r.ID) {
			ids = append(ids, r.ID)
		}
	}
	return ids, nil
}

// Reached reports whether a state is what is waited for.
func Reached(is, goal record.State) bool {
	return is == goal || goal == record.Stopped && is == strings.ToLower(propolis.StateDestroyed)
}

// checkReachable reports whether an instance will not come to a state by itself. One
// that a verb is taking down is stopping, and has not failed.
func checkReachable(i instance.Instance, goal record.State) error {
	deleted := i.State == record.Absent && i.Incarnation == nil && i.Reason == ReasonDeleted
	if goal == record.Absent || Reached(i.State, goal) || i.State != record.Failed && !deleted {
		return nil
	}
	return &GoalUnreachableError{Name: i.Name, Status: i.Status, Goal: goal}
}

// GoalUnreachableError is a state that an instance will not come to.
type GoalUnreachableError struct {
	Name   string
	Status instance.Status
	Goal   record.State
}

// Error says how it is instead.
func (e *GoalUnreachableError) Error() string {
	return fmt.Sprintf("instance %q will not be %s: it is %s", e.Name, e.Goal, e.Status)
}

func (*GoalUnreachableError) Kind() fault.Kind { return fault.Failed }

// Hint says what rebuilds it.
func (e *GoalUnreachableError) Hint() string {
	if e.Status.Reason == ReasonDeleted {
		return ""
	}
	return "to rebuild it, run: sledctl instance ensure " + e.Name
}
