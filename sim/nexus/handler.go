package nexus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/sim/serve"
	"github.com/sledctl/sledctl/sim/world"
)

// maxBody bounds a body, in bytes.
const maxBody = 1 << 20

// fault is an answer that is an error.
type fault struct {
	status        int
	code, message string
}

// Error is the message.
func (f *fault) Error() string { return f.message }

// notFound is a VM that is not in the database.
func notFound(id string) *fault {
	return &fault{status: http.StatusNotFound, code: "ObjectNotFound", message: fmt.Sprintf(`not found: vmm with id "%s"`, id)}
}

// call is one request.
type call struct {
	Plane
	era
	later bool
	r     *http.Request
	id    string // of the VM, or the sled
	body  []byte
}

// ServeHTTP answers for the internal API. If there is no control plane, or a
// fault says so, the connection is broken off.
func (p Plane) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	request := uuid.NewString()
	w.Header().Set("x-request-id", request)
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err == nil {
		var done bool
		if done, err = p.disturb(w, r); done {
			return
		}
	}
	if err == nil {
		err = p.answer(w, r, body)
	}
	f, refused := errors.AsType[*fault](err)
	switch {
	case refused:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(f.status)
		_, _ = w.Write(serve.JSON(serve.Refusal{RequestID: request, Code: f.code, Message: f.message}))
	case err != nil:
		panic(http.ErrAbortHandler)
	case r.Method != http.MethodGet:
		w.WriteHeader(http.StatusNoContent)
	}
}

// answer finds who answers: the version is looked at before the path
// (dropshot/src/router.rs).
//
// Guess not-found-for-unknown-method: a control plane answers 404 also to a method that there is
// not, and to what is no id.
// Check: `curl -X DELETE NEXUS/vmms/x`
func (p Plane) answer(w http.ResponseWriter, r *http.Request, body []byte) error {
	c := call{Plane: p, r: r, body: body}
	err := p.view(r.Context(), func(_ *world.Tx, n *world.Nexus) (err error) {
		c.era, err = eraOf(n.Era)
		c.later = n.Later
		return err
	})
	if err != nil {
		return err
	}
	version, complaint := serve.Spoken(r.Header, c.newest)
	if complaint != "" {
		return &fault{status: http.StatusBadRequest, message: complaint}
	}
	params, known := serve.Match("/vmms/{id}", r.URL.Path)
	known = known && r.Method == http.MethodPut && c.upcall
	do := call.put
	if at, rings := serve.Match("/vmms/{id}/doorbell", r.URL.Path); rings {
		params, known, do = at, r.Method == http.MethodPost && c.doorbell && !version.Before(2), call.ring
	}
	if at, sled := serve.Match("/sled-agents/{id}", r.URL.Path); sled {
		params, known = at, r.Method == http.MethodGet || r.Method == http.MethodPost
		do = func(c call) error { return c.sled(w) }
	}
	if _, err := uuid.Parse(params["id"]); !known || err != nil {
		return &fault{status: http.StatusNotFound, message: "Not Found"}
	}
	c.id = params["id"]
	return do(c)
}

// put is the upcall. What is in its body counts only to a control plane of today.
func (c call) put() error {
	if !c.believes {
		return c.ask("upcall")
	}
	v, err := parse(c.body)
	if err != nil {
		return &fault{status: http.StatusBadRequest, message: "unable to parse JSON body: " + err.Error()}
	}
	_, sleds, err := c.home(c.r.Context(), c.id)
	if err != nil {
		return err
	}
	sled := sleds[0]
	for _, other := range sleds[1:] { // with one sled, nobody is asked
		if _, check := c.get(c.r.Context(), other, c.id); check == checkOK {
			sled = other
		}
	}
	return c.take(c.r.Context(), c.id, "upcall", sled, v, checkOK)
}

// ring is the doorbell.
func (c call) ring() error {
	if len(c.body) > 0 {
		return &fault{status: http.StatusBadRequest, message: "a doorbell has no body"}
	}
	return c.ask("doorbell")
}

// ask asks for the VM: at once, or when who rang has his answer.
func (c call) ask(by string) error {
	if !c.later {
		return c.pull(c.r.Context(), c.id, by)
	}
	c.Go(func(ctx context.Context) { _ = c.pull(ctx, c.id, by) })
	return nil
}

// disturb does what happens to a request; done: it was answered by that.
func (p Plane) disturb(w http.ResponseWriter, r *http.Request) (done bool, err error) {
	if armed, err := p.World.FaultsArmed(r.Context()); err != nil || !armed {
		return false, err
	}
	var f *world.Fault
	err = p.update(r.Context(), func(tx *world.Tx, _ *world.Nexus) error {
		f = tx.TakeFault([]string{"nexus", r.Method, r.URL.Path}, world.FaultNexusDown, world.FaultNexusFail, world.FaultNexusHTML,
			world.FaultNexusTalk, world.FaultNexusSlow, world.FaultNexusLost)
		return nil
	})
	if err != nil || f == nil {
		return false, err
	}
	switch f.Name {
	case world.FaultNexusFail:
		codes := map[int]string{http.StatusNotFound: "ObjectNotFound", http.StatusInternalServerError: "Internal", http.StatusServiceUnavailable: "ServiceNotAvailable"}
		return false, &fault{status: f.Exit, code: codes[f.Exit], message: f.Text}
	case world.FaultNexusHTML:
		_, _ = io.WriteString(w, "<html><head><title>It works!</title></head></html>\n")
	case world.FaultNexusTalk:
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_, _ = io.WriteString(conn, "SSH-2.0-OpenSSH_9.9\r\n")
			_ = conn.Close()
		}
	case world.FaultNexusLost:
		w.WriteHeader(http.StatusNoContent)
	case world.FaultNexusSlow:
		select {
		case <-time.After(f.Delay):
			return false, nil
		case <-r.Context().Done():
			return false, r.Context().Err()
		}
	default:
		return false, errGone
	}
	return true, nil
}
