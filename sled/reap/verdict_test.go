package reap

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/network"
	"github.com/sledctl/sledctl/zfs"
	"github.com/sledctl/sledctl/zone"
)

type instanceRun = record.Incarnation

func changed(r *record.Incarnation, change func(*record.Incarnation)) *record.Incarnation {
	change(r)
	return r
}

func TestVerdicts(t *testing.T) {
	earlier := func(r *record.Incarnation) { r.Boot = earlierBoot }
	unfinished := func(r *record.Incarnation) { r.Ensured = false }
	makesZone := operation.Intent{Makes: []operation.Object{{Kind: "zone", Name: zone1}, {Kind: "dataset", Name: "rpool/zone/" + zone1}, {Kind: "vnic", Name: "vnic_propolis0"}}}
	for name, c := range map[string]struct {
		set     func(*testing.T, *scene)
		want    map[string]Verdict
		foreign int
	}{
		"an empty sled": {func(*testing.T, *scene) {}, map[string]Verdict{}, 2},
		"an instance that runs": {func(t *testing.T, s *scene) {
			s.zone(zone1, zone.Running)
			s.link("vnic_propolis0", "02:08:20:00:00:01", zone1)
			s.record(t, "web1", run(zone1, "vnic_propolis0"))
		}, map[string]Verdict{"zone " + zone1: InUse, "vnic vnic_propolis0": InUse}, 2},
		"an instance whose zone was halted": {func(t *testing.T, s *scene) {
			s.zone(zone1, zone.Installed)
			s.record(t, "web1", run(zone1, "vnic_propolis0"))
		}, map[string]Verdict{"zone " + zone1: InUse}, 2},
		"a zone from before the boot": {func(t *testing.T, s *scene) {
			s.zone(zone1, zone.Installed)
			s.record(t, "web1", changed(run(zone1, "vnic_propolis0"), earlier))
		}, map[string]Verdict{"zone " + zone1: StaleZone}, 2},
		"a zone from before the boot that runs": {func(t *testing.T, s *scene) {
			s.zone(zone1, zone.Running)
			s.record(t, "web1", changed(run(zone1, "vnic_propolis0"), earlier))
		}, map[string]Verdict{"zone " + zone1: InUse}, 2},
		"an instance whose zone is gone": {func(t *testing.T, s *scene) {
			s.home(zone1, naming.PropertyInstance)
			s.record(t, "web1", run(zone1, "vnic_propolis0"))
		}, map[string]Verdict{"dataset rpool/zone/" + zone1: Orphan, "record web1": StaleRec}, 2},
		"an instance whose zone is not made yet": {func(t *testing.T, s *scene) {
			s.home(zone1, naming.PropertyInstance)
			s.record(t, "web1", changed(run(zone1, "vnic_propolis0"), unfinished))
		}, map[string]Verdict{"dataset rpool/zone/" + zone1: InUse}, 2},
		"a stopped instance": {func(t *testing.T, s *scene) { s.record(t, "web1") }, map[string]Verdict{}, 2},
		"an earlier run that has not gone": {func(t *testing.T, s *scene) {
			s.zone(zone1, zone.Running)
			s.zone(zone2, zone.Installed)
			s.record(t, "web1", run(zone1, "vnic_propolis0"), changed(run(zone2, "vnic_propolis1"), earlier))
		}, map[string]Verdict{"zone " + zone1: InUse, "zone " + zone2: StaleZone}, 2},
		"a zone that the ledger does not know, running": {func(t *testing.T, s *scene) { s.zone(zone1, zone.Running) }, map[string]Verdict{"zone " + zone1: Adoptable}, 2},
		"a zone that the ledger does not know, installed": {func(t *testing.T, s *scene) { s.zone(zone1, zone.Installed) },
			map[string]Verdict{"zone " + zone1: Orphan}, 2},
		"a zone that the ledger does not know, incomplete": {func(t *testing.T, s *scene) { s.zone(zone1, zone.Incomplete) },
			map[string]Verdict{"zone " + zone1: Orphan}, 2},
		"a zone by its mark alone": {func(t *testing.T, s *scene) {
			s.Zones = append(s.Zones, zone.Zone{Name: "renamed", State: zone.Installed, Path: "/elsewhere"})
			s.Configs["renamed"] = zone.Config{Attrs: []zone.Attr{{Name: naming.AttrInstance, Type: "string", Value: unknownID}}}
		}, map[string]Verdict{"zone renamed": Adoptable}, 2},
		"the same, of an instance with another record": {func(t *testing.T, s *scene) {
			s.Zones = append(s.Zones, zone.Zone{Name: "renamed", State: zone.Installed, Path: "/elsewhere"})
			s.Configs["renamed"] = zone.Config{Attrs: []zone.Attr{{Name: naming.AttrInstance, Type: "string", Value: unknownID}}}
			s.fact(t, "instance/"+unknownID, record.Record{ID: unknownID, Name: "web1", Spec: record.Spec{Address: record.Address{Mode: record.DHCP}}})
		}, map[string]Verdict{"zone renamed": Orphan}, 2},
		"what a zone of an unknown instance left, which says what that was": {func(_ *testing.T, s *scene) { s.noted(zone1) },
			map[string]Verdict{"dataset rpool/zone/" + zone1: Adoptable}, 2},
		"the same, of an instance that is recorded": {func(t *testing.T, s *scene) {
			s.noted(zone1)
			s.fact(t, "instance/"+unknownID, record.Record{ID: unknownID, Name: "web1", Spec: record.Spec{Address: record.Address{Mode: record.DHCP}}})
		},
			map[string]Verdict{"dataset rpool/zone/" + zone1: Orphan}, 2},
		"somebody else's": {func(t *testing.T, s *scene) {
			s.Zones = append(s.Zones, zone.Zone{Name: "mail", State: zone.Installed, Path: "/zone/mail"})
			s.link("mail0", "02:08:20:00:00:09", "")
			s.dataset("rpool/zone/mail")
			s.snapshot("rpool/zone/mail@" + zone1 + "_snap")
		}, map[string]Verdict{}, 4},
		"what is being made": {func(t *testing.T, s *scene) {
			s.zone(zone1, zone.Incomplete)
			s.link("vnic_propolis0", "02:08:20:00:00:01", "")
			s.intent(t, "instance/1", true, makesZone)
		}, map[string]Verdict{"zone " + zone1: InProgress, "dataset rpool/zone/" + zone1: InProgress, "vnic vnic_propolis0": InProgress}, 2},
		"a dataset that is being made": {func(t *testing.T, s *scene) {
			s.home(zone1, naming.PropertyInstance)
			s.intent(t, "instance/1", true, makesZone)
		}, map[string]Verdict{"dataset rpool/zone/" + zone1: InProgress}, 2},
		"what is being removed": {func(t *testing.T, s *scene) {
			s.zone(zone1, zone.Installed)
			s.intent(t, "instance/1", true, operation.Intent{Removes: makesZone.Makes})
		}, map[string]Verdict{"zone " + zone1: InProgress, "dataset rpool/zone/" + zone1: InProgress}, 2},
		"what a run that died had made": {func(t *testing.T, s *scene) {
			s.zone(zone1, zone.Incomplete)
			s.link("vnic_propolis0", "02:08:20:00:00:01", "")
			s.record(t, "web1", changed(run(zone1, "vnic_propolis0"), unfinished))
			s.intent(t, "instance/id of web1", false, makesZone)
		}, map[string]Verdict{"zone " + zone1: Orphan, "vnic vnic_propolis0": Orphan}, 2},
		"what runs, though the run that made it died": {func(t *testing.T, s *scene) {
			s.zone(zone1, zone.Running)
			s.link("vnic_propolis0", "02:08:20:00:00:01", zone1)
			s.record(t, "web1", changed(run(zone1, "vnic_propolis0"), unfinished))
			s.intent(t, "instance/id of web1", false, makesZone)
		}, map[string]Verdict{"zone " + zone1: InUse, "vnic vnic_propolis0": InUse}, 2},
		"VNICs": {func(t *testing.T, s *scene) {
			s.zone(zone1, zone.Running)
			s.record(t, "web1", run(zone1, "vnic_propolis0"))
			s.fact(t, "network", network.Record{GZVNIC: "vnic_propolis9"})
			s.link("vnic_propolis0", "02:08:20:00:00:ff", "")    // another MAC than recorded
			s.link("vnic_propolis1", "02:08:20:00:00:02", "")    // no instance has it
			s.link("vnic_propolis2", "02:08:20:00:00:03", zone1) // lent, not recorded
			s.link("vnic_propolis3", "02:08:20:00:00:04", "")    // held
			s.link("vnic_propolis4", "02:08:20:00:00:05", "")    // held too long
			s.link("other5", "02:08:20:00:00:06", "")            // held under a name of its own
			s.link("vnic_propolis9", "02:08:20:00:00:07", "")    // the global zone's own
			s.hold(t, "vnic_propolis3", now().Add(time.Minute))
			s.hold(t, "vnic_propolis4", now())
			s.hold(t, "other5", now().Add(-time.Minute))
		}, map[string]Verdict{"zone " + zone1: InUse, "vnic vnic_propolis0": Unknown, "vnic vnic_propolis1": Orphan, "vnic vnic_propolis2": InUse,
			"vnic vnic_propolis3": Held, "vnic vnic_propolis4": Orphan, "vnic other5": Orphan, "vnic vnic_propolis9": InUse}, 2},
		"a VNIC that is in a zone that is removed": {func(t *testing.T, s *scene) {
			s.zone(zone1, zone.Down)
			s.link("vnic_propolis0", "02:08:20:00:00:01", zone1)
		}, map[string]Verdict{"zone " + zone1: Orphan, "vnic vnic_propolis0": Orphan}, 2},
		"bases": {func(t *testing.T, s *scene) {
			s.base(t, base1, 1, true)
			s.base(t, base2, 2, true)
			s.base(t, "propolis_base_rpool_3", 3, false)
		}, map[string]Verdict{"zone " + base1: Orphan, "zone " + base2: InUse, "zone propolis_base_rpool_3": Orphan}, 2},
		"a replaced base with a clone": {func(t *testing.T, s *scene) {
			s.base(t, base1, 1, true)
			s.base(t, base2, 2, true)
			s.zone(zone1, zone.Running)
			s.record(t, "web1", run(zone1, "vnic_propolis0"))
			s.clone("rpool/zone/"+zone1+"/zbe", "rpool/zone/"+base1+"/zbe@"+zone1+"_snap")
		}, map[string]Verdict{"zone " + base1: InUse, "zone " + base2: InUse, "zone " + zone1: InUse}, 2},
		"a replaced base that is about to be cloned": {func(t *testing.T, s *scene) {
			s.base(t, base1, 1, true)
			s.base(t, base2, 2, true)
			s.intent(t, "instance/1", true, operation.Intent{Base: base1})
		}, map[string]Verdict{"zone " + base1: InUse, "zone " + base2: InUse}, 2},
		"a replaced base that a step by step instance will clone": {func(t *testing.T, s *scene) {
			s.base(t, base1, 1, true)
			s.base(t, base2, 2, true)
			s.record(t, "web1", changed(run(zone1, "vnic_propolis0"), unfinished))
		}, map[string]Verdict{"zone " + base1: InUse, "zone " + base2: InUse}, 2},
		"a replaced base that runs": {func(t *testing.T, s *scene) {
			s.base(t, base1, 1, true)
			s.Zones[1].State = zone.Running
			s.base(t, base2, 2, true)
		}, map[string]Verdict{"zone " + base1: InUse, "zone " + base2: InUse}, 2},
		"snapshots on a base": {func(t *testing.T, s *scene) {
			s.base(t, base1, 1, true)
			s.zone(zone1, zone.Running)
			s.record(t, "web1", run(zone1, "vnic_propolis0"))
			s.snapshot("rpool/zone/" + base1 + "@" + zone1 + "_snap")      // its zone is there
			s.snapshot("rpool/zone/" + base1 + "@" + zone2 + "_snap")      // its zone is gone
			s.snapshot("rpool/zone/" + base1 + "/zbe@" + zone2 + "_snap7") // the same, numbered
			s.snapshot("rpool/zone/" + base1 + "@backup")                  // no clone's
			s.snapshot("rpool/zone@" + zone2 + "_snap")                    // on no base
		}, map[string]Verdict{"zone " + base1: InUse, "zone " + zone1: InUse,
			"snapshot rpool/zone/" + base1 + "@" + zone2 + "_snap": Orphan, "snapshot rpool/zone/" + base1 + "/zbe@" + zone2 + "_snap7": Orphan}, 2},
		"a snapshot of which there is a clone": {func(t *testing.T, s *scene) {
			s.base(t, base1, 1, true)
			s.clone("rpool/copy", "rpool/zone/"+base1+"@"+zone2+"_snap")
		}, map[string]Verdict{"zone " + base1: InUse}, 2},
		"a snapshot of a clone that is being made": {func(t *testing.T, s *scene) {
			s.base(t, base1, 1, true)
			s.snapshot("rpool/zone/" + base1 + "@" + zone1 + "_snap")
			s.intent(t, "instance/1", true, makesZone)
		}, map[string]Verdict{"zone " + base1: InUse, "snapshot rpool/zone/" + base1 + "@" + zone1 + "_snap": InProgress}, 2},
		"a marked dataset in which another zone lies": {func(t *testing.T, s *scene) {
			s.home(zone1, naming.PropertyInstance)
			s.Zones = append(s.Zones, zone.Zone{Name: "mail", State: zone.Installed, Path: "/zone/" + zone1 + "/mail"})
		}, map[string]Verdict{"dataset rpool/zone/" + zone1: InUse}, 3},
		"a marked dataset from which something was cloned": {func(t *testing.T, s *scene) {
			s.home(zone1, naming.PropertyInstance)
			s.clone("rpool/copy", "rpool/zone/"+zone1+"@s")
		}, map[string]Verdict{"dataset rpool/zone/" + zone1: InUse}, 2},
		"an orphan zone from which something was cloned": {func(t *testing.T, s *scene) {
			s.zone(zone1, zone.Installed)
			s.clone("rpool/copy", "rpool/zone/"+zone1+"@s")
		}, map[string]Verdict{"zone " + zone1: InUse}, 2},
		"an orphan zone in which another zone lies": {func(t *testing.T, s *scene) {
			s.zone(zone1, zone.Installed)
			s.Zones = append(s.Zones, zone.Zone{Name: "mail", State: zone.Installed, Path: "/zone/" + zone1 + "/mail"})
		}, map[string]Verdict{"zone " + zone1: InUse}, 3},
		"a mark that is inherited": {func(t *testing.T, s *scene) {
			s.dataset("rpool/x").User = map[string]zfs.Value{naming.PropertyInstance: {Value: "x", Source: "inherited from rpool"}}
		}, map[string]Verdict{}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := empty()
			c.set(t, s)
			f := s.judge(t)
			if d := cmp.Diff(c.want, verdicts(f)); d != "" {
				t.Error(d)
			}
			if f.Foreign != c.foreign {
				t.Errorf("%d are foreign, want %d", f.Foreign, c.foreign)
			}
			for _, o := range f.Objects {
				if strings.TrimSpace(o.Reason) == "" {
					t.Errorf("%s %s has no reason", o.Kind, o.Name)
				}
			}
		})
	}
}

