package operation_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
)

// holding runs an operation on a subject that ends when it is told to.
func holding(t *testing.T, env operation.Env, subject string) (end func()) {
	t.Helper()
	env.PID = 8
	at, wait, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	r := request(nil, plan.Undo)
	r.Subject = subject
	r.Look = func(context.Context, host.Host) (struct{}, error) { close(at); <-wait; return struct{}{}, nil }
	go func() {
		defer close(done)
		if _, err := operation.Run(t.Context(), env, r); err != nil {
			t.Error(err)
		}
	}()
	<-at
	return func() { close(wait); <-done }
}

func TestWhoWaitsGoesOnWhenTheOtherHasEnded(t *testing.T) {
	const other = "instance/other"
	for name, s := range map[string]struct {
		held  string
		meets bool // only when it decides
	}{
		"its own subject":                   {"thing/1", false},
		"one that it meets when it decides": {other, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				env := newEnv(t)
				end := holding(t, env, s.held)
				var told error
				env.Wait, env.Warn = true, func(err error) { told = err }
				r := request([]plan.Action{action(fakeStep{name: "a"})}, plan.Undo)
				decide := r.Decide
				r.Decide = func(view ledger.View, seen struct{}, at operation.Stamp) (operation.Decision, error) {
					if holder, living := operation.Alive(t.Context(), env, other); living {
						return operation.Decision{}, &operation.LockedError{Subject: other, Holder: holder}
					}
					return decide(view, seen, at)
				}
				var report operation.Report
				var err error
				ended := make(chan struct{})
				go func() { defer close(ended); report, err = operation.Run(t.Context(), env, r) }()
				synctest.Wait()
				select {
				case <-ended:
					t.Fatalf("it did not wait: %v", err)
				default:
				}
				end()
				<-ended
				if err != nil || len(report.Outcome.Done) != 1 {
					t.Errorf("%v, %+v", err, report.Outcome)
				}
				locked, ok := errors.AsType[*operation.LockedError](told)
				if !ok || locked.Subject != s.held || locked.Holder.PID != 8 {
					t.Errorf("it said: %v", told)
				}
			})
		})
	}
}

func TestAWaitIsBoundedByTheCommandsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnv(t)
		end := holding(t, env, "thing/1")
		defer end()
		env.Wait = true
		ctx, release := context.WithTimeout(t.Context(), time.Minute)
		defer release()
		start := time.Now()
		_, err := operation.Run(ctx, env, request([]plan.Action{action(fakeStep{name: "a"})}, plan.Undo))
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) < time.Minute {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
	})
}
