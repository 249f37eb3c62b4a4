package commands_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sledctl/sledctl/test/sledtest"
)

// authority signs certificates, as an operator's does.
type authority struct {
	t    *testing.T
	dir  string
	ca   *x509.Certificate
	key  *ecdsa.PrivateKey
	file string // its own certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	a.ca = &x509.Certificate{Subject: pkix.Name{CommonName: "operator"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.file, _ = a.sign("ca", a.ca)
	return a
}

// sign writes a certificate and its key; the first is its own.
func (a *authority) sign(name string, c *x509.Certificate) (cert, key string) {
	a.t.Helper()
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	if a.key == nil {
		a.key = own
	}
	c.SerialNumber, c.NotBefore, c.NotAfter = big.NewInt(time.Now().UnixNano()), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	signed, err := x509.CreateCertificate(rand.Reader, c, a.ca, &own.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		a.t.Fatal(err)
	}
	write := func(end, kind string, data []byte) string {
		file := filepath.Join(a.dir, name+end)
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}), 0o600); err != nil {
			a.t.Fatal(err)
		}
		return file
	}
	return write(".pem", "CERTIFICATE", signed), write(".key", "PRIVATE KEY", secret)
}

// onTCP runs an agent at a port of an address until end is called, and gives the
// port.
func onTCP(s *sledtest.Operator, t *testing.T, address, flags string) (port string, end func() sledtest.Answer) {
	t.Helper()
	return listening(t, address, func(ctx context.Context, at string) sledtest.Answer {
		return s.On(ctx, s.Host(), "agent --listen "+at+flags)
	})
}

// listening starts an agent on a free port, and gives it back when it listens.
func listening(t *testing.T, address string, agent func(ctx context.Context, at string) sledtest.Answer) (port string, end func() sledtest.Answer) {
	t.Helper()
	free, err := net.Listen("tcp", address+":0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ = net.SplitHostPort(free.Addr().String())
	free.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan sledtest.Answer, 1)
	go func() { done <- agent(ctx, "tcp:"+address+":"+port) }()
	for {
		if c, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
			c.Close()
			return port, func() sledtest.Answer { cancel(); return <-done }
		}
		select {
		case a := <-done:
			t.Fatalf("the agent ended: %+v", a)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Over TCP, agent and client check each other's certificate. The client needs none if
// the agent accepts every client, on the loopback or with --insecure-listen.
func TestAnAgentIsAskedOverTCP(t *testing.T) {
	t.Parallel()
	s := sledtest.New(t, sledtest.Small(), "")
	s.Run("bootstrap")
	s.Run("instance ensure web1")
	far := sledtest.New(t, sledtest.Small(), "")
	list := "instance list -o name --timeout 20s --agent "
	asked := func(what, line string, exit int, want string) {
		t.Helper()
		if there := far.Try(list + line); there.Exit != exit || !strings.Contains(there.Out+there.Errs, want) {
			t.Errorf("%s: %+v, want exit %d and %q", what, there, exit, want)
		}
	}

	tokens, own := filepath.Join(t.TempDir(), "tokens"), filepath.Join(t.TempDir(), "own")
	for file, text := range map[string]string{tokens: "# who may\nreader " + strings.Repeat("r", 32) + "\noperator " + strings.Repeat("o", 32) + "\n", own: strings.Repeat("o", 32) + "\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	port, end := onTCP(s, t, "127.0.0.1", " --token-file "+tokens)
	asked("as a reader", "http://127.0.0.1:"+port+" --token-file "+tokens, 0, "web1\n")
	asked("by the name of the loopback", "http://localhost:"+port+" --token-file "+own, 0, "web1\n")
	asked("without a token", "http://127.0.0.1:"+port, 1, "401")
	asked("as if it had a certificate", "https://127.0.0.1:"+port, 1, "server gave HTTP response to HTTPS client")
	asked("with a token that all can read", "http://192.0.2.1:"+port+" --token-file "+own, 2, "want https")
	change := func(file string) sledtest.Answer {
		return far.Try("instance stop web1 --timeout 20s --agent http://127.0.0.1:" + port + " --token-file " + file)
	}
	if a := change(tokens); a.Exit != 1 || !strings.Contains(a.Errs, "403") {
		t.Errorf("a reader stops a VM: %+v", a)
	}
	if a := change(own); a.Exit != 0 {
		t.Errorf("an operator stops a VM: %+v", a)
	}
	end()
	for address, hint := range map[string]string{"0.0.0.0": "--insecure-listen", "127.0.0.1": "--token-file"} {
		if refused := s.Try("agent --listen tcp:" + address + ":" + port); refused.Exit != 8 || !strings.Contains(refused.Errs, "could stop any VM") || !strings.Contains(refused.Errs, hint) {
			t.Errorf("on %s without a way to tell clients apart: %+v", address, refused)
		}
	}
	s.Run("instance start web1")
	port, end = onTCP(s, t, "0.0.0.0", " --insecure-listen")
	asked("where everybody may come", "http://127.0.0.1:"+port, 0, "web1\n")
	end()

	ours, theirs := newAuthority(t), newAuthority(t)
	server := func(a *authority) (cert, key string) {
		return a.sign("server", &x509.Certificate{Subject: pkix.Name{CommonName: "sled"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	}
	client := func(a *authority) string {
		cert, key := a.sign("client", &x509.Certificate{Subject: pkix.Name{CommonName: "operator"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		return " --tls-cert " + cert + " --tls-key " + key
	}
	cert, key := server(ours)
	port, end = onTCP(s, t, "0.0.0.0", " --tls-operator operator --tls-cert "+cert+" --tls-key "+key+" --tls-client-ca "+ours.file)
	defer end()
	at, known := "https://127.0.0.1:"+port, " --tls-ca "+ours.file
	asked("with a certificate", at+client(ours)+known, 0, "web1\n")
	if a := far.Try("instance stop web1 --timeout 20s --agent " + at + client(ours) + known); a.Exit != 0 {
		t.Errorf("an operator by certificate stops a VM: %+v", a)
	}
	guest, guestKey := ours.sign("guest", &x509.Certificate{Subject: pkix.Name{CommonName: "guest"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	guests := " --tls-cert " + guest + " --tls-key " + guestKey + known
	asked("with a certificate that is no operator's", at+guests, 0, "web1\n")
	if a := far.Try("instance delete web1 --timeout 20s --agent " + at + guests); a.Exit != 1 || !strings.Contains(a.Errs, "403") {
		t.Errorf("a reader by certificate deletes a VM: %+v", a)
	}
	asked("without one", at+known, 1, "certificate required")
	asked("with a foreign one", at+client(theirs)+known, 1, "the agent cannot be asked")
	asked("of an agent that is not known", at+client(ours), 1, "certificate signed by unknown authority")
	asked("of another authority's agent", at+client(ours)+" --tls-ca "+theirs.file, 1, "certificate signed by unknown authority")
	asked("by another name than the certificate's", "https://localhost:"+port+client(ours)+known, 1, "localhost")
	asked("without TLS", "http://127.0.0.1:"+port, 1, "400")
	asked("of missing files", at+" --tls-ca /nowhere", 2, "--tls-ca: open /nowhere")
	asked("with half of a certificate", at+" --tls-cert "+cert, 2, "--tls-key")
}
