package sim

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/sledctl/sledctl/sim/napi"
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
			kept := *old
			kept.Address, kept.Era, kept.Sleds, kept.Later, kept.Token = made.Address, made.Era, made.Sleds, made.Later, made.Token
			made = &kept
		}
		tx.TouchAround()
		tx.State.Nexus = made
		return nil
	})
}

// ErrNoNexus is a sled without a control plane near it.
var ErrNoNexus = errors.New("no control plane is near the simulated sled")

// plane is the control plane as it works in this process.
func (s *Sled) plane() nexus.Plane { return s.planeIn(s.world) }

func (s *Sled) planeIn(w *world.World) nexus.Plane {
	dial := s.Agent
	if dial == nil {
		dial = dialAgent
	}
	p := nexus.Plane{World: w, Dial: dial, Go: func(do func(context.Context)) { s.left.Go(func() { do(s.ctx) }) }}
	if s.Observe != nil {
		p.Observe = func(e nexus.Sent) {
			s.Observe(Exchange{Of: OfSledAgent, Method: e.Method, URI: e.URL.RequestURI(), Header: e.Request.Header, Body: e.Body, Status: e.Status, ReplyHeader: e.Header, Reply: e.Reply})
		}
	}
	return p
}

func dialAgent(ctx context.Context, address string) (net.Conn, error) {
	network, name, _ := strings.Cut(address, ":")
	return (&net.Dialer{}).DialContext(ctx, network, name)
}

// withNexus shows the control plane. Errors: ErrNoNexus.
func (s *Sled) withNexus(ctx context.Context, fn func(*world.Nexus)) error {
	return s.world.View(ctx, func(tx *world.Tx) error {
		if tx.State.Nexus == nil {
			return ErrNoNexus
		}
		fn(tx.State.Nexus)
		return nil
	})
}

// NexusVMs are what the control plane knows of VMs, by their ids. Errors:
// ErrNoNexus.
func (s *Sled) NexusVMs(ctx context.Context) (all []NexusVM, err error) {
	err = s.withNexus(ctx, func(n *world.Nexus) { all = known(n) })
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
	if err := s.withNexus(ctx, func(*world.Nexus) {}); err != nil {
		return err
	}
	return s.plane().Sweep(ctx)
}

// WatchNexus is the control plane's instance watcher: it sweeps until ctx ends,
// and reports what the control plane knows, and all that it learns later. Errors:
// ErrNoNexus; those of tell.
func (s *Sled) WatchNexus(ctx context.Context, tell func(NexusVM) error) error {
	if err := s.withNexus(ctx, func(*world.Nexus) {}); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.left.Go(func() { _ = s.plane().Watch(ctx) })
	var seq uint64
	for first := true; ; first = false {
		var news []NexusVM
		err := s.world.Wait(ctx, func(tx *world.Tx) bool {
			n := tx.State.Nexus // which nothing removes
			if first {
				news = known(n)
			}
			for _, c := range n.News {
				if !first && c.Seq > seq {
					news = append(news, *c)
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
	var address string
	if err := s.withNexus(ctx, func(n *world.Nexus) { address = n.Address }); err != nil {
		return err
	}
	return serveOn(ctx, address, s.planeHandler(s.world), ready)
}

func serveOn(ctx context.Context, address string, answer http.Handler, ready func(address string)) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: answer, ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	ready(l.Addr().String())
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// NAPIOptions say which NAPI the sled has near it.
type NAPIOptions struct {
	Address  string // HOST:PORT
	Era      string // see NAPIEras
	Checking string // "", strict or loose
	Shuffled bool
}

// NAPIEras are the names of the eras.
func NAPIEras() []string { return napi.Eras() }

// InitNAPI puts a fresh NAPI near the sled, with one network, "admin",
// 10.99.99.0/24.
func (s *Sled) InitNAPI(ctx context.Context, o NAPIOptions) error {
	if err := napi.Check(o.Era, o.Checking); err != nil {
		return err
	}
	return s.world.Update(ctx, func(tx *world.Tx) error {
		n := napi.New(o.Address, o.Era)
		n.Checking, n.Shuffled = o.Checking, o.Shuffled
		n.Tags = []*world.NAPITag{{UUID: tx.UUID(), Name: "admin", MTU: 1500}}
		n.Networks = []*world.NAPINetwork{{
			UUID: tx.UUID(), Name: "admin", Etag: napi.NewEtag(tx), Subnet: "10.99.99.0/24", Start: "10.99.99.38", End: "10.99.99.250", Gateway: "10.99.99.1",
			Resolvers: []string{"10.99.99.11"}, Tag: "admin", MTU: 1500,
		}}
		tx.TouchAround()
		tx.State.NAPI = n
		return nil
	})
}

// ErrNoNAPI is a sled without a NAPI near it.
var ErrNoNAPI = errors.New("no NAPI is near the simulated sled")

// NAPIAddress is where the NAPI answers. Errors: ErrNoNAPI.
func (s *Sled) NAPIAddress(ctx context.Context) (address string, err error) {
	err = s.world.View(ctx, func(tx *world.Tx) error {
		if tx.State.NAPI == nil {
			return ErrNoNAPI
		}
		address = tx.State.NAPI.Address
		return nil
	})
	return address, err
}

// AskNAPI asks the NAPI as somebody else does: the control plane, an operator.
func (s *Sled) AskNAPI(ctx context.Context, method, path, body string) (status int, answer []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://napi"+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	near := &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
		if _, err := s.NAPIAddress(ctx); err != nil {
			return nil, err
		}
		return s.connect(napi.Handler(s.world), nil), nil
	}}
	reply, err := near.RoundTrip(r)
	if err != nil {
		return 0, nil, err
	}
	defer reply.Body.Close()
	answer, err = io.ReadAll(reply.Body)
	return reply.StatusCode, answer, err
}

// ServeNAPI listens where the NAPI answers, until the context ends. Ready is
// called with the address as soon as it does.
func (s *Sled) ServeNAPI(ctx context.Context, ready func(address string)) error {
	address, err := s.NAPIAddress(ctx)
	if err != nil {
		return err
	}
	return serveOn(ctx, address, napi.Handler(s.world), ready)
}
