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

func TestWhoWaitsIsToldHowFarTheOtherHasCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnv(t)
		other := env
		other.PID, other.Name = 8, func(ledger.View, string) string { return "web1" }
		slow := action(fakeStep{name: "late"})
		slow.Step = slowStep{}
		ended := make(chan struct{})
		begun := make(chan struct{})
		other.Observe = func(e operation.Event) {
			if e.Kind == plan.Started {
				close(begun)
			}
		}
		go func() {
			defer close(ended)
			if _, err := operation.Run(t.Context(), other, request([]plan.Action{slow}, plan.Undo)); err != nil {
				t.Error(err)
			}
		}()
		<-begun
		var told []operation.Holder
		env.Wait, env.Awaits = true, func(e *operation.LockedError) { told = append(told, e.Holder) }
		if _, err := operation.Run(t.Context(), env, request(nil, plan.Undo)); err != nil {
			t.Error(err)
		}
		<-ended
		if len(told) != 1 || told[0].Name != "web1" || told[0].At != 1 || told[0].Steps != 1 || told[0].PID != 8 {
			t.Errorf("%+v", told)
		}
	})
}

// slowStep takes seconds.
type slowStep struct{ fakeStep }

func (slowStep) Do(context.Context, host.Host) error { time.Sleep(2 * time.Second); return nil }
