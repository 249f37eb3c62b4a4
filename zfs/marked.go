package zfs

import (
	"context"
	"fmt"
	"slices"

	"github.com/sledctl/sledctl/host"
)

// Tops is List of the roots and what lies at most depth names below them: a
// snapshot lies one below its dataset. It is one command: zfs get -d walks no deeper
// (zfs_callback of usr/src/cmd/zfs/zfs_iter.c). Errors: as of List.
func Tops(ctx context.Context, h host.Host, roots []string, depth int, more []string) ([]Dataset, error) {
	return tops(ctx, h, roots, native(), depth, more)
}

// Sizeless is Tops without Used and Available.
func Sizeless(ctx context.Context, h host.Host, roots []string, depth int, more []string) ([]Dataset, error) {
	return tops(ctx, h, roots, slices.DeleteFunc(native(), isSize), depth, more)
}

func tops(ctx context.Context, h host.Host, roots, properties []string, depth int, more []string) ([]Dataset, error) {
	return list(ctx, h, roots, properties, more, func(p []string) host.Command { return topsCommand(roots, depth, p) })
}

// isSize says whether a property is one that is added up, from all that lies below a dataset.
func isSize(property string) bool { return property == "used" || property == "available" }

// Marked lists, of the roots and everything below them, what has one of the user
// properties of its own. Each has its name and those properties, and nothing else. It is
// one command, which prints nothing about the others. Errors: as of List.
//
// Guess get-local-lists-own-properties: `zfs get -r -s local` lists the user properties that a
// dataset has of its own, and prints nothing about the others (zfs_do_get,
// zprop_print_one_property).
// Check: `zfs get -Hp -r -s local sledctl:instance,sledctl:base oxp_…`
func Marked(ctx context.Context, h host.Host, roots, user []string) ([]Dataset, error) {
	if len(roots) == 0 || len(user) == 0 {
		return nil, nil
	}
	marked, err := marked(ctx, h, roots, user)
	if err != nil {
		return nil, fmt.Errorf("list marked datasets: %w", err)
	}
	return marked, nil
}

func marked(ctx context.Context, h host.Host, roots, user []string) ([]Dataset, error) {
	if err := validateAll(roots); err != nil {
		return nil, err
	}
	for _, u := range user {
		if err := validateProperty(u); err != nil {
			return nil, err
		}
	}
	c := markedCommand(roots, user)
	r, err := h.Run(ctx, c)
	if err == nil && r.Exit != 0 {
		err = failure(c, r, roots...)
	}
	if err != nil {
		return nil, err
	}
	p, err := readLines(r.Stdout, user)
	if err != nil {
		return nil, err
	}
	return p.all, nil
}
