package web

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/peer/exchange/exchangetest"
)

// names is a host that reaches servers by their names.
type names struct {
	host.Host
	at map[string]string // address by HOST:PORT
}

func (n names) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	to, known := n.at[address]
	if !known {
		return nil, &net.DNSError{Err: "no such host", Name: address}
	}
	return (&net.Dialer{}).DialContext(ctx, network, to)
}

func parse(t *testing.T, address string) *url.URL {
	t.Helper()
	at, err := Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// all is the file, or the error that there was before its end.
func all(t *testing.T, c Client, h host.Host, address string, have Part) (string, Part, error) {
	t.Helper()
	b, err := c.Get(t.Context(), h, parse(t, address), have)
	if err != nil {
		return "", Part{}, err
	}
	defer b.Close()
	text, err := io.ReadAll(b)
	return string(text), b.Part, err
}

// raw is a server that says a text, whatever it is asked.
func raw(says string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_, _ = io.WriteString(conn, says)
			_ = conn.Close()
		}
	}
}

// What a server says is the file, or one error of a kind.
func TestWhatServersSay(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	for name, c := range map[string]struct {
		serve http.HandlerFunc
		want  string
		fail  error // of this type
		kind  fault.Kind
	}{
		"a file":              {serve: raw(ok + "Content-Length: 4\r\n\r\ndisk"), want: "disk"},
		"an empty one":        {serve: raw(ok + "Content-Length: 0\r\n\r\n")},
		"without a length":    {serve: raw(ok + "\r\ndisk"), want: "disk"},
		"in chunks":           {serve: raw(ok + "Transfer-Encoding: chunked\r\n\r\n4\r\ndisk\r\n0\r\n\r\n"), want: "disk"},
		"after an interim":    {serve: raw("HTTP/1.1 103 Early Hints\r\n\r\n" + ok + "Content-Length: 4\r\n\r\ndisk"), want: "disk"},
		"longer than it says": {serve: raw(ok + "Content-Length: 4\r\n\r\ndisk and more"), want: "disk"},
		"shorter":             {serve: raw(ok + "Content-Length: 9\r\n\r\ndisk"), want: "disk", fail: &CutError{}},
		"a cut chunk":         {serve: raw(ok + "Transfer-Encoding: chunked\r\n\r\n9\r\ndisk"), want: "disk", fail: &CutError{}},
		"no last chunk":       {serve: raw(ok + "Transfer-Encoding: chunked\r\n\r\n4\r\ndisk\r\n"), want: "disk", fail: &CutError{}},
		"a page":              {serve: raw(ok + "Content-Type: text/html; charset=utf-8\r\nContent-Length: 6\r\n\r\n<html>"), fail: &PageError{}, kind: fault.Refused},
		"no HTTP":             {serve: raw("SSH-2.0-OpenSSH_9.9\r\n"), fail: &UnreachableError{}},
		"nothing":             {serve: raw(""), fail: &UnreachableError{}},
		"an endless head":     {serve: raw(ok + "X: " + strings.Repeat("x", 1<<20) + "\r\n\r\n"), fail: &UnreachableError{}},
		"not found":           {serve: raw("HTTP/1.1 404 Not Found\r\nContent-Length: 6\r\n\r\n<html>"), fail: &StatusError{}, kind: fault.NotFound},
		"gone":                {serve: raw("HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n"), fail: &StatusError{}, kind: fault.NotFound},
		"forbidden":           {serve: raw("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"), fail: &StatusError{}, kind: fault.Refused},
		"out of order":        {serve: raw("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"), fail: &StatusError{}},
		"a part unasked for":  {serve: raw("HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 2-3/4\r\nContent-Length: 2\r\n\r\nsk"), fail: &rangeError{}},
		"nothing new":         {serve: raw("HTTP/1.1 304 Not Modified\r\n\r\n"), fail: &StatusError{}},
		"redirects without end": {serve: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/again", http.StatusFound)
		}, fail: &UnreachableError{}},
	} {
		got, _, err := all(t, Client{Patience: 10 * time.Second}, exchangetest.Line{Serve: c.serve}, "http://h/disk?secret", Part{})
		if got != c.want || fmt.Sprintf("%T", err) != fmt.Sprintf("%T", c.fail) || err != nil && fault.Of(err) != c.kind {
			t.Errorf("%s: %q, %T (%v) of kind %v", name, got, err, err, fault.Of(err))
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: what stands behind the ? is shown: %v", name, err)
		}
	}
}

