package doctor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/system"
)

// Question is something that the host is asked, for one check or for several.
type Question string

// The questions.
const (
	askRelease    Question = "release"
	askKernel     Question = "kernel"
	askZone       Question = "zone"
	askPrivileges Question = "privileges"
)

// Seen are the answers. A check reads those that it asks for.
type Seen struct {
	Settings   Settings
	Release    string
	Kernel     system.Kernel
	Zone       string
	Privileges system.Privileges
	// Unknown are the questions without an answer, and why.
	Unknown map[Question]error
}

// Settings are what is configured, as far as a check compares it with the host.
type Settings struct {
	RunDir string // where the last result is kept
}

// Patience is how long one question may take: all are asked side by side, and an
// operator waits for a second at most.
const Patience = 900 * time.Millisecond

// asks are the questions, each with what writes its answer, and nothing else, into Seen.
func asks() map[Question]func(context.Context, host.Host, *Seen) error {
	return map[Question]func(context.Context, host.Host, *Seen) error{
		askRelease: func(_ context.Context, h host.Host, s *Seen) (err error) {
			s.Release, err = system.Release(h.Files())
			return err
		},
		askKernel: func(ctx context.Context, h host.Host, s *Seen) (err error) {
			s.Kernel, err = system.QueryKernel(ctx, h)
			return err
		},
		askZone: func(ctx context.Context, h host.Host, s *Seen) (err error) {
			s.Zone, err = system.QueryZone(ctx, h)
			return err
		},
		askPrivileges: func(ctx context.Context, h host.Host, s *Seen) (err error) {
			s.Privileges, err = system.QueryPrivileges(ctx, h)
			return err
		},
	}
}

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
	r := Result{Time: began, Elapsed: now().Sub(began).Milliseconds(), Verdict: OK, Checks: judge(checks, seen), Ignored: append([]string{}, ignore...)}
	if len(r.Checks) > 0 {
		r.Verdict = r.Checks[0].Verdict
	}
	return r, nil
}

// look asks what the checks need.
func (s Settings) look(ctx context.Context, h host.Host, checks []Check) Seen {
	seen := Seen{Settings: s, Unknown: map[Question]error{}}
	all, errs := asks(), map[Question]*error{}
	short, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	var wg sync.WaitGroup
	for _, c := range checks {
		for _, q := range c.Asks {
			if errs[q] != nil {
				continue
			}
			err := new(error)
			errs[q] = err
			wg.Go(func() { *err = all[q](short, h, &seen) })
		}
	}
	wg.Wait()
	for q, err := range errs {
		if *err == nil {
			continue
		}
		seen.Unknown[q] = *err
		if errors.Is(*err, context.DeadlineExceeded) {
			seen.Unknown[q] = fmt.Errorf("no answer within %v", Patience)
		}
	}
	return seen
}
