package privilege

import "testing"

// The forms are those of privileges(7) and ppriv(1).
func TestWhatASetHas(t *testing.T) {
	for set, want := range map[Set][3]bool{ // all, file_read, sys_mount
		"all":                       {true, true, true},
		"basic":                     {false, true, false},
		"basic,!file_read":          {false, false, false},
		"basic,sys_mount":           {false, true, true},
		"all,!sys_mount":            {false, true, false},
		"zone":                      {},
		"none":                      {},
		"":                          {},
		"basic, sys_mount,proc_foo": {false, true, true},
	} {
		if got := [3]bool{set.Has(All), set.Has("file_read"), set.Has("sys_mount")}; got != want {
			t.Errorf("%q: %v, want %v", set, got, want)
		}
	}
}

// A program that is not known needs everything, and so does what is done with it.
func TestWhatProgramsNeed(t *testing.T) {
	for words, n := range map[string]Need{
		"net_rawaccess, sys_dl_config, user 0":                                    Of("dladm"),
		"file_chown, file_owner, net_rawaccess, sys_dl_config, sys_mount, user 0": Of("zfs", "dladm"),
		"all":                            Of("dladm", "zoneadm"),
		"none":                           Of(),
		"file_dac_read, file_dac_search": {Files: ReadFiles},
	} {
		if n.String() != words {
			t.Errorf("%q, want %q", n, words)
		}
	}
	if got := Of("rm").String(); got != "all" {
		t.Errorf("%q", got)
	}
}
