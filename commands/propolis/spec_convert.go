package propolis

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/description"
	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/sled/failure"
	"github.com/sledctl/sledctl/sled/instance"
)

type specConvertOptions struct {
	wanted   instance.Wanted
	parse    spec.ParseOptions
	features []string
	version  spec.Version
}

func newSpecConvert(env *cli.Env) *cobra.Command {
	o := specConvertOptions{version: spec.Latest}
	cmd := &cobra.Command{
		Use:   "convert FILE",
		Short: "Convert a TOML config to a JSON spec",
		Long: `Convert a TOML config to a JSON spec: to the spec that propolis-cli would make of it (- is standard input), with the same
components under the same keys, four serial ports and a pvpanic device. If propolis-cli ignores part of the file, or reads it differently,
sledctl reads it as written, and warns. FILE may also be a JSON spec, to be written for another version of the API.

What a server would refuse is an error. The command does not look for files and volumes: propolis spec validate does that.`,
		Example: `  sledctl propolis spec convert web1.toml > web1.json
  sledctl propolis spec convert web1.toml --cpus 8 --memory 16G --cpuid-profile milan --api-version 3`,
		Args: cobra.ExactArgs(1),
		RunE: env.Run(func(_ context.Context, args []string) error { return runSpecConvert(env, args[0], o) }),
	}
	flags := cmd.Flags()
	flags.Var(cli.IntFlag{Value: &o.wanted.CPUs}, "cpus", "virtual CPUs, 1 to 254 (default: as in FILE, else instance.cpus)")
	flags.Var(cli.SizeFlag{Value: &o.wanted.Memory}, "memory", "guest memory, e.g. 8G (default: as in FILE, else instance.memory)")
	flags.StringVar(&o.parse.CPUID, "cpuid-profile", "", "the [cpuid.NAME] that the guest sees (default: bhyve's)")
	flags.BoolVar(&o.parse.HyperV, "hyperv", false, "show Hyper-V to the guest")
	addFeatures(env, cmd, &o.features)
	addVersion(env, cmd, &o.version, "version of the API to write the spec for")
	return cmd
}

func runSpecConvert(e *cli.Env, file string, o specConvertOptions) error {
	server := spec.Server{Features: o.features}
	d, err := description.ReadMachine(e, "FILE", file, o.parse, server)
	if err != nil {
		return err
	}
	if err := setBoard(e, &d, o.wanted); err != nil {
		return err
	}
	if err := d.Check(server); err != nil {
		return err
	}
	err = printSpec(e.Streams, d.Spec, o.version)
	if lacking, ok := errors.AsType[*spec.VersionError](err); ok {
		return &failure.RefusedError{Err: fmt.Errorf("%s: %w", file, err), Advice: fmt.Sprintf("to write it, add --api-version %d", max(o.version, lacking.Needs()))}
	}
	return err
}
