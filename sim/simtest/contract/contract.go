// Package contract holds what is said to a simulated Propolis, and what it
// answers, to the documents that Propolis' makers have published. It is for
// tests.
package contract

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"github.com/sledctl/sledctl/dropshot/dropshottest"
	"github.com/sledctl/sledctl/sim"
)

// latest is the newest version that the simulated server speaks.
const latest = 5

// ErrAbsent is a machine on which the documents are not.
var ErrAbsent = errors.New("shared/openapi is not here")

// Contract is the documents, by major version.
type Contract struct {
	dir string

	mu      sync.Mutex
	routers map[int]routers.Router
}

// Open finds the documents beside the source, from the working directory
// upwards: ErrAbsent if they are not there. They are read once: a test may make
// hundreds of sleds.
func Open() (*Contract, error) { return opened() }

var opened = sync.OnceValues(open)

func open() (*Contract, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if filepath.Dir(dir) == dir {
			return nil, ErrAbsent
		}
		dir = filepath.Dir(dir)
	}
	c := &Contract{dir: filepath.Join(filepath.Dir(dir), "shared", "openapi"), routers: map[int]routers.Router{}}
	if _, err := c.Version(latest); errors.Is(err, fs.ErrNotExist) {
		return nil, ErrAbsent
	} else if err != nil {
		return nil, err
	}
	return c, nil
}

// Version is the document of a major version.
func (c *Contract) Version(major int) (routers.Router, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r, ok := c.routers[major]; ok {
		return r, nil
	}
	data, err := os.ReadFile(filepath.Join(c.dir, fmt.Sprintf("propolis-server-%d.0.0.json", major)))
	if err != nil {
		return nil, err
	}
	doc, err := dropshottest.Read(data)
	if err != nil {
		return nil, err
	}
	c.routers[major] = doc.Router
	return doc.Router, nil
}

// Check holds an exchange to the document of its version. What the documents do
// not have (the screen, and paths that are none), passes if it is answered as it
// should be.
func (c *Contract) Check(e sim.Exchange) error {
	input, err := c.input(e)
	if err != nil || input == nil {
		return wrap(e, err)
	}
	if err := openapi3filter.ValidateRequest(context.Background(), input); err != nil && e.Status/100 != 4 {
		return wrap(e, fmt.Errorf("request %s: %w", e.Body, err))
	}
	return wrap(e, reply(e, input))
}

// CheckSent is Check of a request that may not be wrong, whatever was answered.
func (c *Contract) CheckSent(e sim.Exchange) error {
	input, err := c.input(e)
	if err == nil && input != nil {
		if err = openapi3filter.ValidateRequest(context.Background(), input); err != nil {
			err = fmt.Errorf("request %s: %w", e.Body, err)
		}
	}
	if err == nil && input != nil {
		err = reply(e, input)
	}
	return wrap(e, err)
}

func wrap(e sim.Exchange, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s in version %s, answered with %d: %w", e.Method, e.URI, e.Header.Get("api-version"), e.Status, err)
}

// input is the request as the validator wants it; nil if its version has no such
// request, which then must have been answered so.
func (c *Contract) input(e sim.Exchange) (*openapi3filter.RequestValidationInput, error) {
	major, ok := majorOf(e.Header.Get("api-version"))
	if !ok {
		if e.Status != http.StatusBadRequest {
			return nil, errors.New("its version is none, and it was not refused")
		}
		return nil, nil
	}
	router, err := c.Version(major)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequest(e.Method, e.URI, bytes.NewReader(e.Body))
	if err != nil {
		return nil, err
	}
	r.Header = e.Header
	if len(e.Body) > 0 && r.Header.Get("Content-Type") == "" {
		r.Header = r.Header.Clone()
		r.Header.Set("Content-Type", "application/json") // which a server takes it for
	}
	route, params, err := router.FindRoute(r)
	if err != nil {
		known := strings.HasPrefix(e.URI, "/instance/vnc") || strings.HasPrefix(e.URI, "/instance/migrate/")
		if !known && e.Status != 0 && e.Status != http.StatusNotFound && e.Status != http.StatusMethodNotAllowed {
			return nil, fmt.Errorf("there is no such request: %w", err)
		}
		return nil, nil
	}
	return &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route}, nil
}

// majorOf is the version of the document that a header names.
func majorOf(version string) (int, bool) {
	head, _, _ := strings.Cut(version, ".")
	major, err := strconv.Atoi(head)
	return max(major, 1), err == nil && major <= latest && strings.Count(version, ".") >= 2
}

// reply holds the answer to the document. "An enumeration of null", which it
// says of some, no validator takes.
func reply(e sim.Exchange, input *openapi3filter.RequestValidationInput) error {
	if e.Status == 0 || e.Status == http.StatusSwitchingProtocols || string(e.Reply) == "null" {
		return nil
	}
	answer := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: e.Status, Header: e.ReplyHeader, Body: io.NopCloser(bytes.NewReader(e.Reply)),
	}
	if err := openapi3filter.ValidateResponse(context.Background(), answer); err != nil {
		return fmt.Errorf("reply %s: %w", e.Reply, err)
	}
	return nil
}

// Testing is what a test is to Watch.
type Testing interface {
	Helper()
	Errorf(format string, args ...any)
}

// Watch holds every request that is sent to a sled in a test, and every answer,
// to the documents. Without them it does nothing.
func Watch(t Testing, s *sim.Sled) {
	t.Helper()
	c, err := Open()
	if errors.Is(err, ErrAbsent) {
		return
	}
	if err != nil {
		t.Errorf("%v", err)
		return
	}
	s.Observe = func(e sim.Exchange) {
		if err := c.CheckSent(e); err != nil {
			t.Errorf("%v", err)
		}
	}
}

// File holds what sim.Record has written to the documents, and says how many
// exchanges that were.
func (c *Contract) File(name string) (n int, err error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	var wrong []error
	for line := range bytes.Lines(data) {
		var e sim.Exchange
		if err := json.Unmarshal(line, &e); err != nil {
			return n, err
		}
		n++
		if err := c.CheckSent(e); err != nil && len(wrong) < 10 {
			wrong = append(wrong, err)
		}
	}
	return n, errors.Join(wrong...)
}
