package propolis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/peer/dropshot"
	"github.com/sledctl/sledctl/propolis/spec"
)

// Arrive has a VM come from another server, and waits until it runs here. Nothing can
// cancel a migration once its target has been asked for it: it continues, watched or
// not. So if its end is unknown, the error is an *UndecidedError, and nothing may be
// removed because of it. A *MigrationError has failed for good: the VM is at its
// source, as it was.
type Arrive struct {
	Target Target
	// Request asks for it. Without an Init.Migration nothing is asked: the server
	// has it already, and is waited for.
	Request spec.EnsureRequest
	Secrets Secrets
	ID      string // of the migration
	// Machine is what it is here: the source's, with what the request replaces.
	Machine spec.InstanceSpec
	// Tell hears of each phase that the migration comes to; may be nil.
	Tell func(phase string)
}

// MigrationError is a migration that has failed: its target has no machine.
type MigrationError struct {
	ID  string
	Err error // what the target said
}

// Error is what the target said.
func (e *MigrationError) Error() string {
	return fmt.Sprintf("migration %s failed: %v", e.ID, e.Err)
}

func (*MigrationError) Kind() fault.Kind { return fault.Failed }

// Unwrap gives the cause.
func (e *MigrationError) Unwrap() error { return e.Err }

// UndecidedError is a migration that may go on, or may have succeeded.
type UndecidedError struct {
	ID  string
	Err error // why its end is unknown
}

// Error says that it goes on.
func (e *UndecidedError) Error() string {
	return fmt.Sprintf("migration %s may still continue by itself: %v", e.ID, e.Err)
}

func (*UndecidedError) Kind() fault.Kind { return fault.Failed }

// Unwrap says that something still runs, and why nobody waits for it.
func (e *UndecidedError) Unwrap() []error { return []error{host.ErrStillRunning, e.Err} }

// phaseSync is the first phase: the target gets the machine's spec and makes it.
const phaseSync = "Sync"

// phaseFinish is the last one: the source has let the machine go. Its target opens volumes in a
// Crucible only then, and a machine that fails at that runs on neither side.
const phaseFinish = "Finish"

// Verb names the step.
func (Arrive) Verb() string { return "propolis.arrive" }

// Limit is none, as that of Ensure.
func (Arrive) Limit() (most time.Duration, waits bool) { return 0, true }

// Undo is nil: what has arrived is the only one there is.
func (Arrive) Undo() any { return nil }

// Needs is what finds the address.
func (s Arrive) Needs() []string { return s.Target.needs() }

// Explain is the request and the wait.
func (s Arrive) Explain() []host.Line {
	wait := host.WaitLine("the machine of " + s.Target.Name + " is Running, by migration " + s.ID)
	if s.Request.Init.Migration == nil {
		return []host.Line{wait}
	}
	v := s.Target.Versions.first(s.Target.Address, s.Machine.Needs())
	body, err := s.Request.Encode(v)
	if err != nil {
		return nil
	}
	return []host.Line{host.RequestLine(http.MethodPut, s.Target.url(pathInstance), dropshot.Headers(v.String(), body), body), wait}
}

// Do asks and waits.
func (s Arrive) Do(ctx context.Context, h host.Host) error {
	target, err := s.Target.at(ctx, h)
	if err != nil {
		return err
	}
	c := Client{Host: h, Target: target}
	if s.Request.Init.Migration == nil {
		return s.await(ctx, c, nil)
	}
	request, err := s.Secrets.of(h, s.Request)
	if err != nil {
		return err
	}
	s.tell(Status{Migration: Migrations{In: &Migration{s.ID, phaseSync}}})
	err = s.ask(ctx, c, request)
	refused, answered := errors.AsType[*Error](err)
	_, older := errors.AsType[*spec.VersionError](err)
	switch {
	case older:
		return err
	case err == nil, errors.Is(err, ErrAlreadyInitialized): // the latter: of a run that died while it asked
		return s.await(ctx, c, nil)
	case answered && refused.Status != http.StatusInternalServerError: // it was never begun
		return err
	case ctx.Err() != nil:
		return &UndecidedError{s.ID, err}
	}
	return s.await(ctx, c, err)
}

// ask asks for it, in a version that can express the machine: an older server takes
// the request, and fails when the source has begun. Errors: *spec.VersionError.
func (s Arrive) ask(ctx context.Context, c Client, r spec.EnsureRequest) error {
	_, err := c.speak(ctx, http.MethodPut, pathInstance, s.Machine.Needs(), func(v spec.Version) ([]byte, error) {
		if _, err := s.Machine.At(v); err != nil {
			return nil, err
		}
		return r.Encode(v)
	})
	return err
}

// await waits for the machine. Said is what the request was answered with, where
// that says more than the machine's state.
func (s Arrive) await(ctx context.Context, c Client, said error) error {
	failed := func(how string) error {
		return &MigrationError{s.ID, cmp.Or(said, errors.New(how))}
	}
	if err := s.answers(ctx, c); err != nil {
		return &UndecidedError{s.ID, err}
	}
	done := errors.New("it is here")
	err := c.Follow(ctx, func(now Status) error {
		s.tell(now)
		in := now.Migration.In
		switch {
		case now.State == StateFailed && (in == nil || in.ID != s.ID || in.State != phaseFinish):
			return failed("the machine of its target has " + stage(in))
		case in == nil || in.ID != s.ID:
			return &UndecidedError{s.ID, fmt.Errorf("the server has another machine, which is %s", now.State)}
		case now.State == StateMigrating, now.State == StateCreating:
			return nil
		}
		return done // also where it has failed since: its source has let it go
	})
	_, lost := errors.AsType[*MigrationError](err)
	_, unclear := errors.AsType[*UndecidedError](err)
	switch {
	case errors.Is(err, done), err == nil:
		return nil
	case lost, unclear:
		return err
	case isNoInstance(err), errors.Is(err, ErrLost):
		return failed("the server of its target was restarted, without the VM")
	}
	return &UndecidedError{s.ID, err}
}

// answers waits for a server that may just be started again.
func (s Arrive) answers(ctx context.Context, c Client) error {
	ctx, cancel := context.WithTimeout(ctx, againPatience)
	defer cancel()
	return AwaitHTTP{Target: c.Target}.Do(ctx, c.Host)
}

func stage(m *Migration) string {
	if m == nil {
		return "failed"
	}
	return "failed, in the phase " + m.State
}

func (s Arrive) tell(now Status) {
	if in := now.Migration.In; s.Tell != nil && in != nil && in.ID == s.ID {
		s.Tell(in.State)
	}
}
