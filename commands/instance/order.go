package instance

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// sequence says whether a verb on many instances follows their start order. Only one that starts
// them does: the shutdown of a sled waits until they are stopped.
type sequence bool

const (
	allAtOnce    sequence = false
	inStartOrder sequence = true
)

// waves sorts instances, or what stands for them, by when a verb is done with them.
func waves[T any](s sequence, all []T, order func(T) record.StartOrder) [][]T {
	if s == allAtOnce {
		return [][]T{all}
	}
	return instance.Waves(all, order)
}

// wavesHere are those of instances that this sled has, by name or id. One instance is not looked at.
func wavesHere(ctx context.Context, e *cli.Env, settings instance.Settings, s sequence, refs []string) ([][]string, error) {
	if s == allAtOnce || len(refs) < 2 {
		return [][]string{refs}, nil
	}
	view, err := e.View(ctx)
	if err != nil {
		return nil, err
	}
	return waves(s, refs, func(ref string) record.StartOrder {
		r, _ := settings.Find(view, ref) // what is not found fails in its turn
		return r.Spec.StartOrder
	}), nil
}

// wavesAfar are those of instances that the sled of an agent has. One instance is not looked at.
func wavesAfar(ctx context.Context, e *cli.Env, far remote, s sequence, refs []string) ([][]string, error) {
	if s == allAtOnce || len(refs) < 2 {
		return [][]string{refs}, nil
	}
	all, err := lookAtAll(ctx, e, far, false)
	if err != nil {
		return nil, err
	}
	order := map[string]record.StartOrder{}
	for _, i := range all {
		order[i.Name], order[i.ID] = i.StartOrder, i.StartOrder
	}
	return waves(s, refs, func(ref string) record.StartOrder { return order[ref] }), nil
}

// ordered are the reports of a dry run. If an instance has a start order, what would be done
// with those of one number begins with a line that names them.
func ordered(s sequence, results []instance.Result) []operation.Report {
	var reports []operation.Report
	numbered := s == inStartOrder && slices.ContainsFunc(results, func(r instance.Result) bool { return r.Record.Spec.StartOrder != 0 })
	for i, r := range results {
		order := r.Record.Spec.StartOrder
		if first := i == 0 || order != results[i-1].Record.Spec.StartOrder; first && numbered {
			if names := changing(order, results[i:]); len(names) > 0 {
				reports = append(reports, operation.Report{Plan: plan.Plan{Why: fmt.Sprintf("start order %s: %s", order, strings.Join(names, ", "))}})
			}
		}
		reports = append(reports, r.Report)
	}
	return reports
}

// changing are the names of the first results, those of one start order, with which there is
// something to do.
func changing(order record.StartOrder, results []instance.Result) (names []string) {
	for _, r := range results {
		switch {
		case r.Record.Spec.StartOrder != order:
			return names
		case !r.Report.Plan.Empty():
			names = append(names, r.Record.Name)
		}
	}
	return names
}
