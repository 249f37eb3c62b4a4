package commands

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/config"
	"github.com/sledctl/sledctl/disk"
	"github.com/sledctl/sledctl/key"
	"github.com/sledctl/sledctl/ledger"
	"github.com/sledctl/sledctl/storage"
	"github.com/sledctl/sledctl/terminal"
)

func newStorage(env *Env) *cobra.Command {
	cmd := group("storage", "Disks, the pool on each, and the datasets that each pool must have", `
Of the sled's disks, M.2s hold the state file and what else must outlive everything, U.2s zone roots and what customers keep, encrypted. What must
be there is made by bootstrap; these commands show it, say what differs, and do what only an operator may decide.`)
	cmd.AddCommand(newStorageList(env), newStorageCheck(env), newStorageFormat(env), newStorageForget(env), newStorageRekey(env))
	return cmd
}

// storage is the noun, with the settings of the sled.
func (e *Env) storage() (storage.Settings, error) {
	c, err := e.Config()
	if err != nil {
		return storage.Settings{}, err
	}
	return storageSettings(c)
}

func itemList() terminal.List[storage.Item] {
	type column = terminal.Column[storage.Item]
	style := func(i storage.Item) terminal.Style {
		switch i.State {
		case "ready":
			return terminal.Good
		case "blank", "differs", "exported":
			return terminal.Warn
		}
		return terminal.Bad
	}
	size := func(n uint64) string {
		if n == 0 {
			return "-"
		}
		return terminal.FormatSize(n)
	}
	return terminal.List[storage.Item]{Kind: "Storage", Name: func(i storage.Item) string { return i.Name }, Columns: []column{
		{Name: "kind", Value: func(i storage.Item) string { return i.Kind }},
		{Name: "name", Value: func(i storage.Item) string { return i.Name }, Whole: true},
		{Name: "state", Value: func(i storage.Item) string { return i.State }, Style: style},
		{Name: "on", Value: func(i storage.Item) string { return i.On }},
		{Name: "size", Value: func(i storage.Item) string { return size(i.Size) }, Right: true},
		{Name: "free", Value: func(i storage.Item) string { return size(i.Free) }, Right: true},
		{Name: "reason", Value: func(i storage.Item) string { return i.Reason }},
		{Name: "pool", Value: func(i storage.Item) string { return i.Pool }, Extra: true},
		{Name: "serial", Value: func(i storage.Item) string { return i.Serial }, Extra: true},
	}}
}

func newStorageList(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List disks, pools and datasets: how they are, and what differs",
		Example: `  sledctl storage list
  sledctl storage list -H --columns name,state,pool | grep '^c'`,
		Args: cobra.NoArgs,
		RunE: env.run(func(ctx context.Context, _ []string) error { return runStorageList(ctx, env) }),
	}
	env.addOutput(cmd)
	return cmd
}

func runStorageList(ctx context.Context, e *Env) error {
	if err := itemList().Check(e.output); err != nil {
		return err
	}
	s, err := e.storage()
	if err != nil {
		return err
	}
	h, err := e.Host()
	if err != nil {
		return err
	}
	items, err := s.List(ctx, h, e.maybeView(ctx))
	if err != nil {
		return err
	}
	return itemList().Print(e.Streams.Out, e.output, items)
}

func driftList() terminal.List[storage.Drift] {
	type column = terminal.Column[storage.Drift]
	style := func(d storage.Drift) terminal.Style {
		if d.Mended == "bootstrap" {
			return terminal.Warn
		}
		return terminal.Bad
	}
	return terminal.List[storage.Drift]{Kind: "Difference", Name: func(d storage.Drift) string { return d.Name }, Columns: []column{
		{Name: "kind", Value: func(d storage.Drift) string { return d.Kind }},
		{Name: "name", Value: func(d storage.Drift) string { return d.Name }, Whole: true},
		{Name: "property", Value: func(d storage.Drift) string { return d.Property }},
		{Name: "is", Value: func(d storage.Drift) string { return d.Is }},
		{Name: "wanted", Value: func(d storage.Drift) string { return d.Wanted }},
		{Name: "mended_by", Value: func(d storage.Drift) string { return d.Mended }, Style: style},
		{Name: "reason", Value: func(d storage.Drift) string { return d.Reason }},
	}}
}

