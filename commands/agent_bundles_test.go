package commands_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/sledtest"
)

// A control plane lists the bundles of zones, fetches one and removes it, and learns how much
// of them is kept; the configuration of the sled decides that.
func TestTheControlPlaneHasBundles(t *testing.T) {
	s := sledtest.New(t, sim.Options{Seed: 1, M2: 1, U2: 2}, "")
	s.Run("bootstrap")
	s.Run(sledtest.Web1)
	zone := instanceZone(s)
	a := s.StartAgent(t, s.Host())
	ask := asking(t, a)
	list := func(path string) (all []api.Bundle) {
		t.Helper()
		if err := json.Unmarshal([]byte(ask("GET", path, "", 200)), &all); err != nil {
			t.Fatal(err)
		}
		return all
	}
	if all := list("/zones/bundles"); len(all) != 0 {
		t.Errorf("before any was taken: %+v", all)
	}
	for range 2 {
		s.Run("zone bundle create " + zone)
	}
	all := list("/zones/bundles?filter=" + zone[10:30])
	if len(all) != 2 || all[0].ID.Zone != zone || all[0].Cause != "other" || all[0].ID == all[1].ID || all[0].Created.IsZero() {
		t.Fatalf("%+v", all)
	}
	for path, n := range map[string]int{"/zones/bundles/" + zone: 2, "/zones/bundles/another": 0, "/zones/bundles?filter=another": 0} {
		if got := list(path); len(got) != n {
			t.Errorf("%s: %+v", path, got)
		}
	}
	one := "/zones/bundles/" + zone + "/" + all[0].ID.ID.String()
	if file := ask("GET", one, "", 200); !strings.HasPrefix(file, "\x1f\x8b") {
		t.Errorf("a bundle is no gzip: %.20q", file)
	}
	ask("DELETE", one, "", 204)
	ask("DELETE", one, "", 404)
	ask("GET", one, "", 404)
	ask("GET", "/zones/bundles/"+zone+"/x", "", 400)
	if ids := strings.Fields(s.Run("zone bundle list -H -o name")); len(ids) != 1 {
		t.Errorf("%q are left", ids)
	}

	var space map[string]api.BundleSpace
	if err := json.Unmarshal([]byte(ask("GET", "/zones/bundle-cleanup/utilization", "", 200)), &space); err != nil || len(space) != 3 {
		t.Errorf("%v, %v", space, err)
	}
	used := uint64(0)
	for place, p := range space {
		if used += p.Used; p.Quota != 100<<30 || p.Available != 1<<30 || !strings.HasSuffix(place, "/debug/bundle/zone") {
			t.Errorf("%s: %+v", place, p)
		}
	}
	if used == 0 {
		t.Error("one bundle takes no space")
	}
	const context = "/zones/bundle-cleanup/context"
	if got := ask("GET", context, "", 200); got != `{"period":{"secs":600,"nanos":0},"storage_limit":1,"priority":["time","cause"]}` {
		t.Errorf("%s", got)
	}
	if got := ask("POST", "/zones/bundle-cleanup", "", 200); got != "{}" {
		t.Errorf("%s", got)
	}
	ask("PUT", context, ask("GET", context, "", 200), 204)
	ask("PUT", context, `{"period":null,"storage_limit":null,"priority":null}`, 204)
	for _, other := range []string{`{"storage_limit":25}`, `{"storage_limit":0}`, `{"storage_limit":51}`, `{"period":{"secs":59,"nanos":0}}`, `{"period":{"secs":86400,"nanos":1}}`,
		`{"period":{"secs":700,"nanos":0}}`, `{"priority":["time"]}`, `{"priority":["cause","cause"]}`, `{"priority":["cause","time"]}`} {
		if got := ask("PUT", context, other, 400); !strings.Contains(got, strings.Split(other, `"`)[1]) {
			t.Errorf("%s: %s", other, got)
		}
	}
}

// What lies there beyond bundle.max_size goes when the control plane asks, the oldest first.
func TestTheOldestBundlesGoWhenTheControlPlaneAsks(t *testing.T) {
	s := sledtest.New(t, sim.Options{Seed: 1, M2: 1, U2: 1}, "")
	s.Run("bootstrap")
	s.Run(sledtest.Web1)
	zone := instanceZone(s)
	for range 3 {
		s.Run("zone bundle create " + zone)
	}
	all := strings.Fields(s.Run("zone bundle list -H --columns id,size"))
	newest, size := all[4], all[5]
	s.WriteFile("/etc/sledctl/config.toml", cli.SimulatedConfig(world.OmniOS)+"\n[bundle]\nmax_size = \""+size+"\"\n")
	a := s.StartAgent(t, s.Host())
	status, answer := a.Send("POST", "/zones/bundle-cleanup", sledtest.LatestAPI, "")
	if left := strings.Fields(s.Run("zone bundle list -H --columns id")); status != 200 || !strings.Contains(answer, `"bundles":`) || !slices.Equal(left, []string{newest}) {
		t.Errorf("%d %s: %q", status, answer, left)
	}
}

// instanceZone is the zone of the one instance.
func instanceZone(s *sledtest.Operator) string {
	for _, name := range s.Zones() {
		if strings.HasPrefix(name, "propolis_instance_") {
			return name
		}
	}
	return ""
}
