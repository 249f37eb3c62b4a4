package zfs

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sledctl/sledctl/host"
)

// List lists the roots and every file system, volume and snapshot below them in
// zfs's order: parents before children, snapshots behind their dataset. It is
// one command. User names the user properties wanted. A root that does not
// exist fails the whole listing. Errors: *NameError; ErrSyntax; a
// *host.CommandError, of host.ErrNotFound for a root that is not there.
func List(ctx context.Context, h host.Host, roots, user []string) ([]Dataset, error) {
	if len(roots) == 0 {
		return nil, nil // zfs get would list everything
	}
	for _, r := range roots {
		if err := ValidateName(r); err != nil {
			return nil, fmt.Errorf("list datasets: %w", err)
		}
	}
	properties, err := wanted(user)
	if err != nil {
		return nil, fmt.Errorf("list datasets: %w", err)
	}
	datasets, err := query(ctx, h, listCommand(roots, properties), properties, roots)
	if err != nil {
		return nil, fmt.Errorf("list datasets: %w", err)
	}
	return datasets, nil
}

// Get looks at one file system, volume or snapshot. Errors: as of List.
func Get(ctx context.Context, h host.Host, name string, user ...string) (Dataset, error) {
	if err := validateEither(name); err != nil {
		return Dataset{}, err
	}
	properties, err := wanted(user)
	if err != nil {
		return Dataset{}, fmt.Errorf("look at dataset %s: %w", name, err)
	}
	found, err := query(ctx, h, getCommand(name, properties), properties, []string{name})
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
	found, err := query(ctx, h, nearCommand(name, properties), properties, []string{name})
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

func query(ctx context.Context, h host.Host, c host.Command, properties, names []string) ([]Dataset, error) {
	r, err := h.Run(ctx, c)
	switch {
	case err != nil:
		return nil, err
	case r.Exit != 0:
		return nil, failure(c, r, names...)
	}
	return ParseDatasets(r.Stdout, properties)
}

// wanted are the native properties and the user's.
func wanted(user []string) ([]string, error) {
	properties := native()
	for _, u := range user {
		if err := validateProperty(u); err != nil {
			return nil, err
		}
		if !userProperty(u) {
			return nil, &NameError{What: "property", Name: u, Reason: "is no user property: it has no ':'"}
		}
		if !slices.Contains(properties, u) {
			properties = append(properties, u)
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

// Pools lists the imported pools. Errors: ErrSyntax; a *host.CommandError.
func Pools(ctx context.Context, h host.Host) ([]Pool, error) {
	c := poolsCommand()
	r, err := h.Run(ctx, c)
	if err == nil && r.Exit != 0 {
		err = failure(c, r)
	}
	if err != nil {
		return nil, fmt.Errorf("list pools: %w", err)
	}
	pools, err := ParsePools(r.Stdout)
	if err != nil {
		return nil, fmt.Errorf("list pools: %w", err)
	}
	return pools, nil
}

// run runs a command that changes something and types its failure.
func run(ctx context.Context, h host.Host, c host.Command, names ...string) error {
	r, err := h.Run(ctx, c)
	if err == nil && r.Exit != 0 {
		err = failure(c, r, names...)
	}
	return err
}

func isCommandError(err error) bool {
	_, ok := errors.AsType[*host.CommandError](err)
	return ok
}
