package instance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// send is the step that has the target take the machine. It is done when the
// machine is there and has left here; its error is a *RemoteError when it is here
// and will stay, an *UnknownOutcomeError when that cannot be determined. It is a step of this
// floor, since no resource below knows of two sleds.
type send struct {
	name, id  string
	migration record.Migration
	target    propolis.Target // this sled's
	document  []byte
	whole     func(host.Files) ([]byte, error) // the document with its secrets
	run       Remote
	cancel    bool
	alone     bool // without the target's word
	tell      func(phase string)
	told      func(there []byte)
}

// Verb names the step.
func (send) Verb() string { return "instance.send" }

// Limit is none here: the migration has one of its own.
func (send) Limit() (most time.Duration, waits bool) { return 0, true }

// Undo is nil: nothing calls a migration back.
func (send) Undo() any { return nil }

// Needs is what finds the address.
func (s send) Needs() []string { return s.target.Programs }

// ensure are the target's words, with the source's address.
func (s send) ensure(source string) []string {
	return []string{"instance", "ensure", "-f", "-", "--migrate-from", source, "--migration-id", s.migration.ID, "-o", "json"}
}

// giveUp is the command line that removes an arrival that has not arrived.
func (s send) giveUp() []string {
	return []string{"instance", "delete", s.id, "--migration-id", s.migration.ID, "-o", "json"}
}

// Explain is the command, with the document, and the wait.
func (s send) Explain() []host.Line {
	source := fmt.Sprintf("<address of %s>:%d", s.name, s.target.Port)
	if s.target.Address.IsValid() {
		source = s.target.Address.String()
	}
	words, stdin := s.ensure(source), s.document
	switch {
	case s.alone:
		return []host.Line{host.WaitLine("the Propolis of " + s.name + " says that its machine is here")}
	case s.cancel:
		words, stdin = s.giveUp(), nil
	}
	line := commandLine(s.migration.Target, words)
	c := host.Command{Program: line[0], Args: line[1:], Stdin: stdin}
	return []host.Line{
		{Kind: host.LineRemote, Text: c.Shell()},
		host.WaitLine("both Propolis servers say on which sled the machine of " + s.name + " runs"),
	}
}

// Do has the machine taken, and finds out where it is.
func (s send) Do(ctx context.Context, h host.Host) error {
	target, err := s.at(ctx, h)
	c := propolis.Client{Host: h, Target: target}
	switch {
	case s.cancel:
		return s.calledBack(ctx, c)
	case err != nil: // nobody has heard of it in this try
		return s.settle(ctx, c, &RemoteError{Peer: s.migration.Peer(), Err: err})
	}
	refused := s.ask(ctx, c)
	if refused == nil {
		return s.confirm(ctx, c)
	}
	return s.settle(ctx, c, refused)
}

// at is the source's address, found.
func (s send) at(ctx context.Context, h host.Host) (propolis.Target, error) {
	t := s.target
	if t.Address.IsValid() {
		return t, nil
	}
	found, err := t.Find(ctx, h)
	t.Address = found
	return t, err
}

// ask runs the target's sledctl, and tells the phases meanwhile as this side's
// Propolis has them.
func (s send) ask(ctx context.Context, c propolis.Client) *RemoteError {
	document, err := s.whole(c.Host.Files())
	if err != nil {
		return refusalOf(s.migration.Peer(), Answer{Exit: -1}, err)
	}
	watching, cancel := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		_ = c.Follow(watching, func(now propolis.Status) error {
			if out := now.Migration.Out; out != nil && out.ID == s.migration.ID && s.tell != nil {
				s.tell(out.State)
			}
			return nil
		})
	}()
	answer, err := s.run(ctx, commandLine(s.migration.Target, s.ensure(c.Target.Address.String())), document)
	cancel()
	<-watched
	refused := refusalOf(s.migration.Peer(), answer, err)
	if err != nil || answer.Exit != 0 {
		return refused
	}
	if err := arrivalOf(answer, s.id, s.migration.ID); err != nil {
		refused.Err = err
		return refused
	}
	s.told(answer.Stdout)
	return nil
}

// patience is how long a side of a migration may take to say what the other one
// has said already.
const patience = 30 * time.Second

// where asks this side's Propolis where the machine is, and waits while it is on
// its way.
func (s send) where(ctx context.Context, c propolis.Client) whereabouts {
	at := unclear
	rest := errors.New("it rests")
	err := c.Follow(ctx, func(now propolis.Status) error {
		vm := VM{State: now.State, ID: s.id, Generation: now.Generation, Migration: now.Migration}
		if at = vm.outOf(s.id, ""); at == onTheWay {
			return nil
		}
		return rest
	})
	switch {
	case err == nil, errors.Is(err, rest), at == onTheWay && ctx.Err() != nil:
		return at
	}
	return unclear
}

// confirm holds what the target says against what the source says: a machine that
// runs here has not left.
func (s send) confirm(ctx context.Context, c propolis.Client) error {
	ctx, release := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer release()
	if at := s.where(ctx, c); at == atSource || at == onTheWay {
		return &UnknownOutcomeError{s.name, errForeign, "the target says that it has arrived, and the machine here has not left"}
	}
	return nil
}

// settle finds out where the machine is after the target's sledctl has not said
// that it is there.
func (s send) settle(ctx context.Context, c propolis.Client, refused *RemoteError) error {
	at := unclear
	if c.Target.Address.IsValid() {
		at = s.where(ctx, c)
	}
	interrupted := context.Cause(ctx)
	ctx, release := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer release()
	switch at {
	case atTarget:
		if again := s.ask(ctx, c); again != nil { // it must know, too
			return &UnknownOutcomeError{s.name, again, "the machine has left, and the target does not say that it has it"}
		}
		return nil
	case onTheWay:
		return &UnknownOutcomeError{s.name, refused, "its memory is still moving, and nobody waits for it"}
	}
	if !s.givesUp(ctx, refused) {
		return &UnknownOutcomeError{s.name, refused, "the target may take it yet"}
	}
	if interrupted != nil {
		return fmt.Errorf("%w (%w)", refused, interrupted)
	}
	return refused
}

// givesUp has the target remove what it has of an arrival, and reports whether
// there is none any longer.
func (s send) givesUp(ctx context.Context, refused *RemoteError) bool {
	answer, err := s.run(ctx, commandLine(s.migration.Target, s.giveUp()), nil)
	if err == nil && answer.Exit == 0 {
		return true
	}
	denied := refusalOf(s.migration.Peer(), answer, err)
	return refused.clean() && !denied.Said // it cannot be asked, and has said before that there is nothing
}

// calledBack takes a migration back that has not begun to move the machine, or has
// failed to.
func (s send) calledBack(ctx context.Context, c propolis.Client) error {
	at := unclear
	if c.Target.Address.IsValid() {
		now, release := context.WithTimeout(ctx, AskTimeout)
		at = s.where(now, c)
		release()
	}
	none := &RemoteError{Peer: s.migration.Peer(), Message: "it is not called back"}
	switch at {
	case onTheWay:
		return &UnknownOutcomeError{s.name, none, "its memory is moving, which cannot be cancelled"}
	case atTarget:
		return &UnknownOutcomeError{s.name, none, "it has left"}
	}
	if s.alone {
		return nil
	}
	answer, err := s.run(ctx, commandLine(s.migration.Target, s.giveUp()), nil)
	if err == nil && answer.Exit == 0 {
		return nil
	}
	return &UnknownOutcomeError{s.name, refusalOf(s.migration.Peer(), answer, err), "the target has not said that it gives it up"}
}
