// Package contract holds what is said to a simulated Propolis, and what it
// answers, to the documents that its makers have published, and likewise what a
// simulated control plane and the agents of its sleds say to each other. It is for
// tests.
package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/sledctl/sledctl/peer/dropshot/dropshottest"
	"github.com/sledctl/sledctl/sim"
)

// latest is the newest version that the simulated server speaks.
const latest = 6

// Contract is the documents, by major version.
type Contract struct {
	mu        sync.Mutex
	documents map[int]*dropshottest.Document
	others    map[string]*dropshottest.Document
}

// Open finds the documents (package next to): fs.ErrNotExist if they do not exist.
// They are read once: a test may make hundreds of sleds.
func Open() (*Contract, error) { return opened() }

var opened = sync.OnceValues(func() (*Contract, error) {
	c := &Contract{documents: map[int]*dropshottest.Document{}, others: map[string]*dropshottest.Document{}}
	if _, err := c.Version(latest); err != nil {
		return nil, err
	}
	return c, nil
})

// Version is the document of a major version.
func (c *Contract) Version(major int) (*dropshottest.Document, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d, ok := c.documents[major]; ok {
		return d, nil
	}
	d, err := dropshottest.Open(fmt.Sprintf("propolis-server-%d.0.0.json", major))
	if err == nil {
		c.documents[major] = d
	}
	return d, err
}

// Check holds an exchange to the document of its version: also a request that was
// refused may not be wrong. What the documents do not have (the screen, and paths
// that are none), passes if it is answered as it should be.
func (c *Contract) Check(e sim.Exchange) error {
	d, r, err := c.request(e)
	if e.Of != "" {
		d, r, err = c.ofRack(e)
	}
	if err == nil && r != nil {
		if err = d.Request(r); err != nil {
			err = fmt.Errorf("request %s: %w", e.Body, err)
		} else if e.Status != 0 && e.Status != http.StatusSwitchingProtocols {
			if err = d.Answer(r, e.Status, e.ReplyHeader, e.Reply); err != nil {
				err = fmt.Errorf("reply %s: %w", e.Reply, err)
			}
		}
	}
	if err != nil {
		return fmt.Errorf("%s %s in version %s, answered with %d: %w", e.Method, e.URI, e.Header.Get("api-version"), e.Status, err)
	}
	return nil
}

// request is what was asked, and the document of its version; nil if that has no
// such request, which then must have been answered so.
func (c *Contract) request(e sim.Exchange) (*dropshottest.Document, *http.Request, error) {
	major, ok := majorOf(e.Header.Get("api-version"))
	switch {
	case !ok && e.Status != http.StatusBadRequest:
		return nil, nil, errors.New("its version is none, and it was not refused")
	case !ok:
		return nil, nil, nil
	}
	r, err := http.NewRequest(e.Method, e.URI, bytes.NewReader(e.Body))
	if err != nil {
		return nil, nil, err
	}
	d, err := c.Version(major)
	if err != nil {
		return nil, nil, err
	}
	if r.Header = e.Header.Clone(); len(e.Body) > 0 && r.Header.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", "application/json") // which a server takes it for
	}
	if _, err := d.Operation(r); err != nil {
		known := strings.HasPrefix(e.URI, "/instance/vnc") || strings.HasPrefix(e.URI, "/instance/migrate/")
		if !known && e.Status != 0 && e.Status != http.StatusNotFound && e.Status != http.StatusMethodNotAllowed {
			return nil, nil, fmt.Errorf("there is no such request: %w", err)
		}
		return nil, nil, nil
	}
	return d, r, nil
}

// ofRack is the same of what a control plane or a sled's agent was asked. Doorbells, which are not published yet, have
// no document; nor has the page that answers in the place of a control plane if a fault says so.
func (c *Contract) ofRack(e sim.Exchange) (*dropshottest.Document, *http.Request, error) {
	name := map[string]string{sim.OfSledAgent: "sled-agent-48.0.0.json", sim.OfNexus: "nexus-internal-1.0.0.json"}[e.Of]
	d, err := c.named(name)
	if err != nil {
		return nil, nil, err
	}
	r, err := http.NewRequest(e.Method, e.URI, bytes.NewReader(e.Body))
	if err != nil {
		return nil, nil, err
	}
	r.Header = e.Header.Clone()
	if _, err := d.Operation(r); err != nil && (strings.HasSuffix(e.URI, "/doorbell") || e.Status == http.StatusNotFound) || bytes.HasPrefix(e.Reply, []byte("<html>")) {
		return nil, nil, nil
	}
	return d, r, nil
}

// named is a document by its name.
func (c *Contract) named(name string) (*dropshottest.Document, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.others[name]; d != nil {
		return d, nil
	}
	d, err := dropshottest.Open(name)
	if err == nil {
		c.others[name] = d
	}
	return d, err
}

// majorOf is the version of the document that a header names.
func majorOf(version string) (int, bool) {
	head, _, _ := strings.Cut(version, ".")
	major, err := strconv.Atoi(head)
	return max(major, 1), err == nil && major <= latest && strings.Count(version, ".") >= 2
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
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		t.Errorf("%v", err)
		return
	}
	s.Observe = func(e sim.Exchange) {
		if err := c.Check(e); err != nil {
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
		if err := c.Check(e); err != nil && len(wrong) < 10 {
			wrong = append(wrong, err)
		}
	}
	return n, errors.Join(wrong...)
}
