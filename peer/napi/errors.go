package napi

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
)

// What a server's refusal means. They are found in an *Error by errors.Is.
var (
	// ErrNoRoute is a path that the server does not know: it is of another
	// version. It says nothing of any record.
	ErrNoRoute = errors.New("the server does not have this")
	// ErrNoNIC is a record that does not exist.
	ErrNoNIC = errors.New("there is no such record")
	// ErrNoFilter is a list that the server does not filter by cn_uuid: it is
	// from before NAPI-404.
	ErrNoFilter = errors.New("the server does not filter by cn_uuid")
	// ErrChanged is a record that is another version than was asked for, or that
	// somebody else changed at the same time.
	ErrChanged = errors.New("the record was changed meanwhile")
)

// ErrReply is an answer that no NAPI gives, or that cannot be relied on.
var ErrReply = errors.New("not the answer of a NAPI")

// FieldError is what a server has against one parameter.
type FieldError struct {
	Fields  []string // several only where it does not know them
	Code    string
	Message string
	Invalid []string // the values at fault, if it says
}

// Error is a request that a server answered with an error.
type Error struct {
	Method, Path string
	Status       int
	Code         string // may be empty: errors of the server's store have none
	Message      string
	Errors       []FieldError
}

// Error is the server's message, with the parameters that it is about.
func (e *Error) Error() string {
	text := fmt.Sprintf("%s %s: %d", e.Method, e.Path, e.Status)
	if e.Code != "" {
		text += " " + e.Code
	}
	said := e.Message
	var about []string
	for _, f := range e.Errors {
		about = append(about, strings.Join(f.Fields, ", ")+": "+f.Message)
	}
	if len(about) > 0 {
		said = strings.Join(about, "; ")
	}
	if said != "" {
		text += ": " + said
	}
	return text
}

func (*Error) Kind() fault.Kind { return fault.Failed }

// Unwrap gives what it means, if that is known: one of the errors above, or
// host.ErrTransient.
func (e *Error) Unwrap() error {
	path, _, _ := strings.Cut(e.Path, "?")
	missing := e.Status == http.StatusNotFound && e.Code == codeNotFound
	switch {
	case missing && e.Message == path+" does not exist":
		return ErrNoRoute
	case missing && e.Message == "nic not found":
		return ErrNoNIC
	case e.Status == http.StatusUnprocessableEntity && slices.ContainsFunc(e.Errors, unknownCN):
		return ErrNoFilter
	case e.Status == http.StatusPreconditionFailed && e.Code == codePrecondition:
		return ErrChanged
	case e.Status == http.StatusInternalServerError && e.Method == http.MethodPut:
		return ErrChanged // a lost race is nothing else to the server (sdc-napi lib/apis/moray.js)
	case e.Status >= 500 && e.Status != http.StatusInsufficientStorage:
		return host.ErrTransient
	}
	return nil
}

const (
	codeNotFound     = "ResourceNotFound"
	codePrecondition = "PreconditionFailed"
	codeUnknown      = "UnknownParameters"
)

func unknownCN(f FieldError) bool {
	return f.Code == codeUnknown && slices.Contains(f.Fields, "cn_uuid")
}

// ForeignError is a list of one sled's records that holds records of another sled: the
// server has not filtered it.
type ForeignError struct {
	Path string
	NIC  NIC
	Want string // the sled that was asked about
}

// Error names the record.
func (e *ForeignError) Error() string {
	whose := "of no sled"
	if e.NIC.CNUUID != "" {
		whose = "of sled " + e.NIC.CNUUID
	}
	return fmt.Sprintf("GET %s: the answer holds %s, which is %s: the server has not filtered by cn_uuid, and nothing in the answer is relied on", e.Path, e.NIC.MAC, whose)
}

func (*ForeignError) Kind() fault.Kind { return fault.Failed }

// Unwrap says that the answer cannot be relied on.
func (e *ForeignError) Unwrap() []error { return []error{ErrReply, ErrNoFilter} }

// IgnoredError is a change that the server says it made, and did not.
type IgnoredError struct{ MAC, Field, Asked, Got string }

// Error names the field and both values.
func (e *IgnoredError) Error() string {
	return fmt.Sprintf("record %s: %s should have become %q, and is %q", e.MAC, e.Field, e.Asked, e.Got)
}

func (*IgnoredError) Kind() fault.Kind { return fault.Failed }

// WritesDisabledError is a write that a file forbids.
type WritesDisabledError struct {
	File   string
	Reason string // its first line, or why it could not be read
}

// Error names the file, and what it says.
func (e *WritesDisabledError) Error() string {
	text := "no NIC record is changed while " + e.File + " is there"
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return text
}

func (*WritesDisabledError) Kind() fault.Kind { return fault.Refused }

// Hint says what to do about it.
func (e *WritesDisabledError) Hint() string {
	return "remove the file when the reason has ended; to see the records meanwhile, run: sledctl nics list"
}

// Unwrap says that it was refused.
func (e *WritesDisabledError) Unwrap() error { return host.ErrRefused }
