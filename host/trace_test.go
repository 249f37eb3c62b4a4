package host_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/hosttest/expect"
)

// record traces a host into a list.
func record(h host.Host) (host.Host, func() []host.Event) {
	var events []host.Event
	return host.Trace(h, func(e host.Event) { events = append(events, e) }), func() []host.Event { return events }
}

func lines(events []host.Event) []host.Line {
	var lines []host.Line
	for _, e := range events {
		lines = append(lines, e.Line)
	}
	return lines
}

func TestTraceTellsOfCommands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.run = func(_ context.Context, c host.Command) (host.Result, error) {
			time.Sleep(time.Second)
			if c.Program == "absent" {
				return host.Result{}, host.ErrNoCommand
			}
			return host.Result{Exit: 1, Stderr: []byte(strings.Repeat("x", 5000) + "the end")}, nil
		}
		h, events := record(f)
		start := time.Now()
		fails := host.Command{Program: "zoneadm", Args: []string{"-z", "a b", "boot"}}
		r, err := host.ForAction(h, "boot web1").Run(t.Context(), fails)
		if err != nil || r.Exit != 1 || len(r.Stderr) != 5007 {
			t.Errorf("the trace changed the result: %v, %v", r.Exit, err)
		}
		looks := host.Command{Program: "absent", ReadOnly: true}
		if _, err := h.Run(t.Context(), looks); !errors.Is(err, host.ErrNoCommand) {
			t.Errorf("the trace changed the error: %v", err)
		}
		tail := strings.Repeat("x", 4096-len("the end")) + "the end"
		want := []host.Event{
			{
				Action: "boot web1", Line: host.Line{Kind: host.LineRun, Text: "zoneadm -z 'a b' boot"},
				Exit: 1, Stderr: tail, Start: start, End: start.Add(time.Second),
			},
			{
				Line: host.Line{Kind: host.LineQuery, Text: "absent"}, Error: host.ErrNoCommand.Error(),
				Start: start.Add(time.Second), End: start.Add(2 * time.Second),
			},
		}
		if diff := cmp.Diff(want, events()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestTraceTellsOfFilesAsExplainWould(t *testing.T) {
	h, events := record(newFake())
	f := h.Files()
	expect.OK(t, host.MkdirAll(f, "/zone/root/etc", 0o755))
	expect.OK(t, host.WriteFile(f, "/zone/a", []byte("one\n"), 0o644))
	in, err := f.In("/zone/root")
	expect.OK(t, err)
	expect.OK(t, host.WriteFile(in, "/etc/site.xml", []byte("<x/>"), 0o644))
	inner, err := in.In("etc")
	expect.OK(t, err)
	expect.Put(t, inner, "/b", "b")
	expect.OK(t, in.Append("/etc/b", []byte("c")))
	expect.OK(t, in.Chmod("/etc/b", 0o600))
	expect.OK(t, in.Rename("/etc/b", "/etc/c"))
	expect.OK(t, in.Remove("/etc/c"))
	expect.OK(t, f.Mkdir("/zone/dir", 0o700))
	expect.OK(t, host.CopyFile(in, "/etc/site.xml", "/etc/copy", 0o644))
	file, err := f.Open("/zone/a", os.O_WRONLY|os.O_APPEND, 0)
	expect.OK(t, err)
	_, err = io.WriteString(file, "two\n")
	expect.OK(t, err)
	expect.OK(t, file.Close())

	want := []host.Line{
		host.MkdirLine("/zone/root/etc", 0o755),
		host.FileLine("/zone/a", []byte("one\n")),
		host.FileLine("/zone/root/etc/site.xml", []byte("<x/>")),
		host.FileLine("/zone/root/etc/b", []byte("b")),
		host.AppendLine("/zone/root/etc/b", []byte("c")),
		host.ChmodLine("/zone/root/etc/b", 0o600),
		host.RenameLine("/zone/root/etc/b", "/zone/root/etc/c"),
		host.RemoveLine("/zone/root/etc/c"),
		host.MkdirLine("/zone/dir", 0o700),
		host.CopyLine("/zone/root/etc/site.xml", "/zone/root/etc/copy"),
		host.AppendLine("/zone/a", []byte("two\n")),
	}
	if diff := cmp.Diff(want, lines(events())); diff != "" {
		t.Error(diff)
	}
}

func TestTraceTellsNothingOfLooking(t *testing.T) {
	inner := newFake()
	expect.Put(t, inner.files, "/a", "x")
	h, events := record(inner)
	f := h.Files()
	expect.Holds(t, f, "/a", "x")
	names(t, f, "/")
	expect.OK(t, f.Sync("/a"))
	expect.OK(t, f.SyncDir("/"))
	file, err := f.Open("/a", os.O_RDWR, 0)
	expect.OK(t, err)
	expect.OK(t, file.Close())
	l, err := f.Lock(t.Context(), "/a", host.LockShared)
	expect.OK(t, err)
	expect.OK(t, l.Unlock())
	if got := events(); len(got) != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestTraceTellsWhatFailed(t *testing.T) {
	inner := newFake()
	h, events := record(inner)
	inner.files.Fail(func(op, name string) error {
		if op == "rename" {
			return syscall.EROFS
		}
		return nil
	})
	if err := host.WriteFile(h.Files(), "/a", []byte("x"), 0o644); !errors.Is(err, syscall.EROFS) {
		t.Errorf("got %v", err)
	}
	want := []host.Event{{Line: host.FileLine("/a", []byte("x")), Error: "writing /a: rename /.a.sledctl-new: read-only file system"}}
	if diff := cmp.Diff(want, events(), cmpopts.IgnoreFields(host.Event{}, "Start", "End")); diff != "" {
		t.Error(diff)
	}
}

func TestTraceTellsOfRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.serve = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			time.Sleep(time.Second)
			switch r.URL.Path {
			case "/no":
				w.WriteHeader(http.StatusNoContent)
			case "/chunked":
				for range 3 {
					fmt.Fprint(w, strings.Repeat("0\r\n\r\n", 1000))
					w.(http.Flusher).Flush()
				}
			case "/refused":
				http.Error(w, "no", http.StatusConflict)
			default:
				fmt.Fprintf(w, "%d bytes", len(body))
			}
		})
		h, events := record(f)
		c := client(t, host.ForAction(h, "ensure"))
		ask := func(method, path, body string) {
			t.Helper()
			r, err := http.NewRequestWithContext(t.Context(), method, "http://[fd00::1]:12400"+path, strings.NewReader(body))
			expect.OK(t, err)
			a, err := c.Do(r)
			expect.OK(t, err)
			_, err = io.ReadAll(a.Body)
			expect.OK(t, err)
			a.Body.Close()
			time.Sleep(time.Minute) // idle connections are no requests
		}
		start := time.Now()
		ask("PUT", "/instance", `{"a":"GET / HTTP/1.1\r\n\r\n"}`)
		ask("GET", "/instance?x=1", "with a body")
		ask("PUT", "/no", "")
		ask("POST", "/chunked", strings.Repeat("x", 100_000))
		ask("PUT", "/refused", "x")
		c.CloseIdleConnections()
		f.done.Wait()

		var want []host.Event
		for i, e := range []host.Event{
			{Line: host.Line{Kind: host.LineRequest, Text: "PUT /instance"}, Status: 200},
			{Line: host.Line{Kind: host.LineQuery, Text: "GET /instance?x=1"}, Status: 200},
			{Line: host.Line{Kind: host.LineRequest, Text: "PUT /no"}, Status: 204},
			{Line: host.Line{Kind: host.LineRequest, Text: "POST /chunked"}, Status: 200},
			{Line: host.Line{Kind: host.LineRequest, Text: "PUT /refused"}, Status: 409},
		} {
			e.Action = "ensure"
			e.Start = start.Add(time.Duration(i) * 61 * time.Second)
			e.End = e.Start.Add(time.Second)
			want = append(want, e)
		}
		if diff := cmp.Diff(want, events()); diff != "" {
			t.Error(diff)
		}
		if busy := host.Busy(events()); busy != 5*time.Second {
			t.Errorf("busy for %v", busy)
		}
	})
}

