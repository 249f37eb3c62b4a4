package reap

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/operation/operationtest"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/ipadm"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/base"
	"github.com/sledctl/sledctl/sled/network"
	"github.com/sledctl/sledctl/vnic"
	"github.com/sledctl/sledctl/zfs"
	"github.com/sledctl/sledctl/zone"
)

const lostPool = "oxp_e4b4dc87-ab46-49fb-a4b4-d361ae214c03"

func everyState() []zone.State {
	return []zone.State{zone.Configured, zone.Incomplete, zone.Installed, zone.Ready, zone.Mounted, zone.Running, zone.ShuttingDown, zone.Down}
}

// In whatever state a zone is, it has one verdict, and its removal is that of
// its state.
func TestZonesInEveryState(t *testing.T) {
	steps := map[zone.State]string{
		zone.Configured: "zone.delete", zone.Incomplete: "zone.discard", zone.Installed: "zone.uninstall zone.delete",
		zone.Ready: "zone.halt zone.uninstall zone.delete", zone.Mounted: "zone.unmount zone.uninstall zone.delete",
		zone.ShuttingDown: "zone.halt zone.uninstall zone.delete", zone.Down: "zone.halt zone.uninstall zone.delete",
	}
	for _, state := range everyState() {
		for name, c := range map[string]struct {
			boot    string // of the run that is recorded; empty: none is
			verdict Verdict
		}{
			"unknown to the ledger":      {"", Orphan},
			"of an instance":             {thisBoot, InUse},
			"from before the boot":       {earlierBoot, StaleZone},
			"unknown, and everything":    {"", Orphan},
			"an instance's, and goes so": {thisBoot, InUse},
		} {
			s := empty()
			s.zone(zone1, state)
			if c.boot != "" {
				s.record(t, "web1", changed(run(zone1, "vnic_propolis0"), func(r *instanceRun) { r.Boot = c.boot }))
			}
			if state == zone.Running && c.verdict == Orphan {
				c.verdict = Adoptable
			} else if state == zone.Running {
				c.verdict = InUse
			}
			f := s.judge(t)
			o := f.Objects[0]
			if o.Verdict != c.verdict || o.Removed != c.verdict.Removed() || o.Reason == "" {
				t.Errorf("%s %s: %+v", state, name, o)
			}
			if !o.Removed {
				continue
			}
			if want := steps[state]; verbsOf(f, "zone ") != want {
				t.Errorf("%s %s: %s, want %s", state, name, verbsOf(f, "zone "), want)
			}
			if state != zone.Installed && c.verdict == Orphan && !strings.Contains(o.Reason, string(state)) {
				t.Errorf("%s: the reason does not tell the state: %s", state, o.Reason)
			}
		}
	}
}

// verbsOf are the verbs of the plan's actions on objects of a kind.
func verbsOf(f Findings, kind string) string {
	var verbs []string
	for _, a := range f.removal(bundler{}).Plan.Actions {
		if strings.HasPrefix(a.Object, kind) && strings.HasPrefix(a.Step.Verb(), strings.TrimSpace(kind)) {
			verbs = append(verbs, a.Step.Verb())
		}
	}
	return strings.Join(verbs, " ")
}

