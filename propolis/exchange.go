package propolis

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
	"strings"
	"syscall"

	"github.com/sledctl/sledctl/host"
)

// One connection per request. They are rare and the server is near; a
// connection that was kept would have to be closed before its zone can be
// halted cleanly, and its silent end would look like a failed request.

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
	r.Close = true
	for _, line := range headers(body) {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	status, data, err := send(ctx, c.Host, r)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if status < 200 || status > 299 {
		return nil, decodeError(method, path, status, data)
	}
	return data, nil
}

// headers of a request with this body, which is JSON if there is one.
func headers(body []byte) []string {
	if body == nil {
		return []string{"api-version: " + version}
	}
	return []string{"api-version: " + version, "Content-Type: application/json"}
}

// send dials, writes the request, and reads the answer. When it returns, the
// connection is closed and nothing of it runs on.
func send(ctx context.Context, h host.Host, r *http.Request) (status int, body []byte, err error) {
	conn, err := h.Dial(ctx, "tcp", r.URL.Host)
	if err != nil {
		return 0, nil, cmp.Or(ctx.Err(), err)
	}
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	written := make(chan error, 1)
	go func() { written <- write(conn, r) }() // a server may answer before it has read all
	status, body, err = receive(conn, r)
	conn.Close()
	werr := <-written
	switch {
	case err == nil:
		return status, body, nil
	case ctx.Err() != nil:
		return 0, nil, ctx.Err()
	case werr != nil && !hungUp(werr):
		return 0, nil, werr // which is why there was no answer
	}
	return 0, nil, err
}

// write writes the request. If it cannot, no answer need be waited for, unless
// the server hung up: then it may have answered before.
func write(conn net.Conn, r *http.Request) error {
	err := r.Write(conn)
	if err != nil && !hungUp(err) {
		conn.Close()
	}
	return err
}

// hungUp says whether writing failed because either side closed the connection.
func hungUp(err error) bool {
	return errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
}

// receive reads the answer. If it is cut off, also before it began, the error is
// io.ErrUnexpectedEOF; if it is not HTTP, ErrReply.
func receive(conn net.Conn, r *http.Request) (status int, body []byte, err error) {
	in := &source{conn: conn, left: maxReply}
	a, err := answer(bufio.NewReader(in), r)
	if err == nil {
		defer a.Body.Close()
		status = a.StatusCode
		body, err = io.ReadAll(a.Body)
	}
	switch {
	case err == nil:
		return status, body, nil
	case errors.Is(in.err, io.EOF):
		return 0, nil, fmt.Errorf("the connection was broken off: %w", io.ErrUnexpectedEOF)
	case in.err != nil:
		return 0, nil, in.err
	}
	return 0, nil, fmt.Errorf("%w: %w", ErrReply, err)
}

// answer reads the head of the final answer, behind any interim ones.
func answer(from *bufio.Reader, r *http.Request) (*http.Response, error) {
	for {
		a, err := http.ReadResponse(from, r)
		if err != nil || a.StatusCode >= 200 || a.StatusCode == http.StatusSwitchingProtocols {
			return a, err
		}
	}
}

// source reads a connection to a limit, and keeps the connection's own error
// apart from what is wrong with what it said.
type source struct {
	conn net.Conn
	left int
	err  error
}

// Read is part of io.Reader.
func (s *source) Read(p []byte) (int, error) {
	if s.left == 0 {
		s.err = fmt.Errorf("%w: it is longer than %d bytes", ErrReply, maxReply)
		return 0, s.err
	}
	n, err := s.conn.Read(p[:min(len(p), s.left)])
	s.left -= n
	if err != nil {
		s.err = err
	}
	return n, err
}
