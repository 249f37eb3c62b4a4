package zone_test

import (
	"errors"
	"testing"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/test/hosttest"
	"github.com/sledctl/sledctl/zone"
)

func TestAPlainDirectoryIsRemovedWithTheDirectoriesInIt(t *testing.T) {
	for name, c := range map[string]struct {
		make []string // directories
		file string
		want error
		left bool
	}{
		"an empty one":             {make: []string{"/zone/z"}},
		"with directories in it":   {make: []string{"/zone/z/root/etc", "/zone/z/dev"}},
		"with a file in it":        {make: []string{"/zone/z/root"}, file: "/zone/z/root/f", want: host.ErrRefused, left: true},
		"a missing one":            {want: host.ErrNotFound},
		"one that is a file":       {file: "/zone/z", want: host.ErrRefused, left: true},
		"with a mount below it":    {make: []string{"/zone/z/mounted"}, want: host.ErrRefused, left: true},
		"one that something is on": {make: nil, want: host.ErrRefused, left: true, file: "dataset"},
	} {
		t.Run(name, func(t *testing.T) {
			s := sim.New(sim.Options{M2: -1, U2: -1}, hosttest.Files)
			t.Cleanup(s.Close)
			h := s.Host()
			run := func(argv ...string) {
				if r, err := h.Run(t.Context(), host.Command{Program: argv[0], Args: argv[1:]}); err != nil || r.Exit != 0 {
					t.Fatal(argv, err, string(r.Stderr))
				}
			}
			run("zfs", "create", "-o", "mountpoint=/zone", "rpool/zone")
			for _, dir := range c.make {
				if err := host.MkdirAll(h.Files(), dir, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			switch {
			case c.file == "dataset":
				run("zfs", "create", "rpool/zone/z")
			case c.file != "":
				if err := host.WriteFile(h.Files(), c.file, []byte("x"), 0o644); err != nil {
					t.Fatal(err)
				}
			case c.left:
				run("zfs", "create", "-o", "mountpoint=/zone/z/mounted", "rpool/below")
			}
			err := zone.RemoveHome{Path: "/zone/z"}.Do(t.Context(), h)
			if !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
			if _, gone := h.Files().Stat("/zone/z"); (gone == nil) != c.left {
				t.Errorf("afterwards: %v", gone)
			}
		})
	}
}
