package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sled/instance/documents"
	"github.com/sledctl/sledctl/sled/instance/secrets"
)

type importOptions struct {
	dryRun, replace, foreign bool
}

func newLedgerImport(env *Env) *cobra.Command {
	var o importOptions
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Take back what ledger export has printed",
		Long: `Take back what sledctl ledger export has printed, where the state file was lost: the instances, with their names, addresses, MACs, machines and
protection, and how earlier VMs ended. What it says of disks, bases and the network is not taken: that is of the sled as it was then, and bootstrap
has found it anew. Nothing of the sled is changed: sledctl instance ensure --all brings up what is wanted to run. - is standard input.

It is refused (exit 8) where FILE is of another state file than this one, or the one that this one was begun in place of; --foreign takes it all
the same. An instance that is known otherwise is a conflict (exit 5), and nothing is taken; --replace takes FILE's. What is known as it is in FILE
stays: to run it again changes nothing.`,
		Example: `  sledctl ledger import facts.json --dry-run
  sledctl ledger import facts.json`,
		Args: cobra.ExactArgs(1),
		RunE: env.run(func(ctx context.Context, args []string) error { return runLedgerImport(ctx, env, o, args[0]) }),
	}
	flags := cmd.Flags()
	flags.BoolVarP(&o.dryRun, "dry-run", "n", false, "print what would be taken, and take nothing")
	flags.BoolVar(&o.replace, "replace", false, "take an instance that is known otherwise as it is in FILE")
	flags.BoolVar(&o.foreign, "foreign", false, "take it although it is of another state file")
	env.addOutput(cmd)
	return cmd
}

func importedList() terminal.List[documents.Imported] {
	type column = terminal.Column[documents.Imported]
	return terminal.List[documents.Imported]{Kind: "LedgerImport", Name: func(i documents.Imported) string { return i.Key }, Columns: []column{
		{Name: "action", Value: func(i documents.Imported) string { return i.Action }, Whole: true},
		{Name: "key", Value: func(i documents.Imported) string { return i.Key }, Whole: true},
		{Name: "name", Value: func(i documents.Imported) string { return i.Name }},
	}}
}

func runLedgerImport(ctx context.Context, e *Env, o importOptions, name string) error {
	if err := importedList().Check(e.output); err != nil {
		return err
	}
	data, err := readNamed(e.Streams, name)
	if err != nil {
		return &usageError{text: err.Error()}
	}
	file, err := parseExport(data)
	if err != nil {
		return &usageError{text: fmt.Sprintf("%s: %v", name, err)}
	}
	for _, why := range file.Unconfirmed {
		e.progress.warn(fmt.Errorf("the file may lack something: %s", why))
	}
	s, env, err := e.instances(ctx)
	if err != nil {
		return err
	}
	if !o.dryRun {
		if err := host.Privileged(env.Host); err != nil {
			return err
		}
	}
	book, err := e.Ledger(ctx)
	if err != nil {
		return err
	}
	var taken documents.Import
	decide := func(view ledger.View) ([]ledger.Fact, error) {
		if err := file.suits(view, o.foreign); err != nil {
			return nil, err
		}
		var err error
		taken, err = documents.TakeBack(view, file.Facts, o.replace)
		return taken.Facts, err
	}
	if o.dryRun {
		view, rerr := book.Read(ctx)
		if rerr != nil {
			return rerr
		}
		_, err = decide(view)
	} else {
		_, err = book.Update(ctx, decide)
	}
	if err == nil && !o.dryRun {
		err = secrets.Apart(ctx, s.SecretDir, env) // of an export of an earlier sledctl
	}
	if err != nil {
		return err
	}
	return importedList().Print(e.Streams.Out, e.output, taken.Told)
}

// exportFile is what ledger export prints.
type exportFile struct {
	APIVersion  string   `json:"apiVersion"`
	Kind        string   `json:"kind"`
	Unconfirmed []string `json:"unconfirmed"`
	shownExport
}

// parseExport reads what ledger export has printed.
func parseExport(data []byte) (exportFile, error) {
	var file exportFile
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		return exportFile{}, fmt.Errorf("want what ledger export prints: %w", err)
	}
	if file.APIVersion != terminal.APIVersion || file.Kind != "LedgerExport" || file.Ledger == "" {
		return exportFile{}, fmt.Errorf("want apiVersion %q and kind %q, as ledger export prints, not %q and %q", terminal.APIVersion, "LedgerExport", file.APIVersion, file.Kind)
	}
	return file, nil
}

// suits refuses what is another sled's.
func (x shownExport) suits(view ledger.View, foreign bool) error {
	given := func(e ledger.Epoch) bool { return e.Despite != nil && e.Despite.Ledger == x.Ledger }
	if foreign || x.Ledger == view.Ledger() || slices.ContainsFunc(view.Epochs(), given) {
		return nil
	}
	return &refusedError{
		err:  fmt.Errorf("the file is of state file %s; this sled's is %s, and was not begun in place of that", x.Ledger, view.Ledger()),
		hint: "on the sled that it is of, it is taken; --foreign takes it here",
	}
}
