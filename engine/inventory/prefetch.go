package inventory

import (
	"context"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/zfs"
)

// Prefetch looks once at all that the wants name, and gives a host on which Look
// answers from that: callers that judge the sled together list each kind of thing once.
// It is for read-only callers: the host refuses changes, so that what was seen cannot
// be outdated by a change of its reader. An operation that changes something looks
// again, under its lock.
func Prefetch(ctx context.Context, h host.Host, wants ...Want) host.Host {
	all := union(wants)
	g := prefetch{want: all, inv: Look(ctx, h, all)}
	if all.any(Datasets) {
		g.roots = all.roots(answering(g.inv.pools))
	}
	h = host.Remembering(host.ReadOnly(h))
	host.Remember(h, prefetchKey{}, g)
	return h
}

// prefetchKey is where a host remembers what was seen of it.
type prefetchKey struct{}

type prefetch struct {
	want  Want
	inv   *Inventory
	roots []string
}

// union is all that the wants name.
func union(wants []Want) Want {
	var all Want
	first := true
	for _, w := range wants {
		if w.any(Datasets) {
			if all.Narrow = all.Narrow.wider(w.Narrow); first {
				all.Narrow, first = w.Narrow, false
			}
		}
		all.Parts = append(all.Parts, w.Parts...)
		all.User = append(all.User, w.User...)
		all.Directories = append(all.Directories, w.Directories...)
	}
	for _, list := range []*[]string{&all.User, &all.Directories} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	slices.Sort(all.Parts)
	all.Parts = slices.Compact(all.Parts)
	all.Roots = func(pools []zfs.Pool) []string {
		var roots []string
		for _, w := range wants {
			if w.any(Datasets) {
				roots = append(roots, w.roots(pools)...)
			}
		}
		slices.Sort(roots)
		return slices.Compact(roots)
	}
	return all
}

// answer is what a Look would see, if all of it was prefetched.
func (g prefetch) answer(want Want) (*Inventory, bool) {
	var roots []string
	if want.any(Datasets) {
		roots = want.roots(answering(g.inv.pools))
	}
	if !within(want.Parts, g.want.Parts) || !within(want.User, g.want.User) || !within(want.Directories, g.want.Directories) ||
		!within(roots, g.roots) || want.any(Datasets) && !want.Narrow.covers(g.want.Narrow) {
		return nil, false
	}
	inv := *g.inv
	inv.failed = map[Part]error{}
	for part, err := range g.inv.failed {
		if inv.failed[part] = err; !want.any(part) && (part != Pools || !want.any(Datasets, Homes)) && (part != Ports || !want.any(Links)) {
			inv.failed[part] = errNotAsked
		}
	}
	inv.datasets = slices.DeleteFunc(slices.Clone(g.inv.datasets), func(d zfs.Dataset) bool {
		return !slices.ContainsFunc(roots, func(root string) bool { return below(d.Name, root) })
	})
	inv.entries = slices.DeleteFunc(slices.Clone(g.inv.entries), func(e Entry) bool {
		return !slices.ContainsFunc(want.Directories, func(dir string) bool { return strings.HasPrefix(e.Path, dir+"/") })
	})
	inv.index = inv.indexed()
	return &inv, true
}

// below says whether a dataset or snapshot is a root or lies below it.
func below(name, root string) bool {
	rest, ok := strings.CutPrefix(name, root)
	return ok && (rest == "" || strings.ContainsAny(rest[:1], "/@"))
}

func within[T comparable](some, all []T) bool {
	return !slices.ContainsFunc(some, func(x T) bool { return !slices.Contains(all, x) })
}
