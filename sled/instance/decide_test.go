package instance

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/operation/operationtest"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/illumos/ipadm"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/illumos/smf"
	"github.com/sledctl/sledctl/propolis/packaging"
	"github.com/sledctl/sledctl/sled/instance/migration"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/vnic"
	"github.com/sledctl/sledctl/zfs"
	"github.com/sledctl/sledctl/zone"
)

// told is a plan as verbs and objects, the names of what is this instance's
// written short: "zone.boot Z".
func told(t testing.TB, d operation.Decision, incarnations ...*record.Incarnation) []string {
	t.Helper()
	d.Plan.Drawn = nil // what is drawn is what is looked at
	rows, err := d.Plan.Rows()
	if err != nil {
		t.Fatal(err)
	}
	var short []string
	for i, incarnation := range incarnations {
		if incarnation == nil {
			continue
		}
		mark := []string{"", "'"}[i] // of the run before: Z' when both are there
		short = append(short, incarnation.Dataset, "D"+mark, incarnation.Zone, "Z"+mark, incarnation.Control.Name, "C"+mark)
		for _, g := range incarnation.Guests {
			short = append(short, g.Name, "G"+mark)
		}
	}
	names := strings.NewReplacer(short...)
	var lines []string
	for _, r := range rows {
		lines = append(lines, r.Verb+" "+names.Replace(r.Object[strings.IndexByte(r.Object, ' ')+1:]))
	}
	return lines
}

func wayUp() []string {
	return []string{
		"vnic.create G", "vnic.create C", "zfs.create D", "zone.configure Z", "zone.clone Z", "smf.write-profile Z", "zfs.snapshot-tree D",
		"zone.boot Z", "vnic.set-limits G", "smf.await Z", "ipadm.create-address C/control", "ipadm.await-address C/control",
		"smf.enable web1", "smf.await web1", "propolis.await-http web1", "propolis.ensure web1", "propolis.run web1", "propolis.await-state web1",
	}
}

// from is the rest of the bring-up. A zone that is installed already may have been
// booted: it is not kept as it is.
func from(first string) []string {
	up := wayUp()
	rest := up[slices.Index(up, first):]
	if slices.Contains(rest, "zone.clone Z") {
		return rest
	}
	return slices.DeleteFunc(rest, func(line string) bool { return line == "zfs.snapshot-tree D" })
}

func oneNIC() Wanted { return Wanted{Ref: "web1", NICs: []record.NIC{{}}} }

func (s *scene) decide(t testing.TB, c Settings, view ledger.View, change EnsureRequest) (operation.Decision, record.Record, error) {
	t.Helper()
	if change.Verb == "" {
		change.Verb = "instance ensure"
	}
	return decide(c, view, s.look(), moment("decided"), c.ID("web1"), change)
}

func TestANewInstanceGoesAllTheWayUp(t *testing.T) {
	c := settings()
	d, r, err := prepared().decide(t, c, operationtest.Book(t), EnsureRequest{Wanted: oneNIC()})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wayUp(), told(t, d, r.Incarnation)); diff != "" {
		t.Error(diff)
	}
	if d.Plan.Policy != plan.Undo || d.Intent.Base != baseZone().Zone || len(d.Intent.Makes) != 4 {
		t.Errorf("policy %s, intent %+v", d.Plan.Policy, d.Intent)
	}
	if !r.Incarnation.Ensured || r.Incarnation.Boot != thisBoot || r.Wanted != record.WantedRunning || r.Generation != 1 {
		t.Errorf("%+v", r)
	}
}

// A start that waited while its instance was deleted does not make one again, with
// all that is usual.
func TestWhatWasDeletedMeanwhileIsNotStarted(t *testing.T) {
	_, _, err := prepared().decide(t, settings(), operationtest.Book(t), EnsureRequest{Verb: "instance start", Wanted: Wanted{Ref: "web1"}, Known: true})
	if gone, ok := errors.AsType[*record.NotFoundError](err); !ok || gone.Name != "web1" {
		t.Errorf("%v", err)
	}
}

