package sim

import (
	"context"
	"errors"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/host"
)

func newImport(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "import FILE",
		Short: "Create a simulated sled from a recording of a real one",
		Long: `Create a simulated sled from a recording of a real one (sledctl probe record): zones, datasets, pools, disks, links, addresses and
services, as far as the recording tells them. Then rehearse on it, e.g. reap -n, bootstrap -n or an upgrade. Names are the recording's.

What a simulated sled does not have is printed, one line each. VMs do not run, and there is no ledger. Exit 5 if there is a sled.`,
		Example: `  sledctl --host sim:/tmp/copy sim import sled.probe
  sledctl --host sim:/tmp/copy reap -n`,
		Args: cobra.ExactArgs(1),
		RunE: env.Run(func(ctx context.Context, args []string) error { return runImport(ctx, env, args[0]) }),
	}
}

func runImport(ctx context.Context, e *cli.Env, name string) error {
	dir, ok := e.SimDir()
	if !ok {
		return &cli.UsageError{Text: "--host " + e.HostName() + " is not a simulated sled", Advice: "give --host sim:DIR"}
	}
	a, err := cli.OpenArchive(e, name)
	if err != nil {
		return err
	}
	sled, notes, err := cli.LayOut(ctx, dir, a)
	if errors.Is(err, fs.ErrExist) {
		return &cli.ExistsError{What: "a simulated sled in " + dir, Advice: "to remove it, run: rm -r " + host.Quote(dir)}
	}
	if err != nil {
		return err
	}
	sled.Close()
	for _, note := range notes {
		e.Progress.Tell("not laid out: " + note)
	}
	e.Progress.Say("a simulated sled as recorded %s is in %s", a.Time.UTC().Format("2006-01-02"), dir)
	return nil
}
