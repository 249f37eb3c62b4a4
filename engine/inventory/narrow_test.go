package inventory_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/zfs"
)

// Narrow leaves out what is recorded, and nothing else that carries a mark.
func TestNarrowListsWhatIsAskedForAndWhatIsNotAccountedFor(t *testing.T) {
	s := newSled(t)
	for _, args := range []string{
		"create rpool/zone", "create -o x:mark=own rpool/zone/own", "create rpool/zone/own/ROOT", "snapshot rpool/zone/own/ROOT@s",
		"create -o x:mark=other rpool/zone/other", "create rpool/zone/other/ROOT", "create rpool/zone/plain",
		"create rpool/a", "create rpool/a/b", "create rpool/a/b/c", "create -o x:mark=other rpool/a/b/c/stray", "create rpool/a/b/c/stray/below",
		"create -V 1m rpool/a/b/volume",
	} {
		if r, err := s.Host().Run(t.Context(), host.Command{Program: "zfs", Args: strings.Fields(args)}); err != nil || r.Exit != 0 {
			t.Fatalf("%s: %v, %s", args, err, r.Stderr)
		}
	}
	narrow := inventory.Narrow{
		Depth: 1, Whole: []string{"rpool/zone/own", "rpool/a/b/volume", "rpool/gone", "elsewhere/x", "no name"},
		Recorded: func(d zfs.Dataset) bool { return d.Name == "rpool/zone/other" && d.User["x:mark"].Value == "other" },
	}
	want := inventory.Want{
		Parts: []inventory.Part{inventory.Datasets}, User: []string{"x:mark"}, Roots: func([]zfs.Pool) []string { return []string{"rpool"} },
		Narrow: &narrow,
	}
	listed := func() (names []string) {
		t.Helper()
		datasets, err := inventory.Look(t.Context(), s.Host(), want).Datasets()
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range datasets {
			if names = append(names, d.Name); d.Type == "" || d.GUID == "" {
				t.Errorf("%s is not listed with its properties", d.Name)
			}
		}
		return names
	}
	got := listed()
	for name, is := range map[string]bool{
		"rpool": true, "rpool/zone": true, "rpool/zone/own": true, "rpool/zone/own/ROOT": true, "rpool/zone/own/ROOT@s": true, "rpool/a/b/volume": true,
		"rpool/a/b/c/stray": true, "rpool/a/b/c/stray/below": false, "rpool/zone/other": false, "rpool/zone/other/ROOT": false, "rpool/zone/plain": false,
	} {
		if slices.Contains(got, name) != is {
			t.Errorf("%s: listed %t, want %t, among %v", name, !is, is, got)
		}
	}
	slices.Sort(got)
	if len(slices.Compact(slices.Clone(got))) != len(got) {
		t.Errorf("listed twice: %v", got)
	}
	want.Narrow = nil
	if all := listed(); !slices.Contains(all, "rpool/zone/other/ROOT") {
		t.Errorf("everything: %v", all)
	}
}

// A dataset that has gone between two commands costs the narrow listing, not the answer.
func TestNarrowListsEverythingIfADatasetHasGoneMeanwhile(t *testing.T) {
	s := newSled(t)
	for _, args := range []string{"create rpool/zone", "create -o x:mark=1 rpool/zone/own", "create rpool/zone/other", "create rpool/zone/other/ROOT"} {
		if r, err := s.Host().Run(t.Context(), host.Command{Program: "zfs", Args: strings.Fields(args)}); err != nil || r.Exit != 0 {
			t.Fatalf("%s: %v, %s", args, err, r.Stderr)
		}
	}
	inv := inventory.Look(t.Context(), s.Host(), inventory.Want{
		Parts: []inventory.Part{inventory.Datasets}, User: []string{"x:mark"}, Roots: func([]zfs.Pool) []string { return []string{"rpool"} },
		Narrow: &inventory.Narrow{Recorded: func(zfs.Dataset) bool {
			if r, err := s.Host().Run(t.Context(), host.Command{Program: "zfs", Args: []string{"destroy", "rpool/zone/own"}}); err != nil || r.Exit != 0 {
				t.Errorf("%v, %s", err, r.Stderr)
			}
			return false
		}},
	})
	_, gone := inv.Dataset("rpool/zone/own")
	_, other := inv.Dataset("rpool/zone/other/ROOT")
	if err := inv.Know(inventory.Datasets); err != nil || gone || !other {
		t.Errorf("%v, %t, %t", err, gone, other)
	}
}
