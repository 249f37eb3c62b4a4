package zfs

import (
	"errors"
	"maps"
	"testing"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/test/hosttest"
)

func TestSync(t *testing.T) {
	sled := sim.New(sim.Options{}, hosttest.Files)
	t.Cleanup(sled.Close)
	h := sled.Host()
	if _, err := h.Run(t.Context(), host.Command{Program: "zfs", Args: []string{"set", "sync=disabled", "rpool/ROOT"}}); err != nil {
		t.Fatal(err)
	}
	got, err := Sync(t.Context(), host.ReadOnly(h), []string{"rpool", "rpool/ROOT"})
	if want := map[string]string{"rpool": "standard", "rpool/ROOT": "disabled"}; err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := Sync(t.Context(), h, []string{"rpool/none"}); !errors.Is(err, host.ErrNotFound) {
		t.Errorf("%v", err)
	}
	if _, err := Sync(t.Context(), h, []string{"-r"}); err == nil {
		t.Error("an option was taken for a dataset")
	}
	for _, out := range []string{"a\tsync\tstandard\n", "a\tused\t1\t-\n"} {
		if _, err := parseSync(out); !errors.Is(err, ErrSyntax) {
			t.Errorf("%q: %v", out, err)
		}
	}
}
