package agent

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/agent/reconciler"
	"github.com/sledctl/sledctl/agent/vpcs"
	"github.com/sledctl/sledctl/illumos/naming"
)

// maxBody bounds a request's body, in bytes, as omicron's sled agent does.
const maxBody = 1 << 20

// server answers over HTTP: what is asked, from the table, which waits for
// nobody; what is to be done, work does.
type server struct {
	endpoints []endpoint
	access    Access
	table     *vmTable
	views     *views
	// reconciler takes what the control plane wants of the sled; nil: it is in none.
	reconciler *reconciler.Reconciler
	names      naming.Prefixes
	flat       bool // NICs of VPCs are put on the guest link as they are
	work       *work
	routes     *vpcs.Routes // that the control plane has sent
	logs       Logs
	logData    LogData
	following  Follow
	readers    chan struct{} // those who read logs
	// read is told that the control plane has read a VM at a generation.
	read  func(VM)
	log   *slog.Logger
	meter *meter
	draw  func() string // a new request id
}

// call is one request.
type call struct {
	*http.Request
	id      string
	version api.Version       // that it speaks; zero where none is needed
	params  map[string]string // of its path
	by      role
}

// ServeHTTP is part of http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := call{Request: r, id: s.draw()}
	answered := &told{ResponseWriter: w}
	w = answered
	w.Header().Set("x-request-id", c.id)
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	by, refused := s.access.admit(r)
	var e endpoint
	if refused == nil {
		c.by = by
		e, refused = s.route(&c)
	}
	if refused == nil {
		refused = by.may(e)
	}
	switch {
	case refused != nil:
	case e.stream != nil:
		refused = e.stream(s, w, c)
	default:
		refused = s.answer(w, c, e)
	}
	if refused != nil {
		s.refuse(w, c, refused)
	}
	s.meter.count(e, c.Method, cmp.Or(answered.status, http.StatusOK))
}

// told remembers the status of an answer; 0 is that of one which did not say.
type told struct {
	http.ResponseWriter
	status int
}

// WriteHeader is part of http.ResponseWriter.
func (t *told) WriteHeader(status int) {
	t.status = cmp.Or(t.status, status)
	t.ResponseWriter.WriteHeader(status)
}

