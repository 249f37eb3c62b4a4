package propolis

import (
	"context"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/peer/exchange/exchangetest"
	"github.com/sledctl/sledctl/propolis/spec"
)

// fake is a sled on which one HTTP server listens, or something else does.
type fake struct {
	serve http.Handler
	// dial, if set, is asked first: an error refuses the connection, another
	// end is used instead of the server.
	dial func() (net.Conn, error)

	mu      sync.Mutex
	dialled []string
}

// Run is part of host.Host.
func (f *fake) Run(context.Context, host.Command) (host.Result, error) {
	panic("a client of Propolis runs no commands")
}

// Files is part of host.Host.
func (f *fake) Files() host.Files { panic("a client of Propolis has no files") }

// Dial is part of host.Host.
func (f *fake) Dial(_ context.Context, network, address string) (net.Conn, error) {
	f.mu.Lock()
	f.dialled = append(f.dialled, network+" "+address)
	f.mu.Unlock()
	if f.dial != nil {
		if conn, err := f.dial(); conn != nil || err != nil {
			return conn, err
		}
	}
	return exchangetest.Connect(f.serve), nil
}

// DeviceVersion is part of host.Host.
func (*fake) DeviceVersion(context.Context, host.Device) (int, error) { return 0, fs.ErrNotExist }

// attempts is how often somebody dialled.
func (f *fake) attempts() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.dialled)
}

func address() netip.AddrPort { return netip.MustParseAddrPort("10.77.0.5:12400") }

func target() Target { return Target{Name: "web1", Address: address()} }

func client(serve http.HandlerFunc) Client {
	return Client{Host: &fake{serve: serve}, Target: target()}
}

// replies is a server that says the same to everybody.
func replies(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// silent is a server that reads what it is asked and never answers. It notices
// that the client left, as a server does, only behind the end of the request.
func silent(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// bubble runs a test with its own clock. It fails if anything that was started
// is still there at its end.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

func request(t *testing.T) spec.EnsureRequest {
	t.Helper()
	r, err := spec.Build(spec.Description{ID: "7b1c2f3e-0d4a-4a55-9b0e-5f3d2c1b0a99", Name: "web1", CPUs: 1, MemoryMiB: 512})
	if err != nil {
		t.Fatal(err)
	}
	return r
}
