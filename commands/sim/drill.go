package sim

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
	"github.com/sledctl/sledctl/sled/base"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
)

func newDrill(env *cli.Env) *cobra.Command {
	takes := 3 * time.Minute
	cmd := &cobra.Command{
		Use:   "drill DIR",
		Short: "Create a simulated sled with 40 VMs and several failures",
		Long: `Create a simulated sled with 40 VMs and several failures, in the directory DIR, to practise on. ci8 and dev-6 are stopped on purpose. A
Propolis has crashed (web06), a service is in maintenance (web01), a zone was halted by hand (mail01), and a zone's configuration was
changed by hand (web10). web12 is being moved to a second sled, in DIR-sled2, and the command that moves it was interrupted. Disk c14t0d0
was pulled, the pool on disk c13t0d0 is nearly full, and the next zoneadm clone fails.`,
		Example: `  sledctl sim drill /tmp/drill
  sledctl --host sim:/tmp/drill instance list`,
		Args: cobra.ExactArgs(1),
		RunE: env.Run(func(ctx context.Context, args []string) error { return runDrill(ctx, env, args[0], takes) }),
	}
	cmd.Flags().DurationVar(&takes, "ram-push", takes, "time in which the memory of web12 is sent")
	return cmd
}

func runDrill(ctx context.Context, e *cli.Env, dir string, takes time.Duration) error {
	if takes < 0 {
		return &cli.UsageError{Text: fmt.Sprintf("--ram-push %v: want a duration of at least 0, e.g. 20s", takes)}
	}
	e.ActOn("sim:" + dir)
	sled, err := initSim(dir, sim.Options{Seed: 1})
	if err != nil {
		return err
	}
	sled.Close()
	d, err := newDriller(ctx, e)
	if err != nil {
		return err
	}
	depart := func(ctx context.Context) error { return d.depart(ctx, e, dir, takes) }
	for _, act := range []func(context.Context) error{d.create, d.operate, d.breakVMs, depart, d.breakStorage} {
		if err := act(ctx); err != nil {
			return err
		}
	}
	e.Progress.Say("a drill sled with 40 VMs is in %s", dir)
	return nil
}

// drilled is one VM of the drill.
type drilled struct {
	name      string
	cpus      int
	memory    uint64 // GiB
	volume    bool
	protected bool
}

// drillVMs are the VMs of the drill, in the order in which they are created.
func drillVMs() []drilled {
	all := numbered("web%02d", 16, drilled{cpus: 4, memory: 8})
	all = append(all, numbered("db%02d", 4, drilled{cpus: 8, memory: 32, volume: true})...)
	all = append(all, numbered("ci%d", 8, drilled{cpus: 8, memory: 16})...)
	all = append(all, numbered("mail%02d", 3, drilled{cpus: 2, memory: 4})...)
	all = append(all, numbered("dns%02d", 2, drilled{cpus: 1, memory: 2})...)
	all = append(all, drilled{name: "git01", cpus: 4, memory: 16, protected: true})
	return append(all, numbered("dev-%d", 6, drilled{cpus: 2, memory: 4})...)
}

func numbered(format string, n int, like drilled) []drilled {
	all := make([]drilled, n)
	for i := range all {
		all[i] = like
		all[i].name = fmt.Sprintf(format, i+1)
	}
	return all
}

// driller creates VMs and breaks them.
type driller struct {
	sled     *sim.Sled
	settings instance.Settings
	env      operation.Env
	pools    []string
}

// newDriller prepares the sled, as bootstrap does.
func newDriller(ctx context.Context, e *cli.Env) (*driller, error) {
	s, env, err := prepare(ctx, e)
	if err != nil {
		return nil, err
	}
	pools, err := e.ZonePools(ctx, env.Host)
	return &driller{sled: e.Sled, settings: s, env: env, pools: pools}, err
}

// create creates the VMs one after the other, so that each drill sled has the same
// addresses and pools.
func (d *driller) create(ctx context.Context) error {
	for i, vm := range drillVMs() {
		pool, memory := d.pools[i%len(d.pools)], vm.memory<<30
		wanted := instance.Wanted{Ref: vm.name, CPUs: &vm.cpus, Memory: &memory, NICs: []record.NIC{{Over: "net0", VLAN: 100}}, Pool: &pool}
		if vm.volume {
			volume := path.Join(d.pools[0], vm.name)
			if err := d.run(ctx, "zfs", "create", "-V", "40G", volume); err != nil {
				return err
			}
			wanted.Disks = []record.Disk{{Path: naming.VolumeDevices + volume}}
		}
		request := instance.EnsureRequest{Verb: "instance ensure", Wanted: wanted}
		if vm.protected {
			request.Protect = &vm.protected
		}
		if _, err := d.settings.Ensure(ctx, d.env, request); err != nil {
			return err
		}
	}
	return nil
}

// operate is what an operator did on purpose.
func (d *driller) operate(ctx context.Context) error {
	for _, name := range []string{"dev-6", "ci8"} {
		if _, err := d.settings.Stop(ctx, d.env, instance.StopRequest{Verb: "instance stop", Ref: name}); err != nil {
			return err
		}
	}
	return nil
}

// breakVMs breaks four VMs, each in another way.
func (d *driller) breakVMs(ctx context.Context) error {
	zones := map[string]string{}
	for _, name := range []string{"web01", "web06", "web10", "mail01"} {
		i, err := d.look(ctx, name)
		if err != nil {
			return err
		}
		zones[name] = i.Incarnation.Zone
	}
	err := d.sled.World().Update(ctx, func(tx *world.Tx) error {
		tx.Arm(world.Fault{Name: world.FaultMaintenance, Match: zones["web01"] + " " + base.FMRI, Times: 1})
		tx.Arm(world.Fault{Name: world.FaultCrash, Match: "propolis " + zones["web01"], Times: 1})
		tx.Arm(world.Fault{Name: world.FaultCrash, Match: "propolis " + zones["web06"], Times: 1})
		return nil
	})
	if err != nil {
		return err
	}
	for _, name := range []string{"web01", "web06"} { // the question is what crashes Propolis
		if _, err := d.look(ctx, name); err != nil {
			return err
		}
	}
	return errors.Join(
		d.run(ctx, "zoneadm", "-z", zones["mail01"], "halt"),
		d.run(ctx, "zonecfg", "-z", zones["web10"], "add net; set physical=net1; end"),
	)
}

// breakStorage pulls one disk and fills another, and arms a fault.
func (d *driller) breakStorage(ctx context.Context) error {
	return d.sled.World().Update(ctx, func(tx *world.Tx) error {
		zfs.LoseDisk(tx, "c14t0d0")
		tx.Arm(world.Fault{Name: world.FaultFail, Match: "zoneadm clone", Times: 1, Text: "cannot create snapshot: out of space", Exit: 1})
		return zfs.FillDisk(tx, "c13t0d0", 20<<30)
	})
}

func (d *driller) look(ctx context.Context, name string) (instance.Instance, error) {
	view, err := operation.Decided(ctx, d.env, false)
	if err != nil {
		return instance.Instance{}, err
	}
	return d.settings.Get(ctx, d.env, view, name)
}

// run runs a command of the sled, as an operator does by hand.
func (d *driller) run(ctx context.Context, program string, args ...string) error {
	c := host.Command{Program: program, Args: args}
	result, err := d.env.Host.Run(ctx, c)
	if err == nil && result.Exit != 0 {
		err = &host.CommandError{Command: c, Result: result}
	}
	return err
}
