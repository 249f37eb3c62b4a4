// Package dropshottest holds what is asked of a server made with dropshot, and
// what it answers, to the OpenAPI document that its makers have published. It is
// for tests.
package dropshottest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
)

// Document is one version of an API.
type Document struct {
	*openapi3.T
	Router routers.Router
}

// Testing is what a test is to Published.
type Testing interface {
	Helper()
	Skip(args ...any)
	Fatal(args ...any)
}

// Published is the document of that file's name, which lies beside the source
// where somebody has put it: else the test is skipped.
func Published(t Testing, name string) *Document {
	t.Helper()
	data, err := beside(name)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("shared/openapi is not here")
	}
	var d *Document
	if err == nil {
		d, err = Read(data)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// beside reads a document from beside the module that the working directory is
// in.
func beside(name string) ([]byte, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if filepath.Dir(dir) == dir {
			return nil, fs.ErrNotExist
		}
		dir = filepath.Dir(dir)
	}
	if err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(filepath.Dir(dir), "shared", "openapi", name))
}

// Read reads a document, with a repair of Propolis': the key of a component is
// said to be a UUID or a string, of which each UUID is both.
func Read(data []byte) (*Document, error) {
	var raw map[string]any
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, err
	}
	if components, ok := raw["components"].(map[string]any); ok {
		if schemas, ok := components["schemas"].(map[string]any); ok && schemas["SpecKey"] != nil {
			schemas["SpecKey"] = map[string]any{"type": "string"}
		}
	}
	data, err := json.Marshal(raw)
	if err != nil {
		return nil, err
	}
	doc, err := openapi3.NewLoader().LoadFromData(data)
	if err != nil {
		return nil, err
	}
	doc.Servers = nil
	router, err := legacy.NewRouter(doc, openapi3.DisableSchemaPatternValidation()) // Go's patterns have no lookahead
	return &Document{doc, router}, err
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

// Answer says what of the answer to a request is not as the document has it.
func (d *Document) Answer(r *http.Request, status int, header http.Header, body []byte) error {
	input, err := d.input(r)
	if err != nil {
		return err
	}
	if bytes.Equal(body, []byte("null")) {
		return nil // "an enumeration of null", it says of some, which no validator takes
	}
	return openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: status, Header: header, Body: io.NopCloser(bytes.NewReader(body)),
	})
}

func (d *Document) input(r *http.Request) (*openapi3filter.RequestValidationInput, error) {
	route, params, err := d.Router.FindRoute(r)
	if err != nil {
		return nil, err
	}
	return &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route}, nil
}
