package propolis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/peer/dropshot"
	"github.com/sledctl/sledctl/propolis/spec"
)

// The steps that bring a machine up and down. None has an undo: what a server
// was told is gone with the zone that it runs in.

// AwaitHTTP waits until a server answers, whatever it says.
type AwaitHTTP struct{ Target Target }

// Ensure makes the machine. One that is there, even if it is the same, is
// ErrAlreadyInitialized.
type Ensure struct {
	Target  Target
	Request spec.EnsureRequest
	Secrets Secrets
}

// Secrets puts the secrets of a request in the places of their digests, when it
// is sent; nil: it has none.
type Secrets func(host.Files, spec.EnsureRequest) (spec.EnsureRequest, error)

func (s Secrets) of(h host.Host, r spec.EnsureRequest) (spec.EnsureRequest, error) {
	if s == nil {
		return r, nil
	}
	return s(h.Files(), r)
}

// ChangeState asks for Run, Stop or Reboot, and does not wait for it. Errors:
// ErrForbidden, ErrNoInstance.
type ChangeState struct {
	Target Target
	State  string
}

// AwaitState waits until the machine is in one of the states, as Client.Await
// does: a final state that is not among them is a *StateError.
type AwaitState struct {
	Target Target
	States []string
	// After is a generation that must be passed, so that a state that lasts
	// since before a change does not count; 0: none.
	After uint64
}

// PowerOff stops the machine and waits for its end. It need not have been
// started. One that is being made is waited for, too. Errors: *LimitError, and
// what asking for it gave; no machine at all is its end.
type PowerOff struct {
	Target Target
	// Within is for how long; 0: as long as it takes.
	Within time.Duration
}

// LimitError is a machine that did not come to its end in time.
type LimitError struct{ Limit time.Duration }

// Error names the time.
func (e *LimitError) Error() string { return "the machine has not stopped within " + e.Limit.String() }

func (*LimitError) Kind() fault.Kind { return fault.Failed }

// InjectNMI sends the guest a non-maskable interrupt. That it was taken says
// nothing of the guest. Errors: ErrNoInstance.
type InjectNMI struct{ Target Target }

// Verb names the step.
func (InjectNMI) Verb() string { return "propolis.nmi" }

// Undo is nil.
func (InjectNMI) Undo() any { return nil }

// Needs is what finds the address.
func (s InjectNMI) Needs() []string { return s.Target.needs() }

// Explain is the request.
func (s InjectNMI) Explain() []host.Line {
	return []host.Line{host.RequestLine(http.MethodPost, s.Target.url(pathNMI), dropshot.Headers(s.Target.Versions.first(s.Target.Address, spec.Oldest).String(), nil), nil)}
}

// Do sends it.
func (s InjectNMI) Do(ctx context.Context, h host.Host) error {
	_, err := Client{Host: h, Target: s.Target}.do(ctx, http.MethodPost, pathNMI, nil)
	return err
}

// Verb names the step.
func (PowerOff) Verb() string { return "propolis.power-off" }

// Limit is none, as that of Ensure.
func (PowerOff) Limit() (most time.Duration, waits bool) { return 0, true }

// Undo is nil.
func (PowerOff) Undo() any { return nil }

// Needs is what finds the address.
func (s PowerOff) Needs() []string { return s.Target.needs() }

// Explain is the request and the wait.
func (s PowerOff) Explain() []host.Line {
	lines := ChangeState{Target: s.Target, State: Stop}.Explain()
	what := "the machine of " + s.Target.Name + " is gone"
	if s.Within > 0 {
		what += ", at most " + s.Within.String()
	}
	return append(lines, host.WaitLine(what))
}

// Do stops it and waits.
func (s PowerOff) Do(ctx context.Context, h host.Host) error {
	limited, release := ctx, context.CancelFunc(func() {})
	if s.Within > 0 {
		limited, release = context.WithTimeout(ctx, s.Within)
	}
	defer release()
	err := ChangeState{Target: s.Target, State: Stop}.Do(limited, h)
	if err == nil || errors.Is(err, ErrForbidden) { // it is over already, and not yet gone
		err = AwaitState{Target: s.Target, States: []string{StateDestroyed, StateFailed}}.Do(limited, h)
	}
	switch {
	case isNoInstance(err):
		return nil
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return &LimitError{s.Within}
	}
	return err
}

