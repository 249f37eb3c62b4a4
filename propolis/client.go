package propolis

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/propolis/spec"
)

// Client asks one server. Nothing is bounded in time but by the context. Errors
// of every method: an *Error for what the server refused; what dialling gave
// (syscall.ECONNREFUSED where nobody listens); ErrReply; the context's.
type Client struct {
	Host   host.Host
	Target Target
}

// The paths that are used.
const (
	pathInstance = "/instance"
	pathSpec     = "/instance/spec"
	pathState    = "/instance/state"
	pathMonitor  = "/instance/state-monitor"
	pathNMI      = "/instance/nmi"
)

// Get asks for the machine, live or over. There may be none: ErrNoInstance.
func (c Client) Get(ctx context.Context) (Instance, error) {
	data, err := c.do(ctx, http.MethodGet, pathInstance, nil)
	if err != nil {
		return Instance{}, err
	}
	i, err := decodeInstance(data)
	if err != nil {
		return i, c.replyError(http.MethodGet, pathInstance, err)
	}
	return i, c.Target.asked(c.Target.is(i))
}

// Spec asks for the machine and its spec. There may be none: ErrNoInstance.
func (c Client) Spec(ctx context.Context) (Description, error) {
	data, err := c.do(ctx, http.MethodGet, pathSpec, nil)
	if err != nil {
		return Description{}, err
	}
	d, err := decodeDescription(data)
	if err != nil {
		return d, c.replyError(http.MethodGet, pathSpec, err)
	}
	return d, c.Target.asked(c.Target.is(d.Instance))
}

// Ensure makes the machine, which takes seconds per 10 GiB of its memory; it does
// not run yet. A machine that is there, whichever, is ErrAlreadyInitialized.
// When the context ends, the server goes on. What the server's version cannot
// express is a *spec.VersionError.
func (c Client) Ensure(ctx context.Context, r spec.EnsureRequest) error {
	_, err := c.speak(ctx, http.MethodPut, pathInstance, r.Needs(), r.Encode)
	return err
}

// PutState asks for Run, Stop or Reboot. That it was accepted says that it is
// queued, or was not needed: see Await. Errors: ErrForbidden, ErrNoInstance.
func (c Client) PutState(ctx context.Context, state string) error {
	body, err := stateBody(state)
	if err != nil {
		return err
	}
	_, err = c.do(ctx, http.MethodPut, pathState, body)
	return err
}

func stateBody(state string) ([]byte, error) {
	if !slices.Contains([]string{Run, Stop, Reboot}, state) {
		return nil, fmt.Errorf("state %q cannot be asked for: want %s, %s or %s", state, Run, Stop, Reboot)
	}
	return json.Marshal(state)
}

// Snapshot takes a snapshot of a disk on Crucible, whose backend has the disk's
// id as its key. A disk of any other kind is an *Error.
func (c Client) Snapshot(ctx context.Context, disk, snapshot uuid.UUID) error {
	_, err := c.do(ctx, http.MethodPost, "/instance/disk/"+disk.String()+"/snapshot/"+snapshot.String(), nil)
	return err
}

// Monitor waits until the machine has come to a generation, and gives its state
// then, which may be a later one. Beyond the last generation it is
// ErrNoInstance, except after Failed, where it can wait forever.
func (c Client) Monitor(ctx context.Context, generation uint64) (Status, error) {
	p, err := c.Poll(ctx, generation)
	if err != nil {
		return Status{}, err
	}
	return c.Polled(ctx, p)
}

// Await waits until the machine is in one of the states, at generation from or
// later. A final state that is not among them is a *StateError. If Destroyed
// is wanted, a server that no longer has a VM will do.
func (c Client) Await(ctx context.Context, from uint64, states ...string) (Status, error) {
	target, err := c.Target.at(ctx, c.Host)
	if err != nil {
		return Status{}, err
	}
	c.Target = target
	for {
		s, err := c.Monitor(ctx, from)
		switch {
		case isNoInstance(err) && slices.Contains(states, StateDestroyed):
			return Status{Generation: from, State: StateDestroyed}, nil
		case err != nil:
			return Status{}, err
		case slices.Contains(states, s.State):
			return s, nil
		case Final(s.State):
			return s, &StateError{State: s.State, Generation: s.Generation, Wanted: states}
		}
		from = s.Generation + 1
	}
}
