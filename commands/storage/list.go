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
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/illumos/disk"
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

// options are the flags of list.
type options struct {
	kind, pool string
	flat       bool
	depth      int
}

func newList(env *cli.Env) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List disks, pools and datasets, and what differs",
		Example: `  sledctl storage list
  sledctl storage list --tree=2
  sledctl storage list --pool rpool
  sledctl storage list --kind dataset -H --columns name,mountpoint`,
		Args: cobra.NoArgs,
		RunE: env.Run(func(ctx context.Context, _ []string) error { return runList(ctx, env, o) }),
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.flat, "flat", false, "print one object after the other on a terminal, too, not disk by disk")
	flags.IntVar(&o.depth, "tree", 1, "`DEPTH` on a terminal: 1 is disks and pools, 2 also the datasets")
	flags.StringVar(&o.kind, "kind", "", "only this kind, with its columns: disk, pool or dataset")
	flags.StringVar(&o.pool, "pool", "", "only this `POOL`, or what its name begins with, its disk and datasets")
	env.Complete(cmd, "kind", storage.Kinds)
	env.CompleteFlag(cmd, "pool", env.CompletePools)
	env.AddOutput(cmd)
	return cmd
}

func runList(ctx context.Context, e *cli.Env, o options) error {
	switch {
	case o.depth < 1 || o.depth > 2:
		return &cli.UsageError{Text: fmt.Sprintf("--tree %d: want 1 or 2", o.depth)}
	case o.depth > 1 && (o.flat || o.kind != ""):
		return &cli.UsageError{Text: "--tree 2 cannot be given with --flat or --kind: those print no tree"}
	}
	if o.kind != "" && !slices.Contains(storage.Kinds(), o.kind) {
		text := fmt.Sprintf("--kind %q: want %s", o.kind, strings.Join(storage.Kinds(), ", "))
		if near := naming.Nearest(o.kind, storage.Kinds()); near != "" {
			text = fmt.Sprintf("--kind %q: did you mean %s?", o.kind, near)
		}
		return &cli.UsageError{Text: text}
	}
	if err := itemList(o.kind).Check(e.Output); err != nil {
		return err
	}
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
	if o.pool != "" {
		if items, err = ofPool(items, known, o.pool); err != nil {
			return err
		}
	}
	if o.kind == "" && !o.flat && e.Output.Screen(e.Streams.Out) {
		return printTree(e, view, known, items, o)
	}
	return printPicked(e, o.kind, items, func(i storage.Item) bool { return o.kind == "" || i.Kind == o.kind })
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
	return printPicked(e, kind, items, pick)
}

func printPicked(e *cli.Env, kind string, items []storage.Item, pick func(storage.Item) bool) error {
	for i := range items {
		if r := items[i].Remedy; r != nil {
			items[i].Remedy = &storage.Remedy{Hands: r.Hands, Next: e.Afar.Each(r.Next), Instead: e.Afar.Typed(r.Instead)}
		}
	}
	return itemList(kind).Print(e.Streams.Out, e.Output, slices.DeleteFunc(items, func(i storage.Item) bool { return !pick(i) }))
}

// ofPool are a pool, its disk, also if that is absent, and its datasets. A name is the whole of it, or its
// beginning, if no other pool begins so.
func ofPool(items []storage.Item, known map[disk.Identity]storage.Record, name string) ([]storage.Item, error) {
	poolOf := func(i storage.Item) string {
		if i.Kind == "pool" {
			return i.Name
		}
		for _, r := range known {
			if i.Kind == "disk" && i.Pool == "" && i.Name == r.Name {
				return r.Pool
			}
		}
		return i.Pool
	}
	var all, begin []string
	for _, i := range items {
		pool := poolOf(i)
		if pool == "" || slices.Contains(all, pool) {
			continue
		}
		if all = append(all, pool); strings.HasPrefix(pool, name) {
			begin = append(begin, pool)
		}
	}
	switch {
	case slices.Contains(all, name):
	case len(begin) == 1:
		name = begin[0]
	case len(begin) > 1:
		return nil, &cli.UsageError{Text: fmt.Sprintf("--pool %s: several pools begin so", name), Advice: "give one of " + cli.OrWords(begin)}
	default:
		return nil, &cli.NotFoundError{What: "pool " + name, List: "sledctl storage list --kind pool", Near: naming.Nearest(name, all)}
	}
	return slices.DeleteFunc(items, func(i storage.Item) bool { return poolOf(i) != name }), nil
}

// printTree prints disk by disk, for people; to the second depth, also the datasets.
func printTree(e *cli.Env, view ledger.View, known map[disk.Identity]storage.Record, items []storage.Item, o options) error {
	vms, err := record.All(view)
	if err != nil {
		return err
	}
	all := branches(items, slices.Collect(maps.Values(known)), vms)
	for i := range all {
		if o.depth > 1 || o.pool != "" {
			all[i].datasets(items)
		}
		if of := all[i].pool; o.pool != "" && slices.Equal(all[i].remedies, []string{"sledctl storage list --pool " + of}) {
			all[i].remedies = []string{"sledctl instance list --filter pool=" + of} // this is that list
		}
	}
	for i := range all {
		for n, said := range all[i].remedies {
			all[i].remedies[n] = e.Afar.Typed(said)
		}
	}
	return tree(e.Streams.Out, all)
}
