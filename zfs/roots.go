package zfs

import (
	"context"
	"fmt"

	"github.com/sledctl/sledctl/host"
)

// Roots gives the root dataset of every imported pool with those user
// properties, and nothing else of it but its name and type. It is one command:
// zfs get without a dataset begins at all pools, and -d 0 ends there
// (zfs_do_get of usr/src/cmd/zfs/zfs_main.c, zfs_for_each of zfs_iter.c).
// Errors: *NameError; ErrSyntax; a *host.CommandError.
func Roots(ctx context.Context, h host.Host, user ...string) ([]Dataset, error) {
	for _, u := range user {
		if err := validateProperty(u); err != nil {
			return nil, fmt.Errorf("look at pools: %w", err)
		}
	}
	properties := append([]string{"type"}, user...)
	c := rootsCommand(properties)
	r, err := h.Run(ctx, c)
	if err == nil && r.Exit != 0 {
		err = failure(c, r)
	}
	if err != nil {
		return nil, fmt.Errorf("look at pools: %w", err)
	}
	roots, err := ParseDatasets(r.Stdout, properties)
	if err != nil {
		return nil, fmt.Errorf("look at pools: %w", err)
	}
	return roots, nil
}

func rootsCommand(properties []string) host.Command {
	return get([]string{"-d", "0"}, properties, nil)
}