// Verb names the step.
func (AwaitHTTP) Verb() string { return "propolis.await-http" }

// Limit is as long as its service may take to come up.
func (AwaitHTTP) Limit() (most time.Duration, waits bool) { return 3 * time.Minute, true }

// Verb names the step.
func (Ensure) Verb() string { return "propolis.ensure" }

// Limit is none: how long a machine takes is its own affair. A terabyte of memory took
// more than a minute (omicron#7918). The server goes on whatever we do, so nobody need
// wait for its answer.
func (Ensure) Limit() (most time.Duration, waits bool) { return 0, true }

// Verb names the step after the state: "propolis.run".
func (s ChangeState) Verb() string { return "propolis." + strings.ToLower(s.State) }

// Limit is none for a machine that is to run, as that of Ensure. To stop or reboot is
// only asked for.
func (s ChangeState) Limit() (most time.Duration, waits bool) {
	if s.Verb() == "propolis.run" {
		return 0, true
	}
	return time.Minute, false
}

// Verb names the step.
func (AwaitState) Verb() string { return "propolis.await-state" }

// Limit is none, as that of Ensure.
func (AwaitState) Limit() (most time.Duration, waits bool) { return 0, true }

// Undo is nil.
func (AwaitHTTP) Undo() any { return nil }

// Undo is nil: the machine goes with its zone.
func (Ensure) Undo() any { return nil }

// Undo is nil.
func (ChangeState) Undo() any { return nil }

// Undo is nil.
func (AwaitState) Undo() any { return nil }

// Needs is what finds the address.
func (s AwaitHTTP) Needs() []string { return s.Target.needs() }

// Needs is what finds the address.
func (s Ensure) Needs() []string { return s.Target.needs() }

// Needs is what finds the address.
func (s ChangeState) Needs() []string { return s.Target.needs() }

// Needs is what finds the address.
func (s AwaitState) Needs() []string { return s.Target.needs() }

// Explain is the wait.
func (s AwaitHTTP) Explain() []host.Line {
	return []host.Line{host.WaitLine(s.Target.url(pathInstance) + " answers")}
}

// Explain is the request; nothing if Do would refuse it.
func (s Ensure) Explain() []host.Line {
	v := s.Target.Versions.first(s.Target.Address, s.Request.Needs())
	body, err := s.Request.Encode(v)
	if err != nil {
		return nil
	}
	return []host.Line{s.Target.put(pathInstance, v, body)}
}

// Explain is the request; nothing if Do would refuse it.
func (s ChangeState) Explain() []host.Line {
	body, err := stateBody(s.State)
	if err != nil {
		return nil
	}
	return []host.Line{s.Target.put(pathState, s.Target.Versions.first(s.Target.Address, spec.Oldest), body)}
}

// Explain is the wait.
func (s AwaitState) Explain() []host.Line {
	what := "the machine of " + s.Target.Name + " is " + strings.Join(s.States, " or ")
	if s.After > 0 {
		what += fmt.Sprintf(", after generation %d", s.After)
	}
	return []host.Line{host.WaitLine(what)}
}

func (t Target) put(path string, v spec.Version, body []byte) host.Line {
	return host.RequestLine(http.MethodPut, t.url(path), dropshot.Headers(v.String(), body), body)
}

// Do asks for the machine.
func (s Ensure) Do(ctx context.Context, h host.Host) error {
	request, err := s.Secrets.of(h, s.Request)
	if err == nil {
		err = Client{Host: h, Target: s.Target}.Ensure(ctx, request)
	}
	if err != nil && errors.Is(err, ctx.Err()) {
		return fmt.Errorf("%w (the server goes on making the machine)", err)
	}
	return err
}

// Do asks for the state. A machine that is still being made answers as none
// does, and is waited for.
func (s ChangeState) Do(ctx context.Context, h host.Host) error {
	c := Client{Host: h, Target: s.Target}
	err := c.PutState(ctx, s.State)
	if !isNoInstance(err) {
		return err
	}
	if live, lerr := c.awaitMade(ctx); lerr != nil || !live {
		return cmp.Or(lerr, err)
	}
	return c.PutState(ctx, s.State)
}

// Do waits.
func (s AwaitState) Do(ctx context.Context, h host.Host) error {
	_, err := Client{Host: h, Target: s.Target}.Await(ctx, s.After+1, s.States...)
	return err
}
