package join

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/sledctl/sledctl/fleet/replace"
)

// joined writes the certificate of a sled, as if it had joined.
func joined(t *testing.T, dir, name string, from time.Time, lasts time.Duration) (authority []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: user + name}, NotBefore: from, NotAfter: from.Add(lasts)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err == nil {
		err = replace.File(filepath.Join(dir, credential), encode("CERTIFICATE", der))
	}
	if err != nil {
		t.Fatal(err)
	}
	return encode("CERTIFICATE", der)
}

func TestWhatASledCannotJoinBy(t *testing.T) {
	dir := t.TempDir()
	authority := joined(t, dir, "sled1", time.Now(), time.Hour)
	good := Request{Server: "https://10.0.0.1:6443", Authority: authority, Token: "abcdef.0123456789abcdef", Name: "sled1", Dir: dir}
	if err := good.check(); err != nil {
		t.Fatal(err)
	}
	for field, change := range map[string]func(*Request){
		"server":     func(r *Request) { r.Server = "http://10.0.0.1:6443" },
		"ca-file":    func(r *Request) { r.Authority = []byte("none") },
		"token-file": func(r *Request) { r.Token = "abcdef" },
		"name":       func(r *Request) { r.Name = "Sled 1" },
		"dir":        func(r *Request) { r.Dir = "etc" },
	} {
		r := good
		change(&r)
		var wrong *FieldError
		if err := Join(t.Context(), r); !errors.As(err, &wrong) || wrong.Field != field || strings.Contains(wrong.Error(), "abcdef") {
			t.Errorf("%s: %v", field, err)
		}
	}
	other := good
	other.Name = "sled2"
	var of *OtherError
	if err := Join(t.Context(), other); !errors.As(err, &of) || of.Name != "sled1" {
		t.Errorf("a directory of another sled: %v", err)
	}
}

func TestWhenACertificateIsRenewed(t *testing.T) {
	dir := t.TempDir()
	if _, err := Certificate(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing has joined: %v", err)
	}
	if at, is := At(filepath.Join(dir, Kubeconfig)); is || at != dir {
		t.Errorf("nothing has joined: %s %v", at, is)
	}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	joined(t, dir, "sled1", start, 90*24*time.Hour)
	c, err := Certificate(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := due(c); !got.Equal(start.Add(60 * 24 * time.Hour)) {
		t.Errorf("it is due at %v", got)
	}
	if name, err := Name(dir); name != "sled1" || err != nil {
		t.Errorf("the name is %q, %v", name, err)
	}
	if _, is := At(filepath.Join(dir, Kubeconfig)); !is {
		t.Error("it has joined")
	}
	if _, is := At(filepath.Join(dir, "admin.conf")); is {
		t.Error("another kubeconfig is not of join")
	}
	if err := os.WriteFile(filepath.Join(dir, credential), []byte("torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Certificate(dir); err == nil {
		t.Error("what is no certificate is taken for one")
	}
}

func TestAToken(t *testing.T) {
	until := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	text := Token(until)
	var secret corev1.Secret
	if err := yaml.UnmarshalStrict(text, &secret); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	is := secret.StringData
	token := is["token-id"] + "." + is["token-secret"]
	if !tokens.MatchString(token) || !strings.Contains(string(text), "echo "+token+" >") || secret.Name != "bootstrap-token-"+is["token-id"] || is["expiration"] != "2026-01-01T12:00:00Z" {
		t.Errorf("%s", text)
	}
	if string(Token(until)) == string(text) {
		t.Error("the next one is the same")
	}
}
