package reap

import (
	"strings"
	"testing"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/illumos/ipadm"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/vnic"
	"github.com/sledctl/sledctl/zfs"
	"github.com/sledctl/sledctl/zone"
)

// What has a name as sledctl gives them, and is not certainly sledctl's, is reported and stays,
// whatever the operator asks for. What another tool names is not judged.
func TestWhatMayNotBeOursIsToldAndStays(t *testing.T) {
	theirs := func(s *scene, name, dir string, state zone.State) {
		s.Zones = append(s.Zones, zone.Zone{Name: name, State: state, Path: dir + "/" + name, Brand: "sparse", UUID: "theirs"})
		s.Datasets = append(s.Datasets, zfs.Dataset{Name: "rpool" + dir + "/" + name, Type: zfs.TypeFilesystem, Mountpoint: dir + "/" + name, Mounted: true})
	}
	over := func(s *scene, name, link string) {
		s.Links = append(s.Links, vnic.Link{Name: name, Class: "vnic", Over: link, MAC: "02:08:20:00:00:01"})
	}
	for name, c := range map[string]struct {
		set  func(*scene)
		told string // the object that is reported as unknown; empty: it is foreign
		why  string
	}{
		"a zone with more behind the prefix of bases": {func(s *scene) { theirs(s, "propolis_baseball", "/zone", zone.Installed) }, "zone propolis_baseball", "begins with"},
		"a zone without a UUID":                       {func(s *scene) { theirs(s, "propolis_instance_mine", "/zone", zone.Installed) }, "zone propolis_instance_mine", "begins with"},
		"a zone of our name elsewhere":                {func(s *scene) { theirs(s, zone1, "/zones", zone.Installed) }, "zone " + zone1, "lies at /zones/"},
		"a zone of our name on a foreign dataset": {func(s *scene) {
			s.Datasets[1].Name, s.Datasets[1].Mounted = "rpool/theirs", true // at /zone
			theirs(s, zone1, "/zone", zone.Installed)
		}, "zone " + zone1, "lies in rpool/theirs"},
		"a zone of our name that another tool has marked": {func(s *scene) {
			theirs(s, zone1, "/zone", zone.Installed)
			s.Configs[zone1] = zone.Config{Attrs: []zone.Attr{{Name: "owner-uuid", Type: "string", Value: "x"}}}
		}, "zone " + zone1, "attr owner-uuid"},
		"a base of another pool's name": {func(s *scene) { theirs(s, "propolis_base_tank_1", "/zone", zone.Installed) }, "zone propolis_base_tank_1", "rpool"},
		"a zone of the sled agent": {func(s *scene) {
			theirs(s, "oxz_propolis-server_"+strings.TrimPrefix(zone1, "propolis_instance_"), "/zone", zone.Running)
		}, "", ""},
		"a VNIC with letters behind the prefix": {func(s *scene) { over(s, "vnic_propolis_mgmt0", "stub0") }, "vnic vnic_propolis_mgmt0", "begins with"},
		"a VNIC with a leading zero":            {func(s *scene) { over(s, "vnic_propolis007", "stub0") }, "vnic vnic_propolis007", "begins with"},
		"a VNIC over a link of others":          {func(s *scene) { over(s, "vnic_propolis7", "net1") }, "vnic vnic_propolis7", "over net1"},
		"a VNIC with an address": {func(s *scene) {
			over(s, "vnic_propolis7", "stub0")
			s.Addresses = append(s.Addresses, ipadm.Address{Object: "vnic_propolis7/v4"})
		}, "vnic vnic_propolis7", "the address vnic_propolis7/v4"},
		"a VNIC whose addresses are not known": {func(s *scene) {
			over(s, "vnic_propolis7", "stub0")
			s.Addresses = nil
		}, "vnic vnic_propolis7", "cannot be seen"},
		"a VNIC in a zone of others": {func(s *scene) {
			theirs(s, "mail", "/zones", zone.Running)
			s.link("vnic_propolis7", "02:08:20:00:00:01", "mail")
		}, "vnic vnic_propolis7", "zone mail has it"},
		"a VNIC of the sled agent":    {func(s *scene) { over(s, "oxControlInstance7", "stub0") }, "", ""},
		"a dataset without a mark":    {func(s *scene) { s.dataset("rpool/zone/" + zone1) }, "dataset rpool/zone/" + zone1, "no mark"},
		"a dataset with another name": {func(s *scene) { s.dataset("rpool/zone/propolis_instance_mine") }, "dataset rpool/zone/propolis_instance_mine", "begins with"},
		"a snapshot on a base, of a foreign clone": {func(s *scene) {
			s.home(base1, naming.PropertyBase)
			s.Zones = append(s.Zones, zone.Zone{Name: base1, State: zone.Running, Path: "/zone/" + base1}) // which keeps it from being an orphan
			s.snapshot("rpool/zone/" + base1 + "@nightly_snap1")
		}, "snapshot rpool/zone/" + base1 + "@nightly_snap1", "nightly"},
		"a directory": {func(s *scene) {
			s.Homes = append(s.Homes, inventory.Home{Path: "/zone/propolis_instance_mine"})
		}, "directory /zone/propolis_instance_mine", "begins with"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, all := range []bool{false, true} {
				s := empty()
				c.set(s)
				f := s.judgeAs(t, Choice{All: all})
				found := false
				for _, o := range f.Objects {
					if o.Removed {
						t.Errorf("all: %v: %s goes: %s, %s", all, o.key(), o.Verdict, o.Reason)
					}
					if o.key() == c.told {
						found = o.Verdict == Unknown && strings.Contains(o.Reason, c.why)
					}
				}
				if c.told != "" && !found || c.told == "" && len(f.Objects) > 0 {
					t.Errorf("all: %v: %+v", all, f.Objects)
				}
			}
		})
	}
}
