// Package web gets files from web servers, over connections that the host opens: through the proxies
// of an environment, to where servers redirect, and on from where an earlier download broke off.
package web

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/peer/exchange"
)

// Client is how files are asked for.
type Client struct {
	Agent    string         // what the servers are told that asks
	Roots    *x509.CertPool // who signs the certificates of servers; nil: whom the sled's system trusts
	Patience time.Duration  // for which a server may say nothing; 0: a minute

	proxies httpproxy.Config
}

// New is a client that goes through the proxies of an environment, which is made of NAME=VALUE: HTTP_PROXY,
// HTTPS_PROXY and NO_PROXY, in capitals or not, as net/http has them.
func New(environ []string, agent string) Client {
	c := Client{Agent: agent}
	for _, v := range environ {
		name, value, _ := strings.Cut(v, "=")
		to := map[string]*string{"HTTP_PROXY": &c.proxies.HTTPProxy, "HTTPS_PROXY": &c.proxies.HTTPSProxy, "NO_PROXY": &c.proxies.NoProxy}[strings.ToUpper(name)]
		if to != nil && value != "" && (*to == "" || name == strings.ToUpper(name)) { // capitals count more
			*to = value
		}
	}
	return c
}

// patience is for servers that say nothing: one may fetch the file from a tape, or be gone.
const patience = time.Minute

// maxRedirects is what net/http and curl -L end at, or before.
const maxRedirects = 10

// Parse reads the address of a file.
func Parse(address string) (*url.URL, error) {
	at, err := url.Parse(address)
	switch {
	case err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Hostname() == "":
		return nil, &AddressError{Address: address, Want: "http://HOST/FILE or https://HOST/FILE"}
	case at.User != nil:
		return nil, &AddressError{Address: Shown(at), Want: "no user and password: everybody on the sled could read them"}
	}
	return at, nil
}

// Shown is an address as messages and traces have it: what stands behind its ? may be a secret.
func Shown(at *url.URL) string {
	return (&url.URL{Scheme: at.Scheme, Host: at.Host, Path: at.Path, RawPath: at.RawPath}).String()
}

// Part is what is there of a file, of an earlier download.
type Part struct {
	Length int64 // bytes that are there
	Total  int64 // that the file has; -1: the server did not say
	// Validator is what the server knows this version of the file by, as If-Range takes it; empty: it cannot
	// be asked for the rest of it.
	Validator string
}

// Body is what comes of a file. It is read to its end, and then closed.
type Body struct {
	Part // Length is where it begins: 0, or that of the part that was there
	// Complete: all is there, and nothing comes.
	Complete bool

	from   string
	in     io.ReadCloser
	at     int64
	quiet  *time.Timer
	wait   time.Duration
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// Get asks for a file, or for the rest of it. A server that has another version by now sends all of it. Errors: *UnreachableError,
// *StatusError, *PageError, *DowngradeError, *StalledError; the context's.
func (c Client) Get(ctx context.Context, h host.Host, at *url.URL, have Part) (*Body, error) {
	b, err := c.ask(ctx, h, at, have)
	if _, odd := errors.AsType[*rangeError](err); odd {
		return c.ask(ctx, h, at, Part{})
	}
	return b, err
}

func (c Client) ask(ctx context.Context, h host.Host, at *url.URL, have Part) (*Body, error) {
	b := &Body{from: Shown(at), wait: c.Patience}
	if b.wait == 0 {
		b.wait = patience
	}
	b.ctx, b.cancel = context.WithCancelCause(ctx)
	b.quiet = time.AfterFunc(b.wait, func() { b.cancel(&StalledError{URL: b.from, For: b.wait}) })
	r, err := http.NewRequestWithContext(b.ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, b.fail(err)
	}
	r.Header.Set("User-Agent", c.Agent)
	r.Header.Set("Accept-Encoding", "identity") // what is packed on the way has no ranges, and another digest
	if have.Length > 0 && have.Validator != "" {
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-", have.Length))
		r.Header.Set("If-Range", have.Validator)
	}
	answer, err := c.client(h).Do(r)
	if err != nil {
		return nil, b.fail(err)
	}
	b.in = answer.Body
	if b.Part, b.Complete, err = judge(answer, have); err != nil {
		_ = b.Close()
		return nil, err
	}
	b.at = b.Length
	return b, nil
}

// client makes one connection for each request, as package exchange does.
//
// Guess roots-where-go-looks: whom the system trusts to sign the certificates of servers lies where Go's crypto/x509 looks for it
// (root_solaris.go: /etc/certs/ca-certificates.crt, /etc/ssl/certs/ca-certificates.crt or /etc/ssl/cacert.pem, and the directory
// /etc/certs/CA).
// Check: `sledctl image fetch https://cloud.debian.org/x --checksums https://cloud.debian.org/images/cloud/trixie/latest/SHA512SUMS` says that x is not listed
func (c Client) client(h host.Host) *http.Client {
	proxy := c.proxies.ProxyFunc()
	return &http.Client{
		Transport: &http.Transport{
			DialContext: h.Dial, DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: exchange.MaxHead,
			TLSClientConfig: &tls.Config{RootCAs: c.Roots, MinVersion: tls.VersionTLS12},
			Proxy:           func(r *http.Request) (*url.URL, error) { return proxy(r.URL) },
		},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			switch last := via[len(via)-1].URL; {
			case last.Scheme == "https" && r.URL.Scheme != "https":
				return &DowngradeError{From: Shown(last), To: Shown(r.URL)}
			case len(via) >= maxRedirects:
				return fmt.Errorf("it redirects more than %d times", maxRedirects)
			}
			return nil
		},
	}
}

