package zone

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/bundle"
	"github.com/sledctl/sledctl/sled/bundles"
	"github.com/sledctl/sledctl/sled/failure"
	"github.com/sledctl/sledctl/zone"
)

func newBundle(env *cli.Env) *cobra.Command {
	cmd := cli.Group("bundle", "Collect logs and configuration of zones in bundles", `
A bundle is a gzipped tar of a zone's logs and configuration and, if the zone ran, of its services, processes, links and addresses. sledctl
makes one of each zone that reap removes, of each failed instance's zone before it removes that, and of others on request. Bundles are on
the debug datasets, below bundle/zone/ZONE; sledctl removes the oldest to make room for new ones (bundle.max_size).`)
	cmd.AddCommand(newBundleList(env), newBundleCreate(env), newBundleGet(env), newBundleDelete(env))
	return cmd
}

// shownBundle is a bundle as it is printed.
type shownBundle struct {
	ID    string    `json:"id"`
	Zone  string    `json:"zone"`
	Cause string    `json:"cause"`
	Time  time.Time `json:"time"`
	Size  int64     `json:"size"`
	Path  string    `json:"path"`
}

func bundleList(e *cli.Env) terminal.List[shownBundle] {
	type column = terminal.Column[shownBundle]
	return terminal.List[shownBundle]{
		Kind: "Bundle", Name: func(b shownBundle) string { return b.ID },
		Columns: []column{
			{Name: "id", Value: func(b shownBundle) string { return b.ID }},
			{Name: "zone", Value: func(b shownBundle) string { return b.Zone }},
			{Name: "cause", Value: func(b shownBundle) string { return b.Cause }},
			{Name: "time", Value: func(b shownBundle) string { return b.Time.Format(time.RFC3339) }, Human: func(b shownBundle) string { return terminal.Ago(e.Now(), b.Time) }},
			{Name: "size", Value: func(b shownBundle) string { return strconv.FormatInt(b.Size, 10) },
				Human: func(b shownBundle) string { return terminal.FormatSize(uint64(b.Size)) }, Right: true},
			{Name: "path", Value: func(b shownBundle) string { return b.Path }, Extra: true},
		},
		Tall: &terminal.Tall[shownBundle]{
			Head: func(b shownBundle) string { return b.ID },
			Detail: func(b shownBundle) string {
				return fmt.Sprintf("%s: zone %s, %s, %s", b.Cause, b.Zone, terminal.FormatSize(uint64(b.Size)), terminal.Ago(e.Now(), b.Time))
			},
		},
	}
}

func newBundleList(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "list [ZONE|INSTANCE]", Aliases: []string{"ls"}, Short: "List the bundles, the newest last",
		Example: `  sledctl zone bundle list
  sledctl zone bundle list -H --columns id,path`,
		Args: cobra.MaximumNArgs(1),
		RunE: env.Run(func(ctx context.Context, args []string) error {
			if err := bundleList(env).Check(env.Output); err != nil {
				return err
			}
			all, err := env.Bundles(ctx)
			if err != nil {
				return err
			}
			of := ""
			if len(args) > 0 {
				if of, err = env.ZoneNamed(ctx, args[0]); err != nil {
					return err
				}
			}
			shown := []shownBundle{}
			for _, b := range all {
				if of == "" || b.Zone == of {
					shown = append(shown, showBundle(b))
				}
			}
			if err := bundleList(env).Print(env.Streams.Out, env.Output, shown); err != nil {
				return err
			}
			return env.StateFile(ctx)
		}),
	}
	env.AddOutput(cmd)
	cli.CompleteArgs(cmd, func(ctx context.Context) []string { return completeZones(ctx, env) })
	return cmd
}

func showBundle(b bundle.Bundle) shownBundle {
	return shownBundle{ID: b.ID, Zone: b.Zone, Cause: string(b.Cause), Time: b.Time, Size: b.Size, Path: b.Path}
}

func newBundleCreate(env *cli.Env) *cobra.Command {
	var m cli.Mutation
	cmd := &cobra.Command{
		Use: "create ZONE|INSTANCE", Short: "Make a bundle of a sledctl zone",
		Example: `  id=$(sledctl zone bundle create web1 -o name)`,
		Args:    cobra.ExactArgs(1),
		RunE: env.Run(func(ctx context.Context, args []string) error {
			return runBundleCreate(ctx, env, m, args[0])
		}),
	}
	m.Add(cmd, false)
	env.AddOutput(cmd)
	cli.CompleteArgs(cmd, func(ctx context.Context) []string { return completeZones(ctx, env) })
	return cmd
}

func runBundleCreate(ctx context.Context, e *cli.Env, m cli.Mutation, name string) error {
	if err := errors.Join(zone.ValidateName(name), bundleList(e).Check(e.Output)); err != nil {
		return err
	}
	word := name
	name, err := e.ZoneNamed(ctx, word)
	if err != nil {
		return err
	}
	c, env, err := e.Operation()
	if err != nil {
		return err
	}
	id, report, err := cli.ReapSettings(c).Bundle(ctx, env, name, m.Dry())
	switch {
	case err != nil:
		return failure.WithReport(cli.NoBundlePlace(err), report)
	case id == "":
		return e.NoZone(ctx, word, nil)
	case m.Dry():
		return e.PrintPlan(m, report)
	}
	b, err := findBundle(ctx, e, id)
	if err != nil {
		return err
	}
	return bundleList(e).PrintOne(e.Streams.Out, e.Output, showBundle(b))
}

