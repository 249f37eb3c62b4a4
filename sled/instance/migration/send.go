package migration

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// Send is the step that has the target take the machine. It is done when the
// machine is there and has left here; its error is a *RemoteError when it is here
// and will stay, an *UnknownOutcomeError when that cannot be determined. It is a step of this
// floor, since no resource below knows of two sleds.
type Send struct {
	Name, ID  string
	Migration record.Migration
	Target    propolis.Target // this sled's
	Document  []byte
	Complete  func(host.Files) ([]byte, error) // the document with its secrets
	Run       Remote
	Cancel    bool
	Alone     bool // without the target's word
	Tell      func(phase string)
	Told      func(there []byte)
}

// Verb names the step.
func (Send) Verb() string { return "instance.send" }

// Limit is none here: the migration has one of its own.
func (Send) Limit() (most time.Duration, waits bool) { return 0, true }

// Undo is nil: nothing calls a migration back.
func (Send) Undo() any { return nil }

// Needs is what finds the address.
func (s Send) Needs() []string { return s.Target.Programs }

// ensure are the target's words, with the source's address.
func (s Send) ensure(source string) []string {
	return []string{"instance", "ensure", "-f", "-", "--migrate-from", source, "--migration-id", s.Migration.ID, "-o", "json"}
}

// giveUp is the command line that removes an arrival that has not arrived.
func (s Send) giveUp() []string {
	return []string{"instance", "delete", s.ID, "--migration-id", s.Migration.ID, "-o", "json"}
}

// Explain is the command, with the document, and the wait.
func (s Send) Explain() []host.Line {
	source := fmt.Sprintf("<address of %s>:%d", s.Name, s.Target.Port)
	if s.Target.Address.IsValid() {
		source = s.Target.Address.String()
	}
	words, stdin := s.ensure(source), s.Document
	switch {
	case s.Alone:
		return []host.Line{host.WaitLine("the Propolis of " + s.Name + " says that its machine is here")}
	case s.Cancel:
		words, stdin = s.giveUp(), nil
	}
	line := commandLine(s.Migration.Target, words)
	c := host.Command{Program: line[0], Args: line[1:], Stdin: stdin}
	return []host.Line{
		{Kind: host.LineRemote, Text: c.Shell()},
		host.WaitLine("both Propolis servers say on which sled the machine of " + s.Name + " runs"),
	}
}

// Do has the machine taken, and finds out where it is.
func (s Send) Do(ctx context.Context, h host.Host) error {
	target, err := s.at(ctx, h)
	c := propolis.Client{Host: h, Target: target}
	switch {
	case s.Cancel:
		return s.calledBack(ctx, c)
	case err != nil: // nobody has heard of it in this try
		return s.settle(ctx, c, &RemoteError{Peer: s.Migration.Sled(), Err: err})
	}
	refused := s.ask(ctx, c)
	if refused == nil {
		return s.confirm(ctx, c)
	}
	return s.settle(ctx, c, refused)
}

// at is the source's address, found.
func (s Send) at(ctx context.Context, h host.Host) (propolis.Target, error) {
	t := s.Target
	if t.Address.IsValid() {
		return t, nil
	}
	found, err := t.Find(ctx, h)
	t.Address = found
	return t, err
}

// ask runs the target's sledctl, and tells the phases meanwhile as this side's
// Propolis has them.
func (s Send) ask(ctx context.Context, c propolis.Client) *RemoteError {
	document, err := s.Complete(c.Host.Files())
	if err != nil {
		return refusalOf(s.Migration.Sled(), Answer{Exit: -1}, err)
	}
	watching, cancel := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		_ = c.Follow(watching, func(now propolis.Status) error {
			if out := now.Migration.Out; out != nil && out.ID == s.Migration.ID && s.Tell != nil {
				s.Tell(out.State)
			}
			return nil
		})
	}()
	answer, err := s.Run(ctx, commandLine(s.Migration.Target, s.ensure(c.Target.Address.String())), document)
	cancel()
	<-watched
	refused := refusalOf(s.Migration.Sled(), answer, err)
	if err != nil || answer.Exit != 0 {
		return refused
	}
	if err := arrivalOf(answer, s.ID, s.Migration.ID); err != nil {
		refused.Err = err
		return refused
	}
	s.Told(answer.Stdout)
	return nil
}

