package instance

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation/operationtest"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/zfs"
	"github.com/sledctl/sledctl/zone"
)

// outlived is a sled that was rebooted while web1 ran, and its record: its zone is as it
// was cloned.
func outlived(t *testing.T, c Settings) (*scene, record.Record) {
	t.Helper()
	r := made(t, c, oneNIC())
	s := prepared().bring(c, r, atProfiled)
	for _, v := range r.Incarnation.VNICs() {
		s.dropLink(v.Name)
	}
	for _, name := range []string{r.Incarnation.Dataset, r.Incarnation.Dataset + "/zbe"} {
		s.Datasets = append(s.Datasets, zfs.Dataset{Name: name + "@" + layout.CleanSnapshot, Type: "snapshot", GUID: "of " + name})
	}
	run := *r.Incarnation
	run.Boot = earlierBoot
	run.Clean = layout.Fingerprint(c.Blueprint(), r, s.Configs[run.Zone], layout.DatasetsOf(run, inventory.Of(s.Listings)))
	r.Incarnation = &run
	return s, r
}

// rolledBack is the bring-up of such a zone.
func rolledBack() []string {
	return slices.Concat([]string{"vnic.create G", "vnic.create C", "zfs.rollback D", "zfs.rollback D/zbe"}, from("zone.boot Z"))
}

func TestAZoneThatIsAsItWasClonedIsRolledBackAndBooted(t *testing.T) {
	c := settings()
	s, old := outlived(t, c)
	d, next, err := s.decide(t, c, operationtest.Book(t, kept(t, old)...), EnsureRequest{Wanted: oneNIC()})
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.DeleteFunc(told(t, d, next.Incarnation), func(line string) bool { return strings.HasPrefix(line, "bundle.") })
	if diff := cmp.Diff(slices.Sorted(slices.Values(rolledBack())), slices.Sorted(slices.Values(lines))); diff != "" {
		t.Error(diff)
	}
	if next.Incarnation.PropolisID == old.Incarnation.PropolisID || next.Incarnation.Zone != old.Incarnation.Zone || next.Incarnation.Rolling || next.Incarnation.Was != "" || !next.Incarnation.Ensured || next.Incarnation.Clean != old.Incarnation.Clean {
		t.Errorf("%+v", next.Incarnation)
	}
	during, _, err := record.Written(d.OnStart, old.ID)
	if err != nil || !during.Incarnation.Rolling || during.Incarnation.Was != old.Incarnation.PropolisID || during.Incarnation.Ensured {
		t.Errorf("while it is at work: %+v, %v", during.Incarnation, err)
	}
	undone, _, err := record.Written(d.OnUndo, old.ID)
	if err != nil || undone.Incarnation.Clean != "" || undone.Incarnation.Zone != old.Incarnation.Zone {
		t.Errorf("when it has failed: %+v, %v", undone.Incarnation, err)
	}
}

// TestARollbackThatWasCutShortIsNotTrusted: whether the datasets were rolled back, nobody
// knows.
func TestARollbackThatWasCutShortIsNotTrusted(t *testing.T) {
	anotherBase := func(s *scene, _ *record.Record, c *Settings) {
		b := baseZone()
		b.Zone += "1"
		s.Zones = append(s.Zones, zone.Zone{Name: b.Zone, State: zone.Installed, UUID: b.UUID})
		c.Base = func(ledger.View, string) (Base, bool) { return b, true }
	}
	for name, x := range map[string]struct {
		change func(*scene, *record.Record, *Settings)
		first  string
	}{
		"the zone does not run":      {func(*scene, *record.Record, *Settings) {}, "zfs.rollback D"},
		"the zone runs":              {func(s *scene, r *record.Record, _ *Settings) { s.zone(r.Incarnation.Zone).State = zone.Running }, "zone.halt Z'"},
		"a snapshot is another":      {func(s *scene, _ *record.Record, _ *Settings) { s.Datasets[len(s.Datasets)-1].GUID = "another" }, "zone.uninstall Z'"},
		"a snapshot is gone":         {func(s *scene, _ *record.Record, _ *Settings) { s.Datasets = s.Datasets[:len(s.Datasets)-1] }, "zone.uninstall Z'"},
		"its base is another":        {anotherBase, "zone.uninstall Z'"},
		"its configuration is other": {func(s *scene, r *record.Record, _ *Settings) { s.change(r.Incarnation.Zone) }, "zone.uninstall Z'"},
	} {
		t.Run(name, func(t *testing.T) {
			c := settings()
			s, old := outlived(t, c)
			old.Incarnation.Boot, old.Incarnation.Ensured, old.Incarnation.Rolling, old.Incarnation.Was = thisBoot, false, true, "was"
			x.change(s, &old, &c)
			holds(t, s, c, old, x.first)
		})
	}
}

// holds decides, and looks for an action that must be among those decided.
func holds(t *testing.T, s *scene, c Settings, old record.Record, first string) {
	t.Helper()
	d, next, err := s.decide(t, c, operationtest.Book(t, kept(t, old)...), EnsureRequest{Wanted: oneNIC()})
	if err != nil {
		t.Fatal(err)
	}
	runs := []*record.Incarnation{next.Incarnation, old.Incarnation}
	if next.Incarnation.Zone == old.Incarnation.Zone {
		runs = runs[:1]
	}
	if lines := told(t, d, runs...); !slices.Contains(lines, first) {
		t.Errorf("%s is not among %v", first, lines)
	}
}

// change changes what sledctl does not look at in a zone's configuration.
func (s *scene) change(name string) {
	config := s.Configs[name]
	config.Sum = "of another file"
	s.Configs[name] = config
}

// A run that was resumed has a zone that may have been booted.
func TestAZoneThatMayHaveBootedIsNotKept(t *testing.T) {
	c := settings()
	r := half(made(t, c, oneNIC()))
	d, _, err := prepared().bring(c, r, atInstalled).decide(t, c, operationtest.Book(t, kept(t, r)...), EnsureRequest{Wanted: oneNIC()})
	if err != nil {
		t.Fatal(err)
	}
	if lines := told(t, d, r.Incarnation); slices.Contains(lines, "zfs.snapshot-tree D") {
		t.Errorf("%v", lines)
	}
}
