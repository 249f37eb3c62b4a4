package nicsync

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/peer/napi"
	simnapi "github.com/sledctl/sledctl/sim/napi"
	"github.com/sledctl/sledctl/sim/simtest"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/vnic"
	"github.com/sledctl/sledctl/zone"
)

// A zone in any state is a VM, by each of its names, and its NICs are those of its
// configuration and of the links that it has.
func TestWhatIsHere(t *testing.T) {
	const propolis, instance = "8c4a2b1e-6a57-4a5c-9d3e-000000000009", "64f8146a-e285-4ea8-81a9-ce7bccbcdbab"
	ours := naming.DefaultPrefixes().Zone + propolis
	zones := []zone.Zone{
		{Name: zone.Global, State: zone.Running},
		{Name: id(1), State: zone.Running, UUID: strings.ToUpper(id(101))},
		{Name: id(2), State: zone.Installed, UUID: id(2)},
		{Name: id(3), State: zone.Configured},
		{Name: id(4), State: zone.Incomplete}, {Name: id(5), State: zone.Ready}, {Name: id(6), State: zone.Mounted}, {Name: id(7), State: zone.ShuttingDown}, {Name: id(8), State: zone.Down},
		{Name: ours, State: zone.Running, UUID: id(60)},
	}
	configs := map[string]zone.Config{
		id(1): {Nets: []zone.Net{{Physical: "net0", MAC: "90:b8:d0:0:0:1"}}},
		id(2): {Nets: []zone.Net{{Physical: "net0", MAC: "90:b8:d0:0:0:2"}}, Attrs: []zone.Attr{{Name: "do-not-inventory", Value: "true"}}},
		id(3): {Nets: []zone.Net{{Physical: "vm3"}}, Attrs: []zone.Attr{{Name: "do_not_inventory", Value: "false"}}},
		ours:  {Attrs: []zone.Attr{{Name: naming.AttrInstance, Value: instance}}, Nets: []zone.Net{{Physical: "v0"}}},
		id(9): {Nets: []zone.Net{{Physical: "x", MAC: "90:b8:d0:0:0:9"}}}, // its zone came after the listing
	}
	links := []vnic.Link{
		{Name: "net0", Class: "phys"}, {Name: "net0", MAC: "a8:40:25:00:01:01"}, // the sled's own, and its address
		{Name: "net0", Class: "vnic", MAC: mac(1), Zone: id(1)}, {Name: "vm3", Class: "vnic", MAC: mac(3)}, {Name: "v0", Class: "vnic", MAC: mac(10), Zone: ours},
		{Name: "gz0", Class: "vnic", MAC: mac(20)}, {Name: "held0", Class: "vnic", MAC: mac(50)},
	}
	recorded := []VM{
		{Name: "web1", IDs: []string{instance, propolis}, State: napi.StateStopped, NICs: []NIC{{MAC: mac(10), Link: "v0"}}},
		{Name: "web2", IDs: []string{id(50)}, State: napi.StateStopped, NICs: []NIC{{MAC: mac(50), Link: "held0"}}},
	}
	local := here(naming.DefaultPrefixes(), zones, configs, links, recorded)
	for _, c := range []struct {
		ids    []string
		name   string
		state  string
		moving bool
		mac    string
	}{
		{[]string{id(1), id(101)}, id(1), napi.StateRunning, false, mac(1)},
		{[]string{id(2)}, id(2), napi.StateStopped, true, mac(2)},
		{[]string{id(3)}, id(3), "", false, mac(3)},
		{[]string{id(4)}, id(4), "", false, ""}, {[]string{id(5)}, id(5), "", false, ""}, {[]string{id(6)}, id(6), "", false, ""},
		{[]string{id(7)}, id(7), "", false, ""}, {[]string{id(8)}, id(8), "", false, ""},
		{[]string{propolis, instance}, "web1", napi.StateRunning, false, mac(10)},
		{[]string{id(50)}, "web2", napi.StateStopped, false, mac(50)},
	} {
		for _, id := range c.ids {
			vm, ok := local.vm(id)
			has := c.mac == "" || local.has(id, c.mac)
			if !ok || vm.Name != c.name || vm.State != c.state || (vm.Moving != "") != c.moving || !has {
				t.Errorf("%s: %+v, want %+v", id, vm, c)
			}
		}
	}
	if !local.has(id(9), mac(9)) {
		t.Error("a zone that came after the listing is not here")
	}
	var own []string
	for _, n := range local.Own {
		own = append(own, n.Link+" "+n.MAC)
	}
	// held0 is the recorded VM's, wherever it is now.
	if want := []string{"net0 a8:40:25:00:01:01", "gz0 " + mac(20)}; !slices.Equal(own, want) {
		t.Errorf("the sled's own: %v, want %v", own, want)
	}
}

