// Package napi is a simulated networking API of Triton (sdc-napi): NICs, and as
// much of networks, addresses and tags as these need, with the server's checks,
// its texts, and the races of its store. It keeps nothing of its own: what it
// knows is in the world of the sled that it is near.
package napi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/serve"
	"github.com/sledctl/sledctl/sim/world"
)

// Handler answers for the world's NAPI. If there is none, or a fault says so, the
// connection is broken off.
func Handler(w *world.World) http.Handler { return &server{w} }

type server struct{ world *world.World }

// call is one request.
type call struct {
	*server
	r      *http.Request
	era    era
	params map[string]string
	body   []byte
}

// answer is what is sent back.
type answer struct {
	status int
	etag   string
	allow  string
	body   any // nil: none
}

// fault is an answer that is an error.
type fault struct {
	status  int
	Code    string       `json:"code,omitempty"`
	Message string       `json:"message"`
	Errors  []fieldFault `json:"errors,omitempty"`
	Network string       `json:"network_uuid,omitempty"` // of one that is full
}

// Error is the message.
func (f *fault) Error() string { return f.Message }

// fieldFault is what is wrong with a parameter. Field is a list where they are
// not known.
type fieldFault struct {
	Type    string   `json:"type,omitempty"`
	ID      string   `json:"id,omitempty"`
	Field   any      `json:"field"`
	Code    string   `json:"code"`
	Message string   `json:"message"`
	Invalid []string `json:"invalid,omitempty"`
}

func notFound(format string, args ...any) *fault {
	return &fault{status: http.StatusNotFound, Code: "ResourceNotFound", Message: fmt.Sprintf(format, args...)}
}

func invalid(errs ...fieldFault) *fault {
	f := &fault{status: http.StatusUnprocessableEntity, Code: "InvalidParameters", Message: "Invalid parameters", Errors: errs}
	if !slices.ContainsFunc(errs, func(e fieldFault) bool { return e.Code != "MissingParameter" }) {
		f.Message = "Missing parameters"
	}
	return f
}

func wrong(field, format string, args ...any) fieldFault {
	return fieldFault{Field: field, Code: "InvalidParameter", Message: fmt.Sprintf(format, args...)}
}

// strange are parameters that the server does not know.
func strange(names []string) fieldFault {
	return fieldFault{Field: names, Code: "UnknownParameters", Message: "Unknown parameters: " + strings.Join(names, ", ")}
}

func missing(field, message string) fieldFault {
	return fieldFault{Field: field, Code: "MissingParameter", Message: message}
}

// route is a path and who answers for it. A segment of the form {name} takes any.
type route struct {
	path    string
	methods []method
	only    func(era) bool // nil: every era has it
	always  bool           // it answers while the server starts
}

type method struct {
	name   string
	answer func(*call) (answer, error)
}

func get(a func(*call) (answer, error)) []method {
	return []method{{http.MethodGet, a}, {http.MethodHead, a}}
}

func routes() []route {
	post := func(a func(*call) (answer, error)) method { return method{http.MethodPost, a} }
	return []route{
		{path: "/ping", methods: get((*call).ping), always: true},
		{path: "/nics", methods: append(get((*call).listNICs), post((*call).createNIC))},
		{path: "/nics/{mac}", methods: append(get((*call).getNIC), method{http.MethodPut, (*call).updateNIC}, method{http.MethodDelete, (*call).deleteNIC})},
		{path: "/search/nics", methods: get((*call).listNICs), only: func(e era) bool { return e.search }},
		{path: "/search/ips", methods: get((*call).searchIPs)[:1]},
		{path: "/nic_tags", methods: append(get(listed(tags, printTag)), post((*call).createTag))},
		{path: "/nic_tags/{tag}", methods: get((*call).getTag)},
		{path: "/networks", methods: append(get(listed(networks, printNetwork)), post((*call).createNetwork))},
		{path: "/networks/{network}", methods: append(get((*call).getNetwork), method{http.MethodPut, (*call).updateNetwork})},
		{path: "/networks/{network}/nics", methods: []method{post((*call).createNIC)}},
		{path: "/networks/{network}/ips/{ip}", methods: get((*call).getIP)},
		{path: "/network_pools", methods: get((*call).nothing)},
		{path: "/network_pools/{pool}", methods: get(unknown("network pool"))},
		{path: "/aggregations", methods: get((*call).nothing)},
		{path: "/aggregations/{aggregation}", methods: get(unknown("aggregation"))},
		{path: "/manage/gc", methods: get((*call).collect)},
		{path: "/fabrics/{owner}/vlans", methods: []method{post((*call).createVLAN)}},
		{path: "/fabrics/{owner}/vlans/{vlan}/networks", methods: []method{post((*call).createNetwork)}},
	}
}