// Unwrap is what http.ResponseController asks for.
func (t *told) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// answer sends what an endpoint gives as JSON; nothing is 204.
func (s *server) answer(w http.ResponseWriter, c call, e endpoint) *api.Error {
	answer, err := e.serve(s, c)
	if err != nil {
		return err
	}
	if answer == nil {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	data, merr := json.Marshal(answer)
	if merr != nil {
		return api.Internal(merr)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	_, _ = w.Write(data)
	return nil
}

func (s *server) refuse(w http.ResponseWriter, c call, err *api.Error) {
	if err.Cause != nil {
		s.log.Warn("request failed", "request_id", c.id, "method", c.Method, "path", c.URL.Path, "status", err.Status, "cause", err.Cause)
	}
	w.Header().Set("Content-Type", "application/json")
	if err.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	w.WriteHeader(err.Status)
	_ = json.NewEncoder(w).Encode(err.Body(c.id))
}

func (s *server) health(call) (any, *api.Error) {
	return api.Health{Status: "ok", VMs: len(s.table.List())}, nil
}

// state is what a VM is now. A final one that an operator was told is known to
// the control plane: its tombstone may go. Readers change nothing, not even that.
func (s *server) state(c call) (any, *api.Error) {
	v, err := s.find(c)
	if err != nil {
		return nil, err
	}
	if c.by == operator {
		s.read(v)
	}
	return v.wire(), nil
}

// find is the VM that a path names.
func (s *server) find(c call) (VM, *api.Error) {
	id, err := c.uuid("propolis_id")
	if err != nil {
		return VM{}, err
	}
	v, ok := s.table.Get(id)
	if !ok {
		return VM{}, api.NoSuchInstance()
	}
	return v, nil
}

// wire is a VM as the sled agent's API has it.
func (v VM) wire() *api.SledVMState {
	return &api.SledVMState{
		Runtime:     api.Runtime{State: v.State, Gen: v.Gen, TimeUpdated: v.Updated},
		MigrationIn: v.In, MigrationOut: v.Out,
	}
}

// shown is a VM as sledctl's own parts of the API have it.
func (v VM) shown() api.VM {
	return api.VM{PropolisID: v.ID, InstanceID: v.Instance, Name: v.Name, State: v.State, Reason: v.Reason, Generation: v.Gen, TimeUpdated: v.Updated}
}

// The sizes of pages of GET /vmms.
const (
	usualPage = 100
	maxPage   = 10_000
)

// list is a page of the VMs, by their ids: at most limit of them behind
// page_token, of those that have the name, the instance or the state.
func (s *server) list(c call) (any, *api.Error) {
	query := c.URL.Query()
	limit, after := usualPage, uuid.Nil
	for key, values := range query {
		value := values[len(values)-1]
		switch key {
		case "limit":
			n, err := strconv.Atoi(value)
			if err != nil || n < 1 || n > maxPage {
				return nil, api.BadRequest(fmt.Sprintf("limit %q: want a number from 1 to %d", value, maxPage))
			}
			limit = n
		case "page_token":
			id, err := uuid.Parse(value)
			if err != nil {
				return nil, api.BadRequest("page_token: want the next_page of an earlier answer")
			}
			after = id
		case "name", "instance_id", "state":
		default:
			return nil, api.BadRequest(fmt.Sprintf("query %q: want limit, page_token, name, instance_id or state", key))
		}
	}
	page := api.Page{Items: []api.VM{}}
	for _, v := range s.table.List() {
		shown := v.shown()
		wanted := func(key, is string) bool { return !query.Has(key) || query.Get(key) == is }
		if !wanted("name", shown.Name) || !wanted("instance_id", shown.InstanceID) || !wanted("state", string(shown.State)) || !later(v.ID, after) {
			continue
		}
		if len(page.Items) == limit {
			page.NextPage = page.Items[limit-1].PropolisID.String()
			break
		}
		page.Items = append(page.Items, shown)
	}
	return page, nil
}

func later(id, than uuid.UUID) bool { return bytes.Compare(id[:], than[:]) > 0 }

// patience is how long a reader of events may take for one of them.
const patience = 30 * time.Second

// events streams what VMs are and become (server-sent events, HTML 9.2): each
// with its generation as id, so that a client that continues with Last-Event-ID,
// or after=GENERATION, misses no VM's last state.
func (s *server) events(w http.ResponseWriter, c call) *api.Error {
	var only uuid.UUID
	if _, one := c.params["propolis_id"]; one {
		v, err := s.find(c)
		if err != nil {
			return err
		}
		only = v.ID
	}
	last := c.Header.Get("Last-Event-ID")
	if c.URL.Query().Has("after") {
		last = c.URL.Query().Get("after")
	}
	after, err := strconv.ParseUint(last, 10, 64)
	if last != "" && err != nil {
		return api.BadRequest(fmt.Sprintf("after %q: want a generation", last))
	}
	send, refused := s.stream(w)
	if refused != nil {
		return refused
	}
	s.meter.streams.Add(1)
	defer s.meter.streams.Add(-1)
	for v := range s.table.Follow(c.Context(), after) {
		if only != uuid.Nil && v.ID != only {
			continue
		}
		err := send(fmt.Sprintf("id: %d\nevent: vmm\n", v.Gen), v.shown())
		if err != nil || only != uuid.Nil && v.State.Final() {
			break
		}
	}
	return nil
}

// stream begins to answer with events: each is some lines, and its data.
func (s *server) stream(w http.ResponseWriter) (send func(head string, data any) error, refused *api.Error) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	out := http.NewResponseController(w)
	if err := out.Flush(); err != nil {
		return nil, api.Internal(err)
	}
	return func(head string, data any) error {
		text, err := json.Marshal(data)
		if err == nil {
			err = out.SetWriteDeadline(time.Now().Add(patience))
		}
		if err == nil {
			_, err = fmt.Fprintf(w, "%sdata: %s\n\n", head, text)
		}
		if err == nil {
			err = out.Flush()
		}
		return err
	}, nil
}

// eventStream sends server-sent events. It begins to answer with the first one: what fails
// before that is an answer of its own.
type eventStream struct {
	begin func() (func(head string, data any) error, *api.Error)
	begun func(head string, data any) error // nil: it has not
}

func (o *eventStream) send(event string, data any) error {
	if o.begun == nil {
		begun, refused := o.begin()
		if refused != nil {
			return refused
		}
		o.begun = begun
	}
	return o.begun("event: "+event+"\n", data)
}

// sendEach sends an event for each of some.
func sendEach[T any](o *eventStream, event string, all []T) error {
	for _, one := range all {
		if err := o.send(event, one); err != nil {
			return err
		}
	}
	return nil
}

// follow answers with the events that tell sends until the context of the call ends. What
// ends them earlier is the last one.
func (s *server) follow(w http.ResponseWriter, c call, tell func(*eventStream) error) *api.Error {
	s.meter.streams.Add(1)
	defer s.meter.streams.Add(-1)
	out := &eventStream{begin: func() (func(string, any) error, *api.Error) { return s.stream(w) }}
	err := tell(out)
	switch {
	case err == nil || out.begun != nil && c.Context().Err() != nil:
		return nil
	case out.begun == nil:
		return failed(err)
	}
	_ = out.send("failure", failed(err).Body(c.id))
	return nil
}

// inflight counts the requests that are being answered: an agent ends after the
// last of them, and after what is undone because of it.
type inflight struct {
	mu     sync.Mutex
	isShut bool
	inside sync.WaitGroup
}

// before counts requests on their way to a handler.
func (d *inflight) before(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !d.enter() {
			panic(http.ErrAbortHandler) // it closes the connection
		}
		defer d.inside.Done()
		h.ServeHTTP(w, r)
	})
}

func (d *inflight) enter() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.isShut {
		return false
	}
	d.inside.Add(1)
	return true
}

// drain refuses new requests, and returns when the last one has ended.
func (d *inflight) drain() {
	d.mu.Lock()
	d.isShut = true
	d.mu.Unlock()
	d.inside.Wait()
}
