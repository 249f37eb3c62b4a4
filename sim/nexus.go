package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/sledctl/sledctl/sim/nexus"
	"github.com/sledctl/sledctl/sim/world"
)

// NexusOptions say which control plane the sled has near it.
type NexusOptions struct {
	Address string   // HOST:PORT
	Era     string   // see NexusEras
	Sleds   []string // where their agents answer: unix:/NAME or tcp:HOST:PORT
	Later   bool     // it answers a doorbell first, and asks the sled then
	Token   string   // that it shows the agents; empty: none
}

// NexusEras are the names of the eras.
func NexusEras() []string { return nexus.Eras() }

// NexusVM is what the control plane knows of a VM, and by what it came to.
type NexusVM = world.NexusChange

// InitNexus puts a control plane near the sled. One that exists is
// upgraded, and keeps what it knows of VMs.
func (s *Sled) InitNexus(ctx context.Context, o NexusOptions) error {
	made, err := nexus.New(o.Address, o.Era, o.Sleds)
	if err != nil {
		return err
	}
	made.Later, made.Token = o.Later, o.Token
	return s.world.Update(ctx, func(tx *world.Tx) error {
		if old := tx.State.Nexus; old != nil {
			made.VMs, made.Seq, made.News = old.VMs, old.Seq, old.News
		}
		tx.State.Nexus = made
		return nil
	})
}

// ErrNoNexus is a sled without a control plane near it.
var ErrNoNexus = errors.New("no control plane is near the simulated sled")

// plane is the control plane as it works in this process.
func (s *Sled) plane() nexus.Plane {
	dial := s.Agent
	if dial == nil {
		dial = dialAgent
	}
	return nexus.Plane{World: s.world, Dial: dial, Go: func(do func(context.Context)) { s.left.Go(func() { do(s.ctx) }) }}
}

func dialAgent(ctx context.Context, address string) (net.Conn, error) {
	network, name, _ := strings.Cut(address, ":")
	if network != "unix" && network != "tcp" {
		return nil, fmt.Errorf("address %q: want unix:/NAME or tcp:HOST:PORT", address)
	}
	var d net.Dialer
	return d.DialContext(ctx, network, name)
}

// hasNexus is ErrNoNexus without a control plane, else the address where it answers.
func (s *Sled) hasNexus(ctx context.Context) (address string, err error) {
	err = s.world.View(ctx, func(tx *world.Tx) error {
		if tx.State.Nexus == nil {
			return ErrNoNexus
		}
		address = tx.State.Nexus.Address
		return nil
	})
	return address, err
}

// NexusVMs are what the control plane knows of VMs, by their ids. Errors:
// ErrNoNexus.
func (s *Sled) NexusVMs(ctx context.Context) (all []NexusVM, err error) {
	err = s.world.View(ctx, func(tx *world.Tx) error {
		if tx.State.Nexus == nil {
			return ErrNoNexus
		}
		all = known(tx.State.Nexus)
		return nil
	})
	return all, err
}

// known is the last that is kept of each VM.
func known(n *world.Nexus) (all []NexusVM) {
	last := map[string]*world.NexusChange{}
	for _, c := range n.News {
		last[c.ID] = c
	}
	for _, id := range slices.Sorted(maps.Keys(n.VMs)) {
		c := NexusVM{ID: id, Time: n.VMs[id].Updated, NexusVM: *n.VMs[id]}
		if last[id] != nil {
			c = *last[id]
		}
		all = append(all, c)
	}
	return all
}

// SweepNexus has the control plane ask for all VMs, as its instance watcher does
// every 30 s. Errors: ErrNoNexus.
func (s *Sled) SweepNexus(ctx context.Context) error {
	if _, err := s.hasNexus(ctx); err != nil {
		return err
	}
	return s.plane().Sweep(ctx)
}

// WatchNexus is the control plane's instance watcher: it sweeps until ctx ends,
// and reports what the control plane knows, and all that it learns later. Errors:
// ErrNoNexus; those of tell.
func (s *Sled) WatchNexus(ctx context.Context, tell func(NexusVM) error) error {
	if _, err := s.hasNexus(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.left.Go(func() { _ = s.plane().Watch(ctx) })
	var seq uint64
	for first := true; ; first = false {
		var news []NexusVM
		err := s.world.Wait(ctx, func(tx *world.Tx) bool {
			n := tx.State.Nexus
			switch {
			case n == nil:
				return false
			case first:
				news = known(n)
			default:
				for _, c := range n.News {
					if c.Seq > seq {
						news = append(news, *c)
					}
				}
			}
			seq = n.Seq
			return first || len(news) > 0
		})
		if err != nil {
			return err
		}
		for _, c := range news {
			if err := tell(c); err != nil {
				return err
			}
		}
	}
}

// ServeNexus listens where the control plane answers, and has it sweep, until ctx
// ends. Ready is called with the address as soon as it listens. Errors:
// ErrNoNexus.
func (s *Sled) ServeNexus(ctx context.Context, ready func(address string)) error {
	address, err := s.hasNexus(ctx)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	return serveOn(ctx, l, s.plane(), ready)
}

func serveOn(ctx context.Context, l net.Listener, answer http.Handler, ready func(address string)) error {
	server := &http.Server{Handler: answer, ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	ready(l.Addr().String())
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
