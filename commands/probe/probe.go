// Package probe is sledctl probe.
package probe

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sled/probe"
)

// New is the command probe.
func New(env *cli.Env) *cobra.Command {
	cmd := cli.Group("probe", "Record what a sled answers to commands", `
A recording is a file with the output of illumos' commands on a sled, for those who develop sledctl and for tests. The commands change
nothing. The names of the sled's objects, its addresses and serial numbers are replaced: docs/probe.md says by what, and what is kept.`)
	cmd.AddCommand(newRecord(env), newShow(env), newCompare(env))
	return cmd
}

func newRecord(env *cli.Env) *cobra.Command {
	list, makes := false, false
	cmd := &cobra.Command{
		Use:   "record [FILE]",
		Short: "Record what the sled answers to read-only commands",
		Long: `Record what the sled answers to read-only commands, one after the other, each for at most 10 s. A command that fails is recorded, too.
FILE is created, without a FILE the recording goes to standard output. Exit 5 if FILE exists.

Zones, datasets, links, addresses and serial numbers get other names, which are new for each recording, and user properties and keys are
not asked for. The recording is not written if a name is left in it. Read it before you send it: sledctl probe show FILE.

With --active it also creates a zone sledctl_probe_UUID of an instance sledctl-probe, boots it and removes it, and records the commands
for that. The sled must be prepared. Exit 8 if it has an instance sledctl-probe that is not of the probe. After a kill, run it again, or
sledctl instance delete sledctl-probe.`,
		Example: `  sledctl probe record -n
  sledctl probe record sled.probe
  sledctl probe show sled.probe`,
		Args: cobra.MaximumNArgs(1),
		RunE: env.Run(func(ctx context.Context, args []string) error {
			if list {
				return printQuestions(env.Streams.Out)
			}
			return runRecord(ctx, env, args, makes)
		}),
	}
	cmd.Flags().BoolVarP(&list, "dry-run", "n", false, "print the commands, and run none")
	cmd.Flags().BoolVar(&makes, "active", false, "also create a zone, boot it and remove it; needs root")
	return cmd
}

// printQuestions prints the commands of a recording. ZONE and POOL stand for each of them.
func printQuestions(out io.Writer) error {
	var b strings.Builder
	for _, q := range probe.Questions() {
		b.WriteString(q.Command.Shell() + "\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func runRecord(ctx context.Context, e *cli.Env, args []string, makes bool) error {
	h, err := e.Host()
	if err != nil {
		return err
	}
	settings := probe.Settings{Program: e.Version, Now: e.Now, Salt: make([]byte, 32)}
	if _, err := rand.Read(settings.Salt); err != nil {
		return err
	}
	if makes {
		settings.Active = func(ctx context.Context) ([]probe.Answer, error) { return makeAndRemove(ctx, e) }
	}
	recorded, err := settings.Record(ctx, h)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		return recorded.Write(e.Streams.Out)
	}
	if err := create(args[0], recorded); err != nil {
		return err
	}
	e.Progress.Say("%d commands are recorded in %s; to read it, run: sledctl probe show %s", len(recorded.Answers), args[0], args[0])
	return nil
}

// create writes an archive to a file that does not exist.
func create(name string, a probe.Archive) error {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return cli.NewFile(name, err)
	}
	if err := errors.Join(a.Write(file), file.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}

func newShow(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "show FILE",
		Short: "Show what a recording holds",
		Long: `Show what a recording holds: each command, what it printed, its errors behind 2>, and how it ended. That is all that the file holds.
FILE - is standard input.`,
		Example: `  sledctl probe show sled.probe
  sledctl probe record | sledctl probe show -`,
		Args: cobra.ExactArgs(1),
		RunE: env.Run(func(_ context.Context, args []string) error {
			a, err := cli.OpenArchive(env, args[0])
			if err != nil {
				return err
			}
			_, err = io.WriteString(env.Streams.Out, shown(a))
			return err
		}),
	}
}

// shown is an archive as people read it.
func shown(a probe.Archive) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# recorded %s, kernel %s, sledctl %s\n", a.Time.UTC().Format("2006-01-02 15:04:05Z"), a.Kernel, cmp.Or(a.Program, "unknown"))
	for _, one := range a.Answers {
		fmt.Fprintf(&b, "\n$ %s\n", host.Command{Program: one.Argv[0], Args: one.Argv[1:]}.Shell())
		b.Write(one.Stdout)
		if n := len(one.Stdout); n > 0 && one.Stdout[n-1] != '\n' {
			b.WriteString("\n")
		}
		for line := range strings.Lines(string(one.Stderr)) {
			b.WriteString("2> " + strings.TrimSuffix(line, "\n") + "\n")
		}
		if one.Failed != "" {
			fmt.Fprintf(&b, "# not ended: %s\n", one.Failed)
		}
		fmt.Fprintf(&b, "# exit %d, %s\n", one.Exit, terminal.Elapsed(one.Elapsed))
	}
	return b.String()
}
