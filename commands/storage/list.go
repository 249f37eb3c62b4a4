package storage

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/storage"
)

// itemList shows what suits a kind of item, or, for no kind, what all have.
func itemList(kind string) terminal.List[storage.Item] {
	type column = terminal.Column[storage.Item]
	size := func(name string, of func(storage.Item) uint64) column {
		bytes := func(show func(uint64) string) func(storage.Item) string {
			return func(i storage.Item) string {
				if n := of(i); n > 0 {
					return show(n)
				}
				return ""
			}
		}
		return column{Name: name, Value: bytes(func(n uint64) string { return strconv.FormatUint(n, 10) }), Human: bytes(terminal.FormatSize), Right: true}
	}
	columns := map[string]column{
		"kind":       {Value: func(i storage.Item) string { return i.Kind }},
		"name":       {Value: func(i storage.Item) string { return i.Name }},
		"state":      {Value: func(i storage.Item) string { return i.State }, Style: itemStyle},
		"on":         {Value: func(i storage.Item) string { return i.On }},
		"slot":       {Value: func(i storage.Item) string { return i.On }},
		"disk":       {Value: func(i storage.Item) string { return i.On }},
		"size":       size("size", func(i storage.Item) uint64 { return i.Size }),
		"used":       size("used", func(i storage.Item) uint64 { return i.Size }),
		"free":       size("free", func(i storage.Item) uint64 { return i.Free }),
		"pool":       {Value: func(i storage.Item) string { return i.Pool }},
		"serial":     {Value: func(i storage.Item) string { return i.Serial }},
		"mountpoint": {Value: func(i storage.Item) string { return i.Mountpoint }},
		"reason":     {Value: func(i storage.Item) string { return i.Reason }, Note: true},
	}
	usual, extra := "kind name state on size free reason", "pool serial mountpoint"
	switch kind {
	case "disk":
		usual, extra = "name state slot size serial reason", "pool"
	case "pool":
		usual, extra = "name state disk size free reason", ""
	case "dataset":
		usual, extra = "name state used free reason", "pool mountpoint"
	}
	l := terminal.List[storage.Item]{
		Kind: "Storage", Name: func(i storage.Item) string { return i.Name },
		Tall: &terminal.Tall[storage.Item]{Head: func(i storage.Item) string { return i.Name }, Detail: itemDetail, Style: itemStyle},
	}
	for name := range strings.FieldsSeq(usual + " " + extra) {
		c := columns[name]
		c.Name, c.Extra = name, slices.Contains(strings.Fields(extra), name)
		l.Columns = append(l.Columns, c)
	}
	return l
}

func itemStyle(i storage.Item) terminal.Style {
	switch i.State {
	case "ready":
		return terminal.Good
	case "blank", "differs", "exported":
		return terminal.Warn
	}
	return terminal.Bad
}

// itemDetail returns the line that is printed below the name of an item.
func itemDetail(i storage.Item) string {
	said := []string{i.Kind}
	if i.On != "" {
		said = append(said, "on "+i.On)
	}
	if i.Size > 0 {
		said = append(said, terminal.FormatSize(i.Size)+map[string]string{"dataset": " used"}[i.Kind])
	}
	if i.Free > 0 {
		said = append(said, terminal.FormatSize(i.Free)+" free")
	}
	if i.Reason != "" {
		said = append(said, i.Reason)
	}
	return i.State + ": " + strings.Join(said, ", ")
}

func newList(env *cli.Env) *cobra.Command {
	var kind string
	var flat bool
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List disks, pools and datasets, and what differs",
		Example: `  sledctl storage list
  sledctl storage list --kind disk
  sledctl storage list --kind dataset -H --columns name,mountpoint`,
		Args: cobra.NoArgs,
		RunE: env.Run(func(ctx context.Context, _ []string) error { return runList(ctx, env, kind, flat) }),
	}
	cmd.Flags().BoolVar(&flat, "flat", false, "print one object after the other on a terminal, too, not disk by disk")
	cmd.Flags().StringVar(&kind, "kind", "", "only this kind, with its columns: disk, pool or dataset")
	env.Complete(cmd, "kind", storage.Kinds)
	env.AddOutput(cmd)
	return cmd
}

func runList(ctx context.Context, e *cli.Env, kind string, flat bool) error {
	if kind != "" && !slices.Contains(storage.Kinds(), kind) {
		text := fmt.Sprintf("--kind %q: want %s", kind, strings.Join(storage.Kinds(), ", "))
		if near := naming.Nearest(kind, storage.Kinds()); near != "" {
			text = fmt.Sprintf("--kind %q: did you mean %s?", kind, near)
		}
		return &cli.UsageError{Text: text}
	}
	if kind == "" && !flat && e.Output.Screen(e.Streams.Out) {
		return printTree(ctx, e)
	}
	return printItems(ctx, e, kind, func(i storage.Item) bool { return kind == "" || i.Kind == kind })
}

// printItems prints those items that are picked, as they are now.
func printItems(ctx context.Context, e *cli.Env, kind string, pick func(storage.Item) bool) error {
	if err := itemList(kind).Check(e.Output); err != nil {
		return err
	}
	s, env, err := settingsOf(e)
	if err != nil {
		return err
	}
	items, err := s.List(ctx, env.Host, maybeView(ctx, e))
	if err != nil {
		return err
	}
	return itemList(kind).Print(e.Streams.Out, e.Output, slices.DeleteFunc(items, func(i storage.Item) bool { return !pick(i) }))
}

// printTree prints disk by disk, for people.
func printTree(ctx context.Context, e *cli.Env) error {
	s, env, err := settingsOf(e)
	if err != nil {
		return err
	}
	view := maybeView(ctx, e)
	items, err := s.List(ctx, env.Host, view)
	if err != nil {
		return err
	}
	known, err := storage.Records(view)
	if err != nil {
		return err
	}
	vms, err := record.All(view)
	if err != nil {
		return err
	}
	return tree(e.Streams.Out, branches(items, slices.Collect(maps.Values(known)), vms))
}
