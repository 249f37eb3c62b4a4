package instance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/description"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/documents"
	"github.com/sledctl/sledctl/sled/instance/record"
)

func newEdit(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "edit NAME|UUID",
		Short: "Edit the document of an instance and apply it",
		Long: `Edit the document of an instance and apply it. The document is that of instance get -o toml; $VISUAL, $EDITOR or vi edits it. A
document with an error comes back with the error on top. Then sledctl shows what would change, and asks; to change an instance that
runs, it rebuilds the zone, which powers the VM off. A document that is not applied is kept in a file (exit 1).`,
		Example: `  sledctl instance edit web1
  EDITOR=nano sledctl instance edit web1`,
		Args: cobra.ExactArgs(1),
		RunE: env.Run(func(ctx context.Context, args []string) error { return runEdit(ctx, env, args[0]) }),
	}
	env.AddOutput(cmd)
	cli.CompleteArgs(cmd, env.CompleteInstances)
	return cmd
}

// edit is one document that is being edited.
type edit struct {
	e    *cli.Env
	s    instance.Settings
	op   operation.Env
	r    record.Record
	file string
}

func runEdit(ctx context.Context, e *cli.Env, ref string) error {
	if !e.Streams.In.Terminal || !e.Streams.Err.Terminal {
		return &cli.UsageError{Text: "instance edit needs a terminal", Advice: "to write the document, run: sledctl instance get NAME -o toml; to apply it, run: sledctl instance ensure -f FILE"}
	}
	d, text, err := documentOf(ctx, e, ref)
	if err != nil {
		return err
	}
	if d.file, err = writeTemporary(d.r.Name, text); err != nil {
		return err
	}
	return d.run(ctx, text)
}

// documentOf is an instance, and the document that describes it.
func documentOf(ctx context.Context, e *cli.Env, ref string) (*edit, string, error) {
	s, op, err := e.Instances(ctx)
	if err != nil {
		return nil, "", err
	}
	view, err := e.View(ctx)
	if err != nil {
		return nil, "", err
	}
	text, r, err := documents.Of(s, view, ref)
	return &edit{e: e, s: s, op: op, r: r}, text, err
}

// run has the document edited until it can be applied, and applies it if the operator
// agrees.
func (d *edit) run(ctx context.Context, text string) error {
	w, err := d.edited(ctx, text)
	switch {
	case errors.Is(err, errUnchanged):
		d.e.Progress.Tell("nothing to do")
		return os.Remove(d.file)
	case err != nil:
		return d.kept(err)
	}
	change := instance.EnsureRequest{Verb: "instance ensure", Wanted: w, DryRun: true}
	question, err := d.planned(ctx, &change)
	if question == "" && err == nil {
		d.e.Progress.Tell("nothing to do")
		return os.Remove(d.file)
	}
	if err == nil {
		err = d.e.Streams.Confirm(ctx, "change instance "+d.r.Name, question, false)
	}
	if err != nil {
		return d.kept(err)
	}
	change.DryRun = false
	if err := ensureOne(ctx, d.e, cli.Mutation{}, change); err != nil {
		d.e.Progress.Tell("the document is kept in " + d.file)
		return err
	}
	return os.Remove(d.file)
}

// errUnchanged is a document that is as it was.
var errUnchanged = errors.New("unchanged")

// edited is what the edited document asks for. One with an error comes back to the editor,
// with the error on top, until it is left as it is.
func (d *edit) edited(ctx context.Context, text string) (instance.Wanted, error) {
	for before := text; ; {
		if err := editor(ctx, d.e, d.file); err != nil {
			return instance.Wanted{}, err
		}
		data, err := os.ReadFile(d.file)
		if err != nil {
			return instance.Wanted{}, err
		}
		now := withoutError(string(data))
		if now == text {
			return instance.Wanted{}, errUnchanged
		}
		w, err := d.wanted(ctx, now)
		if err == nil || string(data) == before {
			return w, err
		}
		before = errorMark + terminal.Printable(err.Error()) + "\n" + now
		if err := os.WriteFile(d.file, []byte(before), 0o600); err != nil {
			return w, err
		}
	}
}

// errorMark begins the line with the error of a document.
const errorMark = "# error: "

// withoutError is a document without the error on top.
func withoutError(text string) string {
	if rest, marked := strings.CutPrefix(text, errorMark); marked {
		_, text, _ = strings.Cut(rest, "\n")
	}
	return text
}

