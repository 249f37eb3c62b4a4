// Package processor asks an illumos host for its processors: no VM gets more virtual CPUs
// than the host has.
package processor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sledctl/sledctl/host"
)

// ErrSyntax is output that is not psrinfo's.
var ErrSyntax = errors.New("output of psrinfo that cannot be understood")

func command() host.Command { return host.Command{Program: "psrinfo", ReadOnly: true} }

// Online is how many processors are on-line, at least one. Errors: ErrSyntax, a
// *host.CommandError.
func Online(ctx context.Context, h host.Host) (int, error) {
	c := command()
	result, err := h.Run(ctx, c)
	if err == nil && result.Exit != 0 {
		err = &host.CommandError{Command: c, Result: result}
	}
	if err != nil {
		return 0, fmt.Errorf("count the processors: %w", err)
	}
	return parse(string(result.Stdout))
}

// parse counts lines like "0\ton-line   since 11/26/2026 09:00:00"
// (usr/src/cmd/psrinfo/psrinfo.c, print_normal).
func parse(out string) (online int, err error) {
	for line := range strings.Lines(out) {
		_, about, is := strings.Cut(line, "\t")
		state, since, told := strings.Cut(about, " ")
		if !is || !told || !strings.HasPrefix(strings.TrimLeft(since, " "), "since ") {
			return 0, fmt.Errorf("%w: %q", ErrSyntax, line)
		}
		if state == "on-line" {
			online++
		}
	}
	if online == 0 {
		return 0, fmt.Errorf("%w: no processor is on-line", ErrSyntax)
	}
	return online, nil
}
