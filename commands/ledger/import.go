package ledger

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sled/failure"
	"github.com/sledctl/sledctl/sled/instance/documents"
	"github.com/sledctl/sledctl/sled/instance/secrets"
)

type importOptions struct {
	dryRun, replace, foreign bool
}

func newImport(env *cli.Env) *cobra.Command {
	var o importOptions
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Restore instances from a ledger export",
		Long: `Restore instances from a ledger export, after the ledger was lost: with their names, addresses, MACs, VMs and protection, and how
earlier VMs ended. sledctl does not import disks, bases and the network: they describe the sled as it was, and bootstrap has read them
again. The command changes nothing on the sled: sledctl instance ensure --all starts what is wanted running. - is standard input.

sledctl refuses (exit 8) a FILE from a ledger other than this one or its predecessor; --foreign imports it all the same. An instance that
is recorded with other values is a conflict (exit 5), and nothing is imported; --replace imports the values of FILE. What is recorded as
in FILE stays: a second run changes nothing.`,
		Example: `  sledctl ledger import facts.json --dry-run
  sledctl ledger import facts.json`,
		Args: cobra.ExactArgs(1),
		RunE: env.Run(func(ctx context.Context, args []string) error { return runImport(ctx, env, o, args[0]) }),
	}
	flags := cmd.Flags()
	flags.BoolVarP(&o.dryRun, "dry-run", "n", false, "print what would be imported; import nothing")
	flags.BoolVar(&o.replace, "replace", false, "replace instances that are recorded with other values")
	flags.BoolVar(&o.foreign, "foreign", false, "import FILE although it is from another ledger")
	env.AddOutput(cmd)
	return cmd
}

func importedList() terminal.List[documents.Imported] {
	type column = terminal.Column[documents.Imported]
	return terminal.List[documents.Imported]{Kind: "LedgerImport", Name: func(i documents.Imported) string { return i.Key }, Columns: []column{
		{Name: "action", Value: func(i documents.Imported) string { return i.Action }},
		{Name: "key", Value: func(i documents.Imported) string { return i.Key }},
		{Name: "name", Value: func(i documents.Imported) string { return i.Name }},
	}}
}

func runImport(ctx context.Context, e *cli.Env, o importOptions, name string) error {
	if err := importedList().Check(e.Output); err != nil {
		return err
	}
	data, err := cli.ReadNamed(e.Streams, name)
	if err != nil {
		return err
	}
	file, err := parseExport(data)
	if err != nil {
		return &cli.UsageError{Text: fmt.Sprintf("%s: %v", name, err)}
	}
	for _, why := range file.Unconfirmed {
		e.Progress.Warn(fmt.Errorf("the file may lack something: %s", why))
	}
	s, env, err := e.Instances(ctx)
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
	return importedList().Print(e.Streams.Out, e.Output, taken.Told)
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
	given := func(e ledger.Epoch) bool { return e.Overrides != nil && e.Overrides.Ledger == x.Ledger }
	if foreign || x.Ledger == view.Ledger() || slices.ContainsFunc(view.Epochs(), given) {
		return nil
	}
	return &failure.RefusedError{
		Err:    fmt.Errorf("the file is of ledger %s; this sled's is %s, and was not begun in place of that", x.Ledger, view.Ledger()),
		Advice: "import it on the sled that it is of; or, to take it here, add --foreign",
	}
}
