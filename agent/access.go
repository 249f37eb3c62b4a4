package agent

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/agent/api"
)

// Access says who may ask an agent over TCP, and for what. A Unix socket is its
// owner's only, who is an operator. The zero Access knows nobody.
type Access struct {
	// Open takes every client for an operator.
	Open bool
	// Operators are the names of certificates (common name, DNS name, URI or
	// email address) whose owners may change VMs. The owners of others read.
	Operators []string
	// Tokens are those of --token-file.
	Tokens Tokens
	// HostNames are names of the sled by which clients ask, next to those of its
	// addresses and of its certificate.
	HostNames []string
	// Certificate is the agent's own; nil: it has none.
	Certificate *x509.Certificate
}

// role is what a client may do; the higher includes the lower.
type role int

const (
	anonymous role = iota
	reader         // may read what VMs are
	operator       // may change them
)

// Tokens are the tokens that admit clients, by their digests, so that comparing
// takes the same time for every wrong one.
type Tokens map[[sha256.Size]byte]role

// The bounds of a token and of the file of tokens, in bytes.
const (
	minToken     = 32
	maxTokenFile = 64 << 10
)

// ReadTokens reads a file of tokens, a line for each: reader or operator, a
// space, and the token, of 32 characters or more without spaces. Empty lines
// and those that begin with # say nothing. Nobody but its owner may read it.
func ReadTokens(name string) (Tokens, error) {
	data, err := ReadSecret(name)
	if err != nil {
		return nil, err
	}
	all := Tokens{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		words := strings.Fields(line)
		roles := map[string]role{"reader": reader, "operator": operator}
		if len(words) != 2 || roles[words[0]] == anonymous || len(words[1]) < minToken {
			return nil, fmt.Errorf("%s:%d: want reader or operator, and a token of at least %d characters", name, n, minToken)
		}
		all[sha256.Sum256([]byte(words[1]))] = roles[words[0]]
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no token in it; want lines such as: reader TOKEN", name)
	}
	return all, nil
}

// ReadSecret reads a regular file that only its owner may read, of at most 64 KiB.
func ReadSecret(name string) ([]byte, error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: not a regular file", name)
	case info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("%s: others may read it (mode %04o); run: chmod 600 %s", name, info.Mode().Perm(), name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxTokenFile+1))
	if err == nil && len(data) > maxTokenFile {
		err = fmt.Errorf("%s: larger than %d bytes", name, maxTokenFile)
	}
	return data, err
}

// admit returns the role of a request's client, or why the request is refused:
// 421 for a name that the agent does not have, 401 for a client without known
// credentials. The first keeps out web pages whose own name leads to the sled
// (DNS rebinding).
func (a Access) admit(r *http.Request) (role, *api.Error) {
	misdirected := &api.Error{Status: http.StatusMisdirectedRequest,
		Message: fmt.Sprintf("the agent is not called %q: ask by an address that it listens on, or name it in agent.host_names", r.Host)}
	asked := r.Context().Value(http.LocalAddrContextKey)
	if _, socket := asked.(*net.UnixAddr); socket && !a.forwarded(r.Host) {
		return anonymous, misdirected
	}
	local, network := asked.(*net.TCPAddr)
	if !network {
		return operator, nil
	}
	if !a.named(r.Host, local.AddrPort().Addr().Unmap()) {
		return anonymous, misdirected
	}
	is := a.byToken(r.Header.Values("Authorization"))
	if a.Open {
		is = operator
	}
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		is = max(is, a.byCertificate(r.TLS.PeerCertificates[0]))
	}
	if is == anonymous && !isPage(r) {
		return anonymous, &api.Error{Status: http.StatusUnauthorized, Message: "want a token of the agent's token file, as Authorization: Bearer TOKEN"}
	}
	return is, nil
}

// forwarded reports whether a Host header may come over the Unix socket. A browser cannot open
// that, but reaches it by a port that ssh -L forwards to it; a page that leads there has a
// public name, which has a dot, and no address. Clients choose any name, e.g. "sled".
func (a Access) forwarded(host string) bool {
	name := bareHost(host)
	_, err := netip.ParseAddr(name)
	return err == nil || !strings.Contains(name, ".") ||
		slices.ContainsFunc(a.HostNames, func(known string) bool { return strings.EqualFold(known, name) })
}

// bareHost is a Host header without its port, which differs behind a forwarded one.
func bareHost(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return strings.Trim(host, "[]")
}

// named reports whether a Host header names the agent on a connection to local.
func (a Access) named(host string, local netip.Addr) bool {
	name := bareHost(host)
	if at, err := netip.ParseAddr(name); err == nil {
		return at.Unmap().WithZone("") == local.WithZone("") || slices.Contains(a.HostNames, name)
	}
	same := func(known string) bool { return strings.EqualFold(known, name) }
	return name != "" && (slices.ContainsFunc(a.HostNames, same) ||
		same("localhost") && local.IsLoopback() ||
		a.Certificate != nil && a.Certificate.VerifyHostname(name) == nil)
}

func (a Access) byToken(said []string) role {
	if len(said) != 1 {
		return anonymous
	}
	scheme, token, _ := strings.Cut(said[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return anonymous
	}
	return a.Tokens[sha256.Sum256([]byte(strings.TrimSpace(token)))]
}

func (a Access) byCertificate(c *x509.Certificate) role {
	names := append([]string{c.Subject.CommonName}, c.DNSNames...)
	names = append(names, c.EmailAddresses...)
	for _, u := range c.URIs {
		names = append(names, u.String())
	}
	for _, name := range names {
		if name != "" && slices.Contains(a.Operators, name) {
			return operator
		}
	}
	return reader
}

// isPage reports whether a request is for the page, which says nothing about the sled.
func isPage(r *http.Request) bool { return r.Method == http.MethodGet && r.URL.Path == pagePath }

// may refuses a reader what changes something.
func (r role) may(e endpoint) *api.Error {
	if r < e.needs() {
		return &api.Error{Status: http.StatusForbidden, Message: "readers may not change anything: it takes an operator's token, or a certificate that is named in agent.operators"}
	}
	return nil
}

// needs is the least role that an endpoint can be asked in.
func (e endpoint) needs() role {
	switch {
	case e.path == pagePath:
		return anonymous
	case e.method == http.MethodGet:
		return reader
	}
	return operator
}
