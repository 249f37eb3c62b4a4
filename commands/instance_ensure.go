package commands

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/documents"
	"github.com/sledctl/sledctl/sled/instance/record"
)

type ensureOptions struct {
	mutation
	specFlags
	manyFlags
	recreate           bool
	protect, unprotect bool
	from, migration    string
}

func newInstanceEnsure(env *Env) *cobra.Command {
	var o ensureOptions
	var far remote
	cmd := &cobra.Command{
		Use:   "ensure [NAME|UUID]",
		Short: "Create, repair or start an instance as described",
		Long: `Create, repair or start an instance as described. If the instance already runs as described, sledctl changes nothing.

What the flags leave open keeps its value; a new instance gets the defaults (docs/instance.md). If the command fails, it undoes what it
created, except with --keep; if it is killed, run it again and it resumes.

With --all it starts every instance that is wanted running, as recorded, e.g. after a reboot of the sled. With --failed it starts only
those that ran since the sled booted and died. If an instance cannot start (its pool is missing, say), the others still do; sledctl
reports it and exits with 3.

With --migrate-from and --migration-id the VM comes from another sled while it runs; instance migrate runs this command on the target
(docs/migration.md). Without them, if an arrival was interrupted, sledctl waits for a VM that is on its way, and removes what was
created for a VM that stayed at its source.`,
		Example: `  sledctl instance ensure web1 --cpus 4 --memory 8G --disk rpool/volumes/web1 --nic over=net0,vlan=100
  sledctl instance ensure -f web1.toml
  sledctl instance ensure web1 --spec machine.json --nic over=net0
  sledctl instance ensure --all`,
		Args: cobra.MaximumNArgs(1),
		RunE: env.run(func(ctx context.Context, args []string) error {
			o.ref(args)
			if err := o.check("instance ensure", len(args) > 0 || o.file != ""); err != nil {
				return err
			}
			if o.protect && o.unprotect {
				return &usageError{text: "instance ensure: --protect and --no-protect exclude each other"}
			}
			if far.is() {
				return ensureRemotely(ctx, env, far, o)
			}
			if o.many() {
				return runEnsureMany(ctx, env, o)
			}
			return runInstanceEnsure(ctx, env, o)
		}),
	}
	o.specFlags.add(env, cmd, true)
	o.mutation.add(cmd, true)
	far.add(cmd)
	o.manyFlags.add(cmd, "every instance that is wanted running")
	cmd.Flags().BoolVar(&o.failed, "failed", false, "every instance that died since the sled booted")
	cmd.Flags().BoolVar(&o.protect, "protect", false, "from now on, delete needs --yes and reap --all skips the instance")
	cmd.Flags().BoolVar(&o.unprotect, "no-protect", false, "remove the protection")
	cmd.Flags().StringVar(&o.from, "migrate-from", "", "IP:PORT of the source Propolis (instance migrate sets it)")
	cmd.Flags().StringVar(&o.migration, "migration-id", "", "UUID of the migration, a new one for each attempt")
	env.complete(cmd, "migrate-from", noWords)
	env.complete(cmd, "migration-id", noWords)
	cmd.Flags().BoolVar(&o.recreate, "recreate", false, "rebuild the zone if a difference needs it: powers the VM off")
	env.addOutput(cmd)
	completeArgs(cmd, env.completeInstances)
	return cmd
}

func runInstanceEnsure(ctx context.Context, e *Env, o ensureOptions) error {
	from, err := o.migrateFrom()
	if err != nil {
		return err
	}
	wanted, err := wantedBy(e, o.specFlags)
	if err != nil {
		return err
	}
	return ensureOne(ctx, e, o.mutation, instance.EnsureRequest{
		Verb: "instance ensure", Wanted: wanted, Recreate: o.recreate, Protect: o.protection(), DryRun: o.dry(), Keep: o.keep,
		From: from, Tell: func(phase string) { e.progress.phase("instance "+wanted.Ref, phase) },
	})
}

// migrateFrom is nil where the machine is made here.
func (o ensureOptions) migrateFrom() (*record.Migration, error) {
	if o.from == "" && o.migration == "" {
		return nil, nil
	}
	at, err := netip.ParseAddrPort(o.from)
	if err != nil || at.Port() == 0 {
		return nil, &usageError{text: fmt.Sprintf("--migrate-from %q: want IP:PORT, as 10.77.0.2:12400", o.from)}
	}
	id, err := uuid.Parse(o.migration)
	if err != nil {
		return nil, &usageError{text: fmt.Sprintf("--migration-id %q: want a UUID", o.migration)}
	}
	if o.recreate {
		return nil, &usageError{text: "instance ensure: --recreate and --migrate-from exclude each other"}
	}
	return &record.Migration{ID: id.String(), Source: at.String()}, nil
}

// protection is nil where it must stay as it is.
func (o ensureOptions) protection() *bool {
	if o.protect || o.unprotect {
		return &o.protect
	}
	return nil
}

