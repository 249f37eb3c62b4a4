package instance

import (
	"strings"
	"testing"
	"time"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/sled/instance/record"
)

var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

func listed() []cli.Instance {
	const pool = "oxp_6eb758c7-ee2e-4e47-ae36-2884c421fb31"
	nics := func(vlan int) []api.VNIC {
		return []api.VNIC{{Name: "vnic0", Over: "stub0", MAC: "02:00:00:00:00:01"}, {Name: "guest0", Over: "net0", MAC: "02:00:00:00:00:02", VLAN: vlan}}
	}
	return []cli.Instance{
		{ID: "11111111-1111-5111-8111-111111111111", Name: "web1", State: "running", CPUs: 4, Memory: 8 << 30, Pool: pool, VNICs: nics(100), AtRisk: true, Reason: "its pool is UNAVAIL", Since: noon.Add(-time.Minute)},
		{ID: "22222222-2222-5222-8222-222222222222", Name: "web2", State: "failed", CPUs: 4, Memory: 8 << 30, Pool: "rpool", VNICs: nics(0), Died: true},
		{ID: "33333333-3333-5333-8333-333333333333", Name: "db1", State: "migrating", CPUs: 8, Memory: 32 << 30, Changed: []string{"its zone"}, Busy: &api.Busy{Verb: "instance migrate"}, Disks: []record.Disk{{Path: "rpool/db1"}}},
		{ID: "44444444-4444-5444-8444-444444444444", Name: "db2", State: "stopped", CPUs: 1, Memory: 1 << 30, Protected: true, Updated: noon.Add(-48 * time.Hour)},
	}
}

func TestSelectionPicksWhatAllOfItHoldsOf(t *testing.T) {
	for _, c := range []struct {
		words string
		s     selection
		want  string
	}{
		{"", selection{}, "web1 web2 db1 db2"},
		{"web1 db2", selection{}, "web1 db2"},
		{"web* db2", selection{}, "web1 web2 db2"},
		{"22222222-2222-5222-8222-222222222222", selection{}, "web2"},
		{"", selection{states: []string{"failed", "stopped"}}, "web2 db2"},
		{"", selection{states: []string{"at-risk"}}, "web1"},
		{"", selection{states: []string{"busy"}}, "db1"},
		{"", selection{states: []string{"changed", "failed"}}, "web2 db1"},
		{"", selection{failed: true}, "web2"},
		{"db*", selection{failed: true}, ""},
		{"web*", selection{filters: []string{"state!=running"}}, "web2"},
		{"", selection{filters: []string{"memory>=8G", "cpus<8"}}, "web1 web2"},
		{"", selection{filters: []string{"pool=oxp_6eb758c7"}}, "web1"},
		{"", selection{filters: []string{"pool~^oxp_6eb758c7-ee2e"}}, "web1"},
		{"", selection{filters: []string{"vlan=100"}}, "web1"},
		{"", selection{filters: []string{"nic=net0"}}, "web1 web2"},
		{"", selection{filters: []string{"nic=stub0"}}, ""}, // its own, for control
		{"", selection{filters: []string{"mac~02$"}}, "web1 web2"},
		{"", selection{filters: []string{"disk~db1"}}, "db1"},
		{"", selection{filters: []string{"protected"}}, "db2"},
		{"", selection{filters: []string{"since<5m"}}, "web1"},
		{"", selection{filters: []string{"updated>1d", "name!~^web"}}, "db2"},
		{"", selection{filters: []string{"reason~UNAVAIL"}}, "web1"},
	} {
		c.s.name(strings.Fields(c.words))
		picks, err := c.s.picker(noon)
		if err != nil {
			t.Errorf("%s %+v: %v", c.words, c.s, err)
			continue
		}
		var got []string
		for _, i := range listed() {
			if picks(i) {
				got = append(got, i.Name)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s %+v: got %v, want %s", c.words, c.s, got, c.want)
		}
	}
}

func TestSelectionsThatCannotBeMeant(t *testing.T) {
	for want, s := range map[string]selection{
		`--state "faild": did you mean "failed"?`:                            {states: []string{"running", "faild"}},
		`--filter "memroy>4G": unknown key "memroy": did you mean "memory"?`: {filters: []string{"memroy>4G"}},
		`the pattern "web[": a [ without its ]`:                              {names: []string{"web["}},
	} {
		if _, err := s.picker(noon); err == nil || err.Error() != want || fault.Of(err) != fault.Usage {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if _, err := (selection{states: []string{"purple"}}).picker(noon); err == nil || !strings.Contains(err.Error(), "want one of absent, at-risk, busy") {
		t.Errorf("got %v", err)
	}
}

func TestANameThatIsMissing(t *testing.T) {
	for words, want := range map[string]string{
		"web1 wbe2 nope": "wbe2", "web1": "", "nope*": "", "11111111-1111-5111-8111-111111111111": "", "55555555-1111-5111-8111-111111111111": "55555555-1111-5111-8111-111111111111",
		"AAAAAAAA-1111-5111-8111-111111111111": "aaaaaaaa-1111-5111-8111-111111111111",
	} {
		var s selection
		s.name(strings.Fields(words))
		if got := s.missing(listed()); got != want {
			t.Errorf("%s: got %q, want %q", words, got, want)
		}
	}
}

func TestSummary(t *testing.T) {
	all := listed()
	for want, shown := range map[string][]cli.Instance{
		"4 VMs: 1 running, 1 migrating, 1 failed, 1 stopped   12 vCPUs, 40G in use": all,
		"2 of 4 VMs: 1 failed, 1 stopped":                                           {all[1], all[3]},
		"1 of 4 VMs: 1 perplexed   4 vCPUs, 8G in use":                              {{State: "perplexed", CPUs: 4, Memory: 8 << 30}},
		"0 of 4 VMs": nil,
	} {
		if got := summary(shown, len(all)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Each column of the list can be asked for by its name, but for those that have a name of
// their own as a key.
func TestEachColumnIsAKey(t *testing.T) {
	keys := map[string]bool{"nics": true, "disks": true, "vnics": true, "propolis_id": true}
	for _, f := range fields() {
		keys[f.Key] = true
	}
	for _, c := range cli.InstanceList(&cli.Env{}).Columns {
		if !keys[c.Name] {
			t.Errorf("%s is a column, and no key", c.Name)
		}
	}
}
