package description

import (
	"context"
	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// Flags are the flags that describe an instance (docs/instance.md).
type Flags struct {
	Wanted instance.Wanted
	File   string
	Spec   string
	// CloudInit and NetworkConfig are files, each of SSHKeys is a file or a key; "none" removes
	// what there is.
	CloudInit, NetworkConfig string
	SSHKeys                  []string
}

// Add gives a command the flags; file says whether --file is one of them.
func (f *Flags) Add(env *cli.Env, cmd *cobra.Command, file bool) {
	flags, w := cmd.Flags(), &f.Wanted
	flags.Var(cli.IntFlag{Value: &w.CPUs}, "cpus", "virtual CPUs, 1 to 254")
	flags.Var(cli.FuncFlag{Kind: "N", Read: func(s string) error {
		c, err := record.ParseCPUCap(s)
		w.CPUCap = &c
		return err
	}}, "cpu-cap", "processors that the VM keeps busy at most, e.g. 1.5 (0: no cap)")
	flags.Var(cli.SizeFlag{Value: &w.Memory, Least: record.LeastMemory}, "memory", "guest memory, e.g. 8G")
	flags.Var(cli.FuncFlag{Kind: "NAME|PATH|image=NAME[,…]|size=N[,…]", Read: func(s string) error {
		d, err := parseDisk(s)
		w.Disks = append(w.Disks, d)
		return err
	}}, "disk", "volume, file of the host, or image to clone; repeatable")
	cli.CompleteNameOrFile(env, cmd, "disk", cli.CompleteVolumes(env))
	flags.Var(cli.FuncFlag{Kind: "[over=LINK][,mac=M][,vlan=V][,max-bw=N][,allow-ip=IP]…", Read: func(s string) error {
		n, err := record.ParseNIC(s)
		w.NICs = append(w.NICs, n)
		return err
	}}, "nic", "guest NIC, or opte,vni=N,ip=IP,subnet=CIDR in a VPC; repeatable")
	flags.Var(cli.FuncFlag{Kind: "dhcp|addrconf|IP/PREFIX[,gateway=IP]", Read: func(s string) error {
		a, err := record.ParseAddress(s)
		w.Address = &a
		return err
	}}, "address", "control address (default: the next free one of the underlay)")
	flags.Var(cli.FuncFlag{Kind: "POOL", Read: func(s string) error { w.Pool = &s; return nil }}, "pool", "pool for the zone (default: the pool with the fewest zones)")
	flags.StringVar(&w.Name, "name", "", "name for an instance given by UUID")
	env.CompleteFlag(cmd, "pool", env.CompletePools)
	env.CompleteStart(cmd, "nic", func(ctx context.Context) []string {
		var words []string
		for _, link := range env.CompleteLinks(ctx) {
			words = append(words, "over="+link)
		}
		return words
	})
	env.CompleteStart(cmd, "address", func(context.Context) []string { return []string{"dhcp", "addrconf"} })
	flags.StringVar(&f.Spec, "spec", "", "`FILE` with a Propolis spec (JSON) or config (TOML); - is stdin")
	flags.StringVar(&f.CloudInit, "cloud-init", "", "`FILE` with user-data for cloud-init; - is stdin, none removes it")
	flags.Var(cli.FuncFlag{Kind: "NAME", Read: func(s string) error {
		w.CloudInit.Hostname = orNone(s)
		return nil
	}}, "hostname", "hostname for cloud-init (default: the name of the instance)")
	flags.Var(cli.FuncFlag{Kind: "FILE|KEY", Read: func(s string) error { f.SSHKeys = append(f.SSHKeys, s); return nil }}, "ssh-key", "public SSH key for cloud-init's user; repeatable, none removes all")
	flags.StringVar(&f.NetworkConfig, "network-config", "", "`FILE` with network-config for cloud-init; - is stdin, none removes it")
	if file {
		flags.StringVarP(&f.File, "file", "f", "", "`FILE` that describes the instance; - is stdin")
	}
}

// TakeRef takes the instance from the command line.
func (f *Flags) TakeRef(args []string) {
	if len(args) > 0 {
		f.Wanted.Ref = args[0]
	}
}
