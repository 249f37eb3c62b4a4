package commands_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/test/sledtest"
)

// interference is what somebody else does to an instance with the sled's own
// commands: in a line, Z is its zone, D its zone's dataset, C and G are its
// control and guest VNICs.
type interference struct {
	name   string
	lines  []string
	state  string // that the instance is in then
	reason string // a part of what is told
	stays  bool   // ensure leaves it running as it is
	litter bool   // what they made is left, for reap
}

func interferences(image bool) []interference {
	const halt = "zoneadm -z Z halt"
	propolis, object, rebooted := "svc:/site/sledctl/propolis-server:default", "C/control", "its Propolis does not run"
	if image { // Propolis' own service starts it with the zone
		propolis, object, rebooted = "svc:/system/illumos/propolis-server:default", "C/omicron6", "Propolis restarted and lost the VM"
	}
	return []interference{
		{name: "the zone is halted", lines: []string{halt}, state: "failed", reason: "its zone is installed, not running"},
		{
			name: "the zone is removed", lines: []string{halt, "zoneadm -z Z uninstall -F", "zonecfg -z Z delete -F"},
			state: "absent", reason: "its zone Z was removed by another program",
		},
		{
			name: "the zone's configuration is removed", lines: []string{halt, "zonecfg -z Z delete -F"},
			state: "absent", reason: "its zone Z was removed by another program",
		},
		{name: "the zone is uninstalled", lines: []string{halt, "zoneadm -z Z uninstall -F"}, state: "failed", reason: "its zone is configured, not running"},
		{name: "the zone is marked", lines: []string{halt, "zoneadm -z Z mark incomplete"}, state: "failed", reason: "its zone is incomplete, not running"},
		{
			name: "the running zone's configuration was changed", lines: []string{"zonecfg -z Z set autoboot=true ; remove device match=/dev/viona"},
			state: "running", reason: "its zone's configuration was changed: autoboot, device", stays: true,
		},
		{
			name: "the halted zone's configuration was changed", lines: []string{halt, "zonecfg -z Z set limitpriv=\"default\""},
			state: "failed", reason: "not running; its zone's configuration was changed: limitpriv",
		},
		{
			name: "a VNIC is deleted", lines: []string{halt, "dladm delete-vnic G"},
			state: "failed", reason: "not running; its VNIC G is gone",
		},
		{
			name: "a VNIC is another", lines: []string{halt, "dladm delete-vnic C", "dladm create-vnic -t -l net0 C"},
			state: "failed", reason: "not running; its VNIC C is not the one that was made for it", litter: true,
		},
		{
			name: "the dataset is destroyed", lines: []string{halt, "zfs destroy -r D"},
			state: "failed", reason: "not running; its dataset D is gone",
		},
		{
			name: "Propolis is restarted", lines: []string{"svcadm -z Z restart " + propolis},
			state: "failed", reason: "Propolis restarted and lost the VM",
		},
		{name: "Propolis is switched off", lines: []string{"svcadm -z Z disable " + propolis}, state: "failed", reason: "its Propolis does not run"},
		{name: "the zone is rebooted", lines: []string{"zoneadm -z Z reboot"}, state: "failed", reason: rebooted},
		{name: "the address is deleted", lines: []string{"zlogin Z ipadm delete-addr " + object}, state: "unknown", reason: "its address or the route to it is missing", stays: true},
	}
}

// described is what an instance keeps in every state of its zone.
func described(t *testing.T, s *sledtest.Operator) (about []string, state, reason string) {
	t.Helper()
	var i struct {
		ID, State, Reason, Address, Pool string
		CPUs                             int
		VNICs                            []struct{ Over, MAC string }
	}
	if err := json.Unmarshal([]byte(s.Run("instance get web1 -o json")), &i); err != nil {
		t.Fatal(err)
	}
	about = []string{i.ID, i.Address, i.Pool}
	for _, v := range i.VNICs {
		about = append(about, v.Over+" "+v.MAC)
	}
	return about, i.State, i.Reason
}

// Whatever others do to an instance is seen at once, told with its reason, and
// corrected by ensure, with the same addresses and MACs; and nothing is left.
func TestWhatOthersDoToAnInstanceIsSeenToldAndRepaired(t *testing.T) {
	for _, image := range []bool{false, true} {
		for _, i := range interferences(image) {
			t.Run(map[bool]string{false: "", true: "from images: "}[image]+i.name, func(t *testing.T) {
				sledtest.Sample(t, i.name)
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { i.isRepaired(t, image) })
			})
		}
	}
}

func (i interference) isRepaired(t *testing.T, image bool) {
	s := sledtest.New(t, sledtest.Small(), "")
	if image {
		s = sledtest.New(t, helios(), "")
	}
	s.Run("bootstrap")
	before := s.Comparable()
	s.Run("instance ensure web1 --cpus 4 --nic over=net0")
	about, _, _ := described(t, s)
	zone := s.Value("instance get web1 -H --columns zone")
	vnics := strings.Split(s.Value("instance get web1 -H --columns vnics"), ",")
	pool := s.Value("instance get web1 -H --columns pool")
	names := strings.NewReplacer(" Z", " "+zone, " D", " "+pool+"/crypt/zone/"+zone, " C", " "+vnics[0], " G", " "+vnics[1])
	for _, line := range i.lines {
		s.Command(names.Replace(line))
	}

	_, state, reason := described(t, s)
	if want := names.Replace(" " + i.reason)[1:]; state != i.state || !strings.Contains(reason, want) {
		t.Errorf("get: %s, %q; want %s, %q", state, reason, i.state, want)
	}
	if row := s.Value("instance list -H --columns state,reason"); row != state+"\t"+reason {
		t.Errorf("list: %q; get: %s, %q", row, state, reason)
	}

	s.Run("instance ensure web1 --cpus 4 --nic over=net0")
	now, state, reason := described(t, s)
	if diff := cmp.Diff(about, now); diff != "" {
		t.Errorf("after ensure (-before +after):\n%s", diff)
	}
	if state != "running" || reason != "" && !i.stays {
		t.Errorf("after ensure: %s, %q", state, reason)
	}
	if same := s.Value("instance get web1 -H --columns zone") == zone; same != i.stays {
		t.Errorf("the zone is the same: %v", same)
	}
	if out := s.Run("reap --dry-run -H"); !i.litter && strings.Contains(out, "orphan") || strings.Contains(out, "stale") {
		t.Errorf("reap:\n%s", out)
	}
	s.Run("instance delete web1")
	s.Run("reap")
	s.Same(before, "after delete and reap")
}