// A server that says nothing is given up, before its answer and within it; and so is what is interrupted.
func TestPatienceEnds(t *testing.T) {
	silent := func(says string) exchangetest.Line {
		return exchangetest.Line{Serve: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if says != "" {
				w.Header().Set("Content-Length", "9")
				_, _ = io.WriteString(w, says)
				_ = http.NewResponseController(w).Flush()
			}
			<-r.Context().Done()
		})}
	}
	for _, says := range []string{"", "disk"} {
		got, _, err := all(t, Client{Patience: 50 * time.Millisecond}, silent(says), "http://h/disk", Part{})
		if _, stalled := errors.AsType[*StalledError](err); !stalled || got != says || fault.Of(err) != fault.Deadline {
			t.Errorf("%q, %v", got, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		b, err := Client{}.Get(ctx, silent(says), parse(t, "http://h/disk"), Part{})
		if err == nil {
			_, err = io.ReadAll(b)
			_ = b.Close()
		}
		if fault.Of(err) != fault.Interrupted {
			t.Errorf("%v", err)
		}
	}
}

// A server that is slow is waited for as long as something comes.
func TestPatienceIsForSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := exchangetest.Line{Serve: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for _, part := range "disk" {
				time.Sleep(patience - time.Second)
				_, _ = io.WriteString(w, string(part))
				_ = http.NewResponseController(w).Flush()
			}
		})}
		if got, _, err := all(t, Client{}, slow, "http://h/disk", Part{}); got != "disk" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// The rest of a file is asked for by what its version is known by; a server that has another sends all of it.
func TestTheRestOfAFile(t *testing.T) {
	const disk, tag = "0123456789", `"v1"`
	content := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", tag)
		http.ServeContent(w, r, "disk", time.Time{}, strings.NewReader(disk))
	}
	part := func(head string) http.HandlerFunc { // to what asks for a part; all else gets everything
		return func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Range") == "" {
				content(w, r)
				return
			}
			raw("HTTP/1.1 "+head)(w, r)
		}
	}
	for name, c := range map[string]struct {
		serve http.HandlerFunc
		have  Part
		want  string
		from  int64
		cut   bool
	}{
		"nothing is there":        {content, Part{Total: -1}, disk, 0, false},
		"a part":                  {content, Part{4, 10, tag}, disk[4:], 4, false},
		"all":                     {content, Part{10, 10, tag}, "", 10, false},
		"more than all":           {content, Part{11, 11, tag}, disk, 0, false},
		"of another version":      {content, Part{4, 10, `"v0"`}, disk, 0, false},
		"of no known version":     {content, Part{4, 10, ""}, disk, 0, false},
		"of another length":       {content, Part{4, 12, tag}, disk, 0, false},
		"of a length not known":   {content, Part{4, -1, tag}, disk[4:], 4, false},
		"a server without ranges": {raw("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n" + disk), Part{4, 10, tag}, disk, 0, false},
		"another part":            {part("206 Partial Content\r\nContent-Range: bytes 5-9/10\r\nContent-Length: 5\r\n\r\n56789"), Part{4, 10, tag}, disk, 0, false},
		"not to the end":          {part("206 Partial Content\r\nContent-Range: bytes 4-5/10\r\nContent-Length: 2\r\n\r\n45"), Part{4, 10, tag}, disk, 0, false},
		"parts":                   {part("206 Partial Content\r\nContent-Type: multipart/byteranges; boundary=x\r\nContent-Length: 2\r\n\r\n45"), Part{4, 10, tag}, disk, 0, false},
		"no range of it":          {part("416 Range Not Satisfiable\r\nContent-Range: bytes */4\r\nContent-Length: 0\r\n\r\n"), Part{6, -1, tag}, disk, 0, false},
		"a shorter part":          {part("206 Partial Content\r\nContent-Range: bytes 4-9/10\r\nContent-Length: 2\r\n\r\n45"), Part{4, 10, tag}, "45", 4, true},
		"a longer part":           {part("206 Partial Content\r\nContent-Range: bytes 4-9/10\r\nContent-Length: 9\r\n\r\n456789xxx"), Part{4, 10, tag}, "", 4, true},
	} {
		got, p, err := all(t, Client{}, exchangetest.Line{Serve: c.serve}, "http://h/disk", c.have)
		if got != c.want || p.Length != c.from || (err != nil) != c.cut {
			t.Errorf("%s: %q from %d, %v", name, got, p.Length, err)
		}
	}
}

// A version is known by a strong ETag, or by a date that is older than the answer (RFC 9110, section 8.8).
func TestValidator(t *testing.T) {
	const noon, later = "Sun, 06 Nov 1994 12:00:00 GMT", "Sun, 06 Nov 1994 12:00:01 GMT"
	for want, h := range map[string]http.Header{
		`"a"`: {"Etag": {`"a"`}, "Last-Modified": {noon}, "Date": {later}},
		noon:  {"Etag": {`W/"a"`}, "Last-Modified": {noon}, "Date": {later}},
		"":    {"Last-Modified": {noon}, "Date": {noon}},
	} {
		if got := validator(h); got != want {
			t.Errorf("%v: %q", h, got)
		}
	}
	if got := validator(http.Header{"Last-Modified": {noon}}) + validator(http.Header{"Last-Modified": {"x"}, "Date": {noon}}); got != "" {
		t.Errorf("%q", got)
	}
}

