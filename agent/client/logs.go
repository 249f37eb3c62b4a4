package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/sledctl/sledctl/agent/api"
)

// Logs gives the lines of logs that are meant.
func (c *Client) Logs(ctx context.Context, q api.LogQuery) (all api.Logs, err error) {
	err = c.do(ctx, http.MethodGet, "/instance-logs", q.Values(), nil, "items", &all)
	return all, err
}

// FollowLogs tells the lines of logs that are meant, and those that come, until ctx ends,
// whose cause it returns, tell fails, or the agent can tell no more. An agent that goes away is
// asked again, for what has come meanwhile.
func (c *Client) FollowLogs(ctx context.Context, q api.LogQuery, tell func(lines []api.LogLine, cut bool) error, note func(string)) error {
	f := &followed{tell: tell, note: note}
	return c.persist(ctx, func(began func()) error {
		if !f.latest.IsZero() { // a clock may be behind by what a line of whole seconds hides
			q.Since, q.Last = f.latest.Add(-overlap), api.MaxLogLines
			f.known = map[string]int{}
			for _, l := range f.recent {
				f.known[l.key]++
			}
		}
		return c.events(ctx, "/instance-log-events", q.Values(), func() {
			began()
			f.batch = nil
		}, f.take)
	})
}

// errEnd is that an agent has told all.
var errEnd = errors.New("the end")

// LogData passes on one log as it is, and, if it follows, what comes until ctx ends, whose
// cause it returns.
func (c *Client) LogData(ctx context.Context, q api.LogQuery, follow bool, tell func([]byte) error, note func(string)) error {
	query := q.Values()
	if follow {
		query.Set("follow", "true")
	}
	err := c.events(ctx, "/instance-log-data", query, func() {}, func(event string, data []byte) error {
		var text string
		var some api.LogData
		switch event {
		case "end":
			return errEnd
		case "note":
			if err := json.Unmarshal(data, &text); err != nil {
				return fmt.Errorf("an event of the agent's: %w", err)
			}
			note(text)
		case "data":
			if err := json.Unmarshal(data, &some); err != nil {
				return fmt.Errorf("an event of the agent's: %w", err)
			}
			return tell(some.Data)
		}
		return nil
	})
	switch {
	case errors.Is(err, errEnd):
		return nil
	case ctx.Err() != nil && follow:
		return context.Cause(ctx)
	}
	return err
}

// overlap is how much of what was told is asked for once more where an agent is asked again.
const overlap = 2 * time.Second

// followed is what the agents have told about logs.
type followed struct {
	tell   func([]api.LogLine, bool) error
	note   func(string)
	batch  []api.LogLine // that is not complete
	latest time.Time     // of the lines that were told
	recent []recentLine  // those of the last moments before it
	known  map[string]int
}

// recentLine is a line that was told.
type recentLine struct {
	at  time.Time
	key string
}

// keyOf is what tells a line from others of the same time.
func keyOf(l api.LogLine) string {
	key := strings.Join([]string{l.Instance, l.Zone, l.Service, l.Writer, l.Text}, "\n")
	if l.Time != nil {
		key += "\n" + l.Time.UTC().String()
	}
	return key
}

// hear takes a line, but for one that was told by an earlier agent.
func (f *followed) hear(l api.LogLine) {
	if key := keyOf(l); f.known[key] > 0 {
		f.known[key]--
		return
	}
	f.batch = append(f.batch, l)
}

// whole tells the lines that came together.
func (f *followed) whole(cut bool) error {
	for _, l := range f.batch {
		if l.Time == nil {
			continue
		}
		f.recent = append(f.recent, recentLine{*l.Time, keyOf(l)})
		if l.Time.After(f.latest) {
			f.latest = *l.Time
		}
	}
	f.recent = slices.DeleteFunc(f.recent, func(l recentLine) bool { return l.at.Before(f.latest.Add(-overlap)) })
	batch := f.batch
	f.batch, f.known = nil, nil
	return f.tell(batch, cut)
}

// take takes an event.
func (f *followed) take(event string, data []byte) (err error) {
	switch event {
	case "note":
		var text string
		if err = json.Unmarshal(data, &text); err == nil {
			f.note(text)
		}
	case "line":
		var l api.LogLine
		if err = json.Unmarshal(data, &l); err == nil {
			f.hear(l)
		}
	case "whole":
		var all api.LogsWhole
		if err = json.Unmarshal(data, &all); err == nil {
			return f.whole(all.Cut)
		}
	}
	if err != nil {
		return fmt.Errorf("an event of the agent's: %w", err)
	}
	return nil
}
