package sled

import (
	"testing"

	"pgregory.net/rapid"
)

const (
	u2 = "oxp_e4b4dc87-ab46-49fb-a4b4-d361ae214c03"
	m2 = "oxi_a462a7f7-b628-40fe-80ff-4e4189e2d62b"
)

func TestLayout(t *testing.T) {
	for _, c := range []struct {
		pool string
		want Location
		ok   bool
	}{
		{u2, Location{u2 + "/crypt/zone", "/pool/ext/e4b4dc87-ab46-49fb-a4b4-d361ae214c03/crypt/zone"}, true},
		{"rpool", Location{"rpool/zone", "/zone"}, true},
		{"tank", Location{"tank/zone", "/tank/zone"}, true},
		{"oxp_tank", Location{"oxp_tank/zone", "/oxp_tank/zone"}, true},
		{m2, Location{}, false},
	} {
		if got, ok := ZoneParent(c.pool); got != c.want || ok != c.ok {
			t.Errorf("zones on %s: %v, %v", c.pool, got, ok)
		}
	}
	if got, ok := Zone("rpool", "web1"); got != (Location{"rpool/zone/web1", "/zone/web1"}) || !ok {
		t.Errorf("%v, %v", got, ok)
	}
	if got, ok := Config(m2); got != (Location{m2 + "/config", "/pool/int/a462a7f7-b628-40fe-80ff-4e4189e2d62b/config"}) || !ok {
		t.Errorf("%v, %v", got, ok)
	}
	if got, ok := LedgerDirectory(m2); got != "/pool/int/a462a7f7-b628-40fe-80ff-4e4189e2d62b/config/sledctl" || !ok {
		t.Errorf("%v, %v", got, ok)
	}
	for _, pool := range []string{u2, "rpool"} {
		if dir, ok := LedgerDirectory(pool); ok {
			t.Errorf("a ledger on %s, in %s", pool, dir)
		}
	}
}

func TestZonepathsAreABijection(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pool := anyPool().Draw(t, "pool")
		zone := rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9._-]{0,62}`).Draw(t, "zone")
		l, ok := Zone(pool, zone)
		if !ok {
			t.Fatalf("no zone on %s", pool)
		}
		if p, z, ok := ParseZonepath(l.Mountpoint); !ok || p != pool || z != zone {
			t.Errorf("%s is read as %s on %s, %v", l.Mountpoint, z, p, ok)
		}
	})
}

func TestParseZonepathRefusesOtherPlaces(t *testing.T) {
	for _, bad := range []string{
		"", "/", "/zone", "/zone/", "zone/web1", "/zone/a/b", "/zones/web1", "/rpool/zone/web1", "/tank/zones/web1",
		"/pool/ext/e4b4dc87/crypt/zone/web1", "/pool/int/a462a7f7-b628-40fe-80ff-4e4189e2d62b/crypt/zone/web1",
		"/pool/ext/e4b4dc87-ab46-49fb-a4b4-d361ae214c03/crypt/zone", "/pool/ext/e4b4dc87-ab46-49fb-a4b4-d361ae214c03/zone/web1",
	} {
		if pool, zone, ok := ParseZonepath(bad); ok {
			t.Errorf("%q is read as %s on %s", bad, zone, pool)
		}
	}
}
