package napi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/peer/exchange"
)

// Client asks one server. Errors of every method: an *Error for what the server
// refused; ErrReply; host.ErrTransient where nobody answers, or the server is
// starting; the context's.
type Client struct {
	Host   host.Host
	Server Server
	// Again says how long to wait before the n-th repetition (from 0) of a
	// question that failed with err, and whether to. Nil: never. Writes are not
	// repeated: whether one was done is not known.
	Again func(n int, err error) (time.Duration, bool)
}

// perRequest bounds one request: a list of a large data centre takes NAPI
// seconds.
const perRequest = 30 * time.Second

// maxReply bounds an answer in bytes. A record is below 2 KiB, with many routes
// 8, and a page has at most 1000.
const maxReply = 16 << 20

const pathNICs = "/nics"

func pathNIC(mac string) string { return pathNICs + "/" + bare(mac) }

// Get reads one record. There may be none: ErrNoNIC.
func (c Client) Get(ctx context.Context, mac string) (Record, error) {
	var record Record
	mac, err := ParseMAC(mac)
	if err != nil {
		return record, err
	}
	err = c.again(ctx, func() error {
		record, err = c.record(c.do(ctx, http.MethodGet, pathNIC(mac), "", nil))(http.MethodGet, mac)
		return err
	})
	return record, err
}

// Update changes a record, and gives what it is then. With an etag only that
// version is changed: ErrChanged. A server says nothing of fields that it does
// not know: *IgnoredError.
func (c Client) Update(ctx context.Context, mac, etag string, change Change) (Record, error) {
	mac, err := ParseMAC(mac)
	if err != nil {
		return Record{}, err
	}
	r, err := c.record(c.do(ctx, http.MethodPut, pathNIC(mac), etag, change.body()))(http.MethodPut, mac)
	if err != nil {
		return Record{}, err
	}
	for _, f := range change.fields(r.NIC) {
		if f.asked != f.got {
			return r, &IgnoredError{MAC: mac, Field: f.name, Asked: f.asked, Got: f.got}
		}
	}
	return r, nil
}

// Delete removes a record; a missing one counts as removed. With an etag, Delete removes
// only that version: another is ErrChanged.
func (c Client) Delete(ctx context.Context, mac, etag string) error {
	mac, err := ParseMAC(mac)
	if err != nil {
		return err
	}
	r, err := c.do(ctx, http.MethodDelete, pathNIC(mac), etag, nil)
	switch {
	case errors.Is(err, ErrNoNIC):
		return nil
	case err == nil && r.Status != http.StatusNoContent:
		return fmt.Errorf("DELETE %s: %w: status %d", pathNIC(mac), ErrReply, r.Status)
	}
	return err
}

// record reads the answer that is one record.
func (c Client) record(r exchange.Reply, err error) func(method, mac string) (Record, error) {
	return func(method, mac string) (Record, error) {
		if err != nil {
			return Record{}, err
		}
		n, err := decodeNIC(r.Body, mac)
		return Record{NIC: n, Etag: r.Header.Get("Etag")}, replyError(method, pathNIC(mac), err)
	}
}

// body is the change as it is sent. Without check_owner a record whose VM has
// changed hands could not be changed (TRITON-1652).
func (c Change) body() []byte {
	body := map[string]any{"check_owner": false}
	for _, f := range c.fields(NIC{}) {
		body[f.name] = f.asked
	}
	data, _ := json.Marshal(body) // texts and a bool always can be
	return data
}

// headers of a request, as they are sent and explained. None may hold
// "net-agent": servers of 2014 answer that with nothing (AGENT-741).
func headers(etag string, body []byte) []string {
	var all []string
	if etag != "" {
		all = append(all, "If-Match: "+etag) // without quotes, as the server writes it
	}
	if body != nil {
		all = append(all, "Content-Type: application/json")
	}
	return all
}

// do sends one request. What is no success is an error.
func (c Client) do(ctx context.Context, method, path, etag string, body []byte) (exchange.Reply, error) {
	r, err := http.NewRequest(method, c.Server.url(path), bytes.NewReader(body))
	if err != nil {
		return exchange.Reply{}, err
	}
	r.Header.Set("User-Agent", "sledctl")
	r.Header.Set("Accept", "application/json")
	for _, line := range headers(etag, body) {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	limited, release := context.WithTimeout(ctx, perRequest)
	defer release()
	reply, err := exchange.Send(limited, c.Host, r, maxReply)
	switch {
	case errors.Is(err, exchange.ErrReply):
		err = fmt.Errorf("%w: %w", ErrReply, err)
	case err != nil && ctx.Err() == nil && transport(err):
		err = fmt.Errorf("%w: %w", host.ErrTransient, err)
	}
	if err != nil {
		return exchange.Reply{}, fmt.Errorf("NAPI at %s: %s %s: %w", r.URL.Host, method, path, err)
	}
	if reply.Status < 200 || reply.Status > 299 {
		return exchange.Reply{}, fmt.Errorf("NAPI at %s: %w", r.URL.Host, decodeError(method, path, reply.Status, reply.Body))
	}
	return reply, nil
}

// transport says whether nobody answered: the next time somebody may.
func transport(err error) bool {
	var unreached net.Error
	return errors.As(err, &unreached) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EHOSTUNREACH)
}

// again asks until there is an answer that repeating would not change.
func (c Client) again(ctx context.Context, ask func() error) error {
	for n := 0; ; n++ {
		err := ask()
		if err == nil || c.Again == nil || !errors.Is(err, host.ErrTransient) {
			return err
		}
		wait, more := c.Again(n, err)
		if !more {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return cmp.Or(context.Cause(ctx), err)
		}
	}
}

func replyError(method, path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w: %w", method, path, ErrReply, err)
}
