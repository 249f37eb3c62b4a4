package commands

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/sled/instance"
)

type specConvertOptions struct {
	wanted   instance.Wanted
	parse    spec.ParseOptions
	features []string
	version  spec.Version
}

func newSpecConvert(env *Env) *cobra.Command {
	o := specConvertOptions{version: spec.Latest}
	cmd := &cobra.Command{
		Use:   "convert FILE",
		Short: "Turn a config in TOML into a spec in JSON",
		Long: `Turn a config of propolis-cli (- is standard input) into the spec that propolis-cli would make of it: the same components under the same keys, with four
serial ports and a pvpanic device. Where propolis-cli passes over what stands in the file, or reads it otherwise, it is read as it stands, with a
warning. A spec in JSON may be given too, to be written for another version of the API.

What a server would not take is an error. Files and volumes are not looked for: propolis spec validate does that.`,
		Example: `  sledctl propolis spec convert web1.toml > web1.json
  sledctl propolis spec convert web1.toml --cpus 8 --memory 16G --cpuid-profile milan --api-version 3`,
		Args: cobra.ExactArgs(1),
		RunE: env.run(func(_ context.Context, args []string) error { return runSpecConvert(env, args[0], o) }),
	}
	flags := cmd.Flags()
	flags.Var(intFlag{&o.wanted.CPUs}, "cpus", "virtual CPUs, 1 to 32 (default: what the file says, else instance.cpus)")
	flags.Var(sizeFlag{&o.wanted.Memory}, "memory", "guest memory, as 8G (default: what the file says, else instance.memory)")
	flags.StringVar(&o.parse.CPUID, "cpuid-profile", "", "the [cpuid.NAME] that the guest is to see (default: that which bhyve gives it)")
	flags.BoolVar(&o.parse.HyperV, "hyperv", false, "the guest is to see Hyper-V")
	for _, name := range []string{"cpus", "memory", "cpuid-profile"} {
		env.complete(cmd, name, noWords)
	}
	addFeatures(env, cmd, &o.features)
	addVersion(env, cmd, &o.version, "write the spec as this version of the API does")
	return cmd
}

func runSpecConvert(e *Env, file string, o specConvertOptions) error {
	server := spec.Server{Features: o.features}
	d, err := readMachine(e, "FILE", file, o.parse, server)
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
		return &refusedError{err: fmt.Errorf("%s: %w", file, err), hint: fmt.Sprintf("--api-version %d writes it", max(o.version, lacking.Needs()))}
	}
	return err
}