// ensureOne runs a change on the bring-up.
func ensureOne(ctx context.Context, e *Env, m mutation, change instance.EnsureRequest) error {
	return e.changeInstance(ctx, m, func(ctx context.Context, s instance.Settings, env operation.Env) (instance.Result, error) {
		return ensureStep(ctx, e, s, env, change)
	})
}

// described joins flags and document, the flags over the document.
func described(streams *terminal.Streams, f specFlags) (instance.Wanted, error) {
	if f.file == "" {
		return f.wanted, nil
	}
	data, err := readDocument(streams, "--file", f.file)
	if err != nil {
		return instance.Wanted{}, err
	}
	below, err := documents.ParseDocument(data, terminal.ParseSize)
	if err != nil {
		return instance.Wanted{}, documentError(f.file, err)
	}
	return f.wanted.Over(below), nil
}

// written is what flags and document describe, with the text of the machine where
// that is a whole, and what it is called.
func written(streams *terminal.Streams, f specFlags) (instance.Wanted, error) {
	w, err := described(streams, f)
	if err != nil {
		return instance.Wanted{}, err
	}
	file := f.spec
	if file == "" && f.file != "" {
		file = beside(f.file, w.MachineFile)
	}
	switch {
	case file == "-" && f.file == "-":
		return instance.Wanted{}, &usageError{text: "--file and --spec cannot both be standard input"}
	case file != "":
		w.MachineFile = file
		w.MachineText, err = readDocument(streams, "--spec", file)
	case w.MachineText != nil:
		w.MachineFile = "spec of " + f.file
	}
	return w, err
}

// wantedBy is what flags and document describe, with the machine where that is a
// whole.
func wantedBy(e *Env, f specFlags) (instance.Wanted, error) {
	w, err := written(e.Streams, f)
	if err != nil {
		return instance.Wanted{}, err
	}
	w, err = withMachine(e, w)
	if w.Machine != nil {
		warnOfSpec(e.progress, w.Machine.File, *w.Machine)
	}
	return w, err
}

// withMachine reads the machine that w has as a text.
func withMachine(e *Env, w instance.Wanted) (instance.Wanted, error) {
	if w.MachineText == nil {
		return w, nil
	}
	server, err := serverHere(e)
	if err != nil {
		return instance.Wanted{}, err
	}
	d, err := parseMachine(w.MachineText, w.MachineFile, spec.ParseOptions{}, server)
	w.Machine, w.MachineFile, w.MachineText = &d, "", nil
	return w, err
}

// warnOfMachine tells of what may not be meant in a machine that another sled reads.
func warnOfMachine(progress *progress, w instance.Wanted) {
	if w.MachineText == nil {
		return
	}
	d, _ := spec.Parse(w.MachineText, spec.ParseOptions{}) // who takes it says what is wrong with it
	warnOfSpec(progress, w.MachineFile, d)
}

func warnOfSpec(progress *progress, file string, d spec.Document) {
	for _, w := range d.Warnings {
		progress.warn(fmt.Errorf("%s: %s", file, w))
	}
}

// beside is a file that a document names: its place is that of the document.
func beside(document, name string) string {
	if name == "" || filepath.IsAbs(name) || document == "-" {
		return name
	}
	return filepath.Join(filepath.Dir(document), name)
}

// readMachine reads a spec or config from a file, as machineOf does.
func readMachine(e *Env, flag, file string, o spec.ParseOptions, on spec.Server) (spec.Document, error) {
	data, err := readDocument(e.Streams, flag, file)
	if err != nil {
		return spec.Document{}, err
	}
	return machineOf(e.progress, data, file, o, on)
}

// machineOf reads a spec or config, as parseMachine does, and tells of what in it
// may not be meant.
func machineOf(progress *progress, data []byte, file string, o spec.ParseOptions, on spec.Server) (spec.Document, error) {
	d, err := parseMachine(data, file, o, on)
	warnOfSpec(progress, file, d)
	return d, err
}

// parseMachine reads a spec or config. If it cannot be read as it was meant, the
// error tells what the server would not take as well.
func parseMachine(data []byte, file string, o spec.ParseOptions, on spec.Server) (spec.Document, error) {
	d, err := spec.Parse(data, o)
	d.File = file
	if err != nil {
		err = d.Check(on)
	}
	return d, err
}

// documentError names the file, and the nearest key for an unknown one.
func documentError(name string, err error) error {
	d, ok := errors.AsType[*documents.DocumentError](err)
	if !ok {
		return fmt.Errorf("%s: %w", name, err)
	}
	e := &usageError{text: name + ": " + d.Error()}
	if near := terminal.Nearest(lastKey(d.Key), d.Known); near != "" {
		e.hint = "did you mean: " + near
	} else if len(d.Known) > 0 {
		e.hint = "known here: " + orWords(d.Known)
	}
	return e
}
