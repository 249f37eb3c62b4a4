package zone_test

import (
	"testing"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/test/hosttest"
	"github.com/sledctl/sledctl/test/steptest"
	"github.com/sledctl/sledctl/zone"
)

// The steps that remove what a killed program has left.
func TestStepsOnLeftovers(t *testing.T) {
	const config, home = "/etc/zones/web1.xml", "/zone/web1"
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	on := func(t *testing.T) (host.Host, host.Info) {
		s := sim.New(sim.Options{}, hosttest.Files)
		t.Cleanup(s.Close)
		h := s.Host()
		must(t, host.WriteFile(h.Files(), config, []byte("<zone/>"), 0o644))
		must(t, host.MkdirAll(h.Files(), home, 0o755))
		info, err := h.Files().Stat(config)
		must(t, err)
		return h, info
	}
	sled := func(t *testing.T) steptest.Sled {
		h, _ := on(t)
		return steptest.Sled{Host: h, State: func() any {
			_, noConfig := h.Files().Stat(config)
			_, noHome := h.Files().Stat(home)
			return []bool{noConfig == nil, noHome == nil}
		}}
	}
	_, info := on(t)
	steptest.Conform(t,
		steptest.Case{Step: zone.RemoveConfig{Name: "web1", Inode: info.Inode}, Sled: sled, Again: host.ErrNotFound},
		steptest.Case{Step: zone.RemoveHome{Path: home}, Sled: sled, Again: host.ErrNotFound},
	)
}
