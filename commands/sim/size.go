package sim

import (
	"context"
	"fmt"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sled/failure"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// populate prepares a fresh sled and runs so many VMs on it, as bootstrap and instance
// ensure do. The commands of the sled take no time meanwhile.
func populate(ctx context.Context, e *cli.Env, size int, o sim.Options) error {
	settings, err := e.BootstrapSettings()
	if err != nil {
		return err
	}
	_, env, err := e.Operation()
	if err != nil {
		return err
	}
	if _, err := settings.Run(ctx, env, false); err != nil {
		return failure.WithReport(err)
	}
	s, env, err := e.Instances(ctx)
	if err != nil {
		return err
	}
	env.Observe = nil // nobody reads a thousand bring-ups
	names := make([]string, size)
	for n := range names {
		names[n] = fmt.Sprintf("vm%d", n+1)
	}
	const atOnce = 8
	_, err = instance.Each(ctx, names, func(name string) string { return name }, atOnce, func(ctx context.Context, name string) (instance.Result, error) {
		cpus, memory := 1, uint64(512<<20)
		wanted := instance.Wanted{Ref: name, CPUs: &cpus, Memory: &memory, NICs: []record.NIC{{Over: "net0"}}}
		return s.Ensure(ctx, env, instance.EnsureRequest{Verb: "instance ensure", Wanted: wanted})
	})
	if err != nil {
		return err
	}
	return e.Sled.World().Update(ctx, func(tx *world.Tx) error {
		tx.State.Latency = o.Latency
		return nil
	})
}
