package sim

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/sledctl/sledctl/sim/napi"
	"github.com/sledctl/sledctl/sim/world"
)

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
			UUID: tx.UUID(), Name: "admin", Subnet: "10.99.99.0/24", Start: "10.99.99.38", End: "10.99.99.250", Gateway: "10.99.99.1",
			Resolvers: []string{"10.99.99.11"}, Tag: "admin", MTU: 1500,
		}}
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
	if _, err := s.NAPIAddress(ctx); err != nil {
		return 0, nil, err
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://napi"+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	near := &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
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
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	return serveOn(ctx, l, napi.Handler(s.world), ready)
}
