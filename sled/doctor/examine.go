package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sledctl/sledctl/host"
)

// Patience is how long the questions may take: all are asked side by side, and an
// operator waits for a second at most.
const Patience = 900 * time.Millisecond

// Examine runs all checks but those to ignore. It changes nothing on the sled: the host
// refuses what would. Errors: *UnknownCheckError; that of the context.
func (s Settings) Examine(ctx context.Context, h host.Host, now func() time.Time, ignore []string) (Result, error) {
	checks, err := without(Checks(), ignore)
	if err != nil {
		return Result{}, err
	}
	began := now()
	seen := s.look(ctx, host.ReadOnly(h), checks)
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	seen.Now = began
	r := Result{Time: began, Elapsed: now().Sub(began).Milliseconds(), Verdict: OK, Checks: judge(checks, seen), Ignored: append([]string{}, ignore...)}
	if len(r.Checks) > 0 {
		r.Verdict = r.Checks[0].Verdict
	}
	return r, nil
}

// answered is the answer to a question, or why there is none.
type answered struct {
	to  Question
	put func(*Seen)
	err error
}

// look asks what the checks need. What has no answer in time is unknown: a file of a
// pool that has lost its disk can be waited for without end.
func (s Settings) look(ctx context.Context, h host.Host, checks []Check) Seen {
	seen := Seen{Settings: s, Unknown: map[Question]error{}}
	patience := cmp.Or(s.Patience, Patience)
	short, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	all, came := asks(), make(chan answered)
	late := fmt.Errorf("no answer within %v", patience)
	for _, c := range checks {
		for _, q := range c.Asks {
			if seen.Unknown[q] != nil {
				continue
			}
			seen.Unknown[q] = late // until it is answered
			go func() {
				put, err := all[q](short, s, h)
				select {
				case came <- answered{q, put, err}:
				case <-short.Done():
				}
			}()
		}
	}
	for range len(seen.Unknown) {
		select {
		case a := <-came:
			seen.take(a, late)
		case <-short.Done():
			return seen
		}
	}
	return seen
}

// take notes an answer.
func (s *Seen) take(a answered, late error) {
	switch {
	case errors.Is(a.err, context.DeadlineExceeded):
		s.Unknown[a.to] = late
	case a.err != nil:
		s.Unknown[a.to] = a.err
	default:
		a.put(s)
		delete(s.Unknown, a.to)
	}
}
