package ipadm

import (
	"testing"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/steptest"
)

func TestSteps(t *testing.T) {
	for _, zone := range []string{"", "z1"} {
		link := map[string]string{"": "v0", "z1": "v1"}[zone]
		on := func(steps ...steptest.Step) func(*testing.T) steptest.Sled {
			return func(t *testing.T) steptest.Sled {
				s := newSled(t, "none")
				steptest.Does(t, s, steps...)
				return steptest.Sled{Host: s, State: func() any {
					addresses, aerr := Addresses(t.Context(), s, zone)
					routes, rerr := Routes(t.Context(), s, zone)
					if aerr != nil || rerr != nil {
						t.Fatal(aerr, rerr)
					}
					var words []string // of the addresses: their prefixes have no members to compare
					for _, a := range addresses {
						words = append(words, a.Object+" "+a.Type+" "+a.Address.String())
					}
					return []any{words, routes}
				}}
			}
		}
		address := CreateAddress{Zone: zone, Object: link + "/control", Type: Static, Address: "10.0.0.5/24"}
		route := AddRoute{Zone: zone, Destination: "10.9.0.0/16", Gateway: "10.0.0.1", Link: link}
		steptest.Conform(t,
			steptest.Case{Name: zone, Step: address, Sled: on(), Again: host.ErrExists},
			steptest.Case{Name: zone + " addrconf", Step: CreateAddress{Zone: zone, Object: link + "/ll", Type: Addrconf}, Sled: on(), Again: host.ErrExists},
			steptest.Case{Name: zone, Step: AwaitAddress{Zone: zone, Object: address.Object}, Sled: on(address), NoFailure: true},
			steptest.Case{Name: zone, Step: route, Sled: on(address), Again: host.ErrExists},
			steptest.Case{Name: zone, Step: DeleteRoute(route), Sled: on(address, route), Again: host.ErrNotFound},
			steptest.Case{Name: zone, Step: DeleteAddress{Zone: zone, Object: address.Object, Unplumb: true}, Sled: on(address), Again: host.ErrNotFound},
			steptest.Case{Name: zone, Step: DeleteInterface{Zone: zone, Link: link}, Sled: on(address), Again: host.ErrNotFound},
		)
	}
}
