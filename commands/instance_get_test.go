package commands_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sledctl/sledctl/test/sledtest"
)

// What others change of an instance is a row of its own, with what it was and what it is.
func TestGetTellsWhatDiffers(t *testing.T) {
	t.Parallel()
	for _, x := range []struct{ name, line, row string }{
		{"nothing", "zoneadm list", ""},
		{"a network was added", "zonecfg -z Z add net ; set physical=net0 ; end", "zone net\tG C\tG C net0\tdiffers\t+ net0\n"},
		{"a property was set", "zonecfg -z Z set autoboot=true", "zone autoboot\tfalse\ttrue\tdiffers\t-\n"},
		{"the zone was halted", "zoneadm -z Z halt", "run\trunning\tfailed\tdiffers\t-\n"},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := sledtest.New(t, sledtest.Small(), "")
				disks(s)
				s.Run("bootstrap")
				s.Run("instance ensure web1 --nic over=net0,vlan=100 --disk rpool/volumes/web1 --disk /data/cd.iso,readonly")
				vnics := strings.Split(s.Value("instance get web1 -H --columns vnics"), ",")
				names := strings.NewReplacer("Z", s.Value("instance get web1 -H --columns zone"), "G", vnics[1], " C", " "+vnics[0])
				s.Command(names.Replace(x.line))
				want := 10
				if x.row == "" {
					want = 0
				}
				a := s.Try("instance get web1 --diff --detailed-exitcode -H")
				if a.Exit != want || a.Out != names.Replace(x.row) {
					t.Errorf("exit %d, %s%q, want %q", a.Exit, a.Errs, a.Out, names.Replace(x.row))
				}
				if b := s.Try("instance get web1 --diff"); b.Exit != 0 {
					t.Errorf("without --detailed-exitcode: exit %d", b.Exit)
				}
				if json := s.Run("instance get web1 -o json"); strings.Contains(json, `"differs":`) != (x.row != "") || strings.Contains(json, `"next":["sledctl `) != (x.row != "") {
					t.Error(json)
				}
				screen := on(s, 80, []string{"TERM=dumb"}, "instance get web1").Out
				if !strings.HasPrefix(screen, "web1  ") || strings.Contains(screen, "\nnext: sledctl ") != (x.row != "") || !strings.Contains(screen, "\ndisk 1 ") {
					t.Error(screen)
				}
			})
		})
	}
}

// A script gets one row, as ever, and several instances a row each.
func TestGetPrintsRowsForScripts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := sledtest.New(t, sledtest.Small(), "")
		s.Run("bootstrap")
		s.Run("instance ensure web1")
		s.Run("instance ensure web2")
		if got := s.Run("instance get web2 web1 --columns name,state"); got != "NAME\tSTATE\nweb2\trunning\nweb1\trunning\n" {
			t.Error(got)
		}
		if a := on(s, 80, nil, "instance get web1 web2"); !strings.HasPrefix(a.Out, "web1  running") || !strings.Contains(a.Out, "\n\nweb2  running") {
			t.Error(a.Out)
		}
		if a := on(s, 80, nil, "instance get web1 -o table"); !strings.HasPrefix(a.Out, "NAME ") {
			t.Error(a.Out)
		}
		for line, exit := range map[string]int{"instance get web1 nope": 4, "instance get web1 web2 --diff": 2, "instance get web1 web2 -o toml": 2, "instance get": 2, "instance get web1 -o tml": 2} {
			if a := s.Try(line); a.Exit != exit || a.Out != "" {
				t.Errorf("%s: exit %d, %s%s", line, a.Exit, a.Out, a.Errs)
			}
		}
	})
}
