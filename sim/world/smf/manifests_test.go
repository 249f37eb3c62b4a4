package smf_test

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world/boot"
	"github.com/sledctl/sledctl/sim/world/scf"
	"github.com/sledctl/sledctl/sim/world/smf"
	"github.com/sledctl/sledctl/test/hosttest"
)

// The manifests of this package are valid, and the seed lacks some.
func TestBaseManifests(t *testing.T) {
	for name, data := range smf.BaseManifests() {
		if !fs.ValidPath(name) || !strings.HasPrefix(name, "lib/svc/manifest/") {
			t.Errorf("path %q", name)
		}
		if _, err := scf.Parse(data, "manifest"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	seeded, err := scf.Decode(smf.SeedRepository())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		service string
		want    bool
	}{{"milestone/single-user", true}, {"system/manifest-import", true}, {"network/physical", false}, {"milestone/network", false}} {
		if got := seeded.Service(c.service) != nil; got != c.want {
			t.Errorf("%s in the seed: %v", c.service, got)
		}
	}
}

// fullRepository knows all of BaseManifests: the seed of the global zone.
func fullRepository() []byte {
	files := hosttest.Memory()
	if err := boot.LayRoot(files, boot.Options{}); err != nil {
		panic(err)
	}
	data, err := host.ReadFile(files, "/lib/svc/seed/global.db")
	if err != nil {
		panic(err)
	}
	return data
}
