package propolis

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/sledctl/sledctl/sim/serve"
	"github.com/sledctl/sledctl/sim/world"
)

// known shows the machine of this process, also one that is over.
func (c *call) known(fn func(*world.Tx, *world.VM) (any, error)) (answer, error) {
	a := answer{status: http.StatusOK}
	err := c.view(func(tx *world.Tx, p *world.Process) (err error) {
		if p.VM == nil {
			return noInstance()
		}
		a.body, err = fn(tx, p.VM)
		return err
	})
	return a, err
}

func (c *call) get() (answer, error) {
	return c.known(func(tx *world.Tx, vm *world.VM) (any, error) {
		return map[string]any{"instance": map[string]any{
			"properties": json.RawMessage(vm.Properties), "state": world.At(vm.Timeline, tx.Now).State,
		}}, nil
	})
}

// spec answers GET /instance/spec. Old versions leave out what they cannot
// say, and version 1 wraps the spec once more.
func (c *call) spec() (answer, error) {
	return c.known(func(tx *world.Tx, vm *world.VM) (any, error) {
		out := map[string]any{"properties": json.RawMessage(vm.Properties), "state": world.At(vm.Timeline, tx.Now).State}
		if vm.Spec == nil {
			out["spec"] = map[string]any{"type": "WaitingForMigrationSource"}
			return out, nil
		}
		spec, err := speak(vm.Spec, c.version)
		out["spec"] = map[string]any{"type": "Present", "value": spec}
		return out, err
	})
}

// speak is a spec as a version has it.
func speak(stored []byte, v version) (any, error) {
	var spec map[string]json.RawMessage
	var components map[string]json.RawMessage
	if err := json.Unmarshal(stored, &spec); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(spec["components"], &components); err != nil {
		return nil, err
	}
	for key, data := range components {
		var part component
		if err := json.Unmarshal(data, &part); err != nil {
			return nil, err
		}
		if part.Type == "virtio_socket" && v.Before(3) {
			delete(components, key)
		}
	}
	spec["components"] = serve.JSON(components)
	if !v.Before(2) {
		return spec, nil
	}
	delete(spec, "smbios")
	return map[string]any{"version": "V0", "spec": spec}, nil
}

// monitor answers GET /instance/state-monitor, whose body names a generation:
// at once when the machine has come that far, with what it is then, else when
// it has. Beyond the last one the wait ends with 410, except after a machine
// that could not be made: that one's publisher stays.
func (c *call) monitor() (answer, error) {
	var gen uint64
	err := parse(c.body, func(d *decoder, v any) {
		m := d.object(v, "", "InstanceStateMonitorRequest", false, "gen")
		if d.fault == "" {
			gen = d.unsigned(m["gen"], ".gen", 64)
		}
	})
	if err != nil {
		return answer{}, err
	}
	var point world.Timepoint
	var migration map[string]any
	err = errGone
	defer c.follow()()
	waited := c.world.Wait(c.r.Context(), func(tx *world.Tx) bool {
		p := find(tx, c.pid)
		if p == nil {
			err = errGone
			return true
		}
		if p.VM == nil {
			err = noInstance()
			return true
		}
		point, migration = world.At(p.VM.Timeline, tx.Now), migrations(p.VM, tx.Now)
		reached := point.Generation >= gen
		over := finished(point.State) && len(p.VM.Timeline) > 2
		err = nil
		if !reached && over {
			err = &fault{status: http.StatusGone, code: "NoInstance",
				message: fmt.Sprintf("No instance present; will never reach generation %d", gen)}
		}
		return reached || over
	})
	switch {
	case waited != nil:
		return answer{}, waited
	case err != nil:
		return answer{}, err
	}
	return answer{http.StatusOK, map[string]any{"gen": point.Generation, "state": point.State, "migration": migration}}, nil
}

// migrations reports the latest ones in each direction.
func migrations(vm *world.VM, now time.Time) map[string]any {
	out := map[string]any{"migration_in": nil, "migration_out": nil}
	for key, m := range map[string]*world.Migration{"migration_in": vm.In, "migration_out": vm.Out} {
		if m != nil {
			out[key] = map[string]any{"id": m.ID, "state": m.At(now)}
		}
	}
	return out
}

func (c *call) migrationStatus() (answer, error) {
	return c.known(func(tx *world.Tx, vm *world.VM) (any, error) { return migrations(vm, tx.Now), nil })
}