func TestVerdictsOfTheOtherKinds(t *testing.T) {
	gz := network.Record{Etherstub: "stub1", GZVNIC: "gz0", GZMAC: "02:08:20:00:00:07", Former: []network.Former{
		{Kind: "etherstub", Name: "stub0"}, {Kind: "vnic", Name: "old0", MAC: "02:08:20:00:00:08"},
	}}
	home := func(s *scene, name, holds string) {
		s.Homes = append(s.Homes, inventory.Home{Path: "/zone/" + name, Inode: 7, Holds: holds})
	}
	entry := func(s *scene, name string) {
		s.Entries = append(s.Entries, inventory.Entry{Path: name, Info: host.Info{Name: name[strings.LastIndexByte(name, '/')+1:], Inode: 9}})
	}
	address := func(s *scene, object string) {
		s.Addresses = append(s.Addresses, ipadm.Address{Object: object, Address: netip.MustParsePrefix("10.0.0.1/24")})
	}
	for name, c := range map[string]struct {
		set  func(*testing.T, *scene)
		want map[string]Verdict
	}{
		"a configuration that no index names": {func(_ *testing.T, s *scene) {
			entry(s, "/etc/zones/"+zone1+".xml")
			s.lone[zone1] = zone.Config{Zonepath: "/zone/" + zone1}
		}, map[string]Verdict{"configuration " + zone1: Orphan}},
		"configurations that no index names, and that are not for certain ours": {func(_ *testing.T, s *scene) {
			entry(s, "/etc/zones/"+zone1+".xml")
			entry(s, "/etc/zones/"+zone2+".xml") // cannot be read
			s.lone[zone1] = zone.Config{Zonepath: "/elsewhere/" + zone1}
		}, map[string]Verdict{"configuration " + zone1: Unknown, "configuration " + zone2: Unknown}},
		"a configuration of a run that died": {func(t *testing.T, s *scene) {
			entry(s, "/etc/zones/"+zone1+".xml")
			s.intent(t, "instance/x", false, operation.Intent{Verb: "instance ensure", Makes: []operation.Object{{Kind: "zone", Name: zone1}}})
		}, map[string]Verdict{"configuration " + zone1: Orphan, "record intent/of instance/x": StaleRec}},
		"a configuration whose index is about to be written": {func(t *testing.T, s *scene) {
			entry(s, "/etc/zones/"+zone1+".xml")
			s.intent(t, "instance/x", true, operation.Intent{Makes: []operation.Object{{Kind: "zone", Name: zone1}}})
		}, map[string]Verdict{"configuration " + zone1: InProgress}},
		"configurations of zones, templates, and what else lies there": {func(_ *testing.T, s *scene) {
			s.zone(zone2, zone.Running)
			for _, name := range []string{zone2 + ".xml", "SUNWblank.xml", "mail.xml", "index", zone1 + ".xml.new"} {
				entry(s, "/etc/zones/"+name)
			}
		}, map[string]Verdict{"zone " + zone2: Adoptable}},
		"the sled's network": {func(t *testing.T, s *scene) {
			s.fact(t, "network", network.Record{Etherstub: "stub0", GZVNIC: "gz0"})
			s.link("gz0", "02:08:20:00:00:07", "")
			address(s, "gz0/control")
			address(s, "net0/v4")
		}, map[string]Verdict{"vnic gz0": InUse, "etherstub stub0": InUse, "address gz0/control": InUse}},
		"links of an earlier configuration": {func(t *testing.T, s *scene) {
			s.fact(t, "network", gz)
			s.link("old0", "02:08:20:00:00:08", "")
			address(s, "old0/control")
			address(s, "old0/ll")
		}, map[string]Verdict{"vnic old0": Orphan, "etherstub stub0": Orphan, "address old0/control": Orphan, "address old0/ll": Orphan}},
		"an earlier etherstub that is still used": {func(t *testing.T, s *scene) {
			s.fact(t, "network", gz)
			s.zone(zone1, zone.Running)
			s.record(t, "web1", run(zone1, "vnic_propolis0"))
			s.link("vnic_propolis0", "02:08:20:00:00:01", zone1)
		}, map[string]Verdict{"zone " + zone1: InUse, "vnic vnic_propolis0": InUse, "etherstub stub0": InUse}},
		"a foreign VNIC under the name of an earlier one": {func(t *testing.T, s *scene) {
			s.fact(t, "network", gz)
			s.link("old0", "02:08:20:00:00:99", "")
		}, map[string]Verdict{"etherstub stub0": InUse}},
		"an etherstub whose making died": {func(t *testing.T, s *scene) {
			s.intent(t, "sled", false, operation.Intent{Makes: []operation.Object{{Kind: "etherstub", Name: "stub0"}}})
		}, map[string]Verdict{"etherstub stub0": Orphan}},
		"an etherstub that is being made": {func(t *testing.T, s *scene) {
			s.intent(t, "sled", true, operation.Intent{Makes: []operation.Object{{Kind: "etherstub", Name: "stub0"}}})
		}, map[string]Verdict{"etherstub stub0": InProgress}},
		"a VNIC of a name of its own, whose making died": {func(t *testing.T, s *scene) {
			s.link("uplink7", "02:08:20:00:00:05", "")
			s.link("uplink8", "02:08:20:00:00:06", "")
			s.intent(t, "vnic", false, operation.Intent{Makes: []operation.Object{
				{Kind: "vnic", Name: "uplink7", Identity: "02:08:20:00:00:05"}, {Kind: "vnic", Name: "uplink8", Identity: "02:08:20:00:00:ff"},
			}})
		}, map[string]Verdict{"vnic uplink7": Orphan}}, // uplink8 is foreign, and the intent stays for it
		"a VNIC that was in a zone that is gone": {func(t *testing.T, s *scene) {
			s.link("vnic_propolis0", "02:08:20:00:00:01", zone1)
		}, map[string]Verdict{"vnic vnic_propolis0": Orphan}},
		"an address on a VNIC that is to go": {func(t *testing.T, s *scene) {
			s.link("vnic_propolis0", "02:08:20:00:00:01", "")
			s.hold(t, "vnic_propolis0", now())
			address(s, "vnic_propolis0/x")
		}, map[string]Verdict{"vnic vnic_propolis0": Orphan, "address vnic_propolis0/x": Orphan}},
		"an address on a VNIC that has but the name": {func(t *testing.T, s *scene) {
			s.link("vnic_propolis0", "02:08:20:00:00:01", "")
			address(s, "vnic_propolis0/x")
		}, map[string]Verdict{"vnic vnic_propolis0": Unknown}},
		"an address on a VNIC that is held": {func(t *testing.T, s *scene) {
			s.link("vnic_propolis0", "02:08:20:00:00:01", "")
			s.hold(t, "vnic_propolis0", now().Add(time.Hour))
			address(s, "vnic_propolis0/x")
		}, map[string]Verdict{"vnic vnic_propolis0": Held, "address vnic_propolis0/x": InUse}},
		"directories": {func(t *testing.T, s *scene) {
			home(s, zone1, "")
			home(s, zone2, "/zone/"+zone2+"/root/etc/passwd")
			home(s, "mail", "")
			home(s, "propolis_instance_web1", "") // not a name that we give
		}, map[string]Verdict{"directory /zone/" + zone1: Orphan, "directory /zone/" + zone2: Unknown, "directory /zone/propolis_instance_web1": Unknown}},
		"directories of what is there": {func(t *testing.T, s *scene) {
			s.zone(zone1, zone.Configured)
			home(s, zone1, "")
			s.dataset("rpool/zone/" + zone2)
			home(s, zone2, "")
		}, map[string]Verdict{"zone " + zone1: Orphan, "dataset rpool/zone/" + zone2: Unknown}},
		"a directory of a zone that is being made": {func(t *testing.T, s *scene) {
			home(s, zone1, "")
			s.intent(t, "instance/1", true, operation.Intent{Makes: []operation.Object{{Kind: "zone", Name: zone1}}})
		}, map[string]Verdict{"directory /zone/" + zone1: InProgress}},
		"a dataset of our name without a mark": {func(t *testing.T, s *scene) {
			s.dataset("rpool/zone/" + zone1)
			s.dataset("rpool/zone/" + zone1 + "/below")
			s.dataset("rpool/elsewhere/" + zone2)
		}, map[string]Verdict{"dataset rpool/zone/" + zone1: Unknown}},
		"a zone's root from before the boot, without its zone": {func(t *testing.T, s *scene) {
			s.home(zone1, naming.PropertyInstance)
			s.record(t, "web1", changed(run(zone1, "vnic_propolis0"), func(r *instanceRun) { r.Boot = earlierBoot }))
		}, map[string]Verdict{"dataset rpool/zone/" + zone1: StaleZone, "record web1": StaleRec}},
		"key files": {func(t *testing.T, s *scene) {
			entry(s, "/var/run/sledctl/key/disk1")
		}, map[string]Verdict{"key /var/run/sledctl/key/disk1": Orphan}},
		"key files that are in use": {func(t *testing.T, s *scene) {
			entry(s, "/var/run/sledctl/key/disk1")
			s.intent(t, "sled", true, operation.Intent{})
		}, map[string]Verdict{"key /var/run/sledctl/key/disk1": InProgress}},
		"VM handles": {func(t *testing.T, s *scene) {
			s.zone(zone1, zone.Running)
			s.record(t, "web1", run(zone1, "vnic_propolis0"))
			s.zone(zone2, zone.Running)
			s.Configs[zone2] = zone.Config{Attrs: []zone.Attr{{Name: naming.AttrInstance, Type: "string", Value: "marked"}}}
			s.record(t, "web3", run("propolis_instance_8c4a2b1e-6a57-4a5c-9d3e-000000000003", "vnic_propolis3"))
			for _, vm := range []string{"id of web1", "marked", "id of web3", "phd-vm"} {
				entry(s, "/dev/vmm/"+vm)
			}
		}, map[string]Verdict{"zone " + zone1: InUse, "zone " + zone2: Adoptable, "record web3": StaleRec,
			"vm id of web1": InUse, "vm marked": InUse, "vm id of web3": Unknown, "vm phd-vm": Unknown}},
		"stale records": {func(t *testing.T, s *scene) {
			s.fact(t, "base/rpool/1", base.Record{Pool: "rpool", Generation: 1, Zone: base1, Dataset: "rpool/zone/" + base1, UUID: "u"})
			s.hold(t, "vnic_propolis4", now().Add(-time.Minute))
			s.hold(t, "vnic_propolis5", now().Add(time.Minute))
		}, map[string]Verdict{"record base/rpool/1": StaleRec, "record hold/vnic/vnic_propolis4": StaleRec}},
		"a VNIC that somebody else's zone is configured with": {func(t *testing.T, s *scene) {
			s.Zones = append(s.Zones, zone.Zone{Name: "mail", State: zone.Installed, Path: "/zone/mail"})
			s.Configs["mail"] = zone.Config{Nets: []zone.Net{{Physical: "vnic_propolis0"}}}
			s.link("vnic_propolis0", "02:08:20:00:00:01", "")
		}, map[string]Verdict{"vnic vnic_propolis0": Unknown}},
		"a VNIC that is configured in a zone that stays": {func(t *testing.T, s *scene) {
			s.zone(zone1, zone.Installed)
			s.record(t, "web1", run(zone1, "vnic_propolis1"))
			s.Configs[zone1] = zone.Config{Nets: []zone.Net{{Physical: "vnic_propolis0"}}}
			s.link("vnic_propolis0", "02:08:20:00:00:01", "")
		}, map[string]Verdict{"zone " + zone1: InUse, "vnic vnic_propolis0": InUse}},
		"a pool that does not answer": {func(t *testing.T, s *scene) {
			s.Pools = append(s.Pools, zfs.Pool{Name: lostPool, Health: "SUSPENDED"})
			for i, name := range []string{zone1, zone2} {
				state := []zone.State{zone.Installed, zone.Running}[i]
				s.Zones = append(s.Zones, zone.Zone{Name: name, State: state, Path: naming.PoolRoot(lostPool).Mountpoint + "/crypt/zone/" + name, Brand: "sparse"})
			}
			s.Configs[zone1] = zone.Config{Nets: []zone.Net{{Physical: "vnic_propolis0"}}}
			s.link("vnic_propolis0", "02:08:20:00:00:01", "")
			s.fact(t, "base/x/1", base.Record{Pool: lostPool, Generation: 1, Zone: base1, Dataset: lostPool + "/crypt/zone/" + base1, UUID: "u"})
		}, map[string]Verdict{"zone " + zone1: Unknown, "zone " + zone2: Adoptable, "vnic vnic_propolis0": InUse, "dataset " + lostPool: Unknown}},
		"a pool that is not imported": {func(t *testing.T, s *scene) {
			s.Zones = append(s.Zones, zone.Zone{Name: zone1, State: zone.Incomplete, Path: naming.PoolRoot(lostPool).Mountpoint + "/crypt/zone/" + zone1})
			s.fact(t, "base/x/1", base.Record{Pool: lostPool, Generation: 1, Zone: base1, Dataset: lostPool + "/crypt/zone/" + base1, UUID: "u"})
		}, map[string]Verdict{"zone " + zone1: Unknown}},
		"intents of runs that died": {func(t *testing.T, s *scene) {
			made := func(name string) operation.Intent {
				return operation.Intent{Makes: []operation.Object{{Kind: "vnic", Name: name, Identity: "02:08:20:00:00:05"}}}
			}
			s.intent(t, "vnic", false, made("uplink7"))         // nothing of it is there
			s.intent(t, "instance/gone", false, made("other7")) // the instance is deleted
			s.record(t, "web1")
			s.intent(t, "instance/id of web1", false, made("web7")) // ensure resumes it
			s.intent(t, "sled", false, made("gz7"))                 // bootstrap does
			s.intent(t, "bundle", true, operation.Intent{})         // alive
		}, map[string]Verdict{"record intent/of vnic": StaleRec, "record intent/of instance/gone": StaleRec}},
		"an intent of which something stays": {func(t *testing.T, s *scene) {
			s.link("uplink7", "02:08:20:00:00:ff", "") // another by now: reap must not remove it
			s.intent(t, "vnic", false, operation.Intent{Makes: []operation.Object{{Kind: "vnic", Name: "uplink7", Identity: "02:08:20:00:00:05"}}})
		}, map[string]Verdict{}},
		"a base that the ledger does not know": {func(t *testing.T, s *scene) {
			s.base(t, base1, 1, true)
			s.base(t, base2, 1, true)
			s.facts = nil
			s.snapshot("rpool/zone/" + base2 + "@" + zone2 + "_snap")
			s.zone(zone1, zone.Running)
			s.clone("rpool/zone/"+zone1+"/zbe", "rpool/zone/"+base2+"/zbe@"+zone1+"_snap")
		}, map[string]Verdict{"zone " + base1: Orphan, "zone " + base2: InUse, "zone " + zone1: Adoptable, "snapshot rpool/zone/" + base2 + "@" + zone2 + "_snap": Orphan}},
		"a base that goes with what is cloned from it": {func(t *testing.T, s *scene) {
			s.base(t, base1, 1, true)
			s.base(t, base2, 2, true)
			s.zone(zone1, zone.Installed)
			s.clone("rpool/zone/"+zone1+"/zbe", "rpool/zone/"+base1+"/zbe@"+zone1+"_snap")
		}, map[string]Verdict{"zone " + base1: Orphan, "zone " + base2: InUse, "zone " + zone1: Orphan}},
		"snapshots of the clone that is built into zoneadm": {func(t *testing.T, s *scene) {
			s.base(t, base1, 1, true)
			s.snapshot("rpool/zone/" + base1 + "@SUNWzone1")
			s.clone("rpool/zone/"+zone1, "rpool/zone/"+base1+"@SUNWzone2")
			s.snapshot("rpool/zone/" + base1 + "@SUNWzonely")
			s.snapshot("rpool/zone@SUNWzone3")
		}, map[string]Verdict{"zone " + base1: InUse, "dataset rpool/zone/" + zone1: Unknown, "snapshot rpool/zone/" + base1 + "@SUNWzone1": Orphan}},
		"the same, while one is being made": {func(t *testing.T, s *scene) {
			s.base(t, base1, 1, true)
			s.snapshot("rpool/zone/" + base1 + "@SUNWzone1")
			s.intent(t, "instance/1", true, operation.Intent{Base: base1})
		}, map[string]Verdict{"zone " + base1: InUse, "snapshot rpool/zone/" + base1 + "@SUNWzone1": InProgress}},
	} {
		t.Run(name, func(t *testing.T) {
			s := empty()
			c.set(t, s)
			f := s.judge(t)
			if d := cmp.Diff(c.want, verdicts(f)); d != "" {
				t.Error(d)
			}
			behind(t, f.removal(bundler{}).Plan)
			for _, o := range f.Objects {
				if o.Reason == "" || o.Kind == KindVM && o.Removed {
					t.Errorf("%+v", o)
				}
			}
		})
	}
}

