package propolis

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/serve"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/smf"
)

// The steps that take time. Nobody published how long they take, so that they
// take none unless the sled is told otherwise.
//
// Guess no-time-for-states: creating, starting, stopping and rebooting a machine take no time on
// the simulated sled.
// Check: `sledctl trace` of an ensure
const (
	StepCreate = "vm-create" // PUT /instance, until the parts exist
	StepStart  = "vm-start"  // from Starting to Running
	StepStop   = "vm-stop"   // from Stopping to Destroyed
	StepReboot = "vm-reboot" // from Rebooting to Running
)

// ensure answers PUT /instance. The body is checked before anything else; a
// machine that exists is not compared with it. What will become of
// the machine is written down at once, so that a client that goes away changes
// nothing.
func (c *call) ensure() (answer, error) {
	request, err := decodeEnsure(c.body, c.version)
	if err != nil {
		return answer{}, err
	}
	spec := request.Init.Value.Spec
	if spec == nil {
		return c.migrateIn(request)
	}
	m, err := convert(spec)
	if err != nil {
		return answer{}, badRequest("failed to generate internal instance spec: %s", err)
	}
	if spec.Board.CPUID == nil {
		spec.Board.CPUID = hostCPUID()
	}
	var ready time.Time
	err = c.update(func(tx *world.Tx, p *world.Process) error {
		if err := free(tx, p); err != nil {
			return err
		}
		ready = tx.Now.Add(tx.Latency(StepCreate) + tx.Slower(world.FaultSlowCreate, c.words(p)...))
		err := begin(tx, p, request, m, ready)
		if errors.Is(err, errPanic) {
			smf.Abort(tx, p.PID, fmt.Sprintf("thread 'tokio-runtime-worker' %s\n", err))
			return errGone
		}
		return err
	})
	var failed *fault
	if err != nil && !(errors.As(err, &failed) && failed.status == http.StatusInternalServerError) {
		return answer{}, err
	}
	if err = cmp.Or(c.until(ready), err); err != nil {
		return answer{}, err
	}
	return answer{http.StatusCreated, map[string]any{"migrate": nil}}, nil
}

// free refuses a server that has a machine, also one that is being made.
func free(tx *world.Tx, p *world.Process) error {
	if vm := p.VM; vm != nil && (tx.Now.Before(vm.Ready) || !finished(world.At(vm.Timeline, tx.Now).State)) {
		return &fault{status: http.StatusConflict, code: "AlreadyInitialized", message: "instance already initialized"}
	}
	return nil
}

// begin writes the machine down with its future: Creating, and Failed if it
// cannot be made.
func begin(tx *world.Tx, p *world.Process, request ensureRequest, m machine, ready time.Time) error {
	p.VM = &world.VM{Properties: request.Properties, Spec: serve.JSON(request.Init.Value.Spec), Ready: ready}
	p.VM.Timeline = []world.Timepoint{{State: "Creating", Generation: 1, From: tx.Now}}
	links, err := create(tx, p, m)
	if errors.Is(err, errPanic) {
		return err
	}
	if err != nil {
		p.VM.Timeline = append(p.VM.Timeline, world.Timepoint{State: "Failed", Generation: 2, From: ready})
		return internal("VM initialization failed: " + err.Error())
	}
	p.VM.Links = links
	return nil
}

// until waits for a moment, or until the client is gone.
func (c *call) until(moment time.Time) error {
	timer := time.NewTimer(time.Until(moment))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-c.r.Context().Done():
		return c.r.Context().Err()
	}
}

// log writes the line of a request that failed inside into the service's log:
// the only place that gives the reason (dropshot's "request completed").
func (c *call) log(f *fault) {
	line := map[string]any{
		"msg": "request completed", "v": 0, "name": "propolis-server", "level": 30, "time": world.Now().Format(time.RFC3339Nano),
		"pid": c.pid, "req_id": c.id, "method": c.r.Method, "uri": c.r.URL.Path, "response_code": "500",
		"error_message_internal": f.cause, "error_message_external": f.message,
	}
	data, _ := json.Marshal(line)
	// The answer does not depend on the log, and the client may be gone.
	_ = c.world.Update(context.WithoutCancel(c.r.Context()), func(tx *world.Tx) error {
		p := find(tx, c.pid)
		if p == nil {
			return nil
		}
		return appendTo(tx.Files, tx.ZonePathOf(p.Zone, logName(p.FMRI)), append(data, '\n'))
	})
}

func appendTo(files host.Files, name string, data []byte) error {
	f, err := files.Open(name, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return files.Append(name, data)
}