func newStorageCheck(env *Env) *cobra.Command {
	detailed := false
	cmd := &cobra.Command{
		Use: "check", Short: "List what is otherwise than it must be, and who mends it",
		Long: `List what is otherwise than it must be: on which disk, pool or dataset, what it is and what it must be, and whether bootstrap
mends it or an operator must. Nothing is changed.`,
		Example: `  sledctl storage check --detailed-exitcode || sledctl bootstrap`,
		Args:    cobra.NoArgs,
		RunE:    env.run(func(ctx context.Context, _ []string) error { return runStorageCheck(ctx, env, detailed) }),
	}
	cmd.Flags().BoolVar(&detailed, "detailed-exitcode", false, "exit 10 if there are differences")
	env.addOutput(cmd)
	return cmd
}

func runStorageCheck(ctx context.Context, e *Env, detailed bool) error {
	if err := driftList().Check(e.output); err != nil {
		return err
	}
	s, err := e.storage()
	if err != nil {
		return err
	}
	h, err := e.Host()
	if err != nil {
		return err
	}
	drifts, err := s.Check(ctx, h, e.maybeView(ctx))
	if err != nil {
		return err
	}
	if err := driftList().Print(e.Streams.Out, e.output, drifts); err != nil {
		return err
	}
	if detailed && len(drifts) > 0 {
		return errDifferences
	}
	return nil
}

func newStorageFormat(env *Env) *cobra.Command {
	var m mutation
	yes := false
	cmd := &cobra.Command{
		Use: "format DISK ...", Short: "Make a pool, and its datasets, on disks that are proven blank",
		Long: `Make a pool, and the datasets that it must have, on disks that are named by their name, slot (u2:3) or serial number. A disk
that is not proven blank is refused, whatever is said: sledctl overwrites nothing.`,
		Example: `  sledctl storage format u2:3
  sledctl storage format c14t0d0 --yes`,
		Args: cobra.MinimumNArgs(1),
		RunE: env.run(func(ctx context.Context, disks []string) error { return runStorageFormat(ctx, env, m, disks, yes) }),
	}
	m.add(cmd, false)
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	env.addOutput(cmd)
	completeArgs(cmd, env.completeDisks)
	return cmd
}

func runStorageFormat(ctx context.Context, e *Env, m mutation, disks []string, yes bool) error {
	s, err := e.storage()
	if err != nil {
		return err
	}
	env, err := e.operation()
	if err != nil {
		return err
	}
	s.Format = disks
	e.warnOfKeys(s)
	if !m.dry() {
		if _, err := s.FormatDisks(ctx, env, true); err != nil {
			return err
		}
		what := "formatting " + strings.Join(disks, ", ")
		if err := e.Streams.Confirm(ctx, what, "Format "+strings.Join(disks, ", ")+"?", yes); err != nil {
			return err
		}
	}
	reports, err := s.FormatDisks(ctx, env, m.dry())
	if err != nil {
		return withReport(err, reports...)
	}
	if m.dry() {
		return e.printPlan(m, reports...)
	}
	if err := e.attest(ctx); err != nil && !errors.Is(err, ledger.ErrAbsent) {
		e.progress.warn(err) // the disk is there; bootstrap tells it
	}
	return runStorageList(ctx, e)
}

