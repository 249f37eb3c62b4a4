package commands

import (
	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// specFlags are the flags that describe an instance (docs/instance.md).
type specFlags struct {
	wanted instance.Wanted
	file   string
	spec   string
}

func (f *specFlags) add(env *Env, cmd *cobra.Command, file bool) {
	flags, w := cmd.Flags(), &f.wanted
	flags.Var(intFlag{&w.CPUs}, "cpus", "virtual CPUs, 1 to 32")
	flags.Var(sizeFlag{&w.Memory}, "memory", "guest memory, e.g. 8G")
	flags.Var(funcFlag{"PATH[,readonly]", func(s string) error {
		d, err := record.ParseDisk(s)
		w.Disks = append(w.Disks, d)
		return err
	}}, "disk", "volume or file of the host; repeatable")
	flags.Var(funcFlag{"[over=LINK][,mac=M][,vlan=V]", func(s string) error {
		n, err := record.ParseNIC(s)
		w.NICs = append(w.NICs, n)
		return err
	}}, "nic", "guest NIC; repeatable")
	flags.Var(funcFlag{"dhcp|addrconf|IP/PREFIX[,gateway=IP]", func(s string) error {
		a, err := record.ParseAddress(s)
		w.Address = &a
		return err
	}}, "address", "control address (default: the next free one of the underlay)")
	flags.Var(funcFlag{"POOL", func(s string) error { w.Pool = &s; return nil }}, "pool", "pool for the zone (default: the pool with the fewest zones)")
	flags.StringVar(&w.Name, "name", "", "name for an instance given by UUID")
	env.completeFlag(cmd, "pool", env.completePools)
	for _, name := range []string{"cpus", "memory", "nic", "address", "name"} {
		env.complete(cmd, name, noWords)
	}
	flags.StringVar(&f.spec, "spec", "", "`FILE` with a Propolis spec (JSON) or config (TOML); - is stdin")
	if file {
		flags.StringVarP(&f.file, "file", "f", "", "`FILE` that describes the instance; - is stdin")
	}
}

// ref takes the instance from the command line.
func (f *specFlags) ref(args []string) {
	if len(args) > 0 {
		f.wanted.Ref = args[0]
	}
}
