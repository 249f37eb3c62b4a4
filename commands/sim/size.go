package sim

import (
	"context"
	"fmt"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sled/failure"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// checkSize refuses a sled on which no VM could run, before anything of it is made. In
// the options, less than 0 is none.
func checkSize(size int, o sim.Options) error {
	var lacks string
	switch {
	case size < 0:
		return &cli.UsageError{Text: fmt.Sprintf("--size %d: want a number from 0", size)}
	case size == 0:
		return nil
	case o.Mode == world.SmartOS:
		lacks = "a brand that sledctl knows; give --mode omnios or helios"
	case o.Blank:
		lacks = "pools; leave out --blank"
	case o.M2 < 0:
		lacks = "an M.2 for the ledger; give --m2 1 or 2"
	case o.Links < 0:
		lacks = "a link for the guests' NICs; give --links 1 or more"
	default:
		return nil
	}
	return &cli.UsageError{Text: fmt.Sprintf("--size %d: the VMs need %s", size, lacks)}
}

// prepare prepares a fresh sled, as bootstrap does.
func prepare(ctx context.Context, e *cli.Env) (instance.Settings, operation.Env, error) {
	settings, err := e.BootstrapSettings()
	if err != nil {
		return instance.Settings{}, operation.Env{}, err
	}
	_, env, err := e.Operation()
	if err != nil {
		return instance.Settings{}, env, err
	}
	if _, err := settings.Run(ctx, env, false); err != nil {
		return instance.Settings{}, env, failure.WithReport(err)
	}
	s, env, err := e.Instances(ctx)
	env.Observe = nil // nobody reads a thousand bring-ups
	return s, env, err
}

// populate prepares a fresh sled and runs so many VMs on it, as bootstrap and instance
// ensure do. The commands of the sled take no time meanwhile.
func populate(ctx context.Context, e *cli.Env, size int, o sim.Options) error {
	s, env, err := prepare(ctx, e)
	if err != nil {
		return err
	}
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
