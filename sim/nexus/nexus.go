// Package nexus is a simulated control plane of Oxide's (omicron's nexus), as far
// as sleds tell it of VMs: its internal API answers the upcall, the doorbell or
// both (handler.go), sleds make themselves known to it (sleds.go), it asks sleds for the states of VMs and judges what comes of
// it (ask.go), and sweeps all that it knows as its instance watcher does
// (Sweep). It keeps nothing of its own: what it knows is in the world of the
// sled that it is near.
package nexus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sledctl/sledctl/sim/serve"
	"github.com/sledctl/sledctl/sim/world"
)

// The eras: how it can learn about a VM. The second and third are not
// published but as a plan (omicron#10290).
const (
	EraUpcall   = "upcall"   // of today: the upcall, whose body it believes
	EraBoth     = "both"     // the next release: the doorbell, too; an upcall is a doorbell
	EraDoorbell = "doorbell" // the one after: without the upcall
)

// Eras are the names of all.
func Eras() []string { return []string{EraUpcall, EraBoth, EraDoorbell} }

// era is what a control plane of it does.
type era struct {
	newest           serve.Version // of its internal API
	upcall, doorbell bool
	believes         bool // what is in an upcall's body
}

func eraOf(name string) (era, error) {
	switch name {
	case EraUpcall:
		return era{newest: serve.Version{Major: 1}, upcall: true, believes: true}, nil
	case EraBoth:
		return era{newest: serve.Version{Major: 2}, upcall: true, doorbell: true}, nil
	case EraDoorbell:
		return era{newest: serve.Version{Major: 2}, doorbell: true}, nil
	}
	return era{}, fmt.Errorf("no era %q: %s", name, strings.Join(Eras(), ", "))
}

// New is a control plane that knows no VM. The sleds are where their agents
// answer: unix:/NAME or tcp:HOST:PORT.
func New(address, eraName string, sleds []string) (*world.Nexus, error) {
	if _, err := eraOf(eraName); err != nil {
		return nil, err
	}
	if len(sleds) == 0 {
		return nil, errors.New("a control plane without sleds")
	}
	return &world.Nexus{Address: address, Era: eraName, Sleds: sleds, VMs: map[string]*world.NexusVM{}}, nil
}

// Plane is what a control plane works with.
type Plane struct {
	World *world.World
	// Dial opens a connection to the agent of a sled.
	Dial func(ctx context.Context, sled string) (net.Conn, error)
	// Observe is told what agents were asked for, and answered; may be nil.
	Observe func(Sent)
	// Go runs what outlives the request that it comes from, until ctx ends.
	Go func(func(context.Context))
}

var _ http.Handler = Plane{}

// errGone is a control plane that does not answer.
var errGone = errors.New("the control plane is gone")

// view shows what it keeps, and update lets it be changed.
func (p Plane) view(ctx context.Context, fn func(*world.Tx, *world.Nexus) error) error {
	return p.World.View(ctx, func(tx *world.Tx) error { return present(tx, fn) })
}

func (p Plane) update(ctx context.Context, fn func(*world.Tx, *world.Nexus) error) error {
	return p.World.Update(ctx, func(tx *world.Tx) error { return present(tx, fn) })
}

func present(tx *world.Tx, fn func(*world.Tx, *world.Nexus) error) error {
	if tx.State.Nexus == nil {
		return errGone
	}
	tx.TouchAround()
	return fn(tx, tx.State.Nexus)
}

// Period is how often the instance watcher looks, and abreast how many VMs it
// asks for at once (omicron nexus/src/app/background/tasks/instance_watcher.rs).
const (
	Period  = 30 * time.Second
	abreast = 16
)

// Sweep asks the sleds for every VM that has not ended, once.
func (p Plane) Sweep(ctx context.Context) error {
	var ids []string
	err := p.view(ctx, func(_ *world.Tx, n *world.Nexus) error {
		for _, id := range slices.Sorted(maps.Keys(n.VMs)) {
			if !ended(n.VMs[id].State) {
				ids = append(ids, id)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	turn := make(chan struct{}, abreast)
	for _, id := range ids {
		turn <- struct{}{}
		all.Go(func() {
			defer func() { <-turn }()
			_ = p.pull(ctx, id, "sweep") // the result is noted with the VM
		})
	}
	all.Wait()
	return ctx.Err()
}

// Watch sweeps at once, and then every Period, until ctx ends.
func (p Plane) Watch(ctx context.Context) error {
	tick := time.NewTicker(Period)
	defer tick.Stop()
	for {
		if err := p.Sweep(ctx); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
