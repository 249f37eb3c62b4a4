package propolis

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
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
		spec := &instanceSpec{}
		err := json.Unmarshal(vm.Spec, spec)
		spec.speak(c.version)
		out["spec"] = map[string]any{"type": "Present", "value": spec}
		if c.version.Before(2) {
			old := map[string]any{"board": spec.Board, "components": spec.Components}
			out["spec"] = map[string]any{"type": "Present", "value": map[string]any{"version": "V0", "spec": old}}
		}
		return out, err
	})
}

// speak leaves out what a version cannot say, and fills in what it requires.
func (s *instanceSpec) speak(v version) {
	s.leaveOut(v)
	for key, c := range s.Components {
		if c.Type == "nvme_disk" {
			s.Components[key] = component{c.Type, writeCache(c.Body, v)}
		}
	}
}

// writeCache is an NVMe disk's body as a version has it: before 6 each disk had a
// write cache, and none said so.
func writeCache(body json.RawMessage, v version) json.RawMessage {
	const key = "has_write_cache"
	var has map[string]any
	_ = json.Unmarshal(body, &has) // our own
	switch {
	case v.Before(6):
		delete(has, key)
	case has[key] == nil: // it was asked for in an older version
		has[key] = true
	}
	return serve.JSON(has)
}

// leaveOut removes the parts that a version does not have.
func (s *instanceSpec) leaveOut(v version) {
	maps.DeleteFunc(s.Components, func(_ string, c component) bool { return c.Type == "virtio_socket" && v.Before(3) })
	if v.Before(2) {
		s.SMBIOS = nil
	}
}

// monitor answers GET /instance/state-monitor, whose body names a generation:
// at once when the machine has come that far, with what it is then, else when
// it has. Beyond the last one the wait ends with 410, except after a machine
// that could not be made: that one's publisher stays.
func (c *call) monitor() (answer, error) {
	var asked struct {
		Gen uint64 `json:"gen"`
	}
	err := decode(c.body, "InstanceStateMonitorRequest", c.version, &asked)
	if err != nil {
		return answer{}, err
	}
	defer c.follow()()
	var a map[string]any
	for comes := true; comes && err == nil; {
		if a, comes, err = c.reach(asked.Gen); comes && err == nil {
			err = c.settle(c.r.Context())
		}
	}
	return answer{http.StatusOK, a}, err
}

// reach waits until the machine has come to a generation, and says what it is then; or, earlier, until
// it has come from another server, and has to open its volumes before it is anything.
func (c *call) reach(generation uint64) (is map[string]any, arrived bool, err error) {
	err = errGone
	waited := c.world.Wait(c.r.Context(), func(tx *world.Tx) bool {
		p := find(tx, c.pid)
		switch err = errGone; {
		case p == nil:
			return true
		case p.VM == nil:
			err = noInstance()
			return true
		}
		err = nil
		if arrived = comes(p.VM, tx.Now); arrived {
			return true
		}
		point := world.At(p.VM.Timeline, tx.Now)
		is = map[string]any{"gen": point.Generation, "state": point.State, "migration": migrations(p.VM, tx.Now)}
		reached := point.Generation >= generation
		over := finished(point.State) && len(p.VM.Timeline) > 2
		if !reached && over {
			err = &fault{status: http.StatusGone, code: "NoInstance",
				message: fmt.Sprintf("No instance present; will never reach generation %d", generation)}
		}
		return reached || over
	})
	return is, arrived, cmp.Or(waited, err)
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