// What a clone that was undone has left on the base goes before another is made,
// whose snapshots would get other names next to it.
func TestWhatACloneHasLeftGoesBeforeTheNext(t *testing.T) {
	c := settings()
	old := half(made(t, c, oneNIC()))
	here := prepared().bring(c, old, atInstalled)
	here.zone(old.Incarnation.Zone).State = zone.Configured
	d, _, err := here.decide(t, c, operationtest.Book(t, kept(t, old)...), EnsureRequest{Wanted: oneNIC()})
	if err != nil {
		t.Fatal(err)
	}
	got := told(t, d, old.Incarnation)
	if clean, clone := slices.Index(got, "zfs.destroy-snapshots Z_snap"), slices.Index(got, "zone.clone Z"); clean < 0 || clone < clean {
		t.Errorf("%q", got)
	}
}

// An MTU that the link below gives is not set once more: what is made whole by
// one command cannot be cut short.
func TestAnMTUThatTheLinkGivesIsNotSet(t *testing.T) {
	c := imaged()
	for link, want := range map[int]int{0: packaging.MTU, packaging.MTU: 0} {
		here := prepared()
		here.Links[1].MTU = link
		d, r, err := here.decide(t, c, operationtest.Book(t), EnsureRequest{Wanted: oneNIC()})
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(d.Plan.Actions, func(a plan.Action) bool { return a.ID == "vnic.create "+r.Incarnation.Control.Name })
		if got := d.Plan.Actions[i].Step.(vnic.Create).MTU; got != want {
			t.Errorf("over a link of %d: %d, want %d", link, got, want)
		}
	}
}

func routed(s *scene) {
	s.seen.Inside.Routes = []ipadm.Route{{Destination: "default", Gateway: "fd00:1::1"}}
}

// What is there stays, and the rest is made: ensure finishes what was begun.
func TestWhatWasBegunIsFinished(t *testing.T) {
	c := settings()
	r := made(t, c, oneNIC())
	for name, s := range map[string]struct {
		point int
		want  []string
	}{
		"nothing was made yet":     {atNothing, wayUp()},
		"the VNICs are there":      {atVNICs, from("zfs.create D")},
		"the dataset is there":     {atDataset, from("zone.configure Z")},
		"the zone is configured":   {atConfigured, from("zone.clone Z")},
		"the zone is installed":    {atInstalled, from("smf.write-profile Z")},
		"the profile is written":   {atProfiled, from("zone.boot Z")},
		"the zone boots":           {atBooted, from("vnic.set-limits G")},
		"the zone is up":           {atSettled, from("ipadm.create-address C/control")},
		"the address is there":     {atAddress, from("smf.enable web1")},
		"Propolis answers":         {atOnline, from("propolis.ensure web1")},
		"Propolis has the machine": {atEnsured, from("propolis.run web1")},
		"the machine runs":         {atRunning, nil},
	} {
		t.Run(name, func(t *testing.T) {
			old := half(r)
			d, next, err := prepared().bring(c, old, s.point).decide(t, c, operationtest.Book(t, kept(t, old)...), EnsureRequest{Wanted: oneNIC()})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(s.want, told(t, d, old.Incarnation)); diff != "" {
				t.Error(diff)
			}
			if next.Incarnation.Zone != old.Incarnation.Zone || !next.Incarnation.Ensured || len(d.Intent.Removes) != 0 {
				t.Errorf("another run was begun: %+v", next.Incarnation)
			}
		})
	}
}

