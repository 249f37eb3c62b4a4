// Package propolis is the HTTP side of a simulated propolis-server: the same
// requests, replies, errors and state machine as oxidecomputer/propolis at API
// version 6.0.0. It keeps no state of its own: everything is in the process of
// the simulated sled, so that a server survives the program that answers for it.
package propolis

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/sim/serve"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/smf"
)

// maxBody is how large a request body may be (dropshot's request_body_max_bytes
// as propolis-server sets it).
const maxBody = 1 << 20

// Handler answers for the propolis-server that runs as process pid. When the
// process is gone, or dies while it answers, the connection is broken off.
func Handler(w *world.World, pid int) http.Handler {
	return &server{world: w, pid: pid}
}

// version is one of the API.
type version = serve.Version

// latest is the newest version that the server speaks, unless a fault makes it an
// older one (crates/propolis-server-api in oxidecomputer/propolis).
func latest() version { return version{Major: 6} }

type server struct {
	world *world.World
	pid   int
}

// call is one request.
type call struct {
	*server
	r       *http.Request
	newest  version // that the server speaks
	version version // of the request
	id      string  // of the request
	faults  bool    // some are armed on the sled
	params  map[string]string
	body    []byte
}

// answer is what is sent back.
type answer struct {
	status int
	body   any // nil: none
}

// fault is an error body (dropshot's HttpErrorResponseBody). The cause is what
// only the server's log tells.
type fault struct {
	status        int
	code, message string
	cause         string
}

// Error is the message.
func (f *fault) Error() string { return f.message }

func badRequest(format string, args ...any) *fault {
	return &fault{status: http.StatusBadRequest, message: fmt.Sprintf(format, args...)}
}

func internal(cause string) *fault {
	return &fault{status: http.StatusInternalServerError, code: "Internal", message: "Internal Server Error", cause: cause}
}

func noInstance() *fault {
	return &fault{status: http.StatusFailedDependency, code: "NoInstance", message: "Server not initialized (no instance)"}
}

// notSimulated is the answer to what a real server can do and this one cannot.
func notSimulated(what string) *fault {
	return &fault{status: http.StatusNotImplemented, message: "not simulated: " + what}
}

// errGone is returned when the process is gone: nobody answers.
var errGone = errors.New("the server is gone")

// route is a method of a path, a segment of which takes any if it has the form
// {name}, from a major version on.
type route struct {
	method, path string
	answer       func(*call) (answer, error)
	from         uint64
}

func routes() []route {
	return []route{
		{http.MethodPut, "/instance", (*call).ensure, 0},
		{http.MethodGet, "/instance", (*call).get, 0},
		{http.MethodGet, "/instance/spec", (*call).spec, 0},
		{http.MethodPut, "/instance/state", (*call).putState, 0},
		{http.MethodGet, "/instance/state-monitor", (*call).monitor, 0},
		{http.MethodGet, "/instance/migration-status", (*call).migrationStatus, 0},
		{http.MethodGet, "/instance/serial", (*call).serial, 0},
		{http.MethodGet, "/instance/serial/history", (*call).serialHistory, 0},
		{http.MethodGet, "/instance/vnc", (*call).vnc, 0},
		{http.MethodPost, "/instance/nmi", (*call).nmi, 0},
		{http.MethodPost, "/instance/disk/{id}/snapshot/{snapshot_id}", (*call).disk, 0},
		{http.MethodGet, "/instance/disk/{id}/status", (*call).disk, 1},
		{http.MethodPut, "/instance/disk/{id}/vcr", (*call).disk, 0},
	}
}

// ServeHTTP checks the version before it looks at the path, as dropshot does
// (dropshot/src/versioning.rs, router.rs).
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{server: s, r: r, id: uuid.NewString()}
	w.Header().Set("x-request-id", c.id)
	var handle func(*call) (answer, error)
	err := c.age()
	if err == nil {
		handle, err = c.dispatch(w)
	}
	var a answer
	if err == nil {
		err = c.settle(r.Context())
	}
	if err == nil {
		err = c.disturbed()
	}
	if err == nil {
		a, err = handle(c)
	}
	var f *fault
	switch {
	case errors.As(err, &f):
		if f.cause != "" {
			c.log(f)
		}
		writeFault(w, c.id, f)
	case err != nil:
		panic(http.ErrAbortHandler) // the client is gone
	case a.status == http.StatusSwitchingProtocols:
		c.upgrade(w, a)
	default:
		write(w, a)
	}
}

