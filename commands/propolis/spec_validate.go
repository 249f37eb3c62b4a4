package propolis

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/description"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/sled/instance"
)

type specValidateOptions struct {
	offline  bool
	features []string
	version  spec.Version
}

func newSpecValidate(env *cli.Env) *cobra.Command {
	var o specValidateOptions
	cmd := &cobra.Command{
		Use:   "validate FILE",
		Short: "Report every problem in a spec or config",
		Long: `Report every problem in a spec or config, in JSON or TOML (- is standard input), including those that would crash a Propolis
server: unknown keys, what a server would refuse, and files and volumes that are missing on this sled. Each problem comes with the path of
its key and its line. Exit 1 if there is one.`,
		Example: `  sledctl propolis spec validate web1.json
  sledctl propolis spec validate --offline --api-version 2 - < web1.toml`,
		Args: cobra.ExactArgs(1),
		RunE: env.Run(func(ctx context.Context, args []string) error { return runSpecValidate(ctx, env, args[0], o) }),
	}
	cmd.Flags().BoolVar(&o.offline, "offline", false, "check the document alone, not the files and volumes that it names")
	addFeatures(env, cmd, &o.features)
	addVersion(env, cmd, &o.version, "version of the API that must be able to express it (default: any)")
	env.AddOutput(cmd)
	return cmd
}

func addFeatures(env *cli.Env, cmd *cobra.Command, features *[]string) {
	cmd.Flags().Var(cli.FuncFlag{Kind: "FEATURE", Read: func(s string) error {
		if !slices.Contains(spec.Features(), s) {
			return fmt.Errorf("want %s", cli.OrWords(spec.Features()))
		}
		*features = append(*features, s)
		return nil
	}}, "feature", "`FEATURE` of the servers: "+cli.OrWords(spec.Features())+"; repeatable")
	env.Complete(cmd, "feature", spec.Features)
}

// invalidError is a document with problems, which were printed.
type invalidError struct {
	file string
	n    int
}

func (e *invalidError) Error() string {
	if e.n == 1 {
		return e.file + ": 1 problem"
	}
	return fmt.Sprintf("%s: %d problems", e.file, e.n)
}

func runSpecValidate(ctx context.Context, e *cli.Env, file string, o specValidateOptions) error {
	if err := problemList().Check(e.Output); err != nil {
		return err
	}
	problems, d, err := validateSpec(ctx, e, file, o)
	if err != nil {
		return err
	}
	for _, doubt := range d.Place(d.Spec.Warnings()) {
		e.Progress.Warn(fmt.Errorf("%s: %s", file, doubt))
	}
	if len(problems) == 0 {
		e.Progress.Say("%s: no problem; API version %s and later can express it", file, d.Spec.Needs())
	}
	if len(problems) > 0 || e.Output.Format == terminal.FormatJSON {
		if err := problemList().Print(e.Streams.Out, e.Output, problems); err != nil {
			return err
		}
	}
	if len(problems) > 0 {
		return &invalidError{file, len(problems)}
	}
	return nil
}

// validateSpec finds all problems of a document, in the order of its lines.
func validateSpec(ctx context.Context, e *cli.Env, file string, o specValidateOptions) ([]spec.Problem, spec.Document, error) {
	server, err := description.Server(e)
	if err != nil {
		return nil, spec.Document{}, err
	}
	server.Features = o.features
	d, err := description.ReadMachine(e, "FILE", file, spec.ParseOptions{}, server)
	if err == nil {
		if err = setBoard(e, &d, instance.Wanted{}); err == nil {
			err = d.Check(server)
		}
	}
	var problems []spec.Problem
	if invalid, ok := errors.AsType[*spec.InvalidError](err); ok {
		problems = invalid.Problems
	} else if err != nil {
		return nil, d, err
	}
	if o.version != 0 {
		_, err := d.Spec.At(o.version)
		if lacking, ok := errors.AsType[*spec.VersionError](err); ok {
			for _, l := range lacking.Lacks {
				problems = append(problems, d.Place([]spec.Problem{{Path: l.Path, What: fmt.Sprintf("%s needs API version %s", l.What, l.Since)}})...)
			}
		}
	}
	if !o.offline {
		h, err := e.Host()
		if err != nil {
			return nil, d, err
		}
		lost, err := instance.LostFiles(ctx, h, d.Spec)
		if err != nil {
			return nil, d, err
		}
		problems = append(problems, d.Place(lost)...)
	}
	slices.SortStableFunc(problems, func(a, b spec.Problem) int { return a.Line - b.Line })
	return problems, d, nil
}
