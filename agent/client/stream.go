package client

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/sled/events"
)

// maxEvent bounds an event, in bytes: one may have a line of a log.
const maxEvent = 2*api.MaxLogBytes + 1<<20

// events takes the server-sent events of an answer, until it ends, which is an error, or take
// fails. Began is called when there is an answer.
func (c *Client) events(ctx context.Context, path string, query url.Values, began func(), take func(event string, data []byte) error) error {
	reply, err := c.send(ctx, http.MethodGet, path, query, nil)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	if kind := reply.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") {
		return fmt.Errorf("%s: GET %s: not the answer of an agent: %q and no events", c.name, path, kind)
	}
	began()
	return readEvents(reply.Body, path, take)
}

// readEvents reads server-sent events (HTML 9.2), in the form in which an agent sends them:
// the data of each is one line behind its name. A failure is the last.
func readEvents(r io.Reader, path string, take func(event string, data []byte) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxEvent)
	event := ""
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), ": ")
		var err error
		switch {
		case key == "event":
			event = value
		case key != "data":
		case event == "failure":
			return failed(http.MethodGet, path, http.StatusInternalServerError, []byte(value))
		default:
			err = take(event, []byte(value))
		}
		if err != nil {
			return err
		}
	}
	return &unreachableError{"the agent's answer was broken off", cmp.Or(lines.Err(), io.ErrUnexpectedEOF)}
}

// FollowOperations tells the newest operations, at most n, the oldest first, and then those
// that begin or end, until ctx ends, whose cause it returns, tell fails, or the agent can
// tell no more. An agent that goes away is asked again, for what has come meanwhile.
func (c *Client) FollowOperations(ctx context.Context, n int, tell func([]events.Event) error) error {
	told := map[string]bool{}
	return c.persist(ctx, func(began func()) error {
		var batch []events.Event
		first := len(told) == 0
		return c.events(ctx, "/operation-events", url.Values{"last": {strconv.Itoa(n)}}, began, func(event string, data []byte) error {
			var one events.Event
			switch {
			case event == "operation":
				if err := json.Unmarshal(data, &one); err != nil {
					return fmt.Errorf("an event of the agent's: %w", err)
				}
				if !told[one.Key()] {
					told[one.Key()] = true
					batch = append(batch, one)
				}
			case event == "whole" && (first || len(batch) > 0):
				all := batch
				batch, first = nil, false
				return tell(all)
			}
			return nil
		})
	})
}
