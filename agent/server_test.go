package agent

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/agent/api"
)

// pipes is a listener at which nobody arrives but through Dial.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p pipes) Close() error   { close(p.done); return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func (p pipes) Dial() net.Conn {
	ours, theirs := net.Pipe()
	p.conns <- theirs
	return ours
}

// idleAgent is one that watches nothing.
func idleAgent() *agent {
	a := &agent{Settings: Settings{Log: slog.New(slog.DiscardHandler)}, table: newTable(1)}
	a.work = &work{table: a.table, lanes: map[uuid.UUID]*lane{}}
	return a
}

// Who does not end his request, or never speaks again, is cut off.
func TestWhoIsSlowIsCutOff(t *testing.T) {
	for name, c := range map[string]struct {
		says   string
		within time.Duration
	}{
		"nothing":         {"", 11 * time.Second},
		"half a head":     {"GET /vmms HTTP/1.1\r\nHost: sled\r\n", 11 * time.Second},
		"half a body":     {"PUT /vmms/" + vmID(1).String() + "/state HTTP/1.1\r\nHost: sled\r\napi-version: 48.0.0\r\nContent-Length: 100\r\n\r\n{", 31 * time.Second},
		"one and no more": {"GET /healthz HTTP/1.1\r\nHost: sled\r\n\r\n", 3 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := pipes{make(chan net.Conn), make(chan struct{})}
				server, _ := idleAgent().http(t.Context())
				go func() { _ = server.Serve(l) }()
				defer server.Close()
				conn := l.Dial()
				defer conn.Close()
				go func() { _, _ = io.WriteString(conn, c.says) }()
				begun := time.Now()
				if _, err := io.Copy(io.Discard, conn); err != nil {
					t.Error(err)
				}
				if took := time.Since(begun); took > c.within {
					t.Errorf("cut off after %s", took)
				}
			})
		})
	}
}

// More than may wait for one VM are turned away; those for others are not.
func TestTheQueueOfAVMIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := idleAgent().work
		ctx, cancel := context.WithCancel(t.Context())
		leave, refused := w.enter(ctx, vmID(1), false)
		if refused != nil {
			t.Fatal(refused)
		}
		for range maxWaiting - 1 {
			go func() { _, _ = w.enter(ctx, vmID(1), false) }()
		}
		synctest.Wait()
		if _, refused := w.enter(ctx, vmID(1), false); refused == nil || refused.Status != http.StatusServiceUnavailable || refused.Code != api.CodeChannelFull {
			t.Errorf("one too many: %v", refused)
		}
		if _, refused := w.enter(ctx, vmID(2), false); refused != nil {
			t.Errorf("another VM: %v", refused)
		}
		cancel()
		synctest.Wait()
		leave()
		if left := fmt.Sprint(len(w.lanes)); left != "1" { // of the other VM
			t.Errorf("%s lanes are kept", left)
		}
	})
}

// What is done to a VM is done one after the other; what is done to another does
// not wait for it.
func TestWhatIsDoneToAVMTakesTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := idleAgent().work
		w.ctx = t.Context()
		let, at := make(chan struct{}), make(chan string, 3)
		first := w.begin(vmID(1), rising, func(context.Context) { <-let; at <- "first" })
		second := w.begin(vmID(1), ending, func(context.Context) { at <- "second" })
		other := w.begin(vmID(2), rising, func(context.Context) { at <- "other" })
		<-other.done
		synctest.Wait()
		close(let)
		<-first.done
		<-second.done
		if order := []string{<-at, <-at, <-at}; !slices.Equal(order, []string{"other", "first", "second"}) {
			t.Errorf("%q", order)
		}
	})
}

// Only who may change something is taken to have heard that a VM is gone.
func TestAReaderBuriesNothing(t *testing.T) {
	for by, want := range map[role]int{reader: 0, operator: 1} {
		read := 0
		s := &server{table: newTable(1), read: func(VM) { read++ }}
		s.table.Publish(VM{ID: vmID(1), State: "Running"})
		if _, err := s.state(call{by: by, params: map[string]string{"propolis_id": vmID(1).String()}}); err != nil {
			t.Fatal(err)
		}
		if read != want {
			t.Errorf("role %d: read %d times, want %d", by, read, want)
		}
	}
}
