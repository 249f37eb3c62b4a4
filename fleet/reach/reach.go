// Package reach has programs of a fleet reach an API server that is gone for a while: a connection
// waits until one can be made. A client that is refused waits longer each time, up to a minute, and
// would find an API server that is back as late as that.
//
//	config = reach.Patiently(config)
//
// A request waits until its context ends, therefore: one that may not wait needs a context that does.
package reach

import (
	"context"
	"net"
	"time"

	"k8s.io/client-go/rest"
)

const (
	attempt = 5 * time.Second // one attempt to connect: what was sent to a host that is off has no answer
	pause   = 500 * time.Millisecond
)

// Dial opens a connection.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Patiently is the same config, whose connections wait until the server can be reached.
func Patiently(c *rest.Config) *rest.Config {
	to := rest.CopyConfig(c)
	dial := Dial((&net.Dialer{KeepAlive: 30 * time.Second}).DialContext)
	if c.Dial != nil {
		dial = c.Dial
	}
	to.Dial = dial.untilItAnswers
	return to
}

// untilItAnswers connects, however long that takes, or until the context ends.
func (d Dial) untilItAnswers(ctx context.Context, network, address string) (net.Conn, error) {
	for {
		once, done := context.WithTimeout(ctx, attempt)
		conn, err := d(once, network, address)
		done()
		if err == nil {
			return conn, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(pause):
		}
	}
}
