// Package client asks an agent about instances, and for their change: what
// sledctl on another machine is made with.
package client

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/dropshot"
	"github.com/sledctl/sledctl/instance"
)

// Client is an agent that is asked.
type Client struct {
	http http.Client
	base string
	Wait bool // where another process is at work, wait for its end
}

// New is an agent at unix:/NAME, http://HOST:PORT or https://HOST:PORT, of which
// the last is asked with secure.
func New(address string, secure *tls.Config) (*Client, error) {
	transport := &http.Transport{TLSClientConfig: secure, DisableKeepAlives: true}
	c := &Client{http: http.Client{Transport: transport}, base: strings.TrimSuffix(address, "/")}
	if name, unix := strings.CutPrefix(address, "unix:"); unix && strings.HasPrefix(name, "/") {
		c.base = "http://sled"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", name)
		}
		return c, nil
	}
	at, err := url.Parse(address)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Port() == "" || at.User != nil || strings.Trim(at.Path, "/") != "" {
		return nil, fmt.Errorf("address %q: want unix:/NAME, http://HOST:PORT or https://HOST:PORT", address)
	}
	return c, nil
}

// FailedError is an answer that is a failure of a command on the other side.
type FailedError struct {
	*dropshot.Refusal
	Failure json.RawMessage // what the command says of it; nil: it was none
}

// maxAnswer bounds an answer, in bytes: some 100,000 instances.
const maxAnswer = 64 << 20

// List gives all instances.
func (c *Client) List(ctx context.Context) ([]api.Instance, error) {
	var all api.Instances
	err := c.do(ctx, http.MethodGet, "/instances", nil, nil, &all)
	return all.Items, err
}

// Get gives one instance by its name or id.
func (c *Client) Get(ctx context.Context, ref string) (*api.Instance, error) {
	var one api.Changed
	err := c.do(ctx, http.MethodGet, "/instances/"+url.PathEscape(ref), nil, nil, &one)
	return one.Instance, err
}

// Change has an instance running, stopped or reset.
func (c *Client) Change(ctx context.Context, ref, state string) (*api.Instance, error) {
	var one api.Changed
	err := c.do(ctx, http.MethodPut, "/instances/"+url.PathEscape(ref)+"/state", nil, api.PutInstanceState{State: state}, &one)
	return one.Instance, err
}

// Delete takes an instance away.
func (c *Client) Delete(ctx context.Context, ref string) error {
	return c.do(ctx, http.MethodDelete, "/instances/"+url.PathEscape(ref), nil, nil, &api.Changed{})
}

// Ensure makes an instance be there, run, and be as w says. Protect, if set, is
// whether it is protected from now on.
func (c *Client) Ensure(ctx context.Context, w instance.Wanted, recreate bool, protect *bool) (*api.Instance, error) {
	query := url.Values{}
	if recreate {
		query.Set("recreate", "true")
	}
	if protect != nil {
		query.Set("protect", strconv.FormatBool(*protect))
	}
	var one api.Changed
	err := c.do(ctx, http.MethodPut, "/instances/"+url.PathEscape(w.Ref), query, api.PutInstanceOf(w), &one)
	return one.Instance, err
}

// Await waits until all of the instances are in a state, one of instance.Goals, and
// gives them as they are then.
func (c *Client) Await(ctx context.Context, refs []string, goal instance.State) ([]api.Instance, error) {
	var all api.Instances
	query := url.Values{"for": {goal}, "instances": {strings.Join(refs, ",")}}
	err := c.do(ctx, http.MethodGet, "/instances", query, nil, &all)
	return all.Items, err
}

// Watch tells the instances, of no names all, as they are, and each change, until
// ctx ends, whose cause it returns, tell fails, or the agent can tell no more.
func (c *Client) Watch(ctx context.Context, refs []string, tell func(api.Instance) error) error {
	reply, err := c.send(ctx, http.MethodGet, "/instance-events", url.Values{"instances": {strings.Join(refs, ",")}}, nil)
	if err == nil {
		defer reply.Body.Close()
		err = events(reply.Body, tell)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// events reads server-sent events (HTML 9.2), in the form in which an agent sends
// them: the data of each is one line behind its name.
func events(r io.Reader, tell func(api.Instance) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxEvent)
	event := ""
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), ": ")
		switch {
		case key == "event":
			event = value
		case key == "data" && event == "failure":
			return failed(http.MethodGet, "/instance-events", http.StatusInternalServerError, []byte(value))
		case key == "data":
			var one api.Instance
			if err := json.Unmarshal([]byte(value), &one); err != nil {
				return fmt.Errorf("an event of the agent's: %w", err)
			}
			if err := tell(one); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("the agent's answer was broken off: %w", cmp.Or(lines.Err(), io.ErrUnexpectedEOF))
}

// maxEvent bounds an event, in bytes.
const maxEvent = 1 << 20

// do sends a request and reads its answer.
func (c *Client) do(ctx context.Context, method, path string, query url.Values, body, answer any) error {
	reply, err := c.send(ctx, method, path, query, body)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	got, err := io.ReadAll(io.LimitReader(reply.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("the agent's answer was broken off: %w", err)
	}
	return json.Unmarshal(got, answer)
}

// send sends a request. An answer that is an error is a *FailedError; the body of
// another one is to be closed.
func (c *Client) send(ctx context.Context, method, path string, query url.Values, body any) (*http.Response, error) {
	var data []byte
	if body != nil {
		var err error
		if data, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	if c.Wait && method != http.MethodGet {
		if query == nil {
			query = url.Values{}
		}
		query.Set("wait", "true")
	}
	r, err := http.NewRequestWithContext(ctx, method, c.base+path+"?"+query.Encode(), bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	for _, line := range dropshot.Headers(api.Latest().String(), data) {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	reply, err := c.http.Do(r)
	if err != nil {
		return nil, fmt.Errorf("the agent cannot be asked: %w", err)
	}
	if reply.StatusCode == http.StatusOK {
		return reply, nil
	}
	defer reply.Body.Close()
	got, err := io.ReadAll(io.LimitReader(reply.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("the agent's answer was broken off: %w", err)
	}
	return nil, failed(method, r.URL.Path, reply.StatusCode, got)
}

// failed is an answer that is an error.
func failed(method, path string, status int, body []byte) *FailedError {
	e := &FailedError{Refusal: dropshot.Decode(method, path, status, body)}
	var said api.Failure
	if json.Unmarshal(body, &said) == nil {
		e.Failure = said.Failure
	}
	return e
}
