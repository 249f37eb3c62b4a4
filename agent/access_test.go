package agent

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every kind of client, by what it shows and the name that it asks by.
func TestAdmit(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	read, write := strings.Repeat("r", 32), strings.Repeat("o", 32)
	if err := os.WriteFile(file, []byte("reader "+read+"\noperator "+write+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tokens, err := ReadTokens(file)
	if err != nil {
		t.Fatal(err)
	}
	known := Access{Tokens: tokens, HostNames: []string{"sled2"}, Operators: []string{"op", "ops.example"}, Certificate: &x509.Certificate{DNSNames: []string{"sled2.example"}}}
	loopback, far, six := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 12345}, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 5), Port: 12345}, &net.TCPAddr{IP: net.ParseIP("fd00::5"), Port: 1}
	owner := func(names ...string) *x509.Certificate {
		return &x509.Certificate{Subject: pkix.Name{CommonName: names[0]}, DNSNames: names[1:]}
	}
	for name, c := range map[string]struct {
		access Access
		local  net.Addr
		host   string
		header []string
		cert   *x509.Certificate
		is     role
		status int
	}{
		"a Unix socket":                     {Access{}, &net.UnixAddr{Name: "/s", Net: "unix"}, "anything", nil, nil, operator, 0},
		"a Unix socket, forwarded":          {Access{}, &net.UnixAddr{Name: "/s", Net: "unix"}, "localhost:8080", nil, nil, operator, 0},
		"a Unix socket, by an address":      {Access{}, &net.UnixAddr{Name: "/s", Net: "unix"}, "127.0.0.1:8080", nil, nil, operator, 0},
		"a Unix socket, by a known name":    {Access{HostNames: []string{"sled2.example"}}, &net.UnixAddr{Name: "/s", Net: "unix"}, "sled2.example", nil, nil, operator, 0},
		"a Unix socket, by a page's name":   {Access{}, &net.UnixAddr{Name: "/s", Net: "unix"}, "evil.example:8080", nil, nil, anonymous, 421},
		"nothing":                           {known, loopback, "127.0.0.1:12345", nil, nil, anonymous, 401},
		"nothing, to nobody":                {Access{}, loopback, "127.0.0.1:12345", nil, nil, anonymous, 401},
		"a reader's token":                  {known, loopback, "127.0.0.1:12345", []string{"Bearer " + read}, nil, reader, 0},
		"an operator's token":               {known, loopback, "localhost:12345", []string{"bearer " + write}, nil, operator, 0},
		"another token":                     {known, loopback, "localhost", []string{"Bearer " + strings.Repeat("x", 32)}, nil, anonymous, 401},
		"a token as a password":             {known, loopback, "localhost", []string{"Basic " + write}, nil, anonymous, 401},
		"two tokens":                        {known, loopback, "localhost", []string{"Bearer " + read, "Bearer " + write}, nil, anonymous, 401},
		"an empty token":                    {known, loopback, "localhost", []string{"Bearer "}, nil, anonymous, 401},
		"everybody":                         {Access{Open: true}, loopback, "localhost", nil, nil, operator, 0},
		"everybody, by another name":        {Access{Open: true}, loopback, "evil.example", nil, nil, anonymous, 421},
		"a name that leads here":            {known, loopback, "evil.example:12345", []string{"Bearer " + write}, nil, anonymous, 421},
		"no name":                           {known, loopback, "", []string{"Bearer " + write}, nil, anonymous, 421},
		"localhost, from far":               {known, far, "localhost:12345", []string{"Bearer " + write}, nil, anonymous, 421},
		"another address":                   {known, far, "10.0.0.6:12345", []string{"Bearer " + write}, nil, anonymous, 421},
		"its address":                       {known, far, "10.0.0.5:12345", []string{"Bearer " + write}, nil, operator, 0},
		"its address behind another port":   {known, far, "10.0.0.5:80", []string{"Bearer " + write}, nil, operator, 0},
		"its IPv6 address":                  {known, six, "[fd00::5]:1", []string{"Bearer " + write}, nil, operator, 0},
		"its IPv6 address without a port":   {known, six, "[fd00::5]", []string{"Bearer " + write}, nil, operator, 0},
		"a name of the configuration":       {known, far, "SLED2:12345", []string{"Bearer " + write}, nil, operator, 0},
		"a name of its certificate":         {known, far, "sled2.example:12345", []string{"Bearer " + write}, nil, operator, 0},
		"a certificate":                     {known, far, "sled2", nil, owner("somebody"), reader, 0},
		"an operator's certificate":         {known, far, "sled2", nil, owner("op"), operator, 0},
		"an operator's, by its second name": {known, far, "sled2", nil, owner("", "x", "ops.example"), operator, 0},
		"a nameless certificate":            {Access{Operators: []string{""}}, far, "10.0.0.5", nil, owner(""), reader, 0},
		"a certificate and more by a token": {known, far, "sled2", []string{"Bearer " + write}, owner("somebody"), operator, 0},
	} {
		r := httptest.NewRequest(http.MethodGet, "http://x/vmms", nil)
		r.Host = c.host
		r.Header["Authorization"] = c.header
		if c.cert != nil {
			r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{c.cert}}
		}
		is, refused := c.access.admit(r.WithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, c.local)))
		status := 0
		if refused != nil {
			status = refused.Status
		}
		if is != c.is || status != c.status {
			t.Errorf("%s: role %d, status %d; want %d, %d", name, is, status, c.is, c.status)
		}
	}
}

// Whatever changes something takes an operator, and nothing else does.
func TestEveryEndpointNeedsARole(t *testing.T) {
	for _, e := range endpoints() {
		if got := reader.may(e) == nil; got != (e.method == http.MethodGet) {
			t.Errorf("%s %s: a reader may: %v", e.method, e.path, got)
		}
		if got := anonymous.may(e) == nil; got != (e.path == "/") { // it only asks for a token
			t.Errorf("%s %s: a client without credentials may: %v", e.method, e.path, got)
		}
		if refused := operator.may(e); refused != nil {
			t.Errorf("%s %s: an operator may not: %v", e.method, e.path, refused)
		}
	}
}

func TestReadTokensRefuses(t *testing.T) {
	long := strings.Repeat("t", 32)
	for name, c := range map[string]struct {
		text string
		mode os.FileMode
		want string
	}{
		"nothing":            {"\n# none\n", 0o600, "no token in it"},
		"no role":            {long + "\n", 0o600, ":1: want reader or operator"},
		"another role":       {"reader " + long + "\nadmin " + long + "\n", 0o600, ":2: want reader or operator"},
		"a short one":        {"reader t\n", 0o600, "at least 32"},
		"readable by others": {"reader " + long + "\n", 0o640, "chmod 600"},
		"an endless one":     {strings.Repeat("# much\n", 10_000), 0o600, "larger than 65536 bytes"},
	} {
		file := filepath.Join(t.TempDir(), "tokens")
		if err := os.WriteFile(file, []byte(c.text), c.mode); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadTokens(file); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if _, err := ReadTokens("/dev/zero"); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a device: %v", err)
	}
}
