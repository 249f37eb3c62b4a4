package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Sled is what runs the VMs. Agent is one.
type Sled interface {
	// Runs lists every VM of the fleet on the sled.
	Runs(ctx context.Context) ([]Run, error)
	// Start gives a run to the sled and has it run. It is a *PassedError if the sled has had
	// its generation, or a higher one.
	Start(ctx context.Context, r Run, document json.RawMessage) error
	// Arrive gives a run to the sled that comes from another one, and has it come. Asked again, it
	// changes nothing. It is a *PassedError as Start is, and a *RefusedError if the run cannot come here.
	Arrive(ctx context.Context, r Run, document json.RawMessage, from Origin) error
	// Fate is what is still known of a run that is not here any longer.
	Fate(ctx context.Context, r Run) (Fate, error)
	// Address is where the Propolis of a run listens, ADDRESS:PORT; empty: it does not yet.
	Address(ctx context.Context, r Run) (string, error)
	// Stop has the VM of a run end.
	Stop(ctx context.Context, r Run) error
	// Remove removes what is left of a run, its VM too.
	Remove(ctx context.Context, r Run) error
	// Changes reports each change of a VM, by its Propolis id, until the context ends, or the sled reports no
	// more. What changed before it has begun need not be reported.
	Changes(ctx context.Context, begun func(), changed func(propolis string)) error
	// Answers is no error if the sled answers.
	Answers(ctx context.Context) error
	// Capacity is what the sled can hold.
	Capacity(ctx context.Context) (Capacity, error)
}

// Capacity is what a sled can hold.
type Capacity struct {
	CPUs   int
	Memory uint64
	Pools  map[string]uint64 // the bytes that are free
}

// PassedError is a generation that the sled does not take.
type PassedError struct{ Message string }

// Error is what the sled says.
func (e *PassedError) Error() string { return e.Message }

// RefusedError is a run that the sled does not let come, whenever it is asked.
type RefusedError struct{ Message string }

// Error is what the sled says.
func (e *RefusedError) Error() string { return e.Message }

// Agent is the agent of a sled, as docs/agent.md describes it.
type Agent struct {
	http  http.Client
	base  string
	token string
}

// DialFunc opens a connection.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// NewAgent is the agent at unix:/NAME or http://HOST:PORT. A token, if there is one, lets in.
func NewAgent(address, token string) (*Agent, error) {
	a := &Agent{base: strings.TrimSuffix(address, "/"), token: token}
	if name, unix := strings.CutPrefix(address, "unix:"); unix && strings.HasPrefix(name, "/") {
		a.base = "http://sled"
		a.http.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", name)
		}}
		return a, nil
	}
	if at, err := url.Parse(address); err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" {
		return nil, fmt.Errorf("agent %q: want unix:/NAME, http://HOST:PORT or https://HOST:PORT", address)
	}
	return a, nil
}

const (
	apiVersion = "48.0.0"
	keeper     = "fleet"
	maxAnswer  = 64 << 20
	codePassed = "GENERATION_PASSED"
)

// answerError is an answer that is an error.
type answerError struct {
	status        int
	code, message string
}

func (e *answerError) Error() string {
	return fmt.Sprintf("the agent answers %d %s: %s", e.status, e.code, e.message)
}

