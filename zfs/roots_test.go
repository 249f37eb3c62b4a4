package zfs_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/test/hosttest"
	"github.com/sledctl/sledctl/zfs"
)

func TestRootsShowsEveryPoolAndNothingBelow(t *testing.T) {
	s := sim.New(sim.Options{}, hosttest.Files)
	t.Cleanup(s.Close)
	h := s.Host()
	before, err := zfs.Roots(t.Context(), h, "sledctl:test")
	if err != nil || len(before) < 3 {
		t.Fatalf("%v, %v", before, err)
	}
	pool := before[1].Name
	for _, c := range []host.Command{
		{Program: "zfs", Args: []string{"set", "sledctl:test=a:b", pool}},
		{Program: "zfs", Args: []string{"create", pool + "/below"}},
	} {
		if r, err := h.Run(t.Context(), c); err != nil || r.Exit != 0 {
			t.Fatalf("%v, %s", err, r.Stderr)
		}
	}
	after, err := zfs.Roots(t.Context(), h, "sledctl:test")
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range after {
		want, has := zfs.Value{}, false
		if d.Name == pool {
			want, has = zfs.Value{Value: "a:b", Source: zfs.Local}, true
		}
		if got, ok := d.User["sledctl:test"]; d.Name != before[i].Name || strings.Contains(d.Name, "/") || ok != has || got != want {
			t.Errorf("%+v", d)
		}
	}
	if len(after) != len(before) {
		t.Errorf("%d pools, then %d", len(before), len(after))
	}
}

func TestRootsIsOneCommandThatNeedsNoName(t *testing.T) {
	s := sim.New(sim.Options{}, hosttest.Files)
	t.Cleanup(s.Close)
	var asked []string
	h := host.Trace(s.Host(), func(e host.Event) { asked = append(asked, e.Line.Text) })
	if _, err := zfs.Roots(t.Context(), h, "sledctl:test"); err != nil {
		t.Fatal(err)
	}
	if want := []string{"zfs get -Hp -d 0 -o name,property,value,source type,sledctl:test"}; !slices.Equal(asked, want) {
		t.Errorf("%q", asked)
	}
	if _, err := zfs.Roots(t.Context(), h, "sledctl test:"); err == nil {
		t.Error("a property with a blank was asked for")
	}
}
