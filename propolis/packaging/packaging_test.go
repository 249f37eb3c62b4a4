package packaging_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/propolis/packaging"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
)

func TestTheWayIsWhatIsWantedOrWhatThereIs(t *testing.T) {
	lofs, image := []string{"/usr/lib/brand/sparse"}, []string{"/opt/oxide/propolis-server.tar.gz"}
	for name, c := range map[string]struct {
		wanted packaging.Kind
		seen   packaging.Seen
		want   packaging.Kind
		names  string // in the error
	}{
		"auto, both":           {packaging.Auto, packaging.Seen{}, packaging.Image, ""},
		"auto, image":          {packaging.Auto, packaging.Seen{Lofs: lofs}, packaging.Image, ""},
		"auto, lofs":           {packaging.Auto, packaging.Seen{Image: image}, packaging.Lofs, ""},
		"auto, neither":        {packaging.Auto, packaging.Seen{Lofs: lofs, Image: image}, "", lofs[0] + " " + image[0]},
		"lofs, both":           {packaging.Lofs, packaging.Seen{}, packaging.Lofs, ""},
		"lofs, only image":     {packaging.Lofs, packaging.Seen{Lofs: lofs}, "", lofs[0]},
		"image, both":          {packaging.Image, packaging.Seen{}, packaging.Image, ""},
		"image, only lofs":     {packaging.Image, packaging.Seen{Image: image}, "", image[0]},
		"unset, which is auto": {"", packaging.Seen{Image: image}, packaging.Lofs, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := packaging.Decide(c.wanted, c.seen)
			_, missing := errors.AsType[*packaging.MissingError](err)
			if got != c.want || missing != (c.names != "") {
				t.Fatalf("%q, %v", got, err)
			}
			for word := range strings.FieldsSeq(c.names) {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%s is not named: %v", word, err)
				}
			}
			_, byImage := errors.AsType[*packaging.ImageError](packaging.Check(c.wanted, c.seen))
			if byImage != (c.want == packaging.Image) {
				t.Errorf("checked: %v", packaging.Check(c.wanted, c.seen))
			}
		})
	}
}

func TestDistributionsDiffer(t *testing.T) {
	for mode, want := range map[world.Mode]packaging.Kind{world.OmniOS: packaging.Lofs, world.Helios: packaging.Image, world.SmartOS: ""} {
		s := sim.New(sim.Options{Mode: mode})
		t.Cleanup(s.Close)
		seen, err := packaging.Look(s.Host().Files(), "/opt/oxide/propolis-server")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := packaging.Decide(packaging.Auto, seen); got != want {
			t.Errorf("%s: %q, %v", mode, got, err)
		}
	}
}

func TestADirectoryThatIsNotThereIsNamed(t *testing.T) {
	s := sim.New(sim.Options{})
	t.Cleanup(s.Close)
	seen, err := packaging.Look(s.Host().Files(), "/opt/nowhere")
	if err != nil {
		t.Fatal(err)
	}
	if err := packaging.Check(packaging.Lofs, seen); err == nil || !strings.Contains(err.Error(), "/opt/nowhere") {
		t.Errorf("error: %v", err)
	}
}
