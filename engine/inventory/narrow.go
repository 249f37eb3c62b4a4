package inventory

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/zfs"
)

// Narrow is what a caller needs of the datasets below the roots where it asks for few of
// them: a sled has thousands. What carries a mark and is not accounted for is always
// among them, wherever it lies, unless Recorded is nil.
type Narrow struct {
	// Depth is how many names below a root everything is listed: with sizes only where that
	// is all that is listed.
	Depth int
	// Whole are datasets that are listed with all that lies below them. One that does not
	// exist is not listed.
	Whole []string
	// Recorded reports whether a record accounts for a dataset that has one of Want.User
	// of its own. All the others that have are listed. Nil: nothing is listed below Depth.
	Recorded func(marked zfs.Dataset) bool
}

// mostMarked bounds how many datasets a command names.
const mostMarked = 200

// datasets lists the datasets below the roots.
func (w Want) datasets(ctx context.Context, h host.Host, roots []string) ([]zfs.Dataset, error) {
	switch {
	case w.Narrow == nil || len(roots) == 0:
		return zfs.List(ctx, h, roots, w.User)
	case w.Narrow.shallow():
		return zfs.Tops(ctx, h, roots, w.Narrow.Depth, w.User)
	}
	found, err := w.few(ctx, h, roots)
	if errors.Is(err, host.ErrNotFound) || errors.Is(err, errMany) { // one has gone meanwhile
		return zfs.List(ctx, h, roots, w.User)
	}
	return found, err
}

// shallow says whether nothing below Depth is needed.
func (n *Narrow) shallow() bool { return n != nil && n.Recorded == nil && len(n.Whole) == 0 }

// covers says whether what n leaves is among what the other one leaves.
func (n *Narrow) covers(other *Narrow) bool {
	return other == nil || n.shallow() && other.shallow() && n.Depth <= other.Depth
}

// wider is what both leave, or nil, which is everything.
func (n *Narrow) wider(other *Narrow) *Narrow {
	switch {
	case n.covers(other):
		return other
	case other.covers(n):
		return n
	}
	return nil
}

var errMany = errors.New("many datasets are not accounted for")

// few lists what Narrow leaves.
func (w Want) few(ctx context.Context, h host.Host, roots []string) ([]zfs.Dataset, error) {
	var tops, marked, whole, others []zfs.Dataset
	err := both(
		func() (err error) { tops, err = zfs.Sizeless(ctx, h, roots, w.Narrow.Depth, w.User); return err },
		func() (err error) { marked, err = zfs.Marked(ctx, h, roots, w.User); return err },
	)
	if err != nil {
		return nil, err
	}
	trees, unsure := w.Narrow.trees(roots, marked)
	names := w.Narrow.unrecorded(marked, trees)
	if len(names) > mostMarked {
		return nil, errMany
	}
	err = both(
		func() (err error) { whole, err = w.whole(ctx, h, trees, unsure); return err },
		func() (err error) { others, err = zfs.Sizeless(ctx, h, names, 0, w.User); return err },
	)
	return joined(whole, tops, others), err
}

func both(one, other func() error) error {
	failed := make(chan error, 1)
	go func() { failed <- other() }()
	return errors.Join(one(), <-failed)
}

// trees are the datasets of Whole below the roots: those that carry a mark, and so exist,
// and the others.
func (n Narrow) trees(roots []string, marked []zfs.Dataset) (sure, unsure []string) {
	for _, name := range n.Whole {
		isBelow := slices.ContainsFunc(roots, func(root string) bool { return below(name, root) })
		switch {
		case !isBelow || zfs.ValidateName(name) != nil || slices.Contains(sure, name) || slices.Contains(unsure, name):
		case slices.ContainsFunc(marked, func(d zfs.Dataset) bool { return d.Name == name }):
			sure = append(sure, name)
		default:
			unsure = append(unsure, name)
		}
	}
	return sure, unsure
}

// unrecorded names what carries a mark, is not accounted for and does not lie in a tree. A
// snapshot has a mark of its own only if an operator has given it one.
func (n Narrow) unrecorded(marked []zfs.Dataset, trees []string) []string {
	var names []string
	for _, d := range marked {
		inTree := slices.ContainsFunc(trees, func(tree string) bool { return below(d.Name, tree) })
		if !inTree && !strings.Contains(d.Name, "@") && !n.Recorded(d) {
			names = append(names, d.Name)
		}
	}
	return names
}

// whole lists trees of datasets, and those of the unsure that exist.
func (w Want) whole(ctx context.Context, h host.Host, trees, unsure []string) ([]zfs.Dataset, error) {
	all, err := zfs.List(ctx, h, trees, w.User)
	for _, tree := range unsure {
		if err != nil {
			return nil, err
		}
		var found []zfs.Dataset
		if found, err = zfs.List(ctx, h, []string{tree}, w.User); errors.Is(err, host.ErrNotFound) {
			err = nil
		}
		all = append(all, found...)
	}
	return all, err
}

// joined is all of the lists, each dataset once: those of the first list as they stand
// there.
func joined(lists ...[]zfs.Dataset) []zfs.Dataset {
	var all []zfs.Dataset
	listed := map[string]bool{}
	for _, list := range lists {
		for _, d := range list {
			if !listed[d.Name] {
				listed[d.Name] = true
				all = append(all, d)
			}
		}
	}
	return all
}
