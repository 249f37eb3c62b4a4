// Package client asks an agent about instances, and for their change: what
// sledctl on another machine is made with.
package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/peer/dropshot"
	"github.com/sledctl/sledctl/peer/exchange"
	"github.com/sledctl/sledctl/sled/instance"
)

// Client is an agent that is asked.
type Client struct {
	http  http.Client
	name  string // whom messages name
	base  string
	token string // that lets in; empty: none
	Wait  bool   // where another process is at work, wait for its end
	// Unreachable is called, once each time, when an agent that answered is unreachable,
	// and is asked again.
	Unreachable func(error)
}

// Dial opens a connection.
type Dial = func(ctx context.Context, network, address string) (net.Conn, error)

// New is an agent at unix:/NAME, http://HOST:PORT or https://HOST:PORT, of which
// the last is asked with secure. A token, if there is one, is said to it; over
// http only on this machine, where nobody can read it on its way. Dial, if set,
// reaches it in place of the network.
func New(address string, secure *tls.Config, token string, dial Dial) (*Client, error) {
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	transport := &http.Transport{TLSClientConfig: secure, DisableKeepAlives: true, DialContext: dial, MaxResponseHeaderBytes: exchange.MaxHead}
	c := &Client{http: http.Client{Transport: transport, CheckRedirect: stay}, name: "the agent at " + address, base: strings.TrimSuffix(address, "/"), token: token}
	if name, unix := strings.CutPrefix(address, "unix:"); unix && strings.HasPrefix(name, "/") {
		c.base = "http://sled"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dial(ctx, "unix", name)
		}
		return c, nil
	}
	at, err := url.Parse(address)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Port() == "" || at.User != nil || strings.Trim(at.Path, "/") != "" {
		return nil, fmt.Errorf("address %q: want unix:/NAME, http://HOST:PORT or https://HOST:PORT", address)
	}
	if token != "" && at.Scheme == "http" && !local(at.Hostname()) {
		return nil, fmt.Errorf("address %q: a token would cross the network for all to read: want https", address)
	}
	return c, nil
}

// stay has nobody sent elsewhere: an agent does not, and who is there is not whom
// the request is for.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// local reports whether a host is this machine.
func local(host string) bool {
	at, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && at.IsLoopback()
}

// FailedError is an answer that is a failure of a command on the other side.
type FailedError struct {
	*dropshot.Refusal
	Failure json.RawMessage // what the command reports for it; nil: it was none
}

func (*FailedError) Kind() fault.Kind { return fault.Failed }

// maxAnswer bounds an answer, in bytes: some 100,000 instances.
const maxAnswer = 64 << 20

// List gives all instances, with the last operation on each if that is asked for.
func (c *Client) List(ctx context.Context, last bool) (all api.Instances, err error) {
	query := url.Values{}
	if last {
		query.Set("last", "true")
	}
	err = c.do(ctx, http.MethodGet, "/instances", query, nil, "items", &all)
	if err == nil && last && !all.Last {
		err = fmt.Errorf("%s does not give the last operation on each instance: it is older than this sledctl", c.name)
	}
	return all, err
}

// Status gives what the agent sees of the sled.
func (c *Client) Status(ctx context.Context) (s api.Status, err error) {
	return s, c.do(ctx, http.MethodGet, "/status", nil, nil, "verdict", &s)
}

// Operations gives the newest operations, at most n, the oldest first.
func (c *Client) Operations(ctx context.Context, n int) (all api.Events, err error) {
	return all, c.do(ctx, http.MethodGet, "/operations", url.Values{"last": {strconv.Itoa(n)}}, nil, "items", &all)
}

// Get gives one instance by its name or id.
func (c *Client) Get(ctx context.Context, ref string) (*api.Instance, error) {
	var one api.Changed
	err := c.do(ctx, http.MethodGet, "/instances/"+url.PathEscape(ref), nil, nil, "instance", &one)
	if one.Instance != nil {
		one.Instance.PropolisAddress = "" // it is for a target of a migration: on the sled, no command prints it
	}
	return one.Instance, err
}

// Differences gives in what an instance is not as wanted.
func (c *Client) Differences(ctx context.Context, ref string) (all api.Differences, err error) {
	return all, c.do(ctx, http.MethodGet, "/instances/"+url.PathEscape(ref)+"/differences", nil, nil, "items", &all)
}

// Document gives what describes an instance.
func (c *Client) Document(ctx context.Context, ref string) (d api.Document, err error) {
	return d, c.do(ctx, http.MethodGet, "/instances/"+url.PathEscape(ref)+"/document", nil, nil, "text", &d)
}

// Change has an instance running, stopped or reset.
func (c *Client) Change(ctx context.Context, ref, state string) (*api.Instance, error) {
	var one api.Changed
	err := c.do(ctx, http.MethodPut, "/instances/"+url.PathEscape(ref)+"/state", nil, api.PutInstanceState{State: state}, "instance", &one)
	return one.Instance, err
}

// Delete deletes an instance.
func (c *Client) Delete(ctx context.Context, ref string) error {
	return c.do(ctx, http.MethodDelete, "/instances/"+url.PathEscape(ref), nil, nil, "instance", &api.Changed{})
}

// Ensure creates, repairs or starts an instance as w describes. Protect, if set,
// is whether it is protected from now on.
func (c *Client) Ensure(ctx context.Context, w instance.Wanted, recreate bool, protect *bool) (*api.Instance, error) {
	query := url.Values{}
	if recreate {
		query.Set("recreate", "true")
	}
	if protect != nil {
		query.Set("protect", strconv.FormatBool(*protect))
	}
	var one api.Changed
	err := c.do(ctx, http.MethodPut, "/instances/"+url.PathEscape(w.Ref), query, api.PutInstanceOf(w), "instance", &one)
	return one.Instance, err
}

// do sends a request and reads its answer, which always tells one thing: what does
// not is no agent's, and nothing was done.
func (c *Client) do(ctx context.Context, method, path string, query url.Values, body any, tells string, answer any) error {
	reply, err := c.send(ctx, method, path, query, body)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	got, err := c.readAll(reply.Body)
	if err != nil {
		return err
	}
	var told map[string]json.RawMessage
	err = json.Unmarshal(got, &told)
	if _, tell := told[tells]; err == nil && !tell {
		err = fmt.Errorf("it lacks %q", tells)
	}
	if err == nil {
		err = json.Unmarshal(got, answer)
	}
	if err != nil {
		return fmt.Errorf("%s: %s %s: not the answer of an agent: %w", c.name, method, path, err)
	}
	return nil
}

// readAll reads an answer's body.
func (c *Client) readAll(body io.Reader) ([]byte, error) {
	got, err := io.ReadAll(io.LimitReader(body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, &unreachableError{"the agent's answer was broken off", err}
	case len(got) > maxAnswer:
		return nil, fmt.Errorf("%s: its answer is longer than %d bytes", c.name, maxAnswer)
	}
	return got, nil
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
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	reply, err := c.http.Do(r)
	if err != nil {
		return nil, &unreachableError{"the agent cannot be asked", err}
	}
	if reply.StatusCode == http.StatusOK {
		return reply, nil
	}
	defer reply.Body.Close()
	got, err := c.readAll(reply.Body)
	if err != nil {
		return nil, err
	}
	e := failed(method, r.URL.Path, reply.StatusCode, got)
	if e.Failure == nil { // it is none that a command has told
		return nil, fmt.Errorf("%s: %w", c.name, e)
	}
	return nil, e
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
