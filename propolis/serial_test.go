package propolis_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/propolis/console"
	"github.com/sledctl/sledctl/sim/world"
)

// run makes the machine and lets it boot.
func (r rig) run() {
	r.t.Helper()
	r.do(propolis.Ensure{Target: target(), Request: r.request()}, ask(propolis.Run), await(propolis.StateRunning))
}

func (r rig) line(h host.Host) propolis.Serial {
	return propolis.Serial{Client: propolis.Client{Host: h, Target: target()}}
}

// written is all that the guest has written.
func (r rig) written() string {
	r.t.Helper()
	var out bytes.Buffer
	must(r.t, console.History(r.t.Context(), r.line(r.host), console.Place{}, &out, nil))
	return out.String()
}

// recorder keeps what is shown, and wakes who waits for some of it.
type recorder struct {
	mu    sync.Mutex
	cond  *sync.Cond
	shown bytes.Buffer
}

func newRecorder() *recorder {
	r := &recorder{}
	r.cond = sync.NewCond(&r.mu)
	return r
}

func (r *recorder) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cond.Broadcast()
	return r.shown.Write(p)
}

// await waits until a text was shown for the n-th time.
func (r *recorder) await(text string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for strings.Count(r.shown.String(), text) < n {
		r.cond.Wait()
	}
}

// cutting is a host whose websockets break after so many bytes of what the
// server sends, its answer to the opening handshake included.
type cutting struct {
	host.Host
	after func() int
}

func (c cutting) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := c.Host.Dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &cut{Conn: conn, left: -1, after: c.after}, nil
}

type cut struct {
	net.Conn
	mu    sync.Mutex
	left  int // -1: unbounded
	after func() int
}

func (c *cut) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("\r\nUpgrade: websocket\r\n")) {
		c.mu.Lock()
		c.left = c.after()
		c.mu.Unlock()
	}
	return c.Conn.Write(p)
}

func (c *cut) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left < 0 {
		return n, err
	}
	if n >= c.left { // the rest of what has come is lost
		n, err = c.left, io.ErrUnexpectedEOF
		c.Conn.Close()
	}
	c.left -= n
	return n, err
}

// A session that is recorded is what the guest wrote, byte for byte, also with
// the connection cut anywhere.
func TestASessionIsRecordedByteForByte(t *testing.T) {
	for _, after := range []int{-1, 150, 200, 256, 260, 261, 300, 333, 400, 420} {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			simulated(t, 0, func(t *testing.T, r rig) {
				r.run()
				cuts, told := 0, []string{}
				cutAt := func() int {
					cuts++
					if after < 0 {
						return -1
					}
					return after + 37*cuts // so that it gets on
				}
				record := newRecorder()
				in, keys := io.Pipe()
				s := console.Session{
					Line: r.line(cutting{r.host, cutAt}), In: in, Out: record, Escape: '~', Patience: time.Minute,
					Tell: func(line string) { told = append(told, line) },
				}
				done := make(chan error, 1)
				go func() { done <- s.Run(t.Context()) }()
				record.await("web1 login: ", 1)
				for i, line := range []string{"root", "uname -a \xff\x00\x1b[A", "~~not an escape"} {
					_, err := io.WriteString(keys, line+"\r")
					must(t, err)
					record.await("web1 login: ", i+2)
				}
				r.do(ask(propolis.Stop))
				must(t, keys.Close())
				if err := <-done; !errors.Is(err, console.ErrStopped) && !(after >= 0 && errors.Is(err, console.ErrAbsent)) {
					t.Errorf("%v", err)
				}
				var want string
				r.change(func(tx *world.Tx) {
					all, _, err := tx.State.Processes[0].VM.Console.Read(tx.Now, 0)
					must(t, err)
					want = string(all)
				})
				if got := record.shown.String(); got != want || !strings.Contains(got, "\r\nweb1 login: ~not an escape\r\n") {
					t.Errorf("recorded %d bytes: %q\nwritten %d: %q", len(got), got, len(want), want)
				}
				if after >= 0 && len(told) == 0 {
					t.Error("no connection was cut")
				}
			})
		})
	}
}

func TestTheConsoleOfNoMachine(t *testing.T) {
	simulated(t, 0, func(t *testing.T, r rig) {
		s := console.Session{Line: r.line(r.host), Out: io.Discard, Tell: func(string) {}}
		if err := s.Run(t.Context()); !errors.Is(err, console.ErrAbsent) || !errors.Is(err, propolis.ErrNoInstance) {
			t.Error(err)
		}
	})
}

// A server that dies under a session and comes back no longer has a VM:
// that is no connection to be made again.
func TestAServerThatDiesUnderAConsole(t *testing.T) {
	simulated(t, 0, func(t *testing.T, r rig) {
		r.run()
		record := newRecorder()
		s := console.Session{Line: r.line(r.host), Out: record, Tell: func(string) {}, Patience: time.Minute}
		done := make(chan error, 1)
		go func() { done <- s.Run(t.Context()) }()
		record.await("login: ", 1)
		r.change(func(tx *world.Tx) {
			p := *tx.State.Processes[0]
			p.PID, p.VM, p.Started = pid+1, nil, tx.Now.Add(5*time.Second)
			tx.State.Processes = []*world.Process{&p}
		})
		if err := <-done; !errors.Is(err, console.ErrAbsent) {
			t.Error(err)
		}
	})
}

func TestHistoryIsPaged(t *testing.T) {
	simulated(t, 0, func(t *testing.T, r rig) {
		r.run()
		boot := r.written()
		more := strings.Repeat("0123456789abcdef", 20_000) // several pages
		r.change(func(tx *world.Tx) {
			c := &tx.State.Processes[0].VM.Console
			c.Write(tx, tx.Now, []byte(more))
		})
		if got := r.written(); got != boot+more {
			t.Errorf("%d bytes, want %d", len(got), len(boot+more))
		}
		var told []string
		r.change(func(tx *world.Tx) {
			vm := tx.State.Processes[0].VM
			vm.Console = world.Console{Kept: 100}
			vm.Console.Write(tx, tx.Now, []byte(more))
		})
		var out bytes.Buffer
		err := console.History(t.Context(), r.line(r.host), console.Place{}, &out, func(line string) { told = append(told, line) })
		if _, lost := errors.AsType[*console.LostError](err); !lost || out.String() != more[:100] { // less is kept than any server keeps
			t.Errorf("%d bytes, told %q, %v", out.Len(), told, err)
		}
	})
}
