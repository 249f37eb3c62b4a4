package propolis

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/sledctl/sledctl/dropshot"
	"github.com/sledctl/sledctl/exchange"
)

// maxReply bounds an answer, head and body, in bytes. The largest is a spec with
// a blob disk, which went in by a request of at most 1 MiB.
const maxReply = 4 << 20

// do sends a request and returns the body of its answer; an answer that is an
// error is an *Error.
func (c Client) do(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	target, err := c.Target.at(ctx, c.Host)
	if err != nil {
		return nil, err
	}
	to := &url.URL{Scheme: "http", Host: target.Address.String(), Path: path}
	reply, err := dropshot.Send(ctx, c.Host, dropshot.Request{Method: method, URL: to, Version: version, Body: body, Limit: maxReply})
	if e, ok := errors.AsType[*dropshot.Refusal](err); ok {
		return nil, &Error{*e}
	}
	if errors.Is(err, exchange.ErrReply) {
		err = fmt.Errorf("%w: %w", ErrReply, err)
	}
	return reply, err
}
