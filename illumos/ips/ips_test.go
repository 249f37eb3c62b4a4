package ips_test

import (
	"slices"
	"testing"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/ips"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/hosttest"
)

// Publishers come in the order of the search, the disabled ones not at all.
func TestPublishersComeInTheirOrder(t *testing.T) {
	got := ips.ParsePublishers(`[CONFIGURATION]
version = 3

[authority_extra.omnios]
disabled = False
origin = https://pkg.omnios.org/r151058/extra/
origins = ['https://pkg.omnios.org/r151058/extra/',
	'http://mirror/extra/']

[authority_old]
disabled = True
origins = ['https://old/']

[authority_omnios]
disabled = False
origin = https://pkg.omnios.org/r151058/core/
mirrors = []

[authority_bare]
origin = None
origins = []

[property]
publisher-search-order = ['omnios', 'extra.omnios']
`)
	want := []ips.Publisher{
		{Name: "omnios", Origins: []string{"https://pkg.omnios.org/r151058/core/"}},
		{Name: "extra.omnios", Origins: []string{"https://pkg.omnios.org/r151058/extra/", "http://mirror/extra/"}},
		{Name: "bare"},
	}
	if !slices.EqualFunc(got, want, func(a, b ips.Publisher) bool { return a.Name == b.Name && slices.Equal(a.Origins, b.Origins) }) {
		t.Errorf("%+v", got)
	}
}

// A system without IPS has no publisher and no package; half a catalog is told.
func TestWhatIsInstalledIsReadFromTheCatalog(t *testing.T) {
	for mode, want := range map[world.Mode]string{world.OmniOS: "11-0.151058", world.SmartOS: ""} {
		sled := sim.New(sim.Options{Mode: mode}, hosttest.Files)
		t.Cleanup(sled.Close)
		files := sled.Host().Files()
		if got, err := ips.Installed(files, "entire"); got != want || err != nil {
			t.Errorf("%s: %q, %v", mode, got, err)
		}
		if got, err := ips.Installed(files, "absent"); got != "" || err != nil {
			t.Errorf("%s: %q, %v", mode, got, err)
		}
		if got, err := ips.Publishers(files); (len(got) == 0) != (want == "") || err != nil {
			t.Errorf("%s: %v, %v", mode, got, err)
		}
		if want == "" {
			continue
		}
		for _, broken := range []string{"{", `{"omnios": 1}`} {
			if err := host.WriteFile(files, "/var/pkg/state/installed/catalog.base.C", []byte(broken), 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := ips.Installed(files, "entire"); err == nil {
				t.Errorf("%q was read", broken)
			}
		}
	}
}
