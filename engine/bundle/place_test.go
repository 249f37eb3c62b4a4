package bundle

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/test/hosttest"
)

func TestPlaces(t *testing.T) {
	dirs := func(places []Place) (all []string) {
		for _, p := range places {
			all = append(all, p.Dir)
		}
		return all
	}
	u2Dir, m2Dir := "/pool/ext/"+strings.TrimPrefix(u2, "oxp_")+"/crypt/debug", "/pool/int/"+strings.TrimPrefix(m2, "oxi_")+"/debug"
	for _, c := range []struct {
		configured string
		pools      []string
		want       []string
	}{
		{"", []string{m2, "rpool", u2}, []string{u2Dir, m2Dir}},
		{"", []string{m2}, []string{m2Dir}},
		{"", []string{"rpool"}, nil},
		{"/var/crash", []string{m2, u2}, []string{"/var/crash"}},
	} {
		if d := cmp.Diff(c.want, dirs(Places(c.configured, c.pools))); d != "" {
			t.Errorf("%v: %s", c, d)
		}
	}
	ready := Places("", []string{m2, u2})
	for pool, want := range map[string]string{m2: m2Dir, u2: u2Dir, "rpool": u2Dir, "": u2Dir} {
		if p, ok := Best(ready, pool); !ok || p.Dir != want {
			t.Errorf("%q: %v", pool, p)
		}
	}
	if _, ok := Best(nil, u2); ok {
		t.Error("nowhere is a place")
	}
}

// A directory is a place only if its dataset is mounted there.
func TestAPlaceIsWhereItsDatasetIsMounted(t *testing.T) {
	s := sim.New(sim.Options{M2: -1, U2: -1}, hosttest.Files)
	t.Cleanup(s.Close)
	h := s.Host()
	for _, argv := range [][]string{{"zfs", "create", "-o", "mountpoint=/x/debug", "rpool/debug"}} {
		if r, err := h.Run(t.Context(), host.Command{Program: argv[0], Args: argv[1:]}); err != nil || r.Exit != 0 {
			t.Fatal(argv, err, string(r.Stderr))
		}
	}
	if err := host.MkdirAll(h.Files(), "/y/debug", 0o755); err != nil {
		t.Fatal(err)
	}
	mounted, plain, gone := Place{Dir: "/x/debug", Dataset: "rpool/debug"}, Place{Dir: "/y/debug", Dataset: "rpool/other"}, Place{Dir: "/z"}
	ready, err := Ready(h.Files(), []Place{gone, plain, mounted})
	if err != nil || len(ready) != 1 || ready[0] != mounted {
		t.Errorf("%v, %v", ready, err)
	}
	_, err = Ready(h.Files(), []Place{gone, plain})
	nowhere, ok := errors.AsType[*NowhereError](err)
	if !ok || len(nowhere.Reasons) != 2 || !strings.Contains(nowhere.Error(), "rpool/other is not mounted") {
		t.Errorf("%v", err)
	}
	if ready, err := Ready(h.Files(), []Place{{Dir: "/y/debug"}}); err != nil || len(ready) != 1 {
		t.Errorf("a configured directory: %v, %v", ready, err)
	}

	// Without a disk's pool, the directory of the package will do.
	if _, err := Ready(h.Files(), nil); err == nil {
		t.Error("nowhere is a place")
	}
	if err := host.MkdirAll(h.Files(), "/var/opt/ooce/sledctl", 0o700); err != nil {
		t.Fatal(err)
	}
	if ready, err := Ready(h.Files(), nil); err != nil || len(ready) != 1 || ready[0].Dir != "/var/opt/ooce/sledctl" {
		t.Errorf("the package's: %v, %v", ready, err)
	}
	if _, err := Ready(h.Files(), []Place{gone}); err == nil {
		t.Error("it takes the place of a disk's that is not mounted")
	}
}