// What cannot be looked at next to zones, links and datasets is reported, and keeps
// nothing else.
func TestWhatCannotBeSeenIsToldAndTheRestIsJudged(t *testing.T) {
	s := empty()
	s.zone(zone1, zone.Installed)
	s.Addresses, s.Homes, s.Entries = nil, nil, nil
	f := s.judge(t)
	want := map[string]Verdict{"zone " + zone1: Orphan, "address all": Unknown, "directory all": Unknown, "configuration all": Unknown, "key all": Unknown, "vm all": Unknown}
	if d := cmp.Diff(want, verdicts(f)); d != "" {
		t.Error(d)
	}
}

func TestForeignIsAllThatIsNotOurs(t *testing.T) {
	s := empty() // net0, stub0
	s.Links = append(s.Links, vnic.Link{Name: "aggr0", Class: "aggr"})
	s.Addresses = append(s.Addresses, ipadm.Address{Object: "net0/v4"})
	s.Homes = append(s.Homes, inventory.Home{Path: "/zone/mail"})
	if f := s.judge(t); f.Foreign != 5 || len(f.Objects) != 0 {
		t.Errorf("%d foreign, %v", f.Foreign, f.Objects)
	}
}

// An address goes before its link, a link before the one under it, a clone
// before its base.
func TestWhatHoldsAnotherGoesFirst(t *testing.T) {
	s := empty()
	s.fact(t, "network", network.Record{Former: []network.Former{{Kind: "etherstub", Name: "stub0"}, {Kind: "vnic", Name: "old0", MAC: "02:08:20:00:00:08"}}})
	s.link("old0", "02:08:20:00:00:08", "")
	s.Addresses = append(s.Addresses, ipadm.Address{Object: "old0/control"}, ipadm.Address{Object: "old0/ll"})
	s.base(t, base1, 1, true)
	s.base(t, base2, 2, true)
	s.zone(zone1, zone.Installed)
	s.clone("rpool/zone/"+zone1+"/zbe", "rpool/zone/"+base1+"/zbe@"+zone1+"_snap")
	f := s.judge(t)
	d := f.removal(bundler{})
	before := behind(t, d.Plan)
	for _, c := range []struct{ later, earlier string }{
		{"vnic.delete old0", "ipadm.delete-interface old0"},
		{"vnic.delete-etherstub stub0", "vnic.delete old0"},
		{"zone.uninstall " + base1, "zone.delete " + zone1},
	} {
		if !slices.Contains(before[c.later], c.earlier) {
			t.Errorf("%s does not come after %s, but after %q", c.later, c.earlier, before[c.later])
		}
	}
	if n := len(d.Plan.Actions); n != 8 { // the interface goes once
		t.Errorf("%d actions: %q", n, plan.IDs(d.Plan.Actions))
	}
}

