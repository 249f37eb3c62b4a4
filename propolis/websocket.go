package propolis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/coder/websocket"

	"github.com/sledctl/sledctl/peer/dropshot"
	"github.com/sledctl/sledctl/peer/exchange"
	"github.com/sledctl/sledctl/propolis/spec"
)

// Websockets of a server. It upgrades before it looks whether there is a
// machine: without one the connection is broken off at once.

// maxMessage bounds a message that is received, in bytes. A console's are at
// most 16 KiB, a screen's some megabytes.
const maxMessage = 64 << 20

// stay has nobody sent elsewhere.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// handshakeTime is how long a server may take to open a stream: it has nothing to
// wait for.
const handshakeTime = 5 * time.Second

// dial opens a websocket. Errors are as Client's.
func (c Client) dial(ctx context.Context, path string, query url.Values) (*websocket.Conn, error) {
	target, err := c.Target.at(ctx, c.Host)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return c.Host.Dial(ctx, network, address)
		},
		DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: exchange.MaxHead,
	}
	header := http.Header{}
	header.Set(dropshot.VersionHeader, spec.Oldest.String()) // they are the same in each
	at := url.URL{Scheme: "http", Host: target.Address.String(), Path: path, RawQuery: query.Encode()}
	shaking, shaken := context.WithTimeout(ctx, handshakeTime)
	defer shaken()
	conn, reply, err := websocket.Dial(shaking, at.String(), &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: transport, CheckRedirect: stay}, HTTPHeader: header, CompressionMode: websocket.CompressionDisabled,
	})
	switch {
	case err == nil:
		conn.SetReadLimit(maxMessage)
		return conn, nil
	case ctx.Err() != nil:
		return nil, c.Target.asked(fmt.Errorf("%s %s: %w", http.MethodGet, path, ctx.Err()))
	case shaking.Err() != nil:
		return nil, c.Target.asked(fmt.Errorf("%s %s: no answer within %s", http.MethodGet, path, handshakeTime))
	case reply != nil && reply.StatusCode >= http.StatusBadRequest:
		body, _ := io.ReadAll(reply.Body) // the beginning, which is what the library keeps
		return nil, c.Target.asked(&Error{Refusal: *dropshot.Decode(http.MethodGet, path, reply.StatusCode, body)})
	case reply != nil:
		return nil, c.replyError(http.MethodGet, path, err)
	}
	if dialled, ok := errors.AsType[*url.Error](err); ok { // its text repeats what ours says
		err = dialled.Err
	}
	return nil, c.Target.asked(fmt.Errorf("%s %s: %w", http.MethodGet, path, err))
}
