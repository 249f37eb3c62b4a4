package agent

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/sledctl/sledctl/host/fault"
)

// Address is where an agent listens.
type Address struct {
	Network string // unix, tcp
	Name    string // an absolute file name, or host:port
}

// ParseAddress reads unix:/NAME or tcp:HOST:PORT.
func ParseAddress(text string) (Address, error) {
	network, name, _ := strings.Cut(text, ":")
	a := Address{network, name}
	switch network {
	case "unix":
		if filepath.IsAbs(name) && filepath.Clean(name) == name {
			return a, nil
		}
	case "tcp":
		if _, err := netip.ParseAddrPort(name); err == nil {
			return a, nil
		}
	}
	return Address{}, fmt.Errorf("address %q: want unix:/NAME or tcp:ADDRESS:PORT, as tcp:127.0.0.1:12345 or tcp:[::1]:12345", text)
}

// String is the address as ParseAddress reads it.
func (a Address) String() string { return a.Network + ":" + a.Name }

// loopback says whether nobody can come from elsewhere.
func (a Address) loopback() bool {
	at, err := netip.ParseAddrPort(a.Name)
	return a.Network == "unix" || err == nil && at.Addr().IsLoopback()
}

// ExposedError is an address that others can reach, without a way to tell who
// they are.
type ExposedError struct{ Address Address }

// Error says so.
func (e *ExposedError) Error() string {
	if e.Address.loopback() {
		return fmt.Sprintf("refusing to listen on %s: any process of this machine could stop any VM", e.Address)
	}
	return fmt.Sprintf("refusing to listen on %s: anyone who can reach it could stop any VM", e.Address)
}

func (*ExposedError) Kind() fault.Kind { return fault.Refused }

// Hint says how to go about it. Beyond the machine, a token could be read on its
// way.
func (e *ExposedError) Hint() string {
	known := "to let in clients that have a certificate, add --tls-cert, --tls-key and --tls-client-ca"
	if e.Address.loopback() {
		known = "to let in clients that know a token, add --token-file; " + known
	}
	return known + "; to let in everybody, add --insecure-listen"
}

// TLS is what clients are told apart by. The zero TLS tells nobody apart.
type TLS struct{ Cert, Key, ClientCA string } // names of PEM files

// Config asks for the certificate of every client. Of a zero TLS it is nil.
func (t TLS) Config() (*tls.Config, error) {
	if t == (TLS{}) {
		return nil, nil
	}
	if t.Cert == "" || t.Key == "" || t.ClientCA == "" {
		return nil, errors.New("--tls-cert, --tls-key and --tls-client-ca belong together")
	}
	own, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert %s, --tls-key %s: %w", t.Cert, t.Key, err)
	}
	pem, err := os.ReadFile(t.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("--tls-client-ca: %w", err)
	}
	known := x509.NewCertPool()
	if !known.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("--tls-client-ca %s: there is no certificate in it", t.ClientCA)
	}
	return &tls.Config{Certificates: []tls.Certificate{own}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: known, MinVersion: tls.VersionTLS13}, nil
}

// Listen begins to listen at an address. A Unix socket can be used by its owner
// only, and takes the place of one that an agent left which was killed; only who
// has an agent's lock may do that. On TCP, clients show a
// certificate if there is a secure. Without one, access must know tokens for a
// loopback address, and be open for others: else it is an *ExposedError.
func Listen(ctx context.Context, a Address, secure *tls.Config, access Access) (net.Listener, error) {
	if a.Network == "unix" {
		return listenUnix(ctx, a.Name)
	}
	if secure == nil && !access.Open && (!a.loopback() || len(access.Tokens) == 0) {
		return nil, &ExposedError{a}
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, a.Network, a.Name)
	if err != nil || secure == nil {
		return l, err
	}
	return tls.NewListener(l, secure), nil
}

// maxSocketName is how long the name of a socket may be, in bytes: what illumos
// and Linux leave of sockaddr_un's 108, and a little less.
const maxSocketName = 104

// listenUnix makes the socket where nobody else can reach it, and moves it to
// its name once it is its owner's only.
func listenUnix(ctx context.Context, name string) (net.Listener, error) {
	if info, err := os.Lstat(name); err == nil && info.Mode().Type() != os.ModeSocket {
		return nil, fmt.Errorf("%s is there, and no socket", name)
	}
	dir, err := os.MkdirTemp(filepath.Dir(name), ".a") // its mode is 0700
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	made := filepath.Join(dir, "s")
	if len(made) > maxSocketName {
		return nil, fmt.Errorf("the name is too long for a socket: want at most %d bytes", len(name)-(len(made)-maxSocketName))
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "unix", made)
	if err != nil {
		return nil, err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // by its first name
	err = os.Chmod(made, 0o600)
	if err == nil {
		err = os.Rename(made, name)
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	return &socket{l, name}, nil
}

// socket is a listener whose file goes with it.
type socket struct {
	net.Listener
	name string
}

// Close is part of net.Listener.
func (s *socket) Close() error {
	return errors.Join(s.Listener.Close(), os.Remove(s.name))
}
