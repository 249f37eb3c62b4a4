// Package dropshot is how one talks to servers that are made with the dropshot
// library, as Propolis, Nexus and the sled agent are: the version that a request
// names, and what an answer says that is an error.
package dropshot

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/peer/exchange"
)

// VersionHeader names the API version that a request speaks
// (dropshot/src/versioning.rs).
const VersionHeader = "api-version"

// Request is one request.
type Request struct {
	Method string
	URL    *url.URL // its Host is what is dialled
	// Version is the API version that the request speaks, as 5.0.0.
	Version string
	Body    []byte // JSON; nil: none
	Limit   int    // bytes of the answer, head and body
}

// Send sends a request over a connection of the host and gives the body of its
// answer. Errors: a *Refusal for an answer that is none of 2xx; those of
// exchange.Send.
func Send(ctx context.Context, h host.Host, r Request) ([]byte, error) {
	p, err := Begin(ctx, h, r)
	if err != nil {
		return nil, err
	}
	return p.Body(ctx)
}

// Pending is a request that is under way: see exchange.Pending.
type Pending struct {
	*exchange.Pending
	method, path string
}

// Begin is the first part of Send; Body must follow.
func Begin(ctx context.Context, h host.Host, r Request) (Pending, error) {
	out := &http.Request{Method: r.Method, URL: r.URL, Header: http.Header{}}
	if len(r.Body) > 0 {
		out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(r.Body)), int64(len(r.Body))
	}
	for _, line := range Headers(r.Version, r.Body) {
		name, value, _ := strings.Cut(line, ": ")
		out.Header.Set(name, value)
	}
	p := Pending{method: r.Method, path: r.URL.Path}
	var err error
	if p.Pending, err = exchange.Begin(ctx, h, out, r.Limit); err != nil {
		return Pending{}, p.failed(err)
	}
	return p, nil
}

// Body is the last part of Send.
func (p Pending) Body(ctx context.Context) ([]byte, error) {
	reply, err := p.Reply(ctx)
	if err != nil {
		return nil, p.failed(err)
	}
	if reply.Status < 200 || reply.Status > 299 {
		return nil, Decode(p.method, p.path, reply.Status, reply.Body)
	}
	return reply.Body, nil
}

func (p Pending) failed(err error) error { return fmt.Errorf("%s %s: %w", p.method, p.path, err) }

// Headers are the lines of a request's head with this body, which is JSON if
// there is one.
func Headers(version string, body []byte) []string {
	lines := []string{VersionHeader + ": " + version}
	if body != nil {
		lines = append(lines, "Content-Type: application/json")
	}
	return lines
}

// Refusal is a request that was answered with an error.
type Refusal struct {
	Method, Path string
	Status       int
	Code         string // what programs go by; may be empty
	Message      string // of a 404, 500 or 503: only the name of the status
	RequestID    string // how the server's log calls the request
}

// Reason is what the server said that tells most: its message, or its code
// where the message only repeats the status.
func (e *Refusal) Reason() string {
	if e.Code != "" && (e.Message == "" || e.Message == http.StatusText(e.Status)) && e.Status != http.StatusInternalServerError {
		return e.Code
	}
	return e.Message
}

// Error is the reason, with the request's id where the log must be asked.
func (e *Refusal) Error() string {
	text := fmt.Sprintf("%s %s: %d", e.Method, e.Path, e.Status)
	if reason := e.Reason(); reason != "" {
		text += " " + reason
	}
	if e.Status >= 500 && e.RequestID != "" {
		text += " (for the reason, see the server's log: req_id " + e.RequestID + ")"
	}
	return text
}

func (*Refusal) Kind() fault.Kind { return fault.Failed }

// Body is the body of an answer that is an error (HttpErrorResponseBody of
// dropshot/src/error.rs).
type Body struct {
	RequestID string `json:"request_id"`
	Code      string `json:"error_code,omitempty"`
	Message   string `json:"message"`
}

// maxWords is how much of a strange error is repeated, in bytes.
const maxWords = 200

// Decode reads an error, whatever its body is.
func Decode(method, path string, status int, data []byte) *Refusal {
	e := &Refusal{Method: method, Path: path, Status: status}
	var body Body
	if json.Unmarshal(data, &body) == nil && body.Message != "" {
		e.RequestID, e.Code, e.Message = body.RequestID, body.Code, body.Message
		return e
	}
	e.Message = http.StatusText(status)
	if words := strings.Join(strings.Fields(string(data)), " "); words != "" {
		e.Message = strings.ToValidUTF8(words[:min(len(words), maxWords)], "")
	}
	return e
}
