package nexus

import (
	"net/url"
	"testing"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/peer/exchange/exchangetest"
)

// Whatever answers a doorbell, it was heard only by what says so as a control
// plane does: an answer of success without content.
func FuzzRing(f *testing.F) {
	for _, says := range []string{
		"HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n<ht>", "HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n",
		"HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\n\r\n{\"request_id\":\"1\",\"message\":\"no\"}", "HTTP/1.1 500 x\r\n\r\n", "garbage", "",
	} {
		f.Add([]byte(says))
	}
	at := &url.URL{Scheme: "http", Host: "peer:1"}
	f.Fuzz(func(t *testing.T, says []byte) {
		c := Client{Host: exchangetest.Raw{Says: says}, URL: at}
		if err := c.Ring(t.Context(), uuid.Nil); err == nil && (len(says) < 12 || says[9] != '2' && says[9] != '1') {
			t.Errorf("%q is taken for heard", says)
		}
		_ = Retryable(c.Put(t.Context(), uuid.Nil, []byte("{}")))
	})
}
