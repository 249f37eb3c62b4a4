// Package image is sledctl image.
package image

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/sled/failure"
	"github.com/sledctl/sledctl/sled/image"
)

// New is the command image.
func New(env *cli.Env) *cobra.Command {
	cmd := cli.Group("image", "Import, download, list and delete disk images", "")
	cmd.AddCommand(newImport(env), newFetch(env), newList(env), newGet(env), newDelete(env), newPrune(env), newExport(env))
	return cmd
}

func imageList() terminal.List[image.Status] {
	type column = terminal.Column[image.Status]
	size := func(name string, of func(image.Status) uint64, extra bool) column {
		return column{Name: name, Right: true, Extra: extra, Value: func(i image.Status) string { return strconv.FormatUint(of(i), 10) },
			Human: func(i image.Status) string { return terminal.FormatSize(of(i)) }}
	}
	short := terminal.ShortPools(nil)
	return terminal.List[image.Status]{Kind: "Image", Name: func(i image.Status) string { return i.Name }, Columns: []column{
		{Name: "name", Value: func(i image.Status) string { return i.Name }},
		size("size", func(i image.Status) uint64 { return uint64(i.Size) }, false),
		size("used", func(i image.Status) uint64 { return i.Used }, false),
		{Name: "state", Value: func(i image.Status) string { return i.State }},
		{Name: "clones", Value: func(i image.Status) string { return strconv.Itoa(len(i.Clones)) }, Right: true},
		{Name: "pool", Value: func(i image.Status) string { return strings.Join(pools(i), ",") }, Human: func(i image.Status) string { return short(strings.Join(pools(i), " ")) }},
		{Name: "reason", Value: func(i image.Status) string { return i.Reason }, Note: true},
		{Name: "format", Value: func(i image.Status) string { return i.Format }, Extra: true},
		{Name: "id", Value: func(i image.Status) string { return i.ID }, Extra: true},
		{Name: "snapshot", Value: func(i image.Status) string { return i.Snapshot() }, Extra: true},
		{Name: "sha256", Value: func(i image.Status) string { return i.SHA256 }, Extra: true},
		{Name: "imported", Value: func(i image.Status) string { return i.Time.Format(time.RFC3339) }, Extra: true},
	}}
}

func newList(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the images, and what is cloned from them",
		Example: `  sledctl image list`,
		Args:    cobra.NoArgs,
		RunE: env.Run(func(ctx context.Context, _ []string) error {
			if err := imageList().Check(env.Output); err != nil {
				return err
			}
			all, err := listed(ctx, env)
			if err != nil {
				return err
			}
			return imageList().Print(env.Streams.Out, env.Output, all)
		}),
	}
	env.AddOutput(cmd)
	return cmd
}

func listed(ctx context.Context, e *cli.Env) ([]image.Status, error) {
	_, h, err := e.Reach()
	if err != nil {
		return nil, err
	}
	view, err := e.View(ctx)
	if err != nil {
		return nil, err
	}
	return image.List(ctx, h, view)
}

func newGet(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "get NAME", Short: "Show one image",
		Example: `  sledctl image get debian-13
  sledctl image get debian-13 -o json`,
		Args: cobra.ExactArgs(1),
		RunE: env.Run(func(ctx context.Context, args []string) error {
			if err := imageList().Check(env.Output); err != nil {
				return err
			}
			return show(ctx, env, args[0])
		}),
	}
	env.AddOutput(cmd)
	cli.CompleteArgs(cmd, cli.CompleteImages(env))
	return cmd
}

// show prints one image, by its name or id.
func show(ctx context.Context, e *cli.Env, ref string) error {
	view, err := e.View(ctx)
	if err != nil {
		return err
	}
	r, err := image.Get(view, ref)
	if err != nil {
		return view.Absent(err)
	}
	all, err := listed(ctx, e)
	if i := slices.IndexFunc(all, func(i image.Status) bool { return i.ID == r.ID }); i >= 0 {
		return imageList().PrintOne(e.Streams.Out, e.Output, all[i])
	}
	return cmp.Or[error](err, &image.NotFoundError{Name: ref}) // it went meanwhile
}

func newDelete(env *cli.Env) *cobra.Command {
	var m cli.Mutation
	var mustExist bool
	cmd := &cobra.Command{
		Use: "delete NAME", Aliases: []string{"rm"}, Short: "Delete an image that no disk was cloned from",
		Example: `  sledctl image delete debian-12`,
		Args:    cobra.ExactArgs(1),
		RunE: env.Run(func(ctx context.Context, args []string) error {
			_, op, err := env.Operation()
			if err != nil {
				return err
			}
			there, report, err := image.Delete(ctx, op, args[0], m.Dry())
			switch {
			case err != nil:
				return failure.WithReport(err, report)
			case !there && mustExist:
				return &image.NotFoundError{Name: args[0]}
			case m.Dry():
				return env.PrintPlan(m, report)
			}
			return nil
		}),
	}
	m.Add(cmd, false)
	env.AddOutput(cmd)
	cmd.Flags().BoolVar(&mustExist, "must-exist", false, "exit 4 if it does not exist")
	cli.CompleteArgs(cmd, cli.CompleteImages(env))
	return cmd
}

func newPrune(env *cli.Env) *cobra.Command {
	var m cli.Mutation
	cmd := &cobra.Command{
		Use: "prune", Short: "Delete every image that no disk was cloned from",
		Long: `Delete every image that no disk was cloned from, and what is left of downloads that did not become images. It prints the names
of those that it has deleted; -n shows what would be deleted.`,
		Example: `  sledctl image prune -n`,
		Args:    cobra.NoArgs,
		RunE: env.Run(func(ctx context.Context, _ []string) error {
			c, op, err := env.Operation()
			if err != nil {
				return err
			}
			names, reports, err := image.Prune(ctx, op, m.Dry())
			if err == nil {
				files, more, failed := image.PruneDownloads(ctx, op, c.Image.Directory, m.Dry())
				names, reports, err = append(names, files...), append(reports, more...), failed
			}
			switch {
			case err != nil:
				return failure.WithReport(err, reports...)
			case m.Dry():
				return env.PrintPlan(m, reports...)
			}
			for _, name := range names {
				if _, err := fmt.Fprintln(env.Streams.Out, name); err != nil {
					return err
				}
			}
			return nil
		}),
	}
	m.Add(cmd, false)
	env.AddOutput(cmd)
	return cmd
}

// nameOf is what an image is called if nobody says: as its file, without what that ends with.
func nameOf(file string) string {
	name := strings.ToLower(file[strings.LastIndexByte(file, '/')+1:])
	for _, end := range []string{".gz", ".xz", ".zst", ".qcow2", ".raw", ".img"} {
		name = strings.TrimSuffix(name, end)
	}
	return name
}

// pools are those on which the image lies.
func pools(i image.Status) (names []string) {
	for _, p := range i.Places() {
		names = append(names, p.Pool)
	}
	return names
}
