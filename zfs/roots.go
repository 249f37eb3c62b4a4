package zfs

import (
	"context"
	"fmt"
	"strings"

	"github.com/sledctl/sledctl/host"
)

// Roots gives the root dataset of every imported pool with those user
// properties, and nothing else of it but its name and type. It is one command:
// zfs get without a dataset begins at all pools, and -d 0 ends there
// (zfs_do_get of usr/src/cmd/zfs/zfs_main.c, zfs_for_each of zfs_iter.c).
// Errors: *NameError; ErrSyntax; a *host.CommandError.
//
// Guess get-depth-zero-lists-roots: `zfs get -d 0` without a dataset shows the roots of all
// imported pools, leaves out one that is suspended, and ends with 0 (zfs_for_each of
// usr/src/cmd/zfs/zfs_iter.c).
// Check: `zfs get -Hp -d 0 sledctl:ledger` with a U.2 pulled
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

// Sync gives the property sync of each of the datasets: "standard", "always", or
// "disabled", where a power cut loses what was flushed. Errors: *NameError; ErrSyntax;
// a *host.CommandError.
func Sync(ctx context.Context, h host.Host, datasets []string) (map[string]string, error) {
	if len(datasets) == 0 {
		return nil, nil // zfs get would list everything
	}
	if err := validateAll(datasets); err != nil {
		return nil, fmt.Errorf("look at sync: %w", err)
	}
	c := get(nil, []string{"sync"}, datasets)
	r, err := h.Run(ctx, c)
	if err == nil && r.Exit != 0 {
		err = failure(c, r, datasets...)
	}
	if err != nil {
		return nil, fmt.Errorf("look at sync: %w", err)
	}
	return parseSync(string(r.Stdout))
}

func parseSync(out string) (map[string]string, error) {
	values := map[string]string{}
	for line := range strings.Lines(out) {
		words := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(words) != 4 || words[1] != "sync" {
			return nil, fmt.Errorf("look at sync: %w: %q", ErrSyntax, line)
		}
		values[words[0]] = words[2]
	}
	return values, nil
}
