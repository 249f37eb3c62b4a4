package instance

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/description"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/sled/copies"
	"github.com/sledctl/sledctl/sled/failure"
	"github.com/sledctl/sledctl/sled/image"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/documents"
	"github.com/sledctl/sledctl/sled/transfer"
)

func newCopy(env *cli.Env) *cobra.Command {
	var m cli.Mutation
	var f description.Flags
	var c copies.Request
	cmd := &cobra.Command{
		Use: "copy INSTANCE NAME", Short: "Create an instance as another one, with clones of its disks",
		Long: `Create an instance as another one, with clones of its disks, and start it. It has the CPUs, the memory and the links of the
other; its id, MACs and addresses are its own. Clones take no time, and no room for what both have in common. Flags say what else is
to differ, as for instance ensure.

The disks are as the other's are now: of one that runs, as after a power failure (sledctl instance snapshot --help). For that, the other
gets a snapshot for-NAME; --snapshot takes one that exists. It stays as long as volumes are clones of it.

If the other has cloud-init data, the copy has it with its own name, the same SSH keys and another instance-id, so that cloud-init
makes new host keys; user-data and network-config are not copied.`,
		Example: `  sledctl instance copy web1 web2
  sledctl instance copy web1 web2 --snapshot before-upgrade --memory 16G`,
		Args: cobra.ExactArgs(2),
		RunE: env.Run(func(ctx context.Context, args []string) error {
			c.From, f.Wanted.Ref = args[0], args[1]
			wanted, err := description.Wanted(ctx, env, f)
			if err != nil {
				return err
			}
			c.Wanted, c.DryRun, c.Keep = wanted, m.Dry(), m.Keep
			return env.ChangeInstance(ctx, m, func(ctx context.Context, instances instance.Settings, op operation.Env) (instance.Result, error) {
				s, err := cli.Copies(env, instances)
				if err != nil {
					return instance.Result{}, err
				}
				return s.Copy(ctx, op, c)
			})
		}),
	}
	f.Add(env, cmd, false)
	cmd.Flags().StringVar(&c.Snapshot, "snapshot", "", "`NAME` of a snapshot to clone (default: one is taken)")
	m.Add(cmd, true)
	env.AddOutput(cmd)
	cli.CompleteArgs(cmd, env.CompleteInstances)
	return cmd
}

func newExport(env *cli.Env) *cobra.Command {
	var m cli.Mutation
	var snapshot string
	cmd := &cobra.Command{
		Use: "export INSTANCE FILE|-", Short: "Write an instance with its disks to a file",
		Long: `Write an instance with its disks to a file, or to standard output with -, for instance import on this sled or another one. The
file is a tar archive with what the instance is and what zfs send prints of each disk, and their digests. It is as secret as the
instance: SSH keys, user-data and the disks are in it as they are, also where the pool is encrypted.

The disks are as they are now; of an instance that runs, as after a power failure (sledctl instance snapshot --help). Disks on several
pools need it stopped. For that, it has a snapshot for-export meanwhile; --snapshot takes one that exists. The file is FILE.part until it is
complete.`,
		Example: `  sledctl instance export web1 web1.tar
  sledctl instance export web1 - | ssh sled2 sledctl instance import - --same-identity`,
		Args: cobra.ExactArgs(2),
		RunE: env.Run(func(ctx context.Context, args []string) error {
			return runInstanceExport(ctx, env, m, transfer.ExportRequest{Ref: args[0], Snapshot: snapshot, DryRun: m.Dry()}, args[1])
		}),
	}
	cmd.Flags().StringVar(&snapshot, "snapshot", "", "`NAME` of a snapshot to write (default: one is taken)")
	m.Add(cmd, false)
	cli.CompleteArgs(cmd, env.CompleteInstances)
	return cmd
}

func runInstanceExport(ctx context.Context, e *cli.Env, m cli.Mutation, c transfer.ExportRequest, file string) error {
	if file == "-" && e.Streams.Out.Terminal && !c.DryRun {
		return &cli.UsageError{Text: "instance export -: standard output is a terminal", Advice: "run: sledctl instance export " + c.Ref + " FILE"}
	}
	instances, op, err := e.Instances(ctx)
	if err != nil {
		return err
	}
	s, err := transfers(e, instances)
	if err != nil {
		return err
	}
	out, done, err := destination(e, file, c.DryRun)
	if err != nil {
		return err
	}
	c.Out, c.Progress = out, e.Progress.Copies()
	reports, err := s.Export(ctx, op, c)
	if err = errors.Join(err, done(err == nil)); err != nil {
		return failure.WithReport(err, reports...)
	}
	if c.DryRun {
		return e.PrintPlan(m, reports...)
	}
	return nil
}

