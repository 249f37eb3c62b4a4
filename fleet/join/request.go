package join

import (
	"crypto/x509"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Request is what a sled joins by.
type Request struct {
	Server    string // https://HOST:PORT of the API server
	Authority []byte // the certificates by which that server is known, as PEM
	Token     string // ID.SECRET: see Token
	Name      string // of the sled
	Dir       string // absolute, for what is written
}

// tokens are of that form (kubernetes.io/docs/reference/access-authn-authz/bootstrap-tokens).
var tokens = regexp.MustCompile(`^[a-z0-9]{6}\.[a-z0-9]{16}$`)

// check refuses what no sled can join by (*FieldError).
func (r Request) check() error {
	at, err := url.Parse(r.Server)
	switch {
	case err != nil || at.Scheme != "https" || at.Host == "" || at.Path != "" && at.Path != "/":
		return &FieldError{"server", r.Server, "https://HOST:PORT of the API server"}
	case !x509.NewCertPool().AppendCertsFromPEM(r.Authority):
		return &FieldError{"ca-file", "", "certificates as PEM"}
	case !tokens.MatchString(r.Token):
		return &FieldError{"token-file", "", "a token: 6 letters or digits, a dot, and 16 more"}
	case len(validation.IsDNS1123Subdomain(r.Name)) > 0:
		return &FieldError{"name", r.Name, "lower-case letters, digits, - and ., beginning and ending with a letter or digit"}
	case !filepath.IsAbs(r.Dir):
		return &FieldError{"dir", r.Dir, "an absolute name of a directory"}
	}
	return nil
}

// FieldError is a value that nothing can be done with.
type FieldError struct{ Field, Value, Want string }

// Error names the field. A secret is not repeated.
func (e *FieldError) Error() string {
	if e.Value == "" {
		return fmt.Sprintf("%s: want %s", e.Field, e.Want)
	}
	return fmt.Sprintf("%s %q: want %s", e.Field, e.Value, e.Want)
}

// OtherError is a directory of a sled with another name.
type OtherError struct{ Dir, Name string }

// Error names that sled.
func (e *OtherError) Error() string {
	return fmt.Sprintf("%s is of sled %s, which has joined: to join under another name, remove it first", e.Dir, e.Name)
}

// TokenError is a token that the API server does not accept.
type TokenError struct{ Err error }

// Error says what to do.
func (e *TokenError) Error() string {
	return fmt.Sprintf("the API server does not accept the token: %v. It is mistyped, or its time is over: for another one, run where kubectl is: sledctl-fleet token | kubectl apply -f -", e.Err)
}

// Unwrap gives what the server said.
func (e *TokenError) Unwrap() error { return e.Err }

// UnsignedError is a certificate that was asked for, and not signed while it was waited for.
type UnsignedError struct {
	Request string // its name in the control plane
	Err     error
}

// Error says who can sign it.
func (e *UnsignedError) Error() string {
	return fmt.Sprintf("the certificate is not signed: %v. To sign it, run where kubectl is: kubectl certificate approve %s; then join again", e.Err, e.Request)
}

// Unwrap gives why it ended.
func (e *UnsignedError) Unwrap() error { return e.Err }
