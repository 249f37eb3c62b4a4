package nexus

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/sledctl/sledctl/sim/serve"
	"github.com/sledctl/sledctl/sim/world"
)

// askTime bounds a question to a sled's agent, as the clients that are generated
// for it do.
const askTime = 15 * time.Second

// agentVersion is the version of the agent's API that is asked in: the newest
// that is known here (omicron openapi/sled-agent).
const agentVersion = "48.0.0"

// The results of asking for a VM, as the instance watcher names them (omicron
// nexus/src/app/background/tasks/instance_watcher.rs); of any other status it is
// the status.
const (
	checkOK          = "success"
	checkGone        = "no_such_instance" // the sled does not know it: it has failed
	checkUnreachable = "unreachable"
	checkClient      = "client_error" // what came is no answer
)

// vmState is what an agent reports about a VM (SledVmmState).
type vmState struct {
	VM  runtime    `json:"vmm_state"`
	In  *migration `json:"migration_in"`
	Out *migration `json:"migration_out"`
}

type runtime struct {
	State   string    `json:"state"`
	Gen     uint64    `json:"gen"`
	Updated time.Time `json:"time_updated"`
}

type migration struct {
	ID      string    `json:"migration_id"`
	State   string    `json:"state"`
	Gen     uint64    `json:"gen"`
	Updated time.Time `json:"time_updated"`
}

// parse reads a state as strictly as its makers' clients do: all that is required
// is there, and words are among those that are known. What else there is, is
// passed over.
func parse(data []byte) (v vmState, err error) {
	err = json.Unmarshal(data, &v)
	known := slices.Contains([]string{"starting", "running", "stopping", "stopped", "rebooting", "migrating", "failed", "destroyed"}, v.VM.State)
	sound := known && v.VM.Gen != 0 && !v.VM.Updated.IsZero()
	for _, m := range []*migration{v.In, v.Out} {
		sound = sound && (m == nil || m.ID != "" && m.Gen != 0 && !m.Updated.IsZero() && slices.Contains([]string{"pending", "in_progress", "failed", "completed"}, m.State))
	}
	if err == nil && !sound {
		err = errors.New("a field is missing, or a word unknown")
	}
	return v, err
}

// ended says whether no other state can follow.
func ended(state string) bool { return state == "failed" || state == "destroyed" }

// get asks the agent of a sled what a VM is. The check names the result; a
// state is there if it is checkOK.
func (p Plane) get(ctx context.Context, sled, id string) (v vmState, check string) {
	reply, err := p.send(ctx, sled, http.MethodGet, "/vmms/"+id+"/state", nil)
	if err != nil {
		return v, checkUnreachable
	}
	var refusal serve.Refusal
	switch {
	case reply.Status == http.StatusOK:
		if v, err = parse(reply.Reply); err != nil {
			return v, checkClient
		}
		return v, checkOK
	case json.Unmarshal(reply.Reply, &refusal) != nil || refusal.Message == "" || refusal.RequestID == "":
		return v, checkClient // an answer that is none of the agent's
	case reply.Status == http.StatusNotFound && refusal.Code == "NO_SUCH_INSTANCE":
		return v, checkGone
	}
	return v, strconv.Itoa(reply.Status)
}

// home is what is known of a VM, and the sled that it is on: of one that is not
// known, which a real control plane has made itself, all of them.
func (p Plane) home(ctx context.Context, id string) (known world.NexusVM, sleds []string, err error) {
	err = p.view(ctx, func(_ *world.Tx, n *world.Nexus) error {
		if vm := n.VMs[id]; vm != nil {
			known, sleds = *vm, []string{vm.Sled}
			return nil
		}
		sleds = slices.Clone(n.Sleds)
		for _, id := range slices.Sorted(maps.Keys(n.Registered)) {
			if at := "tcp:" + n.Registered[id].Address; !n.Registered[id].Decommissioned && !slices.Contains(sleds, at) {
				sleds = append(sleds, at)
			}
		}
		return nil
	})
	return known, sleds, err
}

// pull asks for a VM and takes over the result. The error is what a caller that
// rang is answered; nil: it was taken over, or is nothing new.
func (p Plane) pull(ctx context.Context, id, by string) error {
	known, sleds, err := p.home(ctx, id)
	if err != nil || ended(known.State) {
		return err // its record is gone with it: each report about it is old
	}
	var refused error = notFound(id)
	for _, sled := range sleds {
		v, check := p.get(ctx, sled, id)
		switch {
		case check == checkGone && known.Sled == "":
			continue // some other sled's
		case check == checkOK || check == checkGone:
			return p.take(ctx, id, by, sled, v, check)
		}
		refused = &fault{status: http.StatusInternalServerError, code: "Internal", message: "Internal Server Error"}
		if err := p.take(ctx, id, by, sled, v, check); err != nil {
			return err
		}
	}
	return refused
}

// take takes over the result of asking for a VM. A state counts if its generation
// is above the one that is known; a VM that its sled does not know has failed, at
// a generation of our own; of all else the VM's state is nothing the worse.
func (p Plane) take(ctx context.Context, id, by, sled string, v vmState, check string) error {
	return p.update(ctx, func(tx *world.Tx, n *world.Nexus) error {
		vm := world.NexusVM{Sled: sled}
		if old := n.VMs[id]; old != nil {
			vm = *old
		} else if check != checkOK {
			return nil
		}
		switch {
		case ended(vm.State):
			return nil
		case check == checkOK && v.VM.Gen > vm.Gen:
			vm.State, vm.Gen, vm.Updated = v.VM.State, v.VM.Gen, v.VM.Updated
		case check == checkGone:
			vm.State, vm.Gen, vm.Updated = "failed", vm.Gen+1, tx.Now.UTC()
		}
		vm.Check = check
		n.Told(tx.Now.UTC(), id, by, vm)
		return nil
	})
}