// dispatch finds who answers.
func (c *call) dispatch(w http.ResponseWriter) (func(*call) (answer, error), error) {
	v, complaint := serve.Spoken(c.r.Header, c.newest)
	if c.version = v; complaint != "" {
		return nil, badRequest("%s", complaint)
	}
	refused := &fault{status: http.StatusNotFound, message: "Not Found"}
	for _, route := range routes() {
		params, ok := serve.Match(route.path, c.r.URL.EscapedPath())
		switch {
		case !ok || c.version.Before(route.from):
		case route.method == c.r.Method:
			c.params = params
			return route.answer, c.readBody()
		default:
			w.Header().Add("Allow", route.method)
			refused = &fault{status: http.StatusMethodNotAllowed, message: "Method Not Allowed"}
		}
	}
	return nil, refused
}

// readBody reads what the methods with a body take: JSON of at most 1 MiB.
func (c *call) readBody() error {
	data, err := io.ReadAll(http.MaxBytesReader(nil, c.r.Body, maxBody))
	if err != nil {
		return badRequest("request body exceeded maximum size of %d bytes", maxBody)
	}
	c.body = data
	if kind, _, _ := strings.Cut(c.r.Header.Get("Content-Type"), ";"); len(data) > 0 && kind != "" && kind != "application/json" {
		return badRequest(`expected content type "application/json", got %q`, kind)
	}
	return nil
}

func write(w http.ResponseWriter, a answer) {
	if a.body == nil {
		w.WriteHeader(a.status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(a.status)
	w.Write(serve.JSON(a.body))
}

func writeFault(w http.ResponseWriter, id string, f *fault) {
	write(w, answer{f.status, serve.Refusal{RequestID: id, Code: f.code, Message: f.message}})
}

// view shows the process and its VM, nil if it has none.
func (c *call) view(fn func(*world.Tx, *world.Process) error) error {
	return c.world.View(c.r.Context(), c.found(fn))
}

// update is view in a transaction that may change them.
func (c *call) update(fn func(*world.Tx, *world.Process) error) error {
	return c.world.Update(c.r.Context(), c.found(fn))
}

func (c *call) found(fn func(*world.Tx, *world.Process) error) func(*world.Tx) error {
	return func(tx *world.Tx) error {
		p := find(tx, c.pid)
		if p == nil {
			return errGone
		}
		return fn(tx, p)
	}
}

// find is the process of this number, or nil. The caller may change it.
func find(tx *world.Tx, pid int) *world.Process {
	i := slices.IndexFunc(tx.State.Processes, func(p *world.Process) bool { return p.PID == pid })
	if i < 0 {
		return nil
	}
	tx.TouchProcess(tx.State.Processes[i])
	return tx.State.Processes[i]
}

// Faults of a server. Their words are "propolis", the zone, the method, and the
// request's path in words: "propolis propolis_instance_… PUT instance state".

// words are those of a request.
func (c *call) words(p *world.Process) []string {
	return append([]string{"propolis", p.Zone, c.r.Method}, strings.Split(strings.Trim(c.r.URL.Path, "/"), "/")...)
}

// disturbed is what happens to a request before it is carried out.
func (c *call) disturbed() error {
	if !c.faults {
		return nil
	}
	names := []string{world.FaultFail, world.FaultCrash, world.FaultDrop}
	if strings.HasSuffix(c.r.URL.Path, "/serial") { // dropped once it flows
		names = names[1:2]
	}
	return c.struck(func(tx *world.Tx, p *world.Process, f *world.Fault) error {
		switch {
		case f.Name == world.FaultCrash:
			smf.Abort(tx, p.PID, cmp.Or(f.Text, "thread 'tokio-runtime-worker' panicked at a fault of the simulated sled")+"\n")
			return errGone
		case f.Name == world.FaultDrop:
			return errGone
		}
		return internal(cmp.Or(f.Text, "a fault of the simulated sled"))
	}, names...)
}

// struck takes a fault of one of these names, if one awaits the request.
func (c *call) struck(fn func(*world.Tx, *world.Process, *world.Fault) error, names ...string) error {
	armed := false
	err := c.view(func(tx *world.Tx, p *world.Process) error { armed = tx.Expects(c.words(p), names...); return nil })
	if err != nil || !armed {
		return err
	}
	return c.update(func(tx *world.Tx, p *world.Process) error {
		if f := tx.TakeFault(c.words(p), names...); f != nil { // else somebody else has taken it
			return fn(tx, p, f)
		}
		return nil
	})
}

// age finds the newest version that the server speaks, and whether any faults are
// armed: without one, nothing more is looked up for them.
func (c *call) age() error {
	c.newest = latest()
	err := c.view(func(tx *world.Tx, _ *world.Process) error { c.faults = len(tx.State.Faults) > 0; return nil })
	if err != nil || !c.faults {
		return err
	}
	return c.struck(func(_ *world.Tx, _ *world.Process, f *world.Fault) (err error) {
		major, _, _ := strings.Cut(cmp.Or(f.Text, "5"), ".")
		c.newest.Major, err = strconv.ParseUint(major, 10, 64)
		return err
	}, world.FaultOldServer)
}