// destination is where an exported instance goes, and what ends it: a file has its name once it is complete.
func destination(e *cli.Env, file string, dryRun bool) (io.Writer, func(complete bool) error, error) {
	if file == "-" || dryRun {
		out := bufio.NewWriterSize(e.Streams.Out, 1<<20)
		return out, func(complete bool) error {
			if !complete || dryRun {
				return nil
			}
			return out.Flush()
		}, nil
	}
	switch is, err := os.Stat(file); {
	case err == nil && (is.Mode().IsRegular() || is.IsDir()):
		return nil, nil, cli.NewFile(file, fs.ErrExist)
	case err == nil: // a pipe, or a tape
		out, err := os.OpenFile(file, os.O_WRONLY, 0)
		if err != nil {
			return nil, nil, cli.NewFile(file, err)
		}
		return out, func(bool) error { return out.Close() }, nil
	}
	part := file + ".part"
	out, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, nil, cli.NewFile(part, err)
	}
	return out, func(complete bool) error {
		if !complete {
			return errors.Join(out.Close(), os.Remove(part))
		}
		if err := errors.Join(out.Sync(), out.Close()); err != nil {
			return errors.Join(err, os.Remove(part))
		}
		return os.Rename(part, file)
	}, nil
}

// transfers are what exports and imports are made by.
func transfers(e *cli.Env, instances instance.Settings) (transfer.Settings, error) {
	c, err := cli.Copies(e, instances)
	if err != nil {
		return transfer.Settings{}, err
	}
	volumes, _, err := cli.Volumes(e)
	return transfer.Settings{Instances: instances, Snapshots: c.Snapshots, Volumes: volumes}, err
}

func newImport(env *cli.Env) *cobra.Command {
	var m cli.Mutation
	var c transfer.ImportRequest
	cmd := &cobra.Command{
		Use: "import FILE|- [NAME]", Short: "Create the instance that was exported to a file",
		Long: `Create the instance that was exported to a file, and start it, with volumes that hold what its disks held. It is another
instance: with an id, MACs and addresses of its own, and another instance-id for cloud-init. With --same-identity it is the one that was
exported, with its id and its MACs: for a sled that has lost it, or that it moves to. It must not run anywhere else then.

An instance that exists is not touched (exit 5). All disks are held against their digests while they are written; what is not as it was
written is removed again. If the command is killed, the same one continues with the first disk that is not complete; sledctl reap
removes what is left of that, and sledctl volume delete the others.`,
		Example: `  sledctl instance import web1.tar
  sledctl instance import web1.tar web2
  ssh sled1 sledctl instance export web1 - | sledctl instance import - --same-identity`,
		Args: cobra.RangeArgs(1, 2),
		RunE: env.Run(func(ctx context.Context, args []string) error {
			c.DryRun, c.Keep = m.Dry(), m.Keep
			if len(args) == 2 {
				c.Wanted.Ref = args[1]
			}
			return runInstanceImport(ctx, env, m, c, args[0])
		}),
	}
	flags := cmd.Flags()
	flags.BoolVar(&c.Same, "same-identity", false, "it is the one that was exported: with its id and MACs")
	flags.StringVar(&c.Pool, "pool", "", "`POOL` for its volumes (default: the one with the most room)")
	env.CompleteFlag(cmd, "pool", env.CompletePools)
	m.Add(cmd, true)
	env.AddOutput(cmd)
	return cmd
}

func runInstanceImport(ctx context.Context, e *cli.Env, m cli.Mutation, c transfer.ImportRequest, file string) error {
	var in io.Reader = image.Arriving(ctx, e.Streams.In)
	switch {
	case file == "-" && e.Streams.In.Terminal:
		return &cli.UsageError{Text: "instance import -: standard input is a terminal", Advice: "run: sledctl instance import FILE"}
	case file != "-":
		f, err := os.Open(file)
		if err != nil {
			return cli.NamedFile(file, err)
		}
		defer f.Close()
		in = f
	}
	return e.ChangeInstance(ctx, m, func(ctx context.Context, instances instance.Settings, op operation.Env) (instance.Result, error) {
		if _, err := op.Ledger(ctx); err != nil && !c.DryRun { // to read the file may take minutes
			return instance.Result{}, err
		}
		s, err := transfers(e, instances)
		if err != nil {
			return instance.Result{}, err
		}
		done, of, show := int64(0), int64(0), e.Progress.Copies()
		c.Archive, err = transfer.Open(file, in, func(bytes int) {
			done += int64(bytes)
			show(done, max(done, of))
		})
		for _, d := range c.Archive.Disks {
			of += int64(d.Used)
		}
		if err == nil {
			c.Written, err = documents.ParseDocument(c.Archive.Instance, terminal.ParseSize)
		}
		if err == nil {
			err = cli.WholePools(ctx, e, &c.Pool)
		}
		if err == nil {
			c.Written, err = description.Complete(ctx, e, c.Written)
		}
		if err != nil {
			return instance.Result{}, err
		}
		return s.Import(ctx, op, c)
	})
}
