package reap

import (
	"strings"

	"github.com/sledctl/sledctl/illumos/naming"
)

// What lies on a pool that is missing, or does not answer, cannot be seen: it is
// not gone, and nothing of it is removed or forgotten.

// judgeLost reports pools that do not answer.
func (f *Findings) judgeLost() {
	for _, pool := range f.inv.Lost() {
		f.add(Object{Kind: KindDataset, Name: pool, Verdict: Unknown,
			Reason: "the pool is " + f.health[pool] + ": what lies on it cannot be seen"}, true)
	}
}

// lost says how the pool of a dataset is, if that cannot be seen; else nothing.
func (f *Findings) lost(dataset string) string {
	pool, _, _ := strings.Cut(dataset, "/")
	if pool == "" {
		return ""
	}
	return f.inv.Unseen(pool)
}

// unreadable says why the root of a zone cannot be seen; else nothing. Dataset is the
// recorded one, if there is one.
func (f *Findings) unreadable(zonepath, dataset string) string {
	if dataset == "" {
		dataset = f.at[zonepath]
	}
	if dataset == "" {
		dataset = naming.PoolAt(zonepath)
	}
	return f.lost(dataset)
}
