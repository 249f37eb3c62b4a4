package propolis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

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
	r, err := http.NewRequest(method, path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.URL.Scheme, r.URL.Host = "http", target.Address.String()
	for _, line := range headers(body) {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	reply, err := exchange.Send(ctx, c.Host, r, maxReply)
	if errors.Is(err, exchange.ErrReply) {
		err = fmt.Errorf("%w: %w", ErrReply, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if reply.Status < 200 || reply.Status > 299 {
		return nil, decodeError(method, path, reply.Status, reply.Body)
	}
	return reply.Body, nil
}

// headers of a request with this body, which is JSON if there is one.
func headers(body []byte) []string {
	if body == nil {
		return []string{"api-version: " + version}
	}
	return []string{"api-version: " + version, "Content-Type: application/json"}
}
