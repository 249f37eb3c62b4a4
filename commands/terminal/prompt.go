package terminal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/sledctl/sledctl/host/fault"
)

// RefusedError means that a change was not agreed to: without a terminal it needs
// --yes, and on one the answer was no.
type RefusedError struct {
	What  string // "format disk c1t0d0"
	Asked bool
}

// Error says what would help.
func (e *RefusedError) Error() string {
	if e.Asked {
		return e.What + ": declined"
	}
	return e.What + ": needs --yes where nobody can be asked"
}

func (*RefusedError) Kind() fault.Kind { return fault.Refused }

// Hint says how to agree.
func (e *RefusedError) Hint() string {
	if e.Asked {
		return "to agree, run the same command again"
	}
	return "to agree without being asked, run the same command with --yes"
}

// Confirm asks before something that cannot be taken back. It asks on a
// terminal only; elsewhere, and when the answer is not yes, it returns a
// *RefusedError. Yes is --yes. The context's error, if it ends first.
func (s *Streams) Confirm(ctx context.Context, what, question string, yes bool) error {
	switch {
	case yes:
		return nil
	case !s.In.Terminal || !s.Err.Terminal:
		return &RefusedError{What: what}
	}
	if _, err := fmt.Fprintf(s.Err, "%s [y/N] ", question); err != nil {
		return err
	}
	type answer struct {
		line string
		err  error
	}
	answered := make(chan answer, 1)
	go func() { // a read cannot be given up; the process ends soon after
		line, err := bufio.NewReader(s.In).ReadString('\n')
		answered <- answer{line, err}
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case a := <-answered:
		if a.err != nil && !errors.Is(a.err, io.EOF) {
			return fmt.Errorf("reading the answer: %w", a.err)
		}
		switch strings.ToLower(strings.TrimSpace(a.line)) {
		case "y", "yes":
			return nil
		}
		return &RefusedError{What: what, Asked: true}
	}
}