func TestTraceTellsOfARequestWithoutAnswer(t *testing.T) {
	f := newFake()
	f.serve = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	h, events := record(f)
	if _, err := client(t, h).Get("http://propolis/instance"); err == nil {
		t.Error("an answer")
	}
	f.done.Wait()
	got := events()
	if len(got) != 1 || got[0].Line.Text != "GET /instance" || got[0].Error == "" || got[0].Status != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestTraceLetsAnUpgradedConnectionBe(t *testing.T) {
	f := newFake()
	f.serve = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, _ := w.(http.Hijacker).Hijack()
		fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n")
		rw.Flush()
		line, _ := rw.ReadString('\n')
		fmt.Fprint(rw, "echo "+line)
		rw.Flush()
		conn.Close()
	})
	h, events := record(f)
	conn, err := h.Dial(t.Context(), "tcp", "propolis")
	expect.OK(t, err)
	fmt.Fprint(conn, "GET /instance/serial HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n\r\n")
	r := bufio.NewReader(conn)
	for line := ""; line != "\r\n"; {
		line, err = r.ReadString('\n')
		expect.OK(t, err)
	}
	fmt.Fprint(conn, "PUT /not/a/request HTTP/1.1\n")
	line, err := r.ReadString('\n')
	expect.OK(t, err)
	if line != "echo PUT /not/a/request HTTP/1.1\n" {
		t.Errorf("got %q", line)
	}
	expect.OK(t, conn.Close())
	f.done.Wait()
	got := events()
	if len(got) != 1 || got[0].Status != 101 || got[0].Error != "" {
		t.Errorf("got %+v", got)
	}
}

