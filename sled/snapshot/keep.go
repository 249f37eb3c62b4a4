package snapshot

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/host/fault"
)

// Keep says how many of the scheduled snapshots of an instance stay: of the last so many hours,
// days, weeks or months in which there is one, the latest of each.
type Keep []rule

// rule keeps one for each of so many periods.
type rule struct {
	unit   string
	n      int
	period func(time.Time) string
}

// periods are those of UTC: clocks that are put back make no hour twice.
func periods() []rule {
	format := func(layout string) func(time.Time) string {
		return func(t time.Time) string { return t.UTC().Format(layout) }
	}
	return []rule{
		{unit: "hourly", period: format("2006-01-02T15")}, {unit: "daily", period: format("2006-01-02")},
		{unit: "weekly", period: func(t time.Time) string {
			year, week := t.UTC().ISOWeek()
			return fmt.Sprint(year, "/", week)
		}},
		{unit: "monthly", period: format("2006-01")},
	}
}

// KeepError is a text that is no rule.
type KeepError struct{ Text string }

// Error says what is.
func (e *KeepError) Error() string {
	return fmt.Sprintf("--keep %q: want hourly=N, daily=N, weekly=N or monthly=N, or several of them with commas, each once and N from 1 to 9999", e.Text)
}

func (*KeepError) Kind() fault.Kind { return fault.Usage }

// ParseKeep reads hourly=24,daily=7. Errors: *KeepError.
func ParseKeep(text string) (Keep, error) {
	var keep Keep
	for word := range strings.SplitSeq(text, ",") {
		unit, count, _ := strings.Cut(word, "=")
		known := periods()
		i := slices.IndexFunc(known, func(r rule) bool { return r.unit == unit })
		n, err := strconv.Atoi(count)
		if i < 0 || err != nil || n < 1 || n > 9999 || slices.ContainsFunc(keep, func(r rule) bool { return r.unit == unit }) {
			return nil, &KeepError{Text: text}
		}
		known[i].n = n
		keep = append(keep, known[i])
	}
	return keep, nil
}

// ScheduledName is what a scheduled snapshot of a moment is called: two of one minute are one.
func ScheduledName(at time.Time) string { return at.UTC().Format("2006-01-02-1504Z") }

// outdated are the scheduled snapshots that no rule keeps. It is pure.
func (k Keep) outdated(all []Record) (gone []Record) {
	scheduled := slices.DeleteFunc(slices.Clone(all), func(r Record) bool { return !r.Scheduled })
	slices.SortFunc(scheduled, func(a, b Record) int { return b.Created.Compare(a.Created) }) // the latest first
	kept := map[string]bool{}
	for _, rule := range k {
		seen := map[string]bool{}
		for _, r := range scheduled {
			if at := rule.period(r.Created); !seen[at] && len(seen) < rule.n {
				seen[at], kept[r.Name] = true, true
			}
		}
	}
	for _, r := range slices.Backward(scheduled) {
		if !kept[r.Name] {
			gone = append(gone, r)
		}
	}
	return gone
}

// Schedule takes a snapshot that is one of a schedule, and deletes those before it that no rule of c.Keep keeps, the
// oldest first, but for those that volumes are clones of, or that are being taken. One of the same minute is left as it is.
// Errors: those of Create and of Delete.
func (s Settings) Schedule(ctx context.Context, env operation.Env, c Request) (Status, operation.Report, error) {
	is, report, err := s.Create(ctx, env, c)
	if err != nil {
		return is, report, err
	}
	view, err := operation.Decided(ctx, env, c.DryRun)
	if err != nil {
		return is, report, err
	}
	all, err := Of(view, is.Instance)
	if c.DryRun {
		all = append(slices.DeleteFunc(all, func(r Record) bool { return r.Name == is.Name }), is.Record)
	}
	for _, r := range c.Keep.outdated(all) {
		if len(s.Clones(view, r.Of+"@"+r.Name)) > 0 || r.Unfinished() && !r.Removing {
			continue
		}
		_, deleted, err := s.Delete(ctx, env, Request{Ref: r.Instance, Name: r.Name, DryRun: c.DryRun})
		report.Plan.Actions = append(report.Plan.Actions, deleted.Plan.Actions...)
		if err != nil {
			return is, report, err
		}
	}
	return is, report, err
}
