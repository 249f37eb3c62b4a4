package zfs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sledctl/sledctl/host"
)

// List lists the roots and every file system, volume and snapshot below them in
// zfs's order: parents before children, snapshots behind their dataset. It is
// one command. More names the user properties wanted, and those of Extended. A
// root that does not exist fails the whole listing. Errors: *NameError;
// ErrSyntax; a *host.CommandError, of host.ErrNotFound for a root that is not
// there.
func List(ctx context.Context, h host.Host, roots, more []string) ([]Dataset, error) {
	return list(ctx, h, roots, native(), more, func(p []string) host.Command { return listCommand(roots, p) })
}

func list(ctx context.Context, h host.Host, roots, native, more []string, ask func(properties []string) host.Command) ([]Dataset, error) {
	if len(roots) == 0 {
		return nil, nil // zfs get would list everything
	}
	properties, err := wanted(native, more)
	if err == nil {
		err = validateAll(roots)
	}
	if err != nil {
		return nil, fmt.Errorf("list datasets: %w", err)
	}
	datasets, err := query(ctx, h, properties, roots, ask)
	if err != nil {
		return nil, fmt.Errorf("list datasets: %w", err)
	}
	return datasets, nil
}

func validateAll(names []string) error {
	for _, name := range names {
		if err := ValidateName(name); err != nil {
			return err
		}
	}
	return nil
}

// Get looks at one file system, volume or snapshot. Errors: as of List.
func Get(ctx context.Context, h host.Host, name string, more ...string) (Dataset, error) {
	if err := validateEither(name); err != nil {
		return Dataset{}, err
	}
	properties, err := wanted(native(), more)
	if err != nil {
		return Dataset{}, fmt.Errorf("look at dataset %s: %w", name, err)
	}
	found, err := query(ctx, h, properties, []string{name}, func(p []string) host.Command { return getCommand(name, p) })
	if err == nil && (len(found) != 1 || found[0].Name != name) {
		err = fmt.Errorf("zfs get shows other datasets: %w", ErrSyntax)
	}
	if err != nil {
		return Dataset{}, fmt.Errorf("look at dataset %s: %w", name, err)
	}
	return found[0], nil
}

// near gives a dataset, and the names of its children and snapshots.
func near(ctx context.Context, h host.Host, name string) (Dataset, []string, error) {
	properties := []string{"type", "guid", "mountpoint", "mounted"}
	found, err := query(ctx, h, properties, []string{name}, func(p []string) host.Command { return nearCommand(name, p) })
	if err != nil {
		return Dataset{}, nil, err
	}
	i := slices.IndexFunc(found, func(d Dataset) bool { return d.Name == name })
	if i < 0 {
		return Dataset{}, nil, fmt.Errorf("zfs get does not show %s: %w", name, ErrSyntax)
	}
	var others []string
	for j, d := range found {
		if j != i {
			others = append(others, d.Name)
		}
	}
	return found[i], others, nil
}

// query asks for the properties that this zfs has.
func query(ctx context.Context, h host.Host, properties, names []string, ask func([]string) host.Command) ([]Dataset, error) {
	for {
		has := without(properties, lacking(h))
		c := ask(has)
		r, err := h.Run(ctx, c)
		switch {
		case err != nil:
			return nil, err
		case r.Exit == 0:
			return ParseDatasets(r.Stdout, has)
		case !learn(h, r, &properties):
			return nil, failure(c, r, names...)
		}
	}
}

// wanted are native properties, and more.
func wanted(native, more []string) ([]string, error) {
	properties := slices.Clone(native)
	for _, m := range more {
		if err := validateProperty(m); err != nil {
			return nil, err
		}
		if !userProperty(m) && !slices.Contains(Extended(), m) && !slices.Contains(ofVolumes(), m) {
			return nil, &NameError{What: "property", Name: m, Reason: "is no user property: it has no ':'"}
		}
		if !slices.Contains(properties, m) {
			properties = append(properties, m)
		}
	}
	return properties, nil
}

func validateEither(name string) error {
	if err := ValidateSnapshotName(name); err == nil {
		return nil
	}
	return ValidateName(name)
}

// run runs a command that changes something and types its failure.
func run(ctx context.Context, h host.Host, c host.Command, names ...string) error {
	r, err := h.Run(ctx, c)
	switch {
	case err == nil && r.Exit != 0:
		err = failure(c, r, names...)
	case err != nil && r.Exit != 0: // it has lost its input
		err = fmt.Errorf("%w; %w", err, failure(c, r, names...))
	}
	return err
}

// ended says that a command has come to its end, though a bad one.
func ended(err error) bool {
	_, early := errors.AsType[*host.InputError](err)
	return early || isCommandError(err)
}

func isCommandError(err error) bool {
	_, ok := errors.AsType[*host.CommandError](err)
	return ok
}

// patiently repeats what is host.ErrBusy (host.Patiently).
//
// Guess free-after-halt: a file system is free within seconds after its zone was halted: what is
// busy is tried again, with pauses from 20 ms to 1 s, until the step's deadline.
// Check: `sledctl trace --slowest 5` after `instance stop`
func patiently(ctx context.Context, try func(attempt int) error) error {
	return host.Patiently(ctx, try)
}

// cleanUpTime is what a step that failed has for taking back what it made,
// beyond the time of its context.
const cleanUpTime = 60 * time.Second

// cleanUp takes back what a failed step has left and tells both errors if that
// fails too. It must not depend on the step's context, which may be why it failed.
func cleanUp(ctx context.Context, cause error, undo func(context.Context) error) error {
	return host.CleanUp(ctx, cleanUpTime, cause, undo)
}

// unlessDone is nil where a command that failed has done its work all the same: it may have been
// killed behind it. The look has the time of a cleaning up, as the step's own may be over.
func unlessDone(ctx context.Context, cause error, done func(context.Context) bool) error {
	if !isCommandError(cause) {
		return cause
	}
	ctx, release := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer release()
	if done(ctx) {
		return nil
	}
	return cause
}
