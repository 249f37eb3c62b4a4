package napi

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"

	"github.com/sledctl/sledctl/host/fault"
)

// Server is where a NAPI answers: HOST:PORT.
type Server string

// URLError is an address that no NAPI can have.
type URLError struct{ URL, Want string }

// Error names the address and what would be right.
func (e *URLError) Error() string { return fmt.Sprintf("%q: want %s", e.URL, e.Want) }

func (*URLError) Kind() fault.Kind { return fault.Failed }

// ParseServer reads http://HOST or http://HOST:PORT. The error is a *URLError.
func ParseServer(s string) (Server, error) {
	const want = "the address of a NAPI: http://10.99.99.12"
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" || u.Hostname() == "" || u.User != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
		return "", &URLError{URL: s, Want: want}
	}
	port := u.Port()
	if port == "" {
		port = "80"
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", &URLError{URL: s, Want: want}
	}
	name := u.Hostname()
	if a, err := netip.ParseAddr(name); err == nil {
		name = a.String()
	}
	return Server(net.JoinHostPort(name, port)), nil
}

// url is what is asked for, in full.
func (s Server) url(path string) string { return "http://" + string(s) + path }