func newStorageForget(env *Env) *cobra.Command {
	yes := false
	cmd := &cobra.Command{
		Use: "forget DISK", Short: "Expect a disk no more: it was taken out, or its pool was exchanged on purpose",
		Long: `Drop the record of a disk. As long as there is one, its absence is reported, and any pool on it but the recorded one is
refused. The disk itself is not touched.`,
		Example: `  sledctl storage forget u2:3 --yes`,
		Args:    cobra.ExactArgs(1),
		RunE: env.run(func(ctx context.Context, disks []string) error {
			return runStorageForget(ctx, env, disks[0], yes)
		}),
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	completeArgs(cmd, env.completeDisks)
	return cmd
}

func runStorageForget(ctx context.Context, e *Env, disk string, yes bool) error {
	s, err := e.storage()
	if err != nil {
		return err
	}
	env, err := e.operation()
	if err != nil {
		return err
	}
	r, err := s.Forget(ctx, env, disk, true)
	if err != nil {
		return err
	}
	if err := e.Streams.Confirm(ctx, "forgetting disk "+r.Name, fmt.Sprintf("Forget disk %s (%s), with pool %s?", r.Name, r.Serial, r.Pool), yes); err != nil {
		return err
	}
	_, err = s.Forget(ctx, env, disk, false)
	return err
}

func newStorageRekey(env *Env) *cobra.Command {
	var m mutation
	cmd := &cobra.Command{
		Use: "rekey", Short: "Give every encrypted dataset a key of the latest epoch",
		Long: `Give every U.2's encrypted dataset a key that is derived from the latest secret of the key source. Those that have one are left
alone: what was interrupted is finished by running it again. Data is not encrypted anew; ZFS wraps the keys that it is encrypted with.`,
		Example: `  sledctl storage rekey --dry-run
  sledctl storage rekey`,
		Args: cobra.NoArgs,
		RunE: env.run(func(ctx context.Context, _ []string) error { return runStorageRekey(ctx, env, m) }),
	}
	m.add(cmd, false)
	env.addOutput(cmd)
	return cmd
}

func runStorageRekey(ctx context.Context, e *Env, m mutation) error {
	s, err := e.storage()
	if err != nil {
		return err
	}
	env, err := e.operation()
	if err != nil {
		return err
	}
	if err := e.stateFile(ctx); err != nil {
		return err // whatever else is missing too
	}
	e.warnOfKeys(s)
	report, err := s.Rekey(ctx, env, m.dry())
	if err != nil {
		return withReport(err, report)
	}
	if m.dry() {
		return e.printPlan(m, report)
	}
	return runStorageList(ctx, e)
}

// maybeView is what the ledger says, where there is one: what is on the disks
// can be told without.
func (e *Env) maybeView(ctx context.Context) ledger.View {
	view, err := e.view(ctx)
	if err != nil && !errors.Is(err, ledger.ErrAbsent) {
		e.progress.warn(err)
	}
	return view
}

// completeDisks offers the disks that there are.
func (e *Env) completeDisks(ctx context.Context) []string {
	s, err := e.storage()
	if err != nil {
		return nil
	}
	h, err := e.Host()
	if err != nil {
		return nil
	}
	seen, err := s.Look(ctx, h)
	if err != nil {
		return nil
	}
	var names []string
	for _, f := range seen.Disks {
		names = append(names, f.Name)
	}
	return names
}

// storageSettings are the settings of the storage noun.
func storageSettings(c config.Config) (storage.Settings, error) {
	s := storage.Settings{Keys: keys(c), Dir: vdevDir(c), Disks: sources(c.Storage)}
	for _, text := range c.Storage.Datasets {
		own, err := storage.ParseOwn(text, terminal.ParseSize)
		if err != nil {
			return s, fmt.Errorf("storage.datasets: %w", err)
		}
		s.Own = append(s.Own, own)
	}
	return s, nil
}

// sources are where disks are looked for.
func sources(c config.Storage) []disk.Source {
	var all []disk.Source
	if c.Slots != "none" {
		all = append(all, disk.Detect{Board: c.Slots})
	}
	if len(c.Vdevs) > 0 {
		all = append(all, disk.Vdevs{Dir: c.VdevDir, Names: c.Vdevs})
	}
	var devices disk.Devices
	for _, device := range c.Devices {
		kind, name, _ := strings.Cut(device, ":")
		devices = append(devices, disk.Device{Kind: disk.Kind(kind), Path: name})
	}
	if len(devices) > 0 {
		all = append(all, devices)
	}
	return all
}

// vdevDir is where pools lie on files, if they do.
func vdevDir(c config.Config) string {
	if len(c.Storage.Vdevs) == 0 {
		return ""
	}
	return c.Storage.VdevDir
}

// keys are the keys of encrypted disks, from the configured source.
func keys(c config.Config) *key.Ring {
	dir := path.Join(c.Paths.Run, "key")
	switch how, what, _ := strings.Cut(c.Storage.Key, ":"); how {
	case "development":
		return key.NewRing(key.Development{}, dir)
	case "file":
		return key.NewRing(key.File{Name: what}, dir)
	case "command":
		return key.NewRing(key.Command{Argv: strings.Fields(what)}, dir)
	}
	return nil
}

// warnOfKeys says what the operator must know of the key source.
func (e *Env) warnOfKeys(s storage.Settings) {
	if s.Keys != nil && s.Keys.Source().Warning() != "" {
		e.book.warn(s.Keys.Source().Warning())
	}
}
