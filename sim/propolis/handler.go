// Package propolis is the HTTP side of a simulated propolis-server: the same
// requests, replies, errors and state machine as oxidecomputer/propolis at API
// version 5.0.0. It keeps no state of its own: everything is in the process of
// the simulated sled, so that a server survives the program that answers for it.
package propolis

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/sim/serve"
	"github.com/sledctl/sledctl/sim/world"
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

// latest is the newest version that the server speaks
// (crates/propolis-server-api in oxidecomputer/propolis).
func latest() version { return version{Major: 5} }

type server struct {
	world *world.World
	pid   int
}

// call is one request.
type call struct {
	*server
	r       *http.Request
	version version
	id      string // of the request
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

// errGone is returned when the process is gone: nobody answers.
var errGone = errors.New("the server is gone")

// route is a path and its methods. A segment of the form {name} takes any.
type route struct {
	path    string
	methods []method
}

type method struct {
	name   string
	answer func(*call) (answer, error)
	from   uint64 // first major version that has it
}

func routes() []route {
	return []route{
		{"/instance", []method{{http.MethodPut, (*call).ensure, 0}, {http.MethodGet, (*call).get, 0}}},
		{"/instance/spec", []method{{http.MethodGet, (*call).spec, 0}}},
		{"/instance/state", []method{{http.MethodPut, (*call).putState, 0}}},
		{"/instance/state-monitor", []method{{http.MethodGet, (*call).monitor, 0}}},
		{"/instance/migration-status", []method{{http.MethodGet, (*call).migrationStatus, 0}}},
		{"/instance/migrate/{migration_id}/start", []method{{http.MethodGet, (*call).migrateStart, 0}}},
		{"/instance/serial", []method{{http.MethodGet, (*call).serial, 0}}},
		{"/instance/serial/history", []method{{http.MethodGet, (*call).serialHistory, 0}}},
		{"/instance/vnc", []method{{http.MethodGet, (*call).vnc, 0}}},
		{"/instance/nmi", []method{{http.MethodPost, (*call).nmi, 0}}},
		{"/instance/disk/{id}/snapshot/{snapshot_id}", []method{{http.MethodPost, (*call).disk, 0}}},
		{"/instance/disk/{id}/status", []method{{http.MethodGet, (*call).disk, 1}}},
		{"/instance/disk/{id}/vcr", []method{{http.MethodPut, (*call).disk, 0}}},
	}
}

// ServeHTTP checks the version before it looks at the path, as dropshot does
// (dropshot/src/versioning.rs, router.rs).
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{server: s, r: r, id: uuid.NewString()}
	w.Header().Set("x-request-id", c.id)
	handle, err := c.dispatch(w)
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
	if err := c.readVersion(); err != nil {
		return nil, err
	}
	for _, route := range routes() {
		params, ok := serve.Match(route.path, c.r.URL.EscapedPath())
		if !ok {
			continue
		}
		c.params = params
		i := slices.IndexFunc(route.methods, func(m method) bool {
			return m.name == c.r.Method && !c.version.Before(m.from)
		})
		if i >= 0 {
			return route.methods[i].answer, c.readBody()
		}
		var allowed bool
		for _, m := range route.methods {
			if !c.version.Before(m.from) {
				w.Header().Add("Allow", m.name)
				allowed = true
			}
		}
		if allowed {
			return nil, &fault{status: http.StatusMethodNotAllowed, message: "Method Not Allowed"}
		}
	}
	return nil, &fault{status: http.StatusNotFound, message: "Not Found"}
}

func (c *call) readVersion() error {
	v, complaint := serve.Spoken(c.r.Header, latest())
	if complaint != "" {
		return badRequest("%s", complaint)
	}
	c.version = v
	return nil
}

// readBody reads what the methods with a body take: JSON of at most 1 MiB.
func (c *call) readBody() error {
	data, err := io.ReadAll(http.MaxBytesReader(nil, c.r.Body, maxBody))
	if err != nil {
		return badRequest("request body exceeded maximum size of %d bytes", maxBody)
	}
	c.body = data
	takes := c.r.Method == http.MethodPut || strings.HasSuffix(c.r.URL.Path, "/state-monitor")
	kind := c.r.Header.Get("Content-Type")
	if kind == "" || !takes {
		return nil
	}
	media, _, err := mime.ParseMediaType(kind)
	switch {
	case err != nil:
		return badRequest("unsupported content-type: %q", kind)
	case media != "application/json":
		return badRequest(`expected content type "application/json", got %q`, media)
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
	return c.world.View(c.r.Context(), func(tx *world.Tx) error {
		p := find(tx, c.pid)
		if p == nil {
			return errGone
		}
		return fn(tx, p)
	})
}

// update is view in a transaction that may change them.
func (c *call) update(fn func(*world.Tx, *world.Process) error) error {
	return c.world.Update(c.r.Context(), func(tx *world.Tx) error {
		p := find(tx, c.pid)
		if p == nil {
			return errGone
		}
		return fn(tx, p)
	})
}

func find(tx *world.Tx, pid int) *world.Process {
	i := slices.IndexFunc(tx.State.Processes, func(p *world.Process) bool { return p.PID == pid })
	if i < 0 {
		return nil
	}
	return tx.State.Processes[i]
}