// fail is why nothing came, and ends what waits for it.
func (b *Body) fail(err error) error {
	b.quiet.Stop()
	cause := context.Cause(b.ctx)
	b.cancel(nil)
	if e, is := errors.AsType[*DowngradeError](err); is {
		return e
	}
	if cause != nil {
		return cause
	}
	if e, is := errors.AsType[*url.Error](err); is {
		err = e.Err // it has the whole address, with what stands behind its ?
	}
	return &UnreachableError{URL: b.from, Err: err}
}

// judge says what an answer brings.
func judge(a *http.Response, have Part) (p Part, complete bool, err error) {
	from := Shown(a.Request.URL)
	p = Part{Total: a.ContentLength, Validator: validator(a.Header)}
	switch a.StatusCode {
	case http.StatusOK:
		kind, _, _ := mime.ParseMediaType(a.Header.Get("Content-Type"))
		if kind == "text/html" || kind == "application/xhtml+xml" {
			return p, false, &PageError{URL: from, Type: kind}
		}
		return p, false, nil
	case http.StatusPartialContent:
		at, total, ok := parseRange(a.Header.Get("Content-Range"))
		if !ok || at != have.Length || total >= 0 && have.Total >= 0 && total != have.Total {
			return p, false, &rangeError{}
		}
		if total < 0 && a.ContentLength >= 0 {
			total = have.Length + a.ContentLength
		}
		return Part{Length: have.Length, Total: total, Validator: have.Validator}, false, nil
	case http.StatusRequestedRangeNotSatisfiable:
		if _, total, ok := parseRange(a.Header.Get("Content-Range")); !ok || total != have.Length || have.Length == 0 {
			return p, false, &rangeError{}
		}
		return Part{Length: have.Length, Total: have.Length, Validator: have.Validator}, true, nil
	}
	return p, false, &StatusError{URL: from, Status: a.StatusCode}
}

// validator is what If-Range may hold (RFC 9110, section 13.1.5): a strong ETag, or a date of the last change that
// is at least a second older than the answer (section 8.8.2.2).
func validator(h http.Header) string {
	if tag := h.Get("ETag"); strings.HasPrefix(tag, `"`) {
		return tag
	}
	changed, err := http.ParseTime(h.Get("Last-Modified"))
	now, nowErr := http.ParseTime(h.Get("Date"))
	if err != nil || nowErr != nil || now.Sub(changed) < time.Second {
		return ""
	}
	return h.Get("Last-Modified")
}

// parseRange reads a Content-Range (RFC 9110, section 14.4): where it begins, and of how many bytes the file
// is (-1: not said). Of one that nothing fits in, "bytes */9", it begins at -1.
func parseRange(text string) (at, total int64, ok bool) {
	rest, isBytes := strings.CutPrefix(text, "bytes ")
	span, of, cut := strings.Cut(rest, "/")
	if !isBytes || !cut {
		return 0, 0, false
	}
	total = -1
	if of != "*" {
		n, err := strconv.ParseUint(of, 10, 63)
		if err != nil {
			return 0, 0, false
		}
		total = int64(n)
	}
	if span == "*" {
		return -1, total, total >= 0
	}
	first, last, _ := strings.Cut(span, "-")
	from, err := strconv.ParseUint(first, 10, 63)
	to, lastErr := strconv.ParseUint(last, 10, 63)
	return int64(from), total, err == nil && lastErr == nil && from <= to && (total < 0 || int64(to) == total-1)
}

// Read is part of io.Reader. Errors: *CutError, *LengthError, *StalledError; the context's.
func (b *Body) Read(p []byte) (int, error) {
	if b.Complete {
		return 0, io.EOF
	}
	n, err := b.in.Read(p)
	b.at += int64(n)
	b.quiet.Reset(b.wait)
	switch cause := context.Cause(b.ctx); {
	case b.Total >= 0 && b.at > b.Total:
		return 0, &LengthError{URL: b.from, Want: b.Total}
	case err == nil:
		return n, nil
	case cause != nil:
		return n, cause
	case err == io.EOF && (b.Total < 0 || b.at == b.Total):
		return n, io.EOF
	case err == io.EOF, errors.Is(err, io.ErrUnexpectedEOF):
		return n, &CutError{URL: b.from, At: b.at, Of: b.Total, Err: io.ErrUnexpectedEOF}
	}
	return n, &CutError{URL: b.from, At: b.at, Of: b.Total, Err: err}
}

// Close ends the request.
func (b *Body) Close() error {
	b.quiet.Stop()
	b.cancel(nil)
	return b.in.Close()
}

// MaxText bounds a text that is read whole, in bytes: a list of digests.
const MaxText = 1 << 20

// Text gets a small file, such as a list of checksums: at most 1 MiB. Errors: those of Get and Read.
func (c Client) Text(ctx context.Context, h host.Host, at *url.URL) (string, error) {
	b, err := c.Get(ctx, h, at, Part{})
	if err != nil {
		return "", err
	}
	defer b.Close()
	text, err := io.ReadAll(io.LimitReader(b, MaxText+1))
	if len(text) > MaxText {
		return "", &LengthError{URL: b.from, Want: MaxText}
	}
	return string(text), err
}