// An aggregation's own address is the sled's, by its name and not by that of the
// port that it has it from, or another one that was given to it.
func TestAggregations(t *testing.T) {
	for _, address := range []string{"a8:40:25:00:00:01", "02:08:20:00:00:07"} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, t.Context(), simnapi.EraD)
			defer r.sled.Close()
			r.change(func(tx *world.Tx) {
				tx.State.Links[0].MAC = "a8:40:25:00:00:01"
				tx.State.Links = append(tx.State.Links, &world.Link{Name: "aggr0", Class: "aggr", Over: "net0", MAC: address, Up: true})
				simtest.AddNIC(tx, address, world.NAPINIC{BelongsToType: "server", BelongsToUUID: ours, OwnerUUID: admin, State: "provisioning"})
			})
			outcome, err := r.sync(all())
			state := ""
			r.see(func(tx *world.Tx) { state = tx.State.NAPI.NICs[address].State })
			if err != nil || state != napi.StateRunning || outcome.Results[address] != Changed {
				t.Errorf("%s: %s, %v, %v", address, state, outcome.Results, err)
			}
			findings, err := r.settings.List(r.ctx, r.env)
			for _, f := range findings {
				if f.MAC == address && (f.Verdict != InUse || f.Link != "aggr0") {
					t.Errorf("%+v", f)
				}
			}
			if err != nil {
				t.Error(err)
			}
			r.change(func(tx *world.Tx) {
				tx.Arm(world.Fault{Name: world.FaultFail, Match: "dladm show-aggr", Exit: 1, Text: "dladm: no", Times: 1})
			})
			if _, err := r.sync(all()); err == nil {
				t.Error("aggregations that cannot be listed are not told")
			}
		})
	}
}

// Neither clock is asked: a NAPI whose clock is years away is as good as any.
func TestClockSkew(t *testing.T) {
	for _, skew := range []time.Duration{-20 * 365 * 24 * time.Hour, 20 * 365 * 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			r := disturbed(t)
			defer r.sled.Close()
			r.change(func(tx *world.Tx) {
				for _, rec := range tx.State.NAPI.NICs {
					rec.Created, rec.Modified = rec.Created.Add(skew), rec.Modified.Add(skew)
				}
			})
			if _, err := r.sync(all()); err != nil || r.state() != truth {
				t.Errorf("%v: %s, %v", skew, r.state(), err)
			}
		})
	}
}

// Shuffled pages are as good as others.
func TestShuffledPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, t.Context(), simnapi.EraD)
		defer r.sled.Close()
		r.change(func(tx *world.Tx) {
			tx.State.NAPI.Shuffled = true
			for n := range 1100 {
				addRecord(tx, n, ours, "running")
			}
		})
		findings, err := r.settings.List(t.Context(), r.env)
		if err != nil || len(findings) != 1101 || verdictOf(findings, mac(1099)) != Leaked {
			t.Errorf("%d findings, %v", len(findings), err)
		}
	})
}
