package rights

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host/privilege"
)

// may are the commands that a process may run.
func may(p privilege.Process, dhcp bool) (names []string) {
	lacking := Lacking(p, dhcp)
	for _, c := range Commands() {
		if lacking[c.Name] == nil {
			names = append(names, c.Name)
		}
	}
	return names
}

// The processes are those that the profiles of illumos make.
func TestWhatAProcessMayRun(t *testing.T) {
	all := len(Commands())
	for name, c := range map[string]struct {
		process  privilege.Process
		dhcp     bool
		few      int
		yes, not []string
	}{
		"root":        {privilege.Process{Effective: "all"}, true, all, nil, nil},
		"privs=all":   {privilege.Process{User: 100, Effective: "all"}, true, all, nil, nil},
		"a user":      {privilege.Process{User: 100, Effective: "basic"}, false, 0, []string{"config check", "probe show"}, []string{"instance list", "status"}},
		"who reads":   {privilege.Process{User: 100, Effective: "basic,file_dac_read,file_dac_search"}, false, 0, []string{"instance list", "status", "zone list"}, []string{"vnic create", "ledger import"}},
		"reads, DHCP": {privilege.Process{User: 100, Effective: "basic,file_dac_read,file_dac_search"}, true, 0, []string{"zone list", "trace"}, []string{"instance list", "status"}},
		"root, links": {privilege.Process{Effective: "basic,net_rawaccess,sys_dl_config"}, false, 0, []string{"vnic create", "nics sync", "instance reboot"}, []string{"zone boot", "storage format"}},
		"not one":     {privilege.Process{Effective: "all,!sys_time"}, false, 0, []string{"vnic create", "storage format"}, []string{"zone boot", "instance ensure"}},
	} {
		got := may(c.process, c.dhcp)
		if c.few > 0 && len(got) != c.few {
			t.Errorf("%s: %d of %d", name, len(got), all)
		}
		for _, command := range c.yes {
			if !slices.Contains(got, command) {
				t.Errorf("%s: may not run %s: lacks %v", name, command, Lacking(c.process, c.dhcp)[command])
			}
		}
		for _, command := range c.not {
			if slices.Contains(got, command) {
				t.Errorf("%s: may run %s", name, command)
			}
		}
	}
}

// What is lacking is told by name.
func TestWhatIsLackingHasAName(t *testing.T) {
	user := privilege.Process{User: 100, Effective: "basic"}
	got := Lacking(user, false)
	for command, want := range map[string][]string{
		"status":      {"file_dac_read", "file_dac_search"},
		"vnic create": {"net_rawaccess", "sys_dl_config", "user 0"},
		"zone boot":   {"all", "user 0"},
	} {
		if diff := cmp.Diff(want, got[command]); diff != "" {
			t.Errorf("%s: %s", command, diff)
		}
	}
}

// The groups have every command once, and what needs everything comes last.
func TestGroupsHaveEveryCommand(t *testing.T) {
	groups, n := Groups(), 0
	for _, g := range groups {
		n += len(g.Asking) + len(g.Others)
	}
	if n != len(Commands()) || groups[0].Need.String() != "none" || groups[len(groups)-1].Need.String() != "all" {
		t.Errorf("%d of %d: %+v", n, len(Commands()), groups)
	}
}
