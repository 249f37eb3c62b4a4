package propolis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"github.com/sledctl/sledctl/sim/serve"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/smf"
	"github.com/sledctl/sledctl/sim/world/zones"
)

// A machine that comes from another server. The two servers speak to each other
// by transactions, never of both sleds at once: the source takes the migration
// on and gives its spec; the target makes the machine and writes down what will
// become of the migration; the source writes down the same. What comes between,
// as the end of a server, is found in settle.go.

// StepMigrate and a stage, as vm-migrate-RamPush, are how long that stage takes.
//
// Guess no-time-for-migrations: a migration takes no time on the simulated sled; which phases of
// source and target are at the same time; a source that is cut off at the very end either goes on
// or is destroyed, as the target fails or runs.
// Check: `sledctl propolis monitor` on both sides of one
const StepMigrate = "vm-migrate-"

// noConnection is what a target reports about a source that it cannot reach, or that
// does not take the migration on: it has been upgraded to a websocket before
// that is decided.
var errNoConnection = errors.New("couldn't establish migration connection to source instance")

// migrateIn answers PUT /instance for a machine that comes from another server:
// when the machine's parts exist, before its memory moves.
func (c *call) migrateIn(request ensureRequest) (answer, error) {
	var ready time.Time
	err := c.update(func(tx *world.Tx, p *world.Process) error {
		if err := free(tx, p); err != nil {
			return err
		}
		ready = tx.Now.Add(tx.Latency(StepCreate) + tx.Slower(world.FaultSlowCreate, c.words(p)...))
		tx.Begin(request.Init.Value.Migration)
		p.VM = &world.VM{Properties: request.Properties, Ready: ready, In: &world.Migration{ID: request.Init.Value.Migration}}
		publish(p.VM, p.VM.In, "Migrating", "Sync", tx.Now)
		return nil
	})
	if err != nil {
		return answer{}, err
	}
	failed := c.bringIn(request, ready)
	if errors.Is(failed, errGone) {
		return answer{}, failed
	}
	if err := c.until(ready); err != nil {
		return answer{}, err
	}
	if failed != nil {
		return answer{}, internal("VM initialization failed: " + failed.Error())
	}
	return answer{http.StatusCreated, map[string]any{"migrate": map[string]any{"migration_id": request.Init.Value.Migration}}}, nil
}

// bringIn does all that is done before the answer, whether or not somebody waits
// for it: handlers run detached. Its error is why the machine could not be made.
func (c *call) bringIn(request ensureRequest, ready time.Time) error {
	c.r = c.r.WithContext(context.WithoutCancel(c.r.Context()))
	source, name, err := c.source(request.Init.Value.Source)
	if err == nil {
		err = c.update(func(_ *world.Tx, p *world.Process) error { p.VM.In.Peer = name; return nil })
	}
	var offer offer
	if err == nil {
		offer, err = source.takeOn(c, request.Init.Value.Migration)
	}
	if err != nil {
		return c.give(err, "", ready)
	}
	failed := c.receive(request, offer, ready)
	_ = source.settle(c.r.Context()) // the source learns the result now
	return failed
}

// give ends a machine that cannot be made, publishing a phase before if there
// is one to.
func (c *call) give(why error, phase string, at time.Time) error {
	err := c.update(func(_ *world.Tx, p *world.Process) error {
		if !p.VM.In.End.IsZero() {
			return nil // it has been found out already
		}
		if phase != "" {
			publish(p.VM, p.VM.In, "Migrating", phase, at)
		}
		publish(p.VM, nil, "Failed", "", at)
		p.VM.In.End, p.VM.In.Fails = at, true
		return nil
	})
	return errors.Join(err, why)
}

// publish writes down the next publication of a machine: its state, and the
// phase of a migration.
func publish(vm *world.VM, m *world.Migration, state, phase string, at time.Time) {
	next := uint64(1)
	if n := len(vm.Timeline); n > 0 {
		next = vm.Timeline[n-1].Generation + 1
	}
	vm.Timeline = append(vm.Timeline, world.Timepoint{State: state, Generation: next, From: at})
	if m != nil {
		m.Phases = append(m.Phases, world.Timepoint{State: phase, Generation: next, From: at})
	}
}

// source finds the server that listens on an address of another sled.
func (c *call) source(at netip.AddrPort) (*server, string, error) {
	near, err := c.world.Neighbours(c.r.Context())
	if err != nil {
		return nil, "", err
	}
	for _, n := range near {
		var pid int
		err := n.World.View(c.r.Context(), func(tx *world.Tx) (err error) { pid, err = zones.Listener(tx, at); return err })
		if err == nil {
			return &server{world: n.World, pid: pid}, n.Name, nil
		}
		if !errors.Is(err, syscall.EHOSTUNREACH) {
			break
		}
	}
	return nil, "", errNoConnection
}

