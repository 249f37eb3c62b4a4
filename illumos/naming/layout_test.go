package naming

import (
	"strings"
	"testing"
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
	if got := PoolRoot(m2).Join("config"); got != (Location{m2 + "/config", "/pool/int/a462a7f7-b628-40fe-80ff-4e4189e2d62b/config"}) {
		t.Errorf("%v", got)
	}
	if got, ok := Zone("rpool", "web1"); got != (Location{"rpool/zone/web1", "/zone/web1"}) || !ok {
		t.Errorf("%v, %v", got, ok)
	}
}

func TestDebug(t *testing.T) {
	for pool, want := range map[string]Location{
		u2: {u2 + "/crypt/debug", "/pool/ext/" + strings.TrimPrefix(u2, "oxp_") + "/crypt/debug"},
		"oxi_a462a7f7-b628-40fe-80ff-4e4189e2d62b": {"oxi_a462a7f7-b628-40fe-80ff-4e4189e2d62b/debug", "/pool/int/a462a7f7-b628-40fe-80ff-4e4189e2d62b/debug"},
		"rpool": {},
	} {
		if got, ok := Debug(pool); got != want || ok != (want != Location{}) {
			t.Errorf("%s: %v, %v", pool, got, ok)
		}
	}
}

func TestPoolAt(t *testing.T) {
	for _, pool := range []string{u2, m2} {
		for _, below := range []string{"", "/crypt/zone/z"} {
			if got := PoolAt(PoolRoot(pool).Mountpoint + below); got != pool {
				t.Errorf("%s%s: %s", pool, below, got)
			}
		}
	}
	for _, elsewhere := range []string{"/zone/z", "/pool/ext", "/pool/ext/x/y", "", "/pool/" + u2} {
		if got := PoolAt(elsewhere); got != "" {
			t.Errorf("%s: %s", elsewhere, got)
		}
	}
}
