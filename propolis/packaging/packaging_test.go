package packaging_test

import (
	"errors"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/propolis/packaging"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/hosttest"
)

func TestTheWayIsWhatIsWantedOrWhatThereIs(t *testing.T) {
	lofs, image := []string{"/usr/lib/brand/sparse"}, []string{"/opt/oxide/propolis-server.tar.gz"}
	for name, c := range map[string]struct {
		wanted packaging.Kind
		seen   packaging.Observed
		want   packaging.Kind
		names  string // in the error
	}{
		"auto, both":           {packaging.Auto, packaging.Observed{}, packaging.Image, ""},
		"auto, image":          {packaging.Auto, packaging.Observed{Lofs: lofs}, packaging.Image, ""},
		"auto, lofs":           {packaging.Auto, packaging.Observed{Image: image}, packaging.Lofs, ""},
		"auto, neither":        {packaging.Auto, packaging.Observed{Lofs: lofs, Image: image}, "", lofs[0] + " " + image[0]},
		"lofs, both":           {packaging.Lofs, packaging.Observed{}, packaging.Lofs, ""},
		"lofs, only image":     {packaging.Lofs, packaging.Observed{Lofs: lofs}, "", lofs[0]},
		"image, both":          {packaging.Image, packaging.Observed{}, packaging.Image, ""},
		"image, only lofs":     {packaging.Image, packaging.Observed{Image: image}, "", image[0]},
		"unset, which is auto": {"", packaging.Observed{Image: image}, packaging.Lofs, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := packaging.Settings{Kind: c.wanted}.Decide(c.seen)
			_, missing := errors.AsType[*packaging.MissingError](err)
			if got != c.want || missing != (c.names != "") {
				t.Fatalf("%q, %v", got, err)
			}
			for word := range strings.FieldsSeq(c.names) {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%s is not named: %v", word, err)
				}
			}
		})
	}
}

func TestDistributionsDiffer(t *testing.T) {
	for mode, want := range map[world.Mode]packaging.Kind{world.OmniOS: packaging.Lofs, world.Helios: packaging.Image, world.SmartOS: ""} {
		s := sim.New(sim.Options{Mode: mode}, hosttest.Files)
		t.Cleanup(s.Close)
		settings := packaging.Settings{Kind: packaging.Auto, Directory: "/opt/oxide/propolis-server", Images: images()}
		seen, err := settings.Look(s.Host().Files())
		if err != nil {
			t.Fatal(err)
		}
		if got, err := settings.Decide(seen); got != want {
			t.Errorf("%s: %q, %v", mode, got, err)
		}
	}
}

func images() []string {
	return []string{"/opt/oxide/propolis-server.tar.gz", "/opt/oxide/overlay.tar.gz"}
}

// What a way lacks is named, and what sledctl does not need for it is not.
func TestWhatIsNotThereIsNamed(t *testing.T) {
	for mode, c := range map[world.Mode]struct {
		settings packaging.Settings
		want     packaging.Observed
	}{
		world.OmniOS: {packaging.Settings{Kind: packaging.Lofs, Directory: "/opt/nowhere"}, packaging.Observed{Lofs: []string{"/opt/nowhere"}, Image: []string{"/usr/lib/brand/omicron1"}}},
		world.Helios: {
			packaging.Settings{Kind: packaging.Image, Directory: "/opt/oxide/propolis-server", Images: []string{images()[0], "/opt/own.tar.gz"}},
			packaging.Observed{Lofs: []string{"/usr/lib/brand/sparse"}, Image: []string{"/opt/own.tar.gz"}},
		},
	} {
		s := sim.New(sim.Options{Mode: mode}, hosttest.Files)
		t.Cleanup(s.Close)
		seen, err := c.settings.Look(s.Host().Files())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, seen); diff != "" {
			t.Error(diff)
		}
		_, err = c.settings.Decide(seen)
		lacks := map[packaging.Kind][]string{packaging.Lofs: seen.Lofs, packaging.Image: seen.Image}[c.settings.Kind]
		if err == nil || !strings.HasSuffix(err.Error(), string(c.settings.Kind)+" lacks "+strings.Join(lacks, ", ")) {
			t.Errorf("error: %v", err)
		}
	}
}

// A workstation need not have the overlay (omicron, package-manifest.toml); it is no image
// by itself.
func TestOnlyTheOverlayMayBeAbsent(t *testing.T) {
	server, overlay := "/opt/oxide/propolis-server.tar.gz", "/opt/oxide/overlay.tar.gz"
	for name, c := range map[string]struct {
		images, there, without, lacks []string
	}{
		"both":            {images: []string{server, overlay}, there: []string{server, overlay}},
		"no overlay":      {images: []string{server, overlay}, there: []string{server}, without: []string{overlay}},
		"no server":       {images: []string{server, overlay}, there: []string{overlay}, lacks: []string{server}},
		"another is gone": {images: []string{server, "/opt/site.tar.gz"}, there: []string{server}, lacks: []string{"/opt/site.tar.gz"}},
		"it alone":        {images: []string{overlay}, lacks: []string{overlay}},
	} {
		files := hosttest.Files()
		for _, file := range append(c.there, "/usr/lib/brand/omicron1/x") {
			if err := errors.Join(host.MkdirAll(files, path.Dir(file), 0o755), host.WriteFile(files, file, nil, 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		seen, err := packaging.Settings{Images: c.images}.Look(files)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([][]string{c.without, c.lacks}, [][]string{seen.Without, seen.Image}); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
