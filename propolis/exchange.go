package propolis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/sledctl/sledctl/peer/dropshot"
	"github.com/sledctl/sledctl/peer/exchange"
	"github.com/sledctl/sledctl/propolis/spec"
)

// maxReply bounds an answer, head and body, in bytes. The largest is a spec with
// a blob disk, which went in by a request of at most 1 MiB.
const maxReply = 4 << 20

// do sends a request whose body is the same in each version, and returns the
// body of its answer; an answer that is an error is an *Error.
func (c Client) do(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	return c.speak(ctx, method, path, spec.Oldest, func(spec.Version) ([]byte, error) { return body, nil })
}

// speak sends a request in the newest version that the server takes.
func (c Client) speak(ctx context.Context, method, path string, needs spec.Version, body func(spec.Version) ([]byte, error)) ([]byte, error) {
	target, err := c.Target.at(ctx, c.Host)
	if err != nil {
		return nil, err
	}
	for v := target.Versions.first(target.Address, needs); ; v-- {
		data, err := body(v)
		if err != nil {
			return nil, err
		}
		reply, err := c.send(ctx, target, v, method, path, data)
		if err == nil {
			target.Versions.took(target.Address, v)
		}
		if v == spec.Oldest || !tooNew(err) {
			return reply, err
		}
	}
}

// send sends a request in one version.
func (c Client) send(ctx context.Context, target Target, v spec.Version, method, path string, body []byte) ([]byte, error) {
	reply, err := dropshot.Send(ctx, c.Host, target.request(v, method, path, body))
	return reply, c.failed(ctx, target, method, err)
}

// request is one to a target whose address is found.
func (t Target) request(v spec.Version, method, path string, body []byte) dropshot.Request {
	path, query, _ := strings.Cut(path, "?")
	to := &url.URL{Scheme: "http", Host: t.Address.String(), Path: path, RawQuery: query}
	return dropshot.Request{Method: method, URL: to, Version: v.String(), Body: body, Limit: maxReply}
}

// failed is the error of a request, with the server that was asked and what its log says
// about it.
func (c Client) failed(ctx context.Context, target Target, method string, err error) error {
	return target.asked(c.explained(ctx, target, method, err))
}

func (c Client) explained(ctx context.Context, target Target, method string, err error) error {
	if e, ok := errors.AsType[*dropshot.Refusal](err); ok {
		refused := &Error{Refusal: *e}
		if e.Status == http.StatusInternalServerError && e.RequestID != "" {
			refused.Cause = target.Log.why(ctx, c.Host, causeOf(e.RequestID))
		}
		return refused
	}
	if method != http.MethodGet && errors.Is(err, io.ErrUnexpectedEOF) {
		if words := target.Log.why(ctx, c.Host, lastWords); words != "" {
			err = fmt.Errorf("%w: the server died: %s", err, words)
		}
	}
	if errors.Is(err, exchange.ErrReply) {
		err = fmt.Errorf("%w: %w", ErrReply, err)
	}
	return err
}