// offer is what a source gives a target before its memory moves.
type offer struct {
	spec     []byte // without an SMBIOS part and a vsock device, which version 1 does not have
	console  world.Console
	from     time.Time          // when the source can begin
	troubles map[string]trouble // by stage
}

// trouble is what happens to a stage.
type trouble struct {
	slower time.Duration
	fails  string // why; empty: it does not
}

// takeOn is the source's part of Sync.
func (s *server) takeOn(target *call, id string) (offer, error) {
	ctx := target.r.Context()
	peer, err := s.world.NameOf(ctx, target.world)
	if err != nil || peer == "" {
		return offer{}, errors.Join(err, errNoConnection)
	}
	var o offer
	err = s.world.Update(ctx, func(tx *world.Tx) error {
		p := find(tx, s.pid)
		if p == nil || !active(tx, p) || !(queue{tx, p.VM}).migrates() {
			return errNoConnection
		}
		if (queue{tx, p.VM}).phase() == starting {
			smf.Abort(tx, s.pid, "thread 'tokio-runtime-worker' panicked: internal error: entered unreachable code\n")
			return errNoConnection
		}
		tx.Begin(id)
		p.VM.Out = &world.Migration{ID: id, Peer: peer}
		from := tx.Now
		if last := p.VM.Timeline[len(p.VM.Timeline)-1].From; last.After(from) {
			from = last // a reboot ends first
		}
		publish(p.VM, p.VM.Out, "Migrating", "Sync", from)
		publish(p.VM, p.VM.Out, "Migrating", "Sync", from)
		o = offer{spec: p.VM.Spec, console: p.VM.Console.Clone(), from: from, troubles: troubles(tx, p)}
		if why := immovable(p.VM.Spec); why != "" {
			t := o.troubles["Device"]
			t.fails = why
			o.troubles["Device"] = t
		}
		return nil
	})
	return o, err
}

// troubles takes the faults that await the stages on one side. Their words are
// "propolis", the zone, "migrate" and the stage.
func troubles(tx *world.Tx, p *world.Process) map[string]trouble {
	all := map[string]trouble{}
	for _, s := range stages() {
		words := []string{"propolis", p.Zone, "migrate", s.name}
		t := trouble{slower: tx.Slower(world.FaultSlowMigrate, words...)}
		if f := tx.TakeFault(words, world.FaultFail, world.FaultDrop); f != nil {
			t.fails = "a fault of the simulated sled"
			if f.Name == world.FaultDrop {
				t.fails = "connection reset by peer"
			}
		}
		if t != (trouble{}) {
			all[s.name] = t
		}
	}
	return all
}

// immovable says which component has no form in which it could be sent.
func immovable(spec []byte) string {
	var has instanceSpec
	_ = json.Unmarshal(spec, &has) // our own
	for _, key := range sortedKeys(has.Components) {
		if kind := has.Components[key].Type; kind == "pci_pci_bridge" || kind == "virtio_socket" {
			return fmt.Sprintf("device %s cannot be migrated", key)
		}
	}
	return ""
}

// receive makes the machine from what the source gave, and writes down what
// will become of the migration.
func (c *call) receive(request ensureRequest, o offer, ready time.Time) error {
	spec, m, err := amended(c.newest, o.spec, request.Init.Value.Replacements)
	if err != nil {
		if err := c.update(func(tx *world.Tx, p *world.Process) error {
			publish(p.VM, p.VM.In, "Migrating", "Sync", tx.Now)
			return nil
		}); err != nil {
			return err
		}
		return c.give(fmt.Errorf("instance specs incompatible: instance specs incompatible: %w", err), "Error", ready)
	}
	if o.from.After(ready) {
		ready = o.from
	}
	var failed error
	err = c.update(func(tx *world.Tx, p *world.Process) error {
		if failed = errNoConnection; !p.VM.In.End.IsZero() {
			return nil // the source's sled is gone
		}
		publish(p.VM, p.VM.In, "Migrating", "Sync", tx.Now)
		links, err := create(tx, p, m)
		if errors.Is(err, errPanic) {
			smf.Exit(tx, p.PID)
			return errGone
		}
		if failed = err; failed != nil {
			return nil
		}
		p.VM.Spec, p.VM.Links, p.VM.Console = serve.JSON(spec), links, o.console
		p.VM.In.Stages, p.VM.In.Fails = course(tx, ready, o.troubles, troubles(tx, p))
		p.VM.In.Listen, p.VM.In.From = p.Listen, o.console.End()
		playIn(p.VM)
		return nil
	})
	if err != nil || failed == nil {
		return err
	}
	return c.give(failed, "", ready)
}