// findBundle finds a bundle by its id, or the newest of a zone.
func findBundle(ctx context.Context, e *cli.Env, ref string) (bundle.Bundle, error) {
	all, err := e.Bundles(ctx)
	if err != nil {
		return bundle.Bundle{}, err
	}
	b, found := bundle.Newest(all, ref)
	if !found {
		if name, err := e.ZoneNamed(ctx, ref); err == nil {
			b, found = bundle.Newest(all, name)
		}
	}
	if !found {
		return bundle.Bundle{}, cmp.Or[error](e.StateFile(ctx), &cli.NotFoundError{What: "bundle " + ref, List: "sledctl zone bundle list"})
	}
	return b, nil
}

func newBundleGet(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "get BUNDLE|ZONE|INSTANCE [FILE]", Short: "Get a bundle, or the newest one of a zone",
		Long: `Get a bundle, or the newest one of a zone, as a file, or on standard output if that is no terminal.`,
		Example: `  sledctl zone bundle get 20250301T120000.000Z-orphan-6f9619ff web1.tar.gz
  sledctl zone bundle get propolis_instance_6f9619ff-8b86-d011-b42d-00c04fc964ff | tar xzOf - metadata.json`,
		Args: cobra.RangeArgs(1, 2),
		RunE: env.Run(func(ctx context.Context, args []string) error { return runBundleGet(ctx, env, args) }),
	}
	cli.CompleteArgs(cmd, func(ctx context.Context) []string { return completeBundles(ctx, env) })
	return cmd
}

func completeBundles(ctx context.Context, e *cli.Env) (ids []string) {
	all, _ := e.Bundles(ctx)
	for _, b := range all {
		ids = append(ids, b.ID)
	}
	return ids
}

func newBundleDelete(env *cli.Env) *cobra.Command {
	var m cli.Mutation
	var mustExist bool
	cmd := &cobra.Command{
		Use: "delete BUNDLE...", Aliases: []string{"rm"}, Short: "Delete bundles",
		Long: `Delete bundles, each by its id. Deleting one that does not exist does nothing.`,
		Example: `  sledctl zone bundle delete 20250301T120000.000Z-orphan-6f9619ff
  sledctl zone bundle list -H --columns id | xargs sledctl zone bundle delete`,
		Args: cobra.MinimumNArgs(1),
		RunE: env.Run(func(ctx context.Context, args []string) error {
			c, op, err := env.Operation()
			if err != nil {
				return err
			}
			named := func(p bundles.Held) []bundle.Bundle {
				return slices.DeleteFunc(slices.Clone(p.Bundles), func(b bundle.Bundle) bool { return !slices.Contains(args, b.ID) })
			}
			gone, report, err := bundles.Delete(ctx, op, cli.BundleSettings(c), named, m.Dry())
			missing := slices.IndexFunc(args, func(id string) bool {
				return !slices.ContainsFunc(gone, func(b bundle.Bundle) bool { return b.ID == id })
			})
			_, nowhere := errors.AsType[*bundle.NowhereError](err)
			switch {
			case nowhere:
				return failure.WithReport(cmp.Or(env.StateFile(ctx), cli.NoBundlePlace(err)), report)
			case err != nil:
				return failure.WithReport(err, report)
			case m.Dry():
				return env.PrintPlan(m, report)
			case missing >= 0 && mustExist:
				return &cli.NotFoundError{What: "bundle " + args[missing], List: "sledctl zone bundle list"}
			}
			return nil
		}),
	}
	m.Add(cmd, false)
	env.AddOutput(cmd)
	cmd.Flags().BoolVar(&mustExist, "must-exist", false, "exit 4 if one does not exist")
	cli.CompleteArgs(cmd, func(ctx context.Context) []string { return completeBundles(ctx, env) })
	return cmd
}

func runBundleGet(ctx context.Context, e *cli.Env, args []string) error {
	if len(args) < 2 && e.Streams.Out.Terminal {
		return &cli.UsageError{Text: "a bundle is no text: name a file to write it to, or a pipe"}
	}
	b, err := findBundle(ctx, e, args[0])
	if err != nil {
		return err
	}
	h, err := e.Host()
	if err != nil {
		return err
	}
	in, err := h.Files().Open(b.Path, 0, 0)
	if err != nil {
		return fmt.Errorf("read bundle %s: %w", b.ID, err)
	}
	defer in.Close()
	if len(args) < 2 || args[1] == "-" {
		_, err = io.Copy(e.Streams.Out, in)
		return err
	}
	out, err := os.OpenFile(args[1], os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return cli.NewFile(args[1], err)
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