// Rehearse asks the target whether it could take the VM. Nothing is written down on
// either side. Errors: *RemoteError for what it refuses.
func (s Send) Rehearse(ctx context.Context, h host.Host) error {
	document, err := s.Complete(h.Files())
	if err != nil {
		return err
	}
	source, err := s.at(ctx, h)
	if err != nil {
		return err
	}
	words := append(s.ensure(source.Address.String()), "--dry-run")
	answer, err := s.Run(ctx, commandLine(s.Migration.Target, words), document)
	refused := refusalOf(s.Migration.Sled(), answer, err)
	if err != nil || answer.Exit != 0 {
		return refused
	}
	if err := planned(answer); err != nil {
		refused.Err = err
		return refused
	}
	return nil
}

// patience is how long a side of a migration may take to say what the other one
// has said already.
const patience = 30 * time.Second

// where asks this side's Propolis where the machine is, and waits while it is on
// its way.
func (s Send) where(ctx context.Context, c propolis.Client) Whereabouts {
	at := Unclear
	rest := errors.New("it rests")
	err := c.Follow(ctx, func(now propolis.Status) error {
		vm := VM{State: now.State, ID: s.ID, Generation: now.Generation, Migration: now.Migration}
		if at = vm.OutOf(s.ID, ""); at == OnTheWay {
			return nil
		}
		return rest
	})
	switch {
	case err == nil, errors.Is(err, rest), at == OnTheWay && ctx.Err() != nil:
		return at
	}
	return Unclear
}

// confirm holds what the target says against what the source says: a machine that
// runs here has not left.
func (s Send) confirm(ctx context.Context, c propolis.Client) error {
	ctx, release := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer release()
	if at := s.where(ctx, c); at == AtSource || at == OnTheWay {
		return &UnknownOutcomeError{s.Name, errForeign, "the target says that it has arrived, and the machine here has not left"}
	}
	return nil
}

// settle finds out where the machine is after the target's sledctl has not said
// that it is there.
//
// Guess broken-migration-before-finish: a migration that is broken off before its target has
// answered `Finish` leaves the source running, and one that has come so far has moved
// (bin/propolis-server/src/lib/migrate).
// Check: `sledctl instance migrate NAME --to SLED -v`, and halt the target's zone in each phase
func (s Send) settle(ctx context.Context, c propolis.Client, refused *RemoteError) error {
	at := Unclear
	if c.Target.Address.IsValid() {
		at = s.where(ctx, c)
	}
	interrupted := context.Cause(ctx)
	ctx, release := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer release()
	switch at {
	case AtTarget:
		if again := s.ask(ctx, c); again != nil { // it must know, too
			return &UnknownOutcomeError{s.Name, again, "the machine has left, and the target does not say that it has it"}
		}
		return nil
	case OnTheWay:
		return &UnknownOutcomeError{s.Name, refused, "its memory is still moving, and nobody waits for it"}
	}
	if !s.givesUp(ctx, refused) {
		return &UnknownOutcomeError{s.Name, refused, "the target may take it yet"}
	}
	if interrupted != nil {
		return fmt.Errorf("%w (%w)", refused, interrupted)
	}
	return refused
}

// givesUp has the target remove what it has of an arrival, and reports whether
// there is none any longer.
func (s Send) givesUp(ctx context.Context, refused *RemoteError) bool {
	answer, err := s.Run(ctx, commandLine(s.Migration.Target, s.giveUp()), nil)
	if err == nil && answer.Exit == 0 {
		return true
	}
	denied := refusalOf(s.Migration.Sled(), answer, err)
	return refused.clean() && !denied.Said // it cannot be asked, and has said before that there is nothing
}

// calledBack takes a migration back that has not begun to move the machine, or has
// failed to.
func (s Send) calledBack(ctx context.Context, c propolis.Client) error {
	at := Unclear
	if c.Target.Address.IsValid() {
		now, release := context.WithTimeout(ctx, layout.AskTimeout)
		at = s.where(now, c)
		release()
	}
	none := &RemoteError{Peer: s.Migration.Sled(), Message: "it is not called back"}
	switch at {
	case OnTheWay:
		return &UnknownOutcomeError{s.Name, none, "its memory is moving, which cannot be cancelled"}
	case AtTarget:
		return &UnknownOutcomeError{s.Name, none, "it has left"}
	}
	if s.Alone {
		return nil
	}
	answer, err := s.Run(ctx, commandLine(s.Migration.Target, s.giveUp()), nil)
	if err == nil && answer.Exit == 0 {
		return nil
	}
	return &UnknownOutcomeError{s.Name, refusalOf(s.Migration.Sled(), answer, err), "the target has not said that it gives it up"}
}
