package vnic

import (
	"testing"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/steptest"
)

func TestSteps(t *testing.T) {
	on := func(steps ...steptest.Step) func(*testing.T) steptest.Sled {
		return func(t *testing.T) steptest.Sled {
			s := newSled(t, world.OmniOS)
			steptest.Does(t, s, steps...)
			return steptest.Sled{Host: s, State: func() any {
				limits, _ := LimitsOf(t.Context(), s, "v0") // none of a link that does not exist
				return []any{s.links(), limits}
			}}
		}
	}
	create := Create{Name: "v0", Over: "stub0", MAC: mac, VLAN: 3, MTU: 9000}
	running := func(steps ...steptest.Step) func(*testing.T) steptest.Sled {
		return func(t *testing.T) steptest.Sled {
			made := on(create)(t)
			s := made.Host.(*sled)
			s.change(func(tx *world.Tx) {
				tx.State.Zones = append(tx.State.Zones, &world.Zone{Name: "z1", Kernel: &world.Kernel{ID: 1, State: world.ZoneRunning, Config: world.Config{IPType: "exclusive"}}})
			})
			steptest.Does(t, s, steps...)
			return made
		}
	}
	lend := Lend{Name: "v0", Over: "stub0", MAC: mac, Zone: "z1"}
	steptest.Conform(t,
		steptest.Case{Step: lend, Sled: running()},
		steptest.Case{Step: TakeBack(lend), Sled: running(lend)},
		steptest.Case{Step: create, Sled: on(), Again: host.ErrExists},
		steptest.Case{Name: "bounded", Step: Create{Name: "v0", Over: "stub0", MAC: mac, Mbps: 100}, Sled: on(), Again: host.ErrExists},
		steptest.Case{Name: "plain", Step: Create{Name: "v0", Over: "stub0", MAC: mac}, Sled: on(), Again: host.ErrExists},
		steptest.Case{Step: CreateEtherstub{Name: "stub1"}, Sled: on(), Again: host.ErrExists},
		steptest.Case{Step: SetMTU{Name: "v0", Over: "stub0", MAC: mac, MTU: 1500}, Sled: on(create)},
		steptest.Case{Step: SetLimits{Name: "v0", Over: "stub0", MAC: mac, Limits: Limits{OwnMAC: true}}, Sled: on(create)},
		steptest.Case{Name: "changed", Step: SetLimits{Name: "v0", Over: "stub0", MAC: mac, Limits: Limits{OwnMAC: true, Mbps: 5}, Changed: true}, Sled: on(create)},
		steptest.Case{Step: Delete{Name: "v0", Over: "stub0", MAC: mac}, Sled: on(create), Again: host.ErrNotFound},
		steptest.Case{Step: DeleteEtherstub{Name: "stub0"}, Sled: on(), Again: host.ErrNotFound},
	)
}