func TestFactsOfWhatGoesAreForgotten(t *testing.T) {
	s := empty()
	s.fact(t, "network", network.Record{GZVNIC: "gz0", Former: []network.Former{{Kind: "etherstub", Name: "stub0"}, {Kind: "etherstub", Name: "gone0"}}})
	s.base(t, base1, 1, false)
	s.hold(t, "vnic_propolis4", now().Add(-time.Minute))
	s.hold(t, "vnic_propolis5", now().Add(time.Minute))
	s.fact(t, "base/rpool/9", base.Record{Pool: "rpool", Generation: 9, Zone: base2, Dataset: "rpool/zone/" + base2, UUID: "u"})
	k, err := know(naming.DefaultPrefixes(), operationtest.Book(t, s.facts...), thisBoot, now(), func(string) (operation.Holder, bool) { return operation.Holder{}, false })
	if err != nil {
		t.Fatal(err)
	}
	f, err := judge(k, inventory.Of(s.Listings), Choice{})
	if err != nil {
		t.Fatal(err)
	}
	facts, err := k.forgets(&f)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, fact := range facts {
		got[fact.Key] = string(fact.Value)
	}
	want := map[string]string{"base/rpool/0": "", "base/rpool/9": "", "hold/vnic/vnic_propolis4": "", "network": `{"control_link":"","gz_vnic":"gz0"}`}
	delete(want, "base/rpool/0")
	for _, key := range []string{"base/rpool/1", "base/rpool/0"} {
		if _, ok := got[key]; ok {
			want[key] = ""
		}
	}
	if d := cmp.Diff(want, got); d != "" || len(got) != 4 {
		t.Errorf("%d facts: %s", len(got), d)
	}
}

func TestASledWithUnreadableRecordsIsNotJudged(t *testing.T) {
	for _, key := range []string{"instance/1", "base/rpool/1", "hold/vnic/x0", "network"} {
		s := empty()
		s.fact(t, key, []int{1})
		_, err := know(naming.DefaultPrefixes(), operationtest.Book(t, s.facts...), thisBoot, now(), nil)
		if err == nil || errors.Is(err, host.ErrNotFound) {
			t.Errorf("%s: %v", key, err)
		}
	}
}