// Redirects are followed, but none from https to http; certificates are checked.
func TestRedirects(t *testing.T) {
	serve := func(w http.ResponseWriter, r *http.Request) {
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(w, r, to, http.StatusMovedPermanently)
			return
		}
		_, _ = io.WriteString(w, "disk from "+r.Host)
	}
	plain, secure := httptest.NewServer(http.HandlerFunc(serve)), httptest.NewUnstartedServer(http.HandlerFunc(serve))
	secure.Config.ErrorLog = nil
	secure.StartTLS()
	defer plain.Close()
	defer secure.Close()
	at := func(s *httptest.Server) string { return s.Listener.Addr().String() }
	h := names{at: map[string]string{"plain.test:80": at(plain), "example.com:443": at(secure), "other.test:443": at(secure)}}
	roots := x509.NewCertPool()
	roots.AddCert(secure.Certificate())
	for address, want := range map[string]any{
		"http://plain.test/a?to=/b":                                            "disk from plain.test",
		"http://plain.test/?to=https://example.com/a":                          "disk from example.com",
		"https://example.com/a":                                                "disk from example.com",
		"https://example.com/a?to=/b":                                          "disk from example.com",
		"https://example.com/a?to=http://plain.test/":                          &DowngradeError{},
		"http://plain.test/?to=https://example.com/%3Fto%3Dhttp://plain.test/": &DowngradeError{},
		"https://other.test/a":                                                 &UnreachableError{}, // the certificate is example.com's
		"http://absent.test/a":                                                 &UnreachableError{},
		"http://plain.test/?to=ftp://plain.test/":                              &UnreachableError{},
	} {
		got, _, err := all(t, Client{Roots: roots}, h, address, Part{})
		text, isText := want.(string)
		if isText && (got != text || err != nil) || !isText && reflect.TypeOf(err) != reflect.TypeOf(want) {
			t.Errorf("%s: %q, %T %v", address, got, err, err)
		}
	}
	_, _, err := all(t, Client{}, h, "https://example.com/a", Part{})
	if e, distrusted := errors.AsType[*UnreachableError](err); !distrusted || !strings.Contains(e.Hint(), "SSL_CERT_FILE") {
		t.Errorf("a certificate that nobody has signed: %v", err)
	}
}

// Proxies are those of the environment, in capitals or not.
func TestProxies(t *testing.T) {
	for address, wants := range map[string][3]string{
		"http://a.test/x":   {"http://p:1", "http://p:3", ""},
		"https://a.test/x":  {"http://p:2", "", ""},
		"https://b.test/x":  {"", "", ""}, // and what is below it
		"http://c.b.test/x": {"", "", ""},
	} {
		for i, environ := range [][]string{
			{"http_proxy=http://p:9", "HTTP_PROXY=http://p:1", "HTTPS_PROXY=p:2", "NO_PROXY=b.test"},
			{"http_proxy=http://p:3", "no_proxy=b.test", "NO_PROXY=", "HTTPS_PROXY="},
			{"PATH=/bin"},
		} {
			c := New(environ, "sledctl")
			got, err := c.proxies.ProxyFunc()(parse(t, address))
			want := wants[i]
			if err != nil || want == "" && got != nil || want != "" && (got == nil || got.String() != want) {
				t.Errorf("%s by %q: %v, %v", address, environ, got, err)
			}
		}
	}
}

// A user and a password are not taken, nor shown; nor is what is no address of the web.
func TestAddresses(t *testing.T) {
	for _, address := range []string{"", "disk.img", "/disk.img", "ftp://h/disk", "http:///disk", "http://me:secret@h/disk", "http://h/%zz", "file:///etc/passwd"} {
		_, err := Parse(address)
		if _, is := errors.AsType[*AddressError](err); !is || fault.Of(err) != fault.Usage || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", address, err)
		}
	}
	if got := Shown(parse(t, "https://h:8443/a%20b?signature=secret#x")); got != "https://h:8443/a%20b" {
		t.Errorf("%s", got)
	}
}

// A text is bounded.
func TestText(t *testing.T) {
	serve := func(n int) exchangetest.Line {
		return exchangetest.Line{Serve: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", n)) })}
	}
	got, err := Client{}.Text(t.Context(), serve(MaxText), parse(t, "http://h/SUMS"))
	_, tooLong := Client{}.Text(t.Context(), serve(MaxText+1), parse(t, "http://h/SUMS"))
	if _, is := errors.AsType[*LengthError](tooLong); err != nil || len(got) != MaxText || !is {
		t.Errorf("%d bytes, %v; %v", len(got), err, tooLong)
	}
}
