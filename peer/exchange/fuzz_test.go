package exchange_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/peer/exchange"
	"github.com/sledctl/sledctl/peer/exchange/exchangetest"
)

// Whatever a peer says, an answer is one that is whole and within its limit, or
// an error of one of two kinds.
func FuzzSend(f *testing.F) {
	for _, says := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\nrest",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n{", "SSH-2.0-x\r\n", "",
	} {
		f.Add([]byte(says), 64)
	}
	f.Fuzz(func(t *testing.T, says []byte, limit int) {
		limit = max(1, limit%4096)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://peer:1/x", strings.NewReader(""))
		if err != nil {
			t.Fatal(err)
		}
		reply, err := exchange.Send(t.Context(), exchangetest.Raw{Says: says}, r, limit)
		switch {
		case err == nil && (len(reply.Body) > limit || reply.Status < 100):
			t.Errorf("status %d, %d bytes of at most %d", reply.Status, len(reply.Body), limit)
		case err != nil && !errors.Is(err, exchange.ErrReply) && !errors.Is(err, io.ErrUnexpectedEOF):
			t.Errorf("%q: %v is of no kind", says, err)
		}
	})
}