func TestTraceIsSafeForManyActions(t *testing.T) {
	h, events := record(newFake())
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			h := host.ForAction(h, fmt.Sprint(i))
			_, err := h.Run(t.Context(), host.Command{Program: "x"})
			if err == nil {
				err = host.WriteFile(h.Files(), fmt.Sprintf("/%d", i), nil, 0o600)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	count := map[string]int{}
	for _, e := range events() {
		count[e.Action]++
	}
	for i := range 20 {
		if count[fmt.Sprint(i)] != 2 {
			t.Errorf("action %d has %d events", i, count[fmt.Sprint(i)])
		}
	}
}

func TestBusyIsAUnion(t *testing.T) {
	at := func(kind host.LineKind, from, to int) host.Event {
		zero := time.Unix(0, 0)
		return host.Event{
			Line:  host.Line{Kind: kind},
			Start: zero.Add(time.Duration(from) * time.Second), End: zero.Add(time.Duration(to) * time.Second),
		}
	}
	for name, c := range map[string]struct {
		events []host.Event
		want   time.Duration
	}{
		"nothing":            {nil, 0},
		"one":                {[]host.Event{at(host.LineRun, 1, 3)}, 2 * time.Second},
		"apart":              {[]host.Event{at(host.LineRequest, 5, 6), at(host.LineRun, 1, 3)}, 3 * time.Second},
		"overlapping":        {[]host.Event{at(host.LineRun, 1, 4), at(host.LineQuery, 3, 6)}, 5 * time.Second},
		"one in another":     {[]host.Event{at(host.LineRun, 1, 9), at(host.LineRun, 2, 3), at(host.LineRun, 8, 10)}, 9 * time.Second},
		"files do not count": {[]host.Event{at(host.LineFile, 1, 4), at(host.LineRun, 3, 5)}, 2 * time.Second},
	} {
		if got := host.Busy(c.events); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestShortMakesExplainedAndTracedLinesEqual(t *testing.T) {
	for url, want := range map[string]string{
		"http://<address of web1>:12400/instance/state": "PUT /instance/state",
		"http://[fd00::1]:12400/instance":               "PUT /instance",
		"http://1.2.3.4:5":                              "PUT /",
		"http://1.2.3.4:5/a?b=c":                        "PUT /a?b=c",
	} {
		l := host.RequestLine("PUT", url, []string{"content-type: application/json"}, []byte(`{"url":"http://x/y"}`))
		if got := l.Short(); got != (host.Line{Kind: host.LineRequest, Text: want}) {
			t.Errorf("%s: got %+v", url, got)
		}
	}
	for _, l := range []host.Line{{Kind: host.LineRequest, Text: "PUT /a"}, {Kind: host.LineRun, Text: "curl -sS -X PUT http://a/b"}} {
		if got := l.Short(); got != l {
			t.Errorf("%+v became %+v", l, got)
		}
	}
}
