package host_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/hosttest/expect"
)

func TestReadOnlyRunsQueriesOnly(t *testing.T) {
	f := newFake()
	var ran []string
	f.run = func(_ context.Context, c host.Command) (host.Result, error) {
		ran = append(ran, c.Program)
		return host.Result{}, nil
	}
	h := host.ForAction(host.ReadOnly(f), "x")
	_, err := h.Run(t.Context(), host.Command{Program: "look", ReadOnly: true})
	expect.OK(t, err)
	if _, err := h.Run(t.Context(), host.Command{Program: "act"}); !errors.Is(err, host.ErrReadOnly) {
		t.Errorf("got %v", err)
	}
	if len(ran) != 1 || ran[0] != "look" {
		t.Errorf("ran %v", ran)
	}
}

func TestReadOnlyFilesCannotBeChanged(t *testing.T) {
	inner := newFake()
	expect.OK(t, inner.files.Mkdir("/dir", 0o755))
	expect.Put(t, inner.files, "/dir/a", "x")
	inner.files.Fail(func(op, name string) error {
		switch op {
		case "append", "write", "rename", "remove", "mkdir", "chmod":
			t.Errorf("%s %s came through", op, name)
		}
		return nil
	})
	f, err := host.ReadOnly(inner).Files().In("/dir")
	expect.OK(t, err)
	for _, flag := range []int{os.O_WRONLY, os.O_RDWR, os.O_CREATE, os.O_TRUNC, os.O_WRONLY | os.O_APPEND} {
		_, err := f.Open("/a", flag, 0)
		expect.Fails(t, err, host.ErrReadOnly)
	}
	expect.Fails(t, f.Append("/a", nil), host.ErrReadOnly)
	expect.Fails(t, f.Rename("/a", "/b"), host.ErrReadOnly)
	expect.Fails(t, f.Remove("/a"), host.ErrReadOnly)
	expect.Fails(t, f.Mkdir("/b", 0o755), host.ErrReadOnly)
	expect.Fails(t, f.Chmod("/a", 0), host.ErrReadOnly)
	expect.Fails(t, host.WriteFile(f, "/a", nil, 0), host.ErrReadOnly)
	_, err = f.Lock(t.Context(), "/a", host.TryExclusive)
	expect.Fails(t, err, host.ErrReadOnly)

	expect.Holds(t, f, "/a", "x")
	names(t, f, "/")
	expect.OK(t, f.Sync("/a"))
	expect.OK(t, f.SyncDir("/"))
	l, err := f.Lock(t.Context(), "/a", host.LockShared)
	expect.OK(t, err)
	expect.OK(t, l.Unlock())
}

func TestReadOnlyConnectionsCarryGetsOnly(t *testing.T) {
	f := newFake()
	var served []string
	f.serve = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		served = append(served, r.Method+" "+string(body))
		fmt.Fprint(w, "fine")
	})
	c := client(t, host.ReadOnly(f))
	// A GET may have a body, as Propolis' state monitor does.
	for range 2 {
		r, err := http.NewRequest("GET", "http://propolis/instance/state-monitor", strings.NewReader("PUT / HTTP/1.1\r\n\r\n"))
		expect.OK(t, err)
		a, err := c.Do(r)
		expect.OK(t, err)
		_, err = io.ReadAll(a.Body)
		expect.OK(t, err)
		a.Body.Close()
	}
	for _, method := range []string{"PUT", "POST", "DELETE", "PATCH"} {
		r, err := http.NewRequest(method, "http://propolis/instance", strings.NewReader("x"))
		expect.OK(t, err)
		if _, err := c.Do(r); !errors.Is(err, host.ErrReadOnly) {
			t.Errorf("%s: got %v", method, err)
		}
	}
	c.CloseIdleConnections()
	f.done.Wait()
	if len(served) != 2 || served[0] != "GET PUT / HTTP/1.1\r\n\r\n" {
		t.Errorf("served %q", served)
	}
}

func TestReadOnlyConnectionsRefuseWhateverComesInPieces(t *testing.T) {
	for name, request := range map[string]string{
		"a request":    "PUT /instance HTTP/1.1\r\nHost: x\r\n\r\n",
		"a second one": "GET / HTTP/1.1\r\nHost: x\r\n\r\nPUT / HTTP/1.1\r\n\r\n",
		"an upgrade":   "GET /instance/serial HTTP/1.1\r\nUpgrade: websocket\r\n\r\n",
		"a long line":  "GET /" + strings.Repeat("x", 70_000),
		"a bad length": "GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
	} {
		f := newFake()
		f.serve = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.Method != "GET" || r.Header.Get("Upgrade") != "" {
				t.Errorf("%s: %s was served", name, r.Method)
			}
		})
		conn, err := host.ReadOnly(f).Dial(t.Context(), "tcp", "propolis")
		expect.OK(t, err)
		go io.Copy(io.Discard, conn)
		var refused error
		for len(request) > 0 && refused == nil {
			n := min(7, len(request))
			_, refused = io.WriteString(conn, request[:n])
			request = request[n:]
		}
		if !errors.Is(refused, host.ErrReadOnly) {
			t.Errorf("%s: got %v", name, refused)
		}
		conn.Close()
		f.done.Wait()
	}
}