func (a *Agent) do(ctx context.Context, method, path string, body, answer any) error {
	reply, err := a.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	got, err := io.ReadAll(io.LimitReader(reply.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("ask the agent: %w", err)
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(got, answer); err != nil {
		return fmt.Errorf("%s %s: not the answer of an agent: %w", method, path, err)
	}
	return nil
}

// send is do without what is answered, which the caller reads and closes.
func (a *Agent) send(ctx context.Context, method, path string, body any) (*http.Response, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	if body == nil {
		data = nil
	}
	r, err := http.NewRequestWithContext(ctx, method, a.base+path, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	r.Header.Set("api-version", apiVersion)
	r.Header.Set("sledctl-keeper", keeper)
	if body != nil {
		r.Header.Set("content-type", "application/json")
	}
	if a.token != "" {
		r.Header.Set("Authorization", "Bearer "+a.token)
	}
	reply, err := a.http.Do(r)
	if err != nil {
		return nil, fmt.Errorf("ask the agent: %w", err)
	}
	if reply.StatusCode/100 == 2 {
		return reply, nil
	}
	defer reply.Body.Close()
	got, err := io.ReadAll(io.LimitReader(reply.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("ask the agent: %w", err)
	}
	var said struct {
		Code    string `json:"error_code"`
		Message string `json:"message"`
	}
	_ = json.Unmarshal(got, &said) // an answer without a message is told by its status
	return nil, &answerError{reply.StatusCode, said.Code, said.Message}
}

// Runs lists the instances that the fleet keeps.
func (a *Agent) Runs(ctx context.Context) ([]Run, error) {
	var all struct {
		Items *[]struct {
			ID         string `json:"id"`
			PropolisID string `json:"propolis_id"`
			State      string `json:"state"`
			Keeper     string `json:"keeper"`
			Generation int64  `json:"keeper_generation"`
			Migration  *struct {
				ID    string `json:"id"`
				State string `json:"state"`
			} `json:"migration"`
		} `json:"items"`
	}
	if err := a.do(ctx, http.MethodGet, "/instances", nil, &all); err != nil {
		return nil, err
	}
	if all.Items == nil {
		return nil, errors.New("GET /instances: not the answer of an agent: it lacks items")
	}
	runs := []Run{}
	for _, i := range *all.Items {
		if i.Keeper != keeper {
			continue
		}
		r := Run{VM: i.ID, Generation: i.Generation, PropolisID: i.PropolisID, State: i.State}
		if i.Migration != nil {
			r.Migration, r.Moves = i.Migration.ID, Moves(i.Migration.State)
		} else if r.State != stateRunning {
			if err := a.expected(ctx, &r); err != nil {
				return nil, err
			}
		}
		runs = append(runs, r)
	}
	return runs, nil
}

// Start registers a run, and has it run.
func (a *Agent) Start(ctx context.Context, r Run, document json.RawMessage) error {
	err := a.do(ctx, http.MethodPut, "/instances/"+r.VM+"/registration", map[string]any{
		"propolis_id": r.PropolisID, "generation": r.Generation, "document": document,
	}, nil)
	if refused := new(answerError); errors.As(err, &refused) && (refused.code == codePassed || refused.status == http.StatusGone) { // gone: this run has ended
		return &PassedError{refused.message}
	}
	if err != nil {
		return err
	}
	return a.state(ctx, r, "running")
}

// expected finds out whether a run that does not run is one that is only registered to arrive.
func (a *Agent) expected(ctx context.Context, r *Run) error {
	now, known, err := a.vmm(ctx, *r)
	if err == nil && known && now.In != nil && now.In.State == migrationPending {
		r.Migration, r.Moves = now.In.ID, Expected
	}
	return err
}

// The states of migrations.
const (
	migrationPending   = "pending"
	migrationCompleted = "completed"
)

// vmmState is what the agent knows of a VM by its Propolis id.
type vmmState struct {
	In  *vmmMigration `json:"migration_in"`
	Out *vmmMigration `json:"migration_out"`
}

type vmmMigration struct {
	ID    string `json:"migration_id"`
	State string `json:"state"`
}

func (a *Agent) vmm(ctx context.Context, r Run) (now vmmState, known bool, err error) {
	err = a.do(ctx, http.MethodGet, "/vmms/"+r.PropolisID+"/state", nil, &now)
	if gone := new(answerError); errors.As(err, &gone) && gone.status == http.StatusNotFound {
		return now, false, nil
	}
	return now, err == nil, err
}

// Arrive registers a run as one that migrates, and asks for its migration.
func (a *Agent) Arrive(ctx context.Context, r Run, document json.RawMessage, from Origin) error {
	err := a.do(ctx, http.MethodPut, "/instances/"+r.VM+"/registration", map[string]any{
		"propolis_id": r.PropolisID, "generation": r.Generation, "document": document, "migration_id": from.Migration,
	}, nil)
	if err == nil {
		err = a.do(ctx, http.MethodPut, "/vmms/"+r.PropolisID+"/state", map[string]any{
			"state": map[string]any{"type": "migration_target", "value": map[string]string{"src_propolis_addr": from.Address}},
		}, nil)
	}
	refused := new(answerError)
	switch {
	case !errors.As(err, &refused):
		return err
	case refused.code == codePassed || refused.status == http.StatusGone:
		return &PassedError{refused.message}
	case slices.Contains([]int{http.StatusBadRequest, http.StatusForbidden, http.StatusConflict}, refused.status):
		return &RefusedError{refused.message}
	}
	return err
}

// Fate asks for the tombstone of a run.
func (a *Agent) Fate(ctx context.Context, r Run) (Fate, error) {
	var all struct {
		Items []struct {
			PropolisID string `json:"propolis_id"`
			Reason     string `json:"reason"`
		} `json:"items"`
	}
	if err := a.do(ctx, http.MethodGet, "/vmms?instance_id="+r.VM, nil, &all); err != nil {
		return Fate{}, err
	}
	var f Fate
	for _, i := range all.Items {
		if i.PropolisID == r.PropolisID {
			f.Reason = i.Reason
		}
	}
	now, _, err := a.vmm(ctx, r)
	f.Left = now.Out != nil && now.Out.State == migrationCompleted
	return f, err
}

// Address asks for the control address of a run.
func (a *Agent) Address(ctx context.Context, r Run) (string, error) {
	var one struct {
		Instance struct {
			Address string `json:"propolis_addr"`
		} `json:"instance"`
	}
	err := a.do(ctx, http.MethodGet, "/instances/"+r.VM, nil, &one)
	if gone := new(answerError); errors.As(err, &gone) && gone.status == http.StatusNotFound {
		return "", nil
	}
	return one.Instance.Address, err
}

// Stop asks for the end of a VM.
func (a *Agent) Stop(ctx context.Context, r Run) error { return a.state(ctx, r, "stopped") }

func (a *Agent) state(ctx context.Context, r Run, state string) error {
	return a.do(ctx, http.MethodPut, "/vmms/"+r.PropolisID+"/state", map[string]any{"state": map[string]string{"type": state}}, nil)
}

// Remove removes a VM. One that does not exist is removed.
func (a *Agent) Remove(ctx context.Context, r Run) error {
	err := a.do(ctx, http.MethodDelete, "/vmms/"+r.PropolisID, nil, nil)
	if gone := new(answerError); errors.As(err, &gone) && (gone.status == http.StatusNotFound || gone.status == http.StatusGone) {
		return nil
	}
	return err
}

// Capacity is the sled's, with what the fleet's own VMs take: the scheduler subtracts those.
func (a *Agent) Capacity(ctx context.Context) (Capacity, error) {
	var seen struct {
		CPUs   int `json:"cpus"`
		Memory struct {
			Total uint64 `json:"total"`
		} `json:"memory"`
		Pools []struct {
			Name  string `json:"name"`
			Free  uint64 `json:"free"`
			Zones bool   `json:"zones"`
		} `json:"pools"`
		Instances []struct {
			Keeper string `json:"keeper"`
			CPUs   int    `json:"cpus"`
			Memory uint64 `json:"memory"`
		} `json:"instances"`
	}
	if err := a.do(ctx, http.MethodGet, "/capacity", nil, &seen); err != nil {
		return Capacity{}, err
	}
	c := Capacity{CPUs: seen.CPUs, Memory: seen.Memory.Total, Pools: map[string]uint64{}}
	for _, i := range seen.Instances {
		if i.Keeper != keeper { // what others have on the sled, the scheduler does not know
			c.Memory -= min(c.Memory, i.Memory)
		}
	}
	for _, p := range seen.Pools {
		if p.Zones {
			c.Pools[p.Name] = p.Free
		}
	}
	return c, nil
}

// patience bounds one request of the node.
const patience = 30 * time.Second