// errGone is a server that does not answer.
var errGone = errors.New("the server is gone")

// ServeHTTP finds who answers, and lets faults have their way with it.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	disturbed, err := s.disturb(r)
	var a answer
	if err == nil {
		a, err = s.answer(r, body)
		err = errors.Join(err, s.afterwards(r.Context(), r, disturbed))
	}
	f, isFault := errors.AsType[*fault](err)
	switch {
	case isFault:
		a = answer{status: f.status, body: f, allow: a.allow}
	case err != nil:
		panic(http.ErrAbortHandler)
	}
	write(w, a, disturbed)
}

func (s *server) answer(r *http.Request, body []byte) (answer, error) {
	c := &call{server: s, r: r, body: body}
	var starting bool
	err := s.view(r.Context(), func(tx *world.Tx, n *world.NAPI) (err error) {
		starting = tx.Now.Before(n.Ready)
		c.era, err = eraOf(n.Era)
		return err
	})
	if err != nil {
		return answer{}, err
	}
	for _, route := range routes() {
		params, ok := serve.MatchAll(route.path, r.URL.Path)
		if !ok || route.only != nil && !route.only(c.era) {
			continue
		}
		c.params = params
		i := slices.IndexFunc(route.methods, func(m method) bool { return m.name == r.Method })
		switch {
		case i < 0:
			var allowed []string
			for _, m := range route.methods {
				allowed = append(allowed, m.name)
			}
			return answer{allow: strings.Join(allowed, ", ")}, &fault{status: http.StatusMethodNotAllowed, Code: "MethodNotAllowedError", Message: r.Method + " is not allowed"}
		case starting && !route.always:
			return answer{}, &fault{status: http.StatusServiceUnavailable, Code: "ServiceUnavailableError", Message: "Server is still initializing"}
		case c.era.deaf && r.Method != http.MethodGet && r.Method != http.MethodHead && strings.Contains(r.UserAgent(), "net-agent"):
			return answer{status: http.StatusOK}, nil
		}
		return route.methods[i].answer(c)
	}
	return answer{}, notFound("%s does not exist", r.URL.Path)
}

// view shows what the server keeps, and update lets it be changed.
func (s *server) view(ctx context.Context, fn func(*world.Tx, *world.NAPI) error) error {
	return s.world.View(ctx, func(tx *world.Tx) error { return present(tx, fn) })
}

func (s *server) update(ctx context.Context, fn func(*world.Tx, *world.NAPI) error) error {
	return s.world.Update(ctx, func(tx *world.Tx) error { return present(tx, fn) })
}

func present(tx *world.Tx, fn func(*world.Tx, *world.NAPI) error) error {
	if tx.State.NAPI == nil {
		return errGone
	}
	tx.TouchAround()
	return fn(tx, tx.State.NAPI)
}

func write(w http.ResponseWriter, a answer, disturbed *world.Fault) {
	if a.etag != "" {
		w.Header().Set("Etag", a.etag)
	}
	if a.allow != "" {
		w.Header().Set("Allow", a.allow)
	}
	var data []byte
	if a.body != nil {
		data = serve.JSON(a.body)
	}
	if disturbed != nil {
		a.status, data = mangle(disturbed, a.status, data)
	}
	if data == nil {
		w.WriteHeader(a.status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(a.status)
	_, _ = w.Write(data) // a client that has left does not read it
}

func (c *call) ping() (answer, error) {
	status := "OK"
	err := c.view(c.r.Context(), func(tx *world.Tx, n *world.NAPI) error {
		if tx.Now.Before(n.Ready) {
			status = "initializing"
		}
		return nil
	})
	body := map[string]any{
		"config":  map[string]bool{"fabrics_enabled": true, "subnet_alloc_enabled": false},
		"healthy": status == "OK", "services": map[string]string{"moray": "online"}, "status": status,
	}
	return answer{status: http.StatusOK, body: body}, err
}

// nothing is a list of what there is none of here.
func (c *call) nothing() (answer, error) { return answer{status: http.StatusOK, body: []int{}}, nil }

// unknown is one of those.
func unknown(kind string) func(*call) (answer, error) {
	return func(*call) (answer, error) { return answer{}, notFound("%s not found", kind) }
}

// collect frees the server's memory.
//
// Guess napi-words-for-gc: what a NAPI answers after its garbage collection; nothing depends on it.
// Check: `curl -i NAPI/manage/gc`
func (c *call) collect() (answer, error) {
	return answer{status: http.StatusOK, body: struct{}{}}, nil
}