// wanted reads the document. It is whole: a disk, a NIC or a start order that is not in it is not
// wanted.
func (d *edit) wanted(ctx context.Context, text string) (instance.Wanted, error) {
	w, err := documents.ParseDocument([]byte(text), terminal.ParseSize)
	if err != nil {
		return w, description.ErrorOf(d.r.Name, err)
	}
	name := w.Ref
	if uuid.Validate(w.Ref) == nil {
		name = w.Name
		if w.Ref != d.r.ID {
			return w, &cli.UsageError{Text: fmt.Sprintf("id: %s is not that of instance %q", w.Ref, d.r.Name)}
		}
	}
	if w.Name = cmp.Or(name, d.r.Name); w.Name != d.r.Name {
		return w, &cli.UsageError{Text: fmt.Sprintf("name: want %q: the name of an instance stays", d.r.Name)}
	}
	w.Ref = d.r.ID
	if w.NICs == nil {
		w.NICs = []record.NIC{}
	}
	if w.StartOrder == nil {
		w.StartOrder = new(record.StartOrder)
	}
	if w, err = description.Files(d.e.Streams, w); err != nil {
		return w, err
	}
	w.CloudInit = w.CloudInit.Whole()
	if w.Disks == nil && w.MachineText == nil && w.MachineFile == "" {
		w.Disks = []record.Disk{}
	}
	if w.MachineText != nil {
		w.MachineFile = "spec of " + d.r.Name
	}
	return description.Complete(ctx, d.e, w)
}

// planned prints what the change would do. It returns the question to ask; empty: there is
// nothing to do. What differs of a VM that runs needs the zone to be rebuilt.
func (d *edit) planned(ctx context.Context, change *instance.EnsureRequest) (question string, err error) {
	result, err := d.s.Ensure(ctx, d.op, *change)
	if conflict, is := errors.AsType[*instance.ConflictError](err); is && conflict.Recreate {
		for _, differs := range conflict.Differences {
			fmt.Fprintf(d.e.Streams.Err, "%s: %s -> %s\n", differs.Field, terminal.Printable(differs.Is), terminal.Printable(differs.Wanted))
		}
		fmt.Fprint(d.e.Streams.Err, d.reordered(change.Wanted))
		change.Recreate = true
		return fmt.Sprintf("Rebuild %s, which powers the VM off?", d.r.Name), nil
	}
	if err != nil {
		return "", err
	}
	text, err := result.Report.Plan.Text(false, d.e.Output.Fold(d.e.Streams.Err))
	if text += d.reordered(change.Wanted); text == "" || err != nil {
		return "", err
	}
	fmt.Fprint(d.e.Streams.Err, text)
	return fmt.Sprintf("Apply this to %s?", d.r.Name), nil
}

// reordered are the lines about another start order and other cloud-init data, which are in no
// plan; empty: they stay.
func (d *edit) reordered(w instance.Wanted) (lines string) {
	if *w.StartOrder != d.r.Spec.StartOrder {
		lines = fmt.Sprintf("start-order: %s -> %s\n", d.r.Spec.StartOrder, *w.StartOrder)
	}
	if is, next := d.r.Spec.CloudInit, w.CloudInit.Apply(d.r.Spec.CloudInit); !next.Same(is) {
		lines += fmt.Sprintf("cloud-init: %s -> %s, when it is brought up next\n", is.Text(), next.Text())
	}
	return lines
}

// keptError is a document that was not applied.
type keptError struct {
	file string
	err  error
}

// Error says why, and where it is.
func (e *keptError) Error() string { return fmt.Sprintf("not applied: %v", e.err) }

func (*keptError) Kind() fault.Kind { return fault.Failed }

// Hint says how to apply it.
func (e *keptError) Hint() string {
	return "to apply the document, which is kept, run: sledctl instance ensure -f " + e.file
}

func (d *edit) kept(err error) error { return &keptError{d.file, err} }

func writeTemporary(name, text string) (string, error) {
	f, err := os.CreateTemp("", "sledctl-"+name+"-*.toml")
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(text)
	return f.Name(), errors.Join(err, f.Close())
}

// editor runs the operator's editor on a file. The variable may have arguments, so a shell
// reads it.
func editor(ctx context.Context, e *cli.Env, file string) error {
	program := cmp.Or(cli.Variable(e.Environ, "VISUAL"), cli.Variable(e.Environ, "EDITOR"), "vi")
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", program+` "$1"`, "sh", file)
	if in, is := e.Streams.In.Reader.(*os.File); is {
		cmd.Stdin = in
	}
	cmd.Stdout, cmd.Stderr = e.Streams.Out.Writer, e.Streams.Err.Writer
	cmd.Env = e.Environ
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", program, err)
	}
	return nil
}
