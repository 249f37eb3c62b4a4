package reach

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

// server is one that can be reached from a moment on.
type server struct{ from time.Time }

func (s server) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if time.Now().Before(s.from) {
		return nil, errors.New("refused")
	}
	near, far := net.Pipe()
	return near, far.Close()
}

// A server that was gone for an hour is reached within a second.
func TestAConnectionWaitsForTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		c := Patiently(&rest.Config{Dial: server{begun.Add(time.Hour)}.dial})
		conn, err := c.Dial(t.Context(), "tcp", "127.0.0.1:6443")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if late := time.Since(begun) - time.Hour; late < 0 || late > time.Second {
			t.Errorf("connected %v after the server was back", late)
		}
	})
}

// The caller says how long that may take.
func TestAConnectionEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		ctx, done := context.WithTimeout(t.Context(), 3*time.Second)
		defer done()
		c := Patiently(&rest.Config{Dial: server{begun.Add(time.Hour)}.dial})
		if _, err := c.Dial(ctx, "tcp", "127.0.0.1:6443"); err == nil || err.Error() != "refused" {
			t.Errorf("connected to what cannot be reached: %v", err)
		}
		if took := time.Since(begun); took > 4*time.Second {
			t.Errorf("it gave up after %v", took)
		}
	})
}

// A host that is off answers nothing: the attempt ends, and is made again.
func TestAnAttemptEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		c := Patiently(&rest.Config{Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			if attempts++; attempts < 3 {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return server{}.dial(ctx, "", "")
		}})
		begun := time.Now()
		conn, err := c.Dial(t.Context(), "tcp", "127.0.0.1:6443")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if took := time.Since(begun); took > 12*time.Second {
			t.Errorf("connected after %v", took)
		}
	})
}
