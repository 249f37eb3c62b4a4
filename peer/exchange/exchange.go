// Package exchange is one HTTP request and its answer over a connection that
// the host opens. One connection per request: requests are rare and servers
// near; a connection that was kept would have to be closed before the zone of
// its server can be halted cleanly, and its silent end would look like a failed
// request.
package exchange

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"github.com/sledctl/sledctl/host"
)

// ErrReply is an answer that is not HTTP, or longer than the limit.
var ErrReply = errors.New("not an HTTP answer")

// Reply is an answer, whatever its status.
type Reply struct {
	Status int
	Header http.Header
	Body   []byte
}

// Send dials r.URL.Host, writes the request, and reads the answer of at most
// limit bytes, head and body. Nothing is bounded in time but by the context. When
// it returns, the connection is closed and nothing of it runs on. Errors: what
// dialling gave (syscall.ECONNREFUSED where nobody listens); ErrReply;
// io.ErrUnexpectedEOF for an answer that was broken off, also before it began;
// the context's.
func Send(ctx context.Context, h host.Host, r *http.Request, limit int) (Reply, error) {
	p, err := Begin(ctx, h, r, limit)
	if err != nil {
		return Reply{}, err
	}
	return p.Reply(ctx)
}

// Pending is a request that is under way, for callers that wait for months: it keeps
// neither the request nor what reading its answer takes.
type Pending struct {
	in      source
	method  string
	written chan error
}

// Begin is the first part of Send: it dials, and begins to write, which the
// context does not end. Reply must follow.
func Begin(ctx context.Context, h host.Host, r *http.Request, limit int) (*Pending, error) {
	text, err := render(r)
	if err != nil {
		return nil, err
	}
	conn, err := h.Dial(ctx, "tcp", r.URL.Host)
	if err != nil {
		return nil, cmp.Or(ctx.Err(), err)
	}
	p := &Pending{in: source{conn: conn, limit: limit, left: limit}, method: r.Method, written: make(chan error, 1)}
	go func() { p.written <- write(conn, text) }() // a server may answer before it has read all
	return p, nil
}

// Await waits until the answer begins, or will not, so long, or until the context
// ends. It takes next to no stack, which Reply does. What has not begun is
// context.DeadlineExceeded there.
func (p *Pending) Await(ctx context.Context, patience time.Duration) {
	stop := p.endWith(ctx)
	_ = p.in.conn.SetReadDeadline(time.Now().Add(patience))
	p.in.await()
	_ = p.in.conn.SetReadDeadline(time.Time{})
	stop()
}

// Reply is the last part of Send.
func (p *Pending) Reply(ctx context.Context) (Reply, error) {
	defer p.endWith(ctx)()
	reply, err := p.in.receive(p.method)
	p.in.conn.Close()
	werr := <-p.written
	switch {
	case err == nil:
		return reply, nil
	case ctx.Err() != nil:
		return Reply{}, ctx.Err()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return Reply{}, context.DeadlineExceeded
	case werr != nil && !hungUp(werr):
		return Reply{}, werr // which is why there was no answer
	}
	return Reply{}, err
}

// endWith has the connection end with the context, until stop.
func (p *Pending) endWith(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() { p.in.conn.Close() })
}

// usualHead is room for most heads, in bytes.
const usualHead = 320

// render is a request as it is sent.
func render(r *http.Request) ([]byte, error) {
	r.Close = true
	text := bytes.NewBuffer(make([]byte, 0, usualHead+max(r.ContentLength, 0)+bytes.MinRead)) // most need no more
	err := r.Write(text)
	return text.Bytes(), err
}

// write writes the request. If it cannot, no answer need be waited for, unless
// the server hung up: then it may have answered before.
func write(conn net.Conn, request []byte) error {
	_, err := conn.Write(request)
	if err != nil && !hungUp(err) {
		conn.Close()
	}
	return err
}

// hungUp says whether writing failed because either side closed the connection.
func hungUp(err error) bool {
	return errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
}

// MaxHead bounds the heads of an answer, in bytes: to take one apart costs many times
// its length.
const MaxHead = 64 << 10

// receive reads the answer. If it is cut off, also before it began, the error is
// io.ErrUnexpectedEOF; if it is not HTTP, ErrReply.
func (s *source) receive(method string) (reply Reply, err error) {
	body := max(0, s.limit-MaxHead)
	s.limit, s.left = s.limit-body, s.left-body
	a, err := answer(bufio.NewReaderSize(s, 512), method)
	s.limit, s.left = s.limit+body, s.left+body
	if err == nil {
		defer a.Body.Close()
		reply.Status, reply.Header = a.StatusCode, a.Header
		reply.Body, err = io.ReadAll(a.Body)
	}
	switch {
	case err == nil:
		return reply, nil
	case errors.Is(s.err, io.EOF):
		return Reply{}, fmt.Errorf("the connection was broken off: %w", io.ErrUnexpectedEOF)
	case s.err != nil:
		return Reply{}, s.err
	}
	return Reply{}, fmt.Errorf("%w: %w", ErrReply, err)
}

// answer reads the head of the final answer, behind any interim ones.
func answer(from *bufio.Reader, method string) (*http.Response, error) {
	for {
		a, err := http.ReadResponse(from, &http.Request{Method: method})
		if err != nil || a.StatusCode >= 200 || a.StatusCode == http.StatusSwitchingProtocols {
			return a, err
		}
	}
}

// source reads a connection to a limit, and keeps the connection's own error
// apart from what is wrong with what it said.
type source struct {
	conn  net.Conn
	limit int
	left  int
	first [1]byte // that was waited for
	begun int     // how many bytes of it are there, and not read yet
	err   error
}

// await waits for the first byte.
func (s *source) await() { s.begun, s.err = s.conn.Read(s.first[:]) }

// Read is part of io.Reader.
func (s *source) Read(p []byte) (n int, err error) {
	switch {
	case s.left == 0:
		s.err = fmt.Errorf("%w: it is longer than %d bytes", ErrReply, s.limit)
		return 0, s.err
	case s.begun > 0:
		n, s.begun = copy(p, s.first[:]), 0
	case s.err == nil:
		n, s.err = s.conn.Read(p[:min(len(p), s.left)])
	}
	s.left -= n
	return n, s.err
}
