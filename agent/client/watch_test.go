package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/agent/api"
)

// An agent that has answered once and goes away is asked again, after pauses that
// grow, and each time again once it was back. One that never answered is not.
func TestAnAgentThatGoesAwayIsAskedAgain(t *testing.T) {
	refused := &unreachableError{"cannot be asked", &url.Error{Op: "Get", Err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}}
	cut := &unreachableError{"was broken off", io.ErrUnexpectedEOF}
	done := errors.New("done")
	type try struct {
		began bool
		err   error
	}
	times := func(n int, t try) []try { return slices.Repeat([]try{t}, n) }
	for name, c := range map[string]struct {
		tries []try
		want  error
		after time.Duration
		told  int
	}{
		"it answers":                         {[]try{{true, done}}, done, 0, 0},
		"it was never there":                 {[]try{{false, refused}}, refused, 0, 0},
		"what it was is none":                {[]try{{false, cut}}, cut, 0, 0},
		"it breaks off":                      {[]try{{true, cut}, {true, done}}, done, 250 * time.Millisecond, 1},
		"it is away for some time":           {append(append([]try{{true, cut}}, times(3, try{false, refused})...), try{true, done}), done, 3750 * time.Millisecond, 1},
		"it is away for longer":              {append(append([]try{{true, cut}}, times(7, try{false, refused})...), try{true, done}), done, 250*31*time.Millisecond + 3*5*time.Second, 1},
		"it breaks off twice":                {[]try{{true, cut}, {false, refused}, {true, cut}, {true, done}}, done, time.Second, 2},
		"it says that it failed":             {[]try{{true, cut}, {true, &FailedError{}}}, &FailedError{}, 250 * time.Millisecond, 1},
		"its certificate is not the agent's": {[]try{{true, cut}, {false, &unreachableError{"cannot be asked", errors.New("tls: unknown authority")}}}, nil, 250 * time.Millisecond, 1},
		"who is told has failed":             {[]try{{true, syscall.EPIPE}}, syscall.EPIPE, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				told, begun := 0, time.Now()
				client := &Client{Unreachable: func(error) { told++ }}
				err := client.persist(t.Context(), func(began func()) error {
					now := c.tries[0]
					if c.tries = c.tries[1:]; now.began {
						began()
					}
					return now.err
				})
				if fmt.Sprintf("%T", err) != fmt.Sprintf("%T", c.want) && c.want != nil || err == nil || len(c.tries) != 0 || told != c.told || time.Since(begun) != c.after {
					t.Errorf("%v after %s, told %d times, %d tries left; want %v after %s, told %d times", err, time.Since(begun), told, len(c.tries), c.want, c.after, c.told)
				}
			})
		})
	}
}

// The end of the context ends the asking, with its cause.
func TestWhoAsksAgainCanBeInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		enough := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, enough)
		defer cancel()
		err := new(Client).persist(ctx, func(began func()) error { began(); return &unreachableError{"was broken off", io.EOF} })
		if !errors.Is(err, enough) {
			t.Error(err)
		}
	})
}

// What several agents report, one after the other, is passed on once, and an
// instance that the last one no longer has is passed on as deleted.
func TestWhatAgentsTellOneAfterTheOtherIsToldOnce(t *testing.T) {
	event := func(name, state string) string {
		return fmt.Sprintf("event: instance\ndata: {\"id\":%q,\"name\":%[1]q,\"state\":%q,\"zone\":\"z\"}\n\n", name, state)
	}
	const whole, failure = "event: whole\ndata: {}\n\n", "event: failure\ndata: {\"request_id\":\"r\",\"message\":\"no\"}\n\n"
	var told []string
	w := &watched{last: map[string]api.Instance{}, tell: func(i api.Instance) error {
		told = append(told, i.Name+" "+i.State+" "+i.Zone)
		return nil
	}}
	for _, c := range []struct {
		stream string
		told   []string
		ends   error
	}{
		{event("a", "running") + event("b", "running"), []string{"a running z", "b running z"}, io.ErrUnexpectedEOF},
		{event("a", "running"), nil, io.ErrUnexpectedEOF}, // it has not reported all
		{event("a", "running") + event("b", "stopped") + whole, []string{"b stopped z"}, io.ErrUnexpectedEOF},
		{event("b", "stopped") + whole + event("b", "running"), []string{"a absent ", "b running z"}, io.ErrUnexpectedEOF},
		{event("b", "running") + whole, nil, io.ErrUnexpectedEOF},
		{event("b", "running") + event("a", "running") + whole, []string{"a running z"}, io.ErrUnexpectedEOF},
		{failure, nil, nil},
		{"event: instance\ndata: {", nil, nil},
	} {
		told, w.here = nil, map[string]bool{}
		err := readEvents(strings.NewReader(c.stream), "/instance-events", w.take)
		if !slices.Equal(told, c.told) || c.ends != nil && !errors.Is(err, c.ends) || err == nil || gone(err) != (c.ends != nil) {
			t.Errorf("%s: told %q, and ended with %v; want %q and %v", c.stream, told, err, c.told, c.ends)
		}
	}
	if failed := (*FailedError)(nil); !errors.As(readEvents(strings.NewReader(failure), "/instance-events", w.take), &failed) || failed.Status != http.StatusInternalServerError {
		t.Error("a failure is none")
	}
}
