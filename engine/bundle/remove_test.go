package bundle

import (
	"errors"
	"io/fs"
	"path"
	"testing"

	"github.com/sledctl/sledctl/test/steptest"
)

func TestABundleIsRemoved(t *testing.T) {
	step := Remove{File: take(0).Path(), Last: true, Lock: "/run/lock/bundle"}
	steptest.Conform(t, steptest.Case{Step: step, Sled: func(t *testing.T) steptest.Sled {
		h := newSled(t)
		if err := take(0).Do(t.Context(), h); err != nil {
			t.Fatal(err)
		}
		return steptest.Sled{Host: h, State: func() any { return bundles(t, h) }}
	}})
	h := newSled(t)
	for n := range 2 {
		if err := take(n).Do(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	}
	for left := 1; left >= 0; left-- {
		all := bundles(t, h)
		if err := (Remove{File: all[0].Path, Last: true, Lock: "/run/lock/bundle"}).Do(t.Context(), h); err != nil {
			t.Fatal(err)
		}
		if got := bundles(t, h); len(got) != left || left == 1 && got[0].ID != all[1].ID {
			t.Fatalf("after one was removed: %+v", got)
		}
	}
	if _, err := h.Files().Stat(path.Dir(take(0).Path())); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory of a zone without a bundle: %v", err)
	}
	if err := step.Do(t.Context(), h); err != nil {
		t.Errorf("one that is gone: %v", err)
	}
}

func TestTheOldestAreTooMany(t *testing.T) {
	all := []Bundle{{ID: "a", Size: 4}, {ID: "b", Size: 3}, {ID: "c", Size: 2}}
	for most, want := range map[int64]string{9: "", 8: "a", 5: "a", 4: "ab", 2: "ab", 1: "abc", 0: "abc"} {
		got := ""
		for _, b := range Oldest(all, most) {
			got += b.ID
		}
		if got != want {
			t.Errorf("of %d bytes, %q go, want %q", most, got, want)
		}
	}
}
