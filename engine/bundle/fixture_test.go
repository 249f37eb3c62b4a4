package bundle

import (
	"testing"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/test/hosttest"
)

// newSled is a sled with a directory for bundles and a zone's root with logs.
func newSled(t *testing.T) host.Host {
	t.Helper()
	s := sim.New(sim.Options{M2: -1, U2: -1}, hosttest.Files)
	t.Cleanup(s.Close)
	h := s.Host()
	for _, dir := range []string{"/bundles", "/zone/z/root/var/svc/log", "/zone/z/root/var/adm", "/run/lock"} {
		if err := host.MkdirAll(h.Files(), dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put(t, h.Files(), "/zone/z/root/var/svc/log/system-propolis:default.log", "it fell over\n")
	put(t, h.Files(), "/zone/z/root/var/adm/messages", "panic\n")
	put(t, h.Files(), "/etc/zones/"+testZone+".xml", "<zone/>")
	return h
}
