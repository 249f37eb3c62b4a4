package comparison

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/record"
)

func stopped() instance.Instance {
	return instance.Instance{
		Record: record.Record{
			Name: "web1", Wanted: record.WantedStopped, Protected: true, Control: "02:08:20:00:00:01",
			Spec: record.Spec{
				CPUs: 4, Memory: 8 << 30, Address: record.Address{Mode: record.DHCP},
				NICs:  []record.NIC{{Over: "net0", MAC: "02:08:20:00:00:02", VLAN: 100}, {Over: "net1", MAC: "02:08:20:00:00:03"}},
				Disks: []record.Disk{{Path: "/d/a.iso", ReadOnly: true}},
			},
		},
		Status: instance.Status{State: record.Stopped},
	}
}

// What was not looked at is not judged.
func TestRowsOfAStoppedInstance(t *testing.T) {
	want := []Row{
		{Field: "run", Wanted: "stopped", Observed: "stopped", Verdict: Same},
		{Field: "cpus", Wanted: "4", Observed: "-"},
		{Field: "memory", Wanted: "8G", Observed: "-"},
		{Field: "nic 0", Wanted: "net0 vlan 100 02:08:20:00:00:02", Observed: "-"},
		{Field: "nic 1", Wanted: "net1 02:08:20:00:00:03", Observed: "-"},
		{Field: "control", Wanted: "dhcp 02:08:20:00:00:01", Observed: "-"},
		{Field: "disk 0", Wanted: "/d/a.iso readonly", Observed: "-"},
		{Field: "protected", Wanted: "yes", Observed: "-"},
	}
	if diff := cmp.Diff(want, rows(layout.Blueprint{}, stopped(), seen{inv: &inventory.Inventory{}})); diff != "" {
		t.Error(diff)
	}
}

// The VM is compared with what Propolis was given, and its size with the record.
func TestRowsOfTheMachine(t *testing.T) {
	i := stopped()
	i.State, i.Wanted = record.Running, record.WantedRunning
	sent := spec.InstanceSpec{Board: spec.Board{CPUs: 4, MemoryMiB: 8 << 10}}
	other := spec.InstanceSpec{Board: spec.Board{CPUs: 2, MemoryMiB: 8 << 10}}
	c := Comparison{Rows: rows(layout.Blueprint{}, i, seen{inv: &inventory.Inventory{}, machine: &other, sent: &sent})}
	want := []Row{
		{Field: "cpus", Wanted: "4", Observed: "2", Verdict: Differs},
		{Field: "spec board.cpus", Wanted: "4", Observed: "2", Verdict: Differs},
	}
	if diff := cmp.Diff(want, c.Differing()); diff != "" {
		t.Error(diff)
	}
	c = Comparison{Rows: rows(layout.Blueprint{}, i, seen{inv: &inventory.Inventory{}, machine: &sent, sent: &sent})}
	if len(c.Differing()) > 0 {
		t.Errorf("%+v", c.Differing())
	}
}

func TestWhatIsOnItsWayIsNotJudged(t *testing.T) {
	for state, verdict := range map[string]string{record.Running: Same, record.Failed: Differs, record.Absent: Differs, record.Stopping: "", record.Unknown: "", "migrating": ""} {
		i := stopped()
		i.State, i.Wanted = state, record.WantedRunning
		if got := runRow(i).Verdict; got != verdict {
			t.Errorf("%s: %q, want %q", state, got, verdict)
		}
	}
}

func TestChange(t *testing.T) {
	if got := change([]string{"a", "b"}, []string{"b", "c"}); got != "+ c, - a" {
		t.Error(got)
	}
}

func TestNext(t *testing.T) {
	set := func(state, wanted string, by func(*Comparison)) Comparison {
		c := Comparison{Instance: stopped()}
		c.State, c.Wanted = state, wanted
		by(&c)
		return c
	}
	nothing := func(*Comparison) {}
	differs := func(c *Comparison) { c.Rows = []Row{{Verdict: Differs}} }
	for name, x := range map[string]struct {
		c    Comparison
		want string
	}{
		"runs":                   {set("running", "running", nothing), ""},
		"failed":                 {set("failed", "running", differs), "sledctl instance ensure web1"},
		"absent":                 {set("absent", "running", nothing), "sledctl instance ensure web1"},
		"stopped":                {set("stopped", "stopped", nothing), "sledctl instance start web1"},
		"differs":                {set("running", "running", differs), "sledctl instance get web1 --diff"},
		"its cap alone":          {set("running", "running", func(c *Comparison) { c.Rows = []Row{{Field: "zone zone.cpu-cap", Verdict: Differs}} }), "sledctl instance get web1 --diff"},
		"at risk":                {set("running", "running", func(c *Comparison) { c.AtRisk = true }), "sledctl storage list"},
		"failed, a run is at it": {set("failed", "running", func(c *Comparison) { c.Busy = &operation.Holder{} }), ""},
		"migrates":               {set("migrating", "running", func(c *Comparison) { c.Migration = &record.Migration{} }), "sledctl instance migrate web1"},
		"unknown":                {set("unknown", "running", differs), ""},
	} {
		got := ""
		if next := x.c.Next(); len(next) > 0 {
			got = next[0].Command
		}
		if got != x.want {
			t.Errorf("%s: got %q, want %q", name, got, x.want)
		}
	}
}

// What the guest is to be told is compared with what its VM was given, by digests of the same key.
func TestRowsOfCloudInitData(t *testing.T) {
	wanted := &record.CloudInit{Hostname: "shop", Volume: "secret:a"}
	given := func(volume string) seen {
		m := spec.InstanceSpec{Components: spec.Components{}}
		if volume != "" {
			m.Components.AddCloudInit(volume)
		}
		return seen{machine: &m}
	}
	lost := given("secret:x")
	lost.lost = true
	for what, x := range map[string]struct {
		is   *record.CloudInit
		look seen
		want []Row
	}{
		"none":    {nil, given(""), nil},
		"given":   {wanted, given("secret:a"), []Row{{Field: "cloud-init", Wanted: "hostname shop", Observed: "given to its VM", Verdict: Same}}},
		"other":   {wanted, given("secret:b"), []Row{{Field: "cloud-init", Wanted: "hostname shop", Observed: "its VM was given other data", Verdict: Differs}}},
		"not yet": {wanted, given(""), []Row{{Field: "cloud-init", Wanted: "hostname shop", Observed: "not given to its VM", Verdict: Differs}}},
		"removed": {nil, given("secret:a"), []Row{{Field: "cloud-init", Wanted: "none", Observed: "its VM was given other data", Verdict: Differs}}},
		"unseen":  {wanted, seen{}, []Row{{Field: "cloud-init", Wanted: "hostname shop", Observed: "-"}}},
		"lost":    {wanted, lost, []Row{{Field: "cloud-init", Wanted: "hostname shop", Observed: "-"}}},
	} {
		i := instance.Instance{Record: record.Record{Spec: record.Spec{CloudInit: x.is}}}
		if diff := cmp.Diff(x.want, cloudInitRows(i, x.look)); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
}
