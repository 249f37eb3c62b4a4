package vpcs_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/agent/vpcs"
	"github.com/sledctl/sledctl/sled/instance/record"
)

func nic(ip string) record.NIC {
	return record.NIC{OPTE: true, MAC: "02:08:20:a1:00:0f", Port: record.Port{VNI: 100, IP: ip, Subnet: "172.30.0.0/22", Gateway: "172.30.0.1"}}
}

const (
	one   = `{"router_id":"6c8b3f8a-1111-4222-8333-444455556666","version":1}`
	two   = `{"router_id":"6c8b3f8a-1111-4222-8333-444455556666","version":2}`
	other = `{"router_id":"6c8b3f8a-1111-4222-8333-444455557777","version":1}`
)

// sent are routes of all NICs of VPC 100, to one destination.
func sent(t *testing.T, version, dest string) (sets []api.RouteSet) {
	t.Helper()
	text := `[{"id":{"kind":{"type":"system"},"vni":100},"version":` + version + `,"routes":[{"dest":"` + dest + `","target":{"type":"drop"}}]}]`
	if err := json.Unmarshal([]byte(text), &sets); err != nil {
		t.Fatal(err)
	}
	return sets
}

// Routes are taken over if their version is another router's, is newer, or is not known; those that were not applied
// are asked for again.
func TestWhichRoutesAreTakenOver(t *testing.T) {
	known := map[api.RouterID]bool{}
	ids := api.RoutersOf(nic("172.30.0.5"))
	for _, id := range ids {
		known[id] = true
	}
	var r vpcs.Routes
	for _, step := range []struct {
		why, version, dest string
		fails              error
		want               string // the destination that a NIC has then
		tells              bool   // a version
	}{
		{"the first", one, "10.1.0.0/16", nil, "10.1.0.0/16", true},
		{"the same version", one, "10.2.0.0/16", nil, "10.1.0.0/16", true},
		{"a newer one", two, "10.2.0.0/16", nil, "10.2.0.0/16", true},
		{"an older one", one, "10.1.0.0/16", nil, "10.2.0.0/16", true},
		{"another router's", other, "10.3.0.0/16", nil, "10.3.0.0/16", true},
		{"none", "null", "10.4.0.0/16", nil, "10.4.0.0/16", false},
		{"some VM did not take it", two, "10.5.0.0/16", errors.New("no"), "10.5.0.0/16", false},
		{"the same, again", two, "10.5.0.0/16", nil, "10.5.0.0/16", true},
	} {
		applied := 0
		err := r.Put(sent(t, step.version, step.dest), known, func(sets []api.RouteSet) error { applied += len(sets); return step.fails })
		if !errors.Is(err, step.fails) {
			t.Errorf("%s: %v", step.why, err)
		}
		n, err := r.For(nic("172.30.0.5"))
		if diff := cmp.Diff([]string{step.want + " drop system"}, n.Routes); err != nil || diff != "" {
			t.Errorf("%s: %v %s", step.why, err, diff)
		}
		if told := r.Known(ids)[0].Version != nil; told != step.tells {
			t.Errorf("%s: it tells a version: %v", step.why, told)
		}
	}
	if err := r.Put(nil, map[api.RouterID]bool{}, func([]api.RouteSet) error { return nil }); err != nil {
		t.Error(err)
	}
	if n, err := r.For(nic("172.30.0.5")); err != nil || n.Routes != nil {
		t.Errorf("routes of a VPC whose last VM has gone are still known: %v, %v", n.Routes, err)
	}
}

// Routes of one kind leave those of the other, and those that a NIC can have no use of are left out.
func TestWhichRoutesANICGets(t *testing.T) {
	n := nic("172.30.0.5")
	n.Routes = []string{"10.0.0.0/8 ig system", "10.9.0.0/16 ip4=172.30.0.9 custom"}
	for text, want := range map[string][]string{
		`{"id":{"kind":{"type":"system"},"vni":100},"routes":[]}`:                                                                                                     {"10.9.0.0/16 ip4=172.30.0.9 custom"},
		`{"id":{"kind":{"type":"custom","subnet":"172.30.0.0/22"},"vni":100},"routes":[]}`:                                                                            {"10.0.0.0/8 ig system"},
		`{"id":{"kind":{"type":"custom","subnet":"172.31.0.0/22"},"vni":100},"routes":[]}`:                                                                            n.Routes,
		`{"id":{"kind":{"type":"system"},"vni":7},"routes":[]}`:                                                                                                       n.Routes,
		`{"id":{"kind":{"type":"system"},"vni":100},"routes":[{"dest":"fd00::/8","target":{"type":"drop"}}]}`:                                                         {"10.9.0.0/16 ip4=172.30.0.9 custom"},
		`{"id":{"kind":{"type":"custom","subnet":"172.30.0.0/22"},"vni":100},"routes":[{"dest":"10.8.0.0/16","target":{"type":"vpc_subnet","value":"10.8.0.0/16"}}]}`: {"10.0.0.0/8 ig system", "10.8.0.0/16 sub4=10.8.0.0/16 custom"},
	} {
		var s api.RouteSet
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Fatal(err)
		}
		got, err := s.For(n)
		if diff := cmp.Diff(want, got.Routes); err != nil || diff != "" {
			t.Errorf("%s: %v %s", text, err, diff)
		}
	}
	for _, text := range []string{
		`{"id":{"kind":{"type":"custom"},"vni":100},"routes":[]}`, `{"id":{"kind":{"type":"other"},"vni":100},"routes":[]}`, `{"routes":[]}`, `{"id":{"kind":{"type":"system"},"vni":100}}`,
		`{"id":{"kind":{"type":"system"},"vni":100},"routes":[{"dest":"10.0.0.0/8"}]}`,
	} {
		if json.Unmarshal([]byte(text), &api.RouteSet{}) == nil {
			t.Errorf("%s is taken", text)
		}
	}
}
