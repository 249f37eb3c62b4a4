package zfs_test

import (
	"slices"
	"testing"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/test/hosttest"
	"github.com/sledctl/sledctl/zfs"
)

// deep has datasets three names below rpool, of which the last and a snapshot in the
// middle carry a mark.
func deep(t *testing.T) host.Host {
	t.Helper()
	s := sim.New(sim.Options{}, hosttest.Files)
	t.Cleanup(s.Close)
	for _, args := range [][]string{
		{"create", "rpool/a"}, {"create", "rpool/a/b"}, {"create", "-o", "sledctl:test=deep down", "rpool/a/b/c"}, {"create", "rpool/a/b/c/d"},
		{"snapshot", "rpool/a/b@s"}, {"set", "sledctl:other=1", "rpool/a/b@s"},
	} {
		if r, err := s.Host().Run(t.Context(), host.Command{Program: "zfs", Args: args}); err != nil || r.Exit != 0 {
			t.Fatalf("%v: %v, %s", args, err, r.Stderr)
		}
	}
	return s.Host()
}

func names(datasets []zfs.Dataset) (all []string) {
	for _, d := range datasets {
		all = append(all, d.Name)
	}
	return all
}

func TestTopsEndsAtItsDepth(t *testing.T) {
	h := deep(t)
	for depth, want := range [][]string{
		{"rpool/a"}, {"rpool/a", "rpool/a/b"}, {"rpool/a", "rpool/a/b", "rpool/a/b@s", "rpool/a/b/c"},
	} {
		found, err := zfs.Tops(t.Context(), h, []string{"rpool/a"}, depth, []string{"sledctl:test"})
		if got := names(found); err != nil || !slices.Equal(got, want) {
			t.Errorf("%d deep: %v, %v, want %v", depth, got, err, want)
		}
	}
	if all, err := zfs.Tops(t.Context(), h, nil, 1, nil); err != nil || all != nil {
		t.Errorf("without a root: %v, %v", all, err)
	}
}

// Marked finds a mark wherever it lies, and passes over what only inherits it.
func TestMarkedFindsWhatHasAPropertyOfItsOwn(t *testing.T) {
	h := deep(t)
	found, err := zfs.Marked(t.Context(), h, []string{"rpool"}, []string{"sledctl:test", "sledctl:other"})
	if got, want := names(found), []string{"rpool/a/b@s", "rpool/a/b/c"}; err != nil || !slices.Equal(got, want) {
		t.Fatalf("%v, %v, want %v", got, err, want)
	}
	if got, want := found[1].User["sledctl:test"], (zfs.Value{Value: "deep down", Source: zfs.Local}); got != want || len(found[1].User) != 1 {
		t.Errorf("%+v", found[1])
	}
	for _, c := range []struct{ roots, user []string }{{nil, []string{"sledctl:test"}}, {[]string{"rpool"}, nil}} {
		if all, err := zfs.Marked(t.Context(), h, c.roots, c.user); err != nil || all != nil {
			t.Errorf("%v: %v, %v", c, all, err)
		}
	}
	if _, err := zfs.Marked(t.Context(), h, []string{"rpool/none"}, []string{"sledctl:test"}); err == nil {
		t.Error("a root that does not exist is no error")
	}
	if _, err := zfs.Marked(t.Context(), h, []string{"rpool"}, []string{"test"}); err == nil {
		t.Error("a native property was asked for")
	}
}