func TestASledThatCannotBeSeenIsNotJudged(t *testing.T) {
	for name, hide := range map[string]func(*inventory.Listings){
		"zones":    func(l *inventory.Listings) { l.Zones = nil },
		"links":    func(l *inventory.Listings) { l.Links = nil },
		"datasets": func(l *inventory.Listings) { l.Datasets = nil },
	} {
		s := empty()
		s.zone(zone1, zone.Installed)
		hide(&s.Listings)
		f, err := judge(&known{names: naming.DefaultPrefixes()}, inventory.Of(s.Listings), Choice{})
		if _, ok := errors.AsType[*inventory.UnknownError](err); !ok || len(f.Objects) > 0 {
			t.Errorf("without %s: %v, %v", name, f.Objects, err)
		}
	}
}

func TestOneZoneThatIsAskedFor(t *testing.T) {
	s := empty()
	s.zone(zone1, zone.Running)
	s.record(t, "web1", run(zone1, "vnic_propolis0"))
	s.zone(zone2, zone.Installed)
	s.base(t, base1, 1, true)
	s.Zones = append(s.Zones, zone.Zone{Name: "mail", State: zone.Running, Path: "/zone/mail"})
	for name, c := range map[string]struct {
		zone    string
		whole   bool
		refused bool
		verbs   string
	}{
		"an instance's is halted":       {zone1, false, false, "zone.halt"},
		"an instance's is not removed":  {zone1, true, true, ""},
		"an orphan is removed":          {zone2, true, false, "zone.uninstall zone.delete"},
		"what is halted is halted":      {zone2, false, false, ""},
		"a base is not removed":         {base1, true, true, ""},
		"a foreign one is not halted":   {"mail", false, true, ""},
		"a foreign one is not removed":  {"mail", true, true, ""},
		"the global zone is not halted": {zone.Global, false, true, ""},
	} {
		f := s.judge(t)
		z, _ := f.inv.Zone(c.zone)
		d, err := f.one(z, c.whole, bundler{})
		if _, ok := errors.AsType[*NeededError](err); ok != c.refused {
			t.Errorf("%s: %v", name, err)
		}
		var verbs []string
		for _, a := range d.Plan.Actions {
			verbs = append(verbs, a.Step.Verb())
		}
		if got := strings.Join(verbs, " "); got != c.verbs {
			t.Errorf("%s: %s", name, got)
		}
	}
}
