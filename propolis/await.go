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
)

// How AwaitHTTP asks: soon again, since asking costs next to nothing, and not
// for long, since a packet to an address that is only just being made may be
// lost, and the system tries again for minutes.
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