func TestWhatIsNotYetSoIsWaitedFor(t *testing.T) {
	c := settings()
	r := half(made(t, c, oneNIC()))
	for name, s := range map[string]struct {
		point  int
		change func(*scene)
		want   []string
	}{
		"an address that is still tentative": {atAddress, func(s *scene) { s.seen.Inside.Addresses[0].State = "tentative" }, from("ipadm.await-address C/control")},
		"another address on the object": {atAddress, func(s *scene) { s.seen.Inside.Addresses[0].Address = prefix("10.77.0.99/24") },
			from("ipadm.create-address C/control")},
		// What has no state yet may be disabled, and what is on its way be on its teardown: to enable it once more costs nothing.
		"a service that is starting":     {atAddress, func(s *scene) { s.seen.Inside.Services[c.Propolis.FMRI] = "offline*" }, from("smf.enable web1")},
		"a service that has no state":    {atAddress, func(s *scene) { s.seen.Inside.Services[c.Propolis.FMRI] = "-" }, from("smf.enable web1")},
		"a service nobody has begun yet": {atAddress, func(s *scene) { s.seen.Inside.Services[c.Propolis.FMRI] = "uninitialized" }, from("smf.enable web1")},
		"a dataset that is not mounted": {atDataset, func(s *scene) { s.Datasets[len(s.Datasets)-1].Mounted, s.seen.Mode = false, 0 },
			append([]string{"zfs.mount D", "zfs.set-mode D"}, from("zone.configure Z")...)},
		"a profile of other words": {atProfiled, func(s *scene) { s.seen.Profile = append(s.seen.Profile, ' ') }, from("smf.write-profile Z")},
	} {
		t.Run(name, func(t *testing.T) {
			here := prepared().bring(c, r, s.point)
			s.change(here)
			d, _, err := here.decide(t, c, operationtest.Book(t, kept(t, r)...), EnsureRequest{Wanted: oneNIC()})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(s.want, told(t, d, r.Incarnation)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A run that cannot be continued is removed by what its state needs, and
// another, with new names and the same addresses, follows behind all of that.
func TestALostRunIsClearedAndAnotherBegun(t *testing.T) {
	c := settings()
	r := made(t, c, oneNIC())
	halt, remove := []string{"zone.halt Z'"}, []string{"zone.uninstall Z'", "zone.delete Z'"}
	links := []string{"vnic.delete G'", "vnic.delete C'"}
	left := []string{"zfs.destroy-snapshots Z'_snap"}
	for name, s := range map[string]struct {
		point   int
		change  func(*scene, *record.Record)
		cleared []string
	}{
		"the sled was rebooted": {atProfiled, func(s *scene, r *record.Record) {
			r.Incarnation.Boot = earlierBoot
			s.dropLink(r.Incarnation.Control.Name)
			s.dropLink(r.Incarnation.Guests[0].Name)
		},
			slices.Concat(remove, left)},
		"the zone was removed by hand":     {atRunning, func(s *scene, r *record.Record) { s.dropZone(r.Incarnation.Zone); s.seen.Inside = Inside{} }, slices.Concat(links, []string{"zfs.destroy D'/zbe", "zfs.destroy D'"}, left)},
		"the zone was uninstalled by hand": {atConfigured, func(*scene, *record.Record) {}, slices.Concat(links, []string{"zone.delete Z'", "zfs.destroy D'"})},
		"the zone was halted by hand":      {atProfiled, func(*scene, *record.Record) {}, slices.Concat(links, remove, left)},
		"the zone is incomplete": {atInstalled, func(s *scene, r *record.Record) {
			s.zone(r.Incarnation.Zone).State = zone.Incomplete
			r.Incarnation.Ensured = false
		}, slices.Concat(links, []string{"zone.discard Z'", "zfs.destroy D'/zbe", "zfs.destroy D'"}, left)},
		"the zone is going down":           {atProfiled, func(s *scene, r *record.Record) { s.zone(r.Incarnation.Zone).State = zone.Down }, slices.Concat(halt, links, remove, left)},
		"the zone hangs in shutting_down":  {atProfiled, func(s *scene, r *record.Record) { s.zone(r.Incarnation.Zone).State = zone.ShuttingDown }, slices.Concat(halt, links, remove, left)},
		"the zone is mounted as a scratch": {atProfiled, func(s *scene, r *record.Record) { s.zone(r.Incarnation.Zone).State = zone.Mounted }, slices.Concat([]string{"zone.unmount Z'"}, links, remove, left)},
		"Propolis is in maintenance":       {atAddress, func(s *scene, r *record.Record) { s.seen.Inside.Services[c.Propolis.FMRI] = smf.Maintenance }, slices.Concat(halt, links, remove, left)},
		"Propolis has lost its machine":    {atOnline, func(*scene, *record.Record) {}, slices.Concat(halt, links, remove, left)},
		"the machine failed":               {atRunning, func(s *scene, _ *record.Record) { s.seen.Inside.VM.State = "Failed" }, slices.Concat(halt, links, remove, left)},
		"the machine is destroyed":         {atRunning, func(s *scene, _ *record.Record) { s.seen.Inside.VM.State = "Destroyed" }, slices.Concat(halt, links, remove, left)},
		"the guest has powered off":        {atRunning, func(s *scene, _ *record.Record) { s.seen.Inside.VM.State = "Stopped" }, slices.Concat([]string{"propolis.power-off web1"}, halt, links, remove, left)},
		"a VNIC of an unfinished run is gone": {atSettled, func(s *scene, r *record.Record) {
			r.Incarnation.Ensured = false
			s.dropLink(r.Incarnation.Guests[0].Name)
		}, slices.Concat(halt, []string{"vnic.delete C'"}, remove, left)},
		"a VNIC was replaced by a foreign one": {atSettled, func(s *scene, r *record.Record) { r.Incarnation.Ensured = false; s.Links[2].MAC = "02:08:20:ff:ff:ff" }, slices.Concat(halt, []string{"vnic.delete C'"}, remove, left)},
		"the configuration was edited, the zone not booted": {atProfiled, func(s *scene, r *record.Record) { s.Configs[r.Incarnation.Zone] = zone.Config{Brand: "sparse"} },
			slices.Concat(links, remove, left)},
	} {
		t.Run(name, func(t *testing.T) {
			old := half(r)
			old.Incarnation.Ensured = true
			here := prepared().bring(c, old, s.point)
			s.change(here, &old)
			d, next, err := here.decide(t, c, operationtest.Book(t, kept(t, old)...), EnsureRequest{Wanted: oneNIC()})
			if err != nil {
				t.Fatal(err)
			}
			lines := told(t, d, next.Incarnation, old.Incarnation)
			want := slices.Concat(s.cleared, wayUp())
			if diff := cmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(lines))); diff != "" {
				t.Error(diff)
			}
			first := slices.Index(lines, "vnic.create G")
			for _, line := range s.cleared {
				if at := slices.Index(lines, line); at > first {
					t.Errorf("%s comes after the new run has begun", line)
				}
			}
			if next.Incarnation.Zone == old.Incarnation.Zone || next.Control != old.Control || next.Spec.Address != old.Spec.Address || !cmp.Equal(next.Spec.NICs[0], old.Spec.NICs[0]) {
				t.Errorf("from %+v\nto %+v", old, next)
			}
			if len(d.Intent.Removes) != 4 || len(d.Intent.Makes) != 4 {
				t.Errorf("intent: %+v", d.Intent)
			}
		})
	}
}

// What was deleted from under a machine that runs is all that is made again.
func TestAnAddressThatWasDeletedIsMadeAgain(t *testing.T) {
	c := settings()
	r := made(t, c, oneNIC())
	here := prepared().bring(c, r, atRunning)
	here.seen.Inside.Addresses, here.seen.Inside.VM = nil, migration.VM{Err: errors.New("no route to host")}
	d, next, err := here.decide(t, c, operationtest.Book(t, kept(t, r)...), EnsureRequest{Wanted: oneNIC()})
	if err != nil || next.Incarnation.Zone != r.Incarnation.Zone {
		t.Fatalf("%v, %+v", err, next.Incarnation)
	}
	want := []string{"ipadm.create-address C/control", "ipadm.await-address C/control", "propolis.run web1", "propolis.await-state web1"}
	if diff := cmp.Diff(want, told(t, d, r.Incarnation)); diff != "" || d.Plan.Policy != plan.Stop {
		t.Errorf("policy %s, %s", d.Plan.Policy, diff)
	}
}

// Links are free once their zone is halted, and what a zone leaves goes behind
// the zone.
func TestTheWayDownIsInOrder(t *testing.T) {
	c := settings()
	r := made(t, c, oneNIC())
	for _, point := range []int{atConfigured, atInstalled, atBooted, atRunning} {
		p, err := plan.Plan{Actions: teardown(c, r, prepared().bring(c, r, point).look(), operation.Stamp{}, StopTime)}.Sorted()
		if err != nil {
			t.Fatal(err)
		}
		behind := map[string][]string{} // all that an action comes after
		for _, a := range p.Actions {
			for _, id := range a.After {
				behind[a.ID] = append(append(behind[a.ID], id), behind[id]...)
			}
		}
		follows := func(later, earlier string) {
			if slices.Contains(plan.IDs(p.Actions), earlier) && !slices.Contains(behind[later], earlier) {
				t.Errorf("at %d: %s does not wait for %s", point, later, earlier)
			}
		}
		zoneName := r.Incarnation.Zone
		follows("zone.halt "+zoneName, "propolis.power-off web1")
		follows("zone.uninstall "+zoneName, "zone.halt "+zoneName)
		follows("zone.delete "+zoneName, "zone.uninstall "+zoneName)
		for _, v := range r.Incarnation.VNICs() {
			follows("vnic.delete "+v.Name, "zone.halt "+zoneName)
		}
		if slices.Contains(plan.IDs(p.Actions), "zfs.destroy "+r.Incarnation.Dataset) {
			follows("zfs.destroy "+r.Incarnation.Dataset, "zone.delete "+zoneName)
		}
	}
}

func TestWhatCannotBeLookedIntoIsNotRebuilt(t *testing.T) {
	c := settings()
	r := made(t, c, oneNIC())
	cpus := 8
	more := oneNIC()
	more.CPUs = &cpus
	for name, change := range map[string]func(*scene){
		"its services cannot be listed": func(s *scene) { s.seen.Inside = Inside{Err: errors.New("no door")} },
		"its Propolis does not answer":  func(s *scene) { s.seen.Inside.VM = migration.VM{Err: errors.New("timed out")} },
	} {
		for _, w := range []Wanted{oneNIC(), more} {
			here := prepared().bring(c, r, atRunning)
			change(here)
			d, _, err := here.decide(t, c, operationtest.Book(t, kept(t, r)...), EnsureRequest{Wanted: w})
			if _, ok := errors.AsType[*NotInspectableError](err); !ok {
				t.Errorf("%s: %v, %q", name, err, told(t, d))
			}
		}
	}
}

func TestAStoppedInstanceStartsWithTheAddressesThatItHad(t *testing.T) {
	c := settings()
	r := made(t, c, oneNIC())
	r.Incarnation, r.Wanted = nil, record.WantedStopped
	d, next, err := prepared().decide(t, c, operationtest.Book(t, kept(t, r)...), EnsureRequest{Wanted: Wanted{Ref: "web1"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wayUp(), told(t, d, next.Incarnation)); diff != "" {
		t.Error(diff)
	}
	if next.Control != r.Control || next.Spec.Address != r.Spec.Address || next.Spec.NICs[0].MAC != r.Spec.NICs[0].MAC || next.Wanted != record.WantedRunning {
		t.Errorf("%+v", next)
	}
}

// Whatever is on the sled, a plan for one instance touches nothing else: what
// it removes is the recorded run's, what it makes did not exist.
func TestAPlanTouchesOnlyItsOwn(t *testing.T) {
	c := settings()
	rapid.Check(t, func(t *rapid.T) {
		here := prepared()
		foreign := rapid.SliceOfDistinct(rapid.IntRange(0, 5), rapid.ID).Draw(t, "foreign VNICs")
		for _, n := range foreign {
			l := here.Links[0]
			l.Name, l.Class, l.Over, l.MAC = c.Names.ControlVNIC(n), "vnic", "net0", fmt.Sprintf("02:08:20:aa:aa:%02x", n)
			here.Links = append(here.Links, l)
		}
		id := c.ID("web1")
		old := record.Record{ID: id, Name: "web1", Wanted: record.WantedRunning, Control: "02:08:20:00:00:01",
			Spec: record.Spec{CPUs: 2, Memory: 1 << 30, Address: record.Address{Mode: record.DHCP}, Pool: "rpool", NICs: []record.NIC{}}}
		old.Incarnation = &record.Incarnation{PropolisID: id, Zone: c.Names.ZoneName(naming.InstanceID(c.Namespace, "run")), Brand: "sparse", Boot: rapid.SampledFrom([]string{thisBoot, earlierBoot}).Draw(t, "boot"),
			Base: baseZone().Zone, BaseDataset: baseZone().Dataset, Guests: []record.VNIC{}, Ensured: rapid.Bool().Draw(t, "ensured"),
			Control: record.VNIC{Name: c.Names.ControlVNIC(rapid.IntRange(0, 5).Draw(t, "own VNIC")), Over: "stub0", MAC: "02:08:20:00:00:01"}}
		at, _ := naming.Zone("rpool", old.Incarnation.Zone)
		old.Incarnation.Dataset, old.Incarnation.Zonepath = at.Dataset, at.Mountpoint
		if !slices.Contains(foreign, int(old.Incarnation.Control.Name[len(old.Incarnation.Control.Name)-1]-'0')) {
			here.bring(c, old, rapid.IntRange(atNothing, atRunning).Draw(t, "came to"))
		}
		here.Datasets = append(here.Datasets, zfs.Dataset{Name: "rpool/zone/other", Type: "filesystem"},
			zfs.Dataset{Name: old.Incarnation.Dataset + "x", Type: "filesystem"}, zfs.Dataset{Name: baseZone().Dataset + "@other_snap", Type: "snapshot"})

		facts, _ := old.Replaces(record.Record{})
		d, next, err := decide(c, operationtest.Book(t, facts...), here.look(), moment("m"), id, EnsureRequest{Wanted: Wanted{Ref: "web1"}, Recreate: rapid.Bool().Draw(t, "recreate")})
		if err != nil {
			return // refused: nothing is touched
		}
		inv := here.look().Inv
		for _, a := range d.Plan.Actions {
			kind, name, _ := strings.Cut(a.Object, " ")
			switch {
			case a.Change == plan.Remove && kind == "vnic":
				if l, _ := inv.Link(name); l.MAC != old.Control || name != old.Incarnation.Control.Name {
					t.Errorf("%s is not its own", a.ID)
				}
			case a.Change == plan.Remove && kind == "zone" && name != old.Incarnation.Zone:
				t.Errorf("%s is not its own", a.ID)
			case a.Change == plan.Remove && kind == "dataset" && name != old.Incarnation.Dataset && !strings.HasPrefix(name, old.Incarnation.Dataset+"/") && !strings.HasPrefix(name, old.Incarnation.Dataset+"@"):
				t.Errorf("%s is not its own", a.ID)
			case a.Change == plan.Create && kind == "vnic":
				if _, there := inv.Link(name); there {
					t.Errorf("%s: it is there", a.ID)
				}
			}
		}
		if !d.Plan.Empty() && next.Incarnation.Control.MAC != old.Control {
			t.Errorf("the MAC changed: %+v", next.Incarnation)
		}
	})
}
