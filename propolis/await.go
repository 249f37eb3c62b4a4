package propolis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"syscall"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/propolis/console"
)

// How AwaitHTTP asks: soon again, since asking costs next to nothing, and not
// for long, since a packet to an address that is only just being made may be
// lost, and the system tries again for minutes.
//
// Guess attempt-of-one-second: an attempt to connect may take 1 s before the next one: a SYN to an
// address that is just being made can be lost.
// Check: `sledctl trace` of an ensure: the wait for HTTP
const (
	firstPause   = time.Millisecond
	longestPause = 10 * time.Millisecond
	attemptTime  = time.Second
)

// Do asks until there is an answer. Its errors are those that will not go away
// by waiting, and the context's with the last reason why there was none.
func (s AwaitHTTP) Do(ctx context.Context, h host.Host) error {
	target := s.Target
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		var err error
		if target, err = target.at(ctx, h); err == nil {
			err = knock(ctx, Client{Host: h, Target: target})
		}
		switch {
		case err == nil:
			return nil
		case ctx.Err() == nil && !passing(err):
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%s does not answer: %w (%w)", target.url(pathInstance), ctx.Err(), err)
		}
	}
}

// knock is nil if there was any answer that a server of this kind gives.
func knock(ctx context.Context, c Client) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	_, err := c.Get(ctx)
	if _, answered := errors.AsType[*Error](err); answered {
		return nil
	}
	return err
}

// passing says whether an error is one of a server, or an address, that is not
// there yet.
func passing(err error) bool {
	return slices.ContainsFunc([]error{
		syscall.ECONNREFUSED, syscall.EHOSTUNREACH, syscall.ENETUNREACH, // nobody there
		syscall.ECONNRESET, syscall.EPIPE, io.ErrUnexpectedEOF, // somebody who leaves again
		syscall.ETIMEDOUT, context.DeadlineExceeded, // nobody who says so
		host.ErrTransient, // no address
	}, func(kind error) bool { return errors.Is(err, kind) })
}

// awaitMade waits until a machine that is being made is live, and says whether
// one is. Nothing tells when it is: the state is Creating before and behind
// (bin/propolis-server/src/lib/vm/mod.rs in oxidecomputer/propolis), so that a
// question is asked again which only a live one answers.
//
// Guess machine-being-made-is-424: a machine that is being made answers 424 to
// `GET /instance/serial/history`, and one that is made 200.
// Check: `instance ensure` of a large machine, killed; `curl` meanwhile
func (c Client) awaitMade(ctx context.Context) (live bool, err error) {
	for pause := firstPause; ; pause = min(2*pause, longestLive) {
		i, err := c.Get(ctx)
		switch {
		case isNoInstance(err):
			return false, nil
		case err != nil:
			return false, err
		case i.State != StateCreating:
			return !Final(i.State) && i.State != StateMigrating, nil
		}
		_, err = Serial{c}.Find(ctx, console.Place{})
		if err == nil || !isNoInstance(err) {
			return err == nil, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false, ctx.Err()
		}
	}
}

// longestLive is the longest pause of awaitMade: making a machine takes seconds.
const longestLive = 200 * time.Millisecond
