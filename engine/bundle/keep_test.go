package bundle

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/test/steptest"
)

func TestSteps(t *testing.T) {
	first := Take{Zone: testZone, Zonepath: "/zone/z", ID: ID(moment(), Failed, "0"), Dir: "/bundles", Max: DefaultMax, Lock: "/run/lock/bundle"}
	steptest.Conform(t, steptest.Case{Step: first, Sled: func(t *testing.T) steptest.Sled {
		h := newSled(t)
		return steptest.Sled{Host: h, State: func() any { return bundles(t, h) }}
	}})
}

func TestTheOldestGiveWay(t *testing.T) {
	h := newSled(t)
	if err := take(0).Do(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	one := bundles(t, h)[0].Size
	for n := 1; n < 6; n++ {
		s := take(n)
		s.Max = 3*one + one/2
		if n == 3 {
			s.Zone = "another" // its directory goes with its last bundle
		}
		if err := s.Do(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	}
	var left []string
	for _, b := range bundles(t, h) {
		left = append(left, b.ID)
	}
	if want := []string{take(3).ID, take(4).ID, take(5).ID}; !cmp.Equal(left, want) {
		t.Errorf("%q, want %q", left, want)
	}
	s := take(7)
	s.Max = one / 2
	if err := s.Do(t.Context(), h); !errors.Is(err, errTooLarge) || len(bundles(t, h)) != 3 {
		t.Errorf("one that is too large: %v, %d are left", err, len(bundles(t, h)))
	}
}

// Of an instance that is started again and again, without coming up, the newest few
// are kept, whatever its zones are called; no other zone loses bundles for them.
func TestOldStartsGiveWay(t *testing.T) {
	h := newSled(t)
	settings := Settings{Dir: "/bundles", Max: DefaultMax, Lock: "/run/lock/bundle"}
	ready, err := settings.Ready(h.Files(), nil)
	if err != nil {
		t.Fatal(err)
	}
	start := func(n int, instance string) string {
		t.Helper()
		step, ok := settings.OfStart(ready, fmt.Sprintf("z%d", n), "/zone/z", instance, false, moment().Add(time.Duration(n)*time.Second))
		if !ok || step.Running {
			t.Fatalf("%+v", step)
		}
		if err := step.Do(t.Context(), h); err != nil {
			t.Fatal(err)
		}
		return step.Path()
	}
	if err := take(0).Do(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	want := []string{take(0).Path(), start(1, "other")}
	for n := 2; n < 2+2*Starts; n++ {
		file := start(n, "one")
		if n >= 2+Starts {
			want = append(want, file)
		}
	}
	var left []string
	for _, b := range bundles(t, h) {
		left = append(left, b.Path)
	}
	if d := cmp.Diff(want, left); d != "" {
		t.Error(d)
	}
	// Twice within a second: an id names one bundle.
	step, _ := settings.OfStart(ready, "z100", "/zone/z", "one", false, moment().Add((1+2*Starts)*time.Second))
	if err := step.Do(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if all := bundles(t, h); len(all) != len(want) || all[len(all)-1].Zone != "z100" {
		t.Errorf("%+v", all)
	}
}
