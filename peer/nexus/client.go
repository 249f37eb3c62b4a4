// Package nexus tells a control plane which sled this is (sled.go), and that the state of a VM
// has changed. There are two ways. The doorbell says only whose: the control plane comes and gets
// the state. The older upcall carries the state in its body, whose form is that
// of Nexus' internal API 1.0.0 forever (omicron#10290).
package nexus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/peer/dropshot"
)

// The versions of Nexus' internal API that know the one way and the other. The
// first stays as it is.
//
// Guess doorbell-of-version-two: the control plane's doorbell is `POST /vmms/{id}/doorbell`,
// without a body, in version 2.0.0 of Nexus' internal API; none of it is published, only that it
// will have no body (omicron#10290).
// Check: ring it, once there is one
const (
	versionUpcall   = "1.0.0"
	versionDoorbell = "2.0.0"
)

// maxReply bounds an answer, in bytes: one without content, or an error.
const maxReply = 64 << 10

// Client tells one control plane.
type Client struct {
	Host host.Host
	URL  *url.URL // http; its path, if any, comes before that of each request
}

// Ring says that the state of a VM has changed. Errors: ErrNoDoorbell; those
// that Retryable tells apart.
func (c Client) Ring(ctx context.Context, propolisID uuid.UUID) error {
	err := c.send(ctx, http.MethodPost, "/vmms/"+propolisID.String()+"/doorbell", versionDoorbell, nil)
	if e, ok := errors.AsType[*dropshot.Refusal](err); ok && without(*e) {
		return fmt.Errorf("%w: %w", ErrNoDoorbell, err)
	}
	return err
}

// Put says what a VM's state is now: state is a SledVmmState. A state that is
// older than what the control plane knows changes nothing there, and is no
// error (cpapi_instances_put of omicron's nexus).
func (c Client) Put(ctx context.Context, propolisID uuid.UUID, state json.RawMessage) error {
	return c.send(ctx, http.MethodPut, "/vmms/"+propolisID.String(), versionUpcall, state)
}

// Guess answers-without-a-body: a control plane answers a doorbell or an upcall without a body; any
// other answer of 2xx comes from something else, and the control plane is notified again.
// Check: put a proxy in between that is down
func (c Client) send(ctx context.Context, method, path, version string, body []byte) error {
	reply, err := c.exchange(ctx, method, path, version, body)
	if err == nil && len(reply) > 0 {
		return fmt.Errorf("%s %s: %d bytes came where a control plane answers with none: it is something else that listens at %s", method, path, len(reply), c.URL.Host)
	}
	return err
}

func (c Client) exchange(ctx context.Context, method, path, version string, body []byte) ([]byte, error) {
	to := *c.URL
	to.Path = strings.TrimSuffix(to.Path, "/") + path
	return dropshot.Send(ctx, c.Host, dropshot.Request{Method: method, URL: &to, Version: version, Body: body, Limit: maxReply})
}

// ErrNoDoorbell is a control plane that knows only the upcall.
var ErrNoDoorbell = errors.New("this control plane has no doorbell")

// without says whether a doorbell was refused because there is none: the path
// is unknown, which is told without a code and unlike a VM that is, or the
// version is newer than any that the server speaks (dropshot/src/versioning.rs).
func without(e dropshot.Refusal) bool {
	switch e.Status {
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return e.Code == ""
	case http.StatusBadRequest:
		return strings.Contains(e.Message, "API version")
	}
	return false
}

// Retryable says whether the same may succeed later: whatever kept an answer from
// coming, and every 5xx, as Nexus answers what is transient with one
// (omicron#3238). All else is final: what was refused once is refused again.
func Retryable(err error) bool {
	e, answered := errors.AsType[*dropshot.Refusal](err)
	return err != nil && (!answered || e.Status >= 500)
}

// Pauses between attempts: from the first, twice as long each time, up to the
// longest, as omicron's sled agent waits (omicron sled-agent/src/instance.rs).
const (
	FirstPause   = 250 * time.Millisecond
	LongestPause = 3 * time.Minute
)

// Backoff is how long to wait after so many attempts, at least one, that failed.
// It lies within half of its length around what the attempts ask for; draw, from
// 0 to below 1, says where, so that sleds do not come at once.
func Backoff(attempts int, draw float64) time.Duration {
	pause := LongestPause
	if shift := max(attempts, 1) - 1; shift < 32 && FirstPause<<shift < LongestPause {
		pause = FirstPause << shift
	}
	return pause/2 + time.Duration(draw*float64(pause))
}
