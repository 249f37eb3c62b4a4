package forward

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo is somewhere else: it says back each line, and at "q"
// hangs up.
func echo(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				lines := bufio.NewReader(conn)
				for {
					line, err := lines.ReadString('\n')
					if err != nil || line == "q\n" {
						return
					}
					_, _ = io.WriteString(conn, "> "+line)
				}
			}()
		}
	}()
	return l
}

func TestEachClientHasItsConnection(t *testing.T) {
	far := echo(t)
	defer far.Close()
	near, err := Listen(t.Context(), netip.MustParseAddrPort("127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	dial := func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", far.Addr().String())
	}
	go func() { done <- Serve(ctx, near, dial, func(err error) { t.Error(err) }) }()
	open := func() (net.Conn, *bufio.Reader) {
		conn, err := net.Dial("tcp", near.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		return conn, bufio.NewReader(conn)
	}
	one, oneReads := open()
	two, twoReads := open()
	for _, c := range []struct {
		conn  net.Conn
		reads *bufio.Reader
		says  string
	}{{one, oneReads, "hello\n"}, {two, twoReads, "there\n"}, {one, oneReads, "again\n"}} {
		_, _ = io.WriteString(c.conn, c.says)
		if got, err := c.reads.ReadString('\n'); got != "> "+c.says {
			t.Errorf("%q %v", got, err)
		}
	}
	_, _ = io.WriteString(one, "q\n") // the far side hangs up
	if _, err := oneReads.ReadByte(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	why := errors.New("enough")
	cancel(why)
	if err := <-done; !errors.Is(err, why) {
		t.Error(err)
	}
	if _, err := twoReads.ReadByte(); err == nil {
		t.Error("a client outlives it")
	}
	one.Close()
	two.Close()
}

func TestAClientIsTurnedAway(t *testing.T) {
	near, err := Listen(t.Context(), netip.MustParseAddrPort("127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	refused := errors.New("nobody there")
	told, done := make(chan error, 1), make(chan error, 1)
	dial := func(context.Context) (net.Conn, error) { return nil, refused }
	go func() { done <- Serve(ctx, near, dial, func(err error) { told <- err }) }()
	conn, err := net.Dial("tcp", near.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := <-told; !errors.Is(err, refused) {
		t.Error(err)
	}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	cancel()
	<-done
}

func TestOnlyThisMachineIsServed(t *testing.T) {
	for _, at := range []string{"0.0.0.0:0", "[::]:0", "192.0.2.1:5900"} {
		if l, err := Listen(t.Context(), netip.MustParseAddrPort(at)); err == nil {
			l.Close()
			t.Error(at)
		}
	}
}
