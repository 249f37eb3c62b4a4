package web

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/sledctl/sledctl/host/fault"
)

// AddressError is a text that is no address of a file.
type AddressError struct{ Address, Want string }

// Error says what would be.
func (e *AddressError) Error() string { return fmt.Sprintf("address %q: want %s", e.Address, e.Want) }

func (*AddressError) Kind() fault.Kind { return fault.Usage }

// UnreachableError is a server, or a proxy, that gave no answer.
type UnreachableError struct {
	URL string
	Err error
}

// Error says why.
func (e *UnreachableError) Error() string { return fmt.Sprintf("get %s: %v", e.URL, e.Err) }

func (*UnreachableError) Kind() fault.Kind { return fault.Failed }

// Unwrap gives the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }

// Hint says what usually helps.
func (e *UnreachableError) Hint() string {
	if _, distrusted := errors.AsType[*tls.CertificateVerificationError](e.Err); distrusted {
		return "set SSL_CERT_FILE to a file with the certificate of who signs this server's; check the sled's clock, too"
	}
	return "set HTTPS_PROXY and HTTP_PROXY if the sled reaches the web through a proxy; else check the address, and /etc/resolv.conf"
}

// StatusError is an answer other than the file.
type StatusError struct {
	URL    string
	Status int
}

// Error shows the status.
func (e *StatusError) Error() string {
	return fmt.Sprintf("get %s: the server answers %d %s", e.URL, e.Status, http.StatusText(e.Status))
}

// Kind is that of the status.
func (e *StatusError) Kind() fault.Kind {
	switch e.Status {
	case http.StatusNotFound, http.StatusGone:
		return fault.NotFound
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		return fault.Refused
	}
	return fault.Failed
}

// Hint says where to look.
func (e *StatusError) Hint() string {
	switch {
	case e.Kind() == fault.NotFound:
		return "correct the address: publishers move and delete images"
	case e.Kind() == fault.Refused:
		return "bring the file here by other means, then run: sledctl image import FILE"
	}
	return "run the same command again later"
}

// PageError is a web page in the place of a file: a login, a notice, a list of files.
type PageError struct{ URL, Type string }

// Error says so.
func (e *PageError) Error() string {
	return fmt.Sprintf("%s is a web page (%s), and no image", e.URL, e.Type)
}

func (*PageError) Kind() fault.Kind { return fault.Refused }

// Hint says what to look for.
func (*PageError) Hint() string { return "give the address of the file itself" }

// DowngradeError is a redirect from https to http.
type DowngradeError struct{ From, To string }

// Error names both.
func (e *DowngradeError) Error() string {
	return fmt.Sprintf("%s redirects to %s, which everybody on the way can change", e.From, e.To)
}

func (*DowngradeError) Kind() fault.Kind { return fault.Refused }

// Hint says what would be done.
func (*DowngradeError) Hint() string {
	return "choose another server; or give the http address itself, with --sha256 from a source that you trust"
}

// CutError is a download that broke off.
type CutError struct {
	URL    string
	At, Of int64 // bytes; Of is -1 where the server did not say
	Err    error
}

// Error says how far it came.
func (e *CutError) Error() string {
	if e.Of < 0 {
		return fmt.Sprintf("get %s: broken off after %d bytes: %v", e.URL, e.At, e.Err)
	}
	return fmt.Sprintf("get %s: broken off after %d of %d bytes: %v", e.URL, e.At, e.Of, e.Err)
}

func (*CutError) Kind() fault.Kind { return fault.Failed }

// Unwrap gives the cause.
func (e *CutError) Unwrap() error { return e.Err }

// Hint says what helps.
func (*CutError) Hint() string { return "run the same command again" }

// StalledError is a server that said nothing for too long.
type StalledError struct {
	URL string
	For time.Duration
}

// Error says for how long.
func (e *StalledError) Error() string {
	return fmt.Sprintf("get %s: the server sent nothing for %v", e.URL, e.For)
}

func (*StalledError) Kind() fault.Kind { return fault.Deadline }

// Hint says what helps.
func (*StalledError) Hint() string { return "run the same command again later" }

// LengthError is a body that is longer than was said.
type LengthError struct {
	URL  string
	Want int64
}

// Error says how long it may be.
func (e *LengthError) Error() string { return fmt.Sprintf("get %s: more than %d bytes", e.URL, e.Want) }

func (*LengthError) Kind() fault.Kind { return fault.Refused }

// Hint says what helps.
func (*LengthError) Hint() string { return "choose another server: this one contradicts itself" }

// rangeError is a part that does not fit to what is there: all is asked for then.
type rangeError struct{}

func (*rangeError) Error() string { return "the part does not fit" }

func (*rangeError) Kind() fault.Kind { return fault.Failed }
