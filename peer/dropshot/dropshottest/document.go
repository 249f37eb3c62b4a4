// Package dropshottest holds what is asked of a server made with dropshot, and
// what it answers, to the OpenAPI document that its makers have published. It is
// for tests.
package dropshottest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"

	"github.com/sledctl/sledctl/test/refdata"
)

// Document is one version of an API.
type Document struct {
	*openapi3.T
	Router routers.Router
}

// Published is the document that has been published and matches a pattern
// (package next to); without it, the test is skipped.
func Published(t refdata.Testing, pattern string) *Document {
	t.Helper()
	d, err := Read(refdata.File(t, "openapi/"+pattern))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Open is Published for what is no test: fs.ErrNotExist without the document.
func Open(pattern string) (*Document, error) {
	data, err := refdata.Read("openapi/" + pattern)
	if err != nil {
		return nil, err
	}
	return Read(data)
}

// Read reads a document, with two repairs: the key of a component of Propolis' is
// said to be a UUID or a string, of which each UUID is both; and patterns that look
// around are not Go's.
func Read(data []byte) (*Document, error) {
	var raw any
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, err
	}
	repair(raw)
	data, err := json.Marshal(raw)
	if err != nil {
		return nil, err
	}
	doc, err := openapi3.NewLoader().LoadFromData(data)
	if err != nil {
		return nil, err
	}
	doc.Servers = nil
	router, err := legacy.NewRouter(doc, openapi3.DisableExamplesValidation())
	return &Document{doc, router}, err
}

func repair(v any) {
	switch v := v.(type) {
	case map[string]any:
		if p, ok := v["pattern"].(string); ok && strings.Contains(p, "(?") {
			delete(v, "pattern")
		}
		if _, has := v["SpecKey"]; has {
			v["SpecKey"] = map[string]any{"type": "string"}
		}
		for _, below := range v {
			repair(below)
		}
	case []any:
		for _, below := range v {
			repair(below)
		}
	}
}

// Operation is what a request asks for, by the id that the document gives it;
// routers.ErrPathNotFound or routers.ErrMethodNotAllowed if it has none.
func (d *Document) Operation(r *http.Request) (id string, err error) {
	input, err := d.input(r)
	if err != nil {
		return "", err
	}
	return input.Route.Operation.OperationID, nil
}

// Request says what of a request is not as the document has it. Its body can be
// read once more.
func (d *Document) Request(r *http.Request) error {
	input, err := d.input(r)
	if err != nil {
		return err
	}
	return openapi3filter.ValidateRequest(context.Background(), input)
}

// Answer says what of the answer to a request is not as the document has it. Of a
// stream of events it has the head only.
func (d *Document) Answer(r *http.Request, status int, header http.Header, body []byte) error {
	input, err := d.input(r)
	if err != nil {
		return err
	}
	if bytes.Equal(body, []byte("null")) {
		return nil // "an enumeration of null", it says in some places, which no validator takes
	}
	return openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: status, Header: header, Body: io.NopCloser(bytes.NewReader(body)),
		Options: &openapi3filter.Options{ExcludeResponseBody: header.Get("Content-Type") == "text/event-stream"},
	})
}

// input finds what a request asks for. The router takes an escaped slash for one,
// so it is given the path as it was sent.
func (d *Document) input(r *http.Request) (*openapi3filter.RequestValidationInput, error) {
	sent := *r.URL
	sent.Path, sent.RawPath = r.URL.EscapedPath(), ""
	asked := *r
	asked.URL = &sent
	route, params, err := d.Router.FindRoute(&asked)
	if err != nil {
		return nil, err
	}
	for name, value := range params {
		if params[name], err = url.PathUnescape(value); err != nil {
			return nil, err
		}
	}
	return &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route}, nil
}
