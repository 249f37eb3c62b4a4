package smf

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/refdata"
)

const milestone = "svc:/milestone/single-user:default"

func TestCommandLines(t *testing.T) {
	for want, c := range map[string]host.Command{
		"svcs -z web1 -a -H -o state,fmri":                   listCommand("web1"),
		"svcs -a -H -o state,fmri":                           listCommand(""),
		"svcs -H -o state,fmri svc:/site/a svc:/site/b":      findCommand([]string{"svc:/site/a", "svc:/site/b"}),
		"svcprop -z web1 -p restarter/state " + milestone:    stateCommand("web1", milestone),
		"svcprop -w -z web1 -p restarter/state " + milestone: waitCommand("web1", milestone),
		"svcprop -w -p restarter/state " + milestone:         waitCommand("", milestone),
		"svcadm -z web1 enable -t svc:/site/a:b":             enableCommand("web1", "svc:/site/a:b", true),
		"svcadm -z web1 enable svc:/site/a:b":                enableCommand("web1", "svc:/site/a:b", false),
		"svcadm disable -t svc:/site/a:b":                    disableCommand("", "svc:/site/a:b", true),
		"SVCCFG_DTD=/usr/share/lib/xml/dtd/service_bundle.dtd.1 SVCCFG_REPOSITORY=/z/root/etc/svc/repository.db.sledctl " +
			"SVCCFG_CHECKHASH=1 PKG_INSTALL_ROOT=/z/root svccfg import /z/root/lib/svc/manifest": importCommand("/z/root/etc/svc/repository.db.sledctl", "/z/root", "/z/root/lib/svc/manifest"),
	} {
		if got := c.Shell(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if looks := c.Program == "svcs" || c.Program == "svcprop"; c.ReadOnly != looks {
			t.Errorf("%s: read-only %v", want, c.ReadOnly)
		}
	}
}

func TestListsOfRealSystemsAreRead(t *testing.T) {
	for name, data := range refdata.Files(t, "samples/omicron/svcs_-Za_-H_-o_state,fmri,zone__*") {
		services, err := ParseList(data)
		if bad := strings.Contains(name, "missing-fmri"); bad != errors.Is(err, ErrSyntax) {
			t.Errorf("%s: %v", name, err)
		} else if !bad && len(services) != strings.Count(string(data), "\n") {
			t.Errorf("%s: %d services", name, len(services))
		}
	}
}

func TestStatesOfRealSystemsAreRead(t *testing.T) {
	for name, data := range refdata.Files(t, "samples/omicron/svcprop_-t_-z_ZONE_*") {
		if got, err := ParseState(data); err != nil || got != Online {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestErrorsOfRealSystemsHaveTheirKinds(t *testing.T) {
	for name, data := range refdata.Files(t, "samples/illumos/svcs-in-zone-repo-dead.stderr.txt") {
		if got := kind(string(data)); !errors.Is(got, host.ErrTransient) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestParseList(t *testing.T) {
	got, err := ParseList([]byte("online         svc:/a:b                  \nonline*        svc:/c:d global\n-  svc:/e:f\n\n?   lrc:/etc/rc2_d/S1 z\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []Service{{FMRI: "svc:/a:b", State: Online}, {FMRI: "svc:/c:d", State: Online, Moving: true}, {FMRI: "svc:/e:f", State: "-"}, {FMRI: "lrc:/etc/rc2_d/S1", State: "?"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{"online", "online global", "svc:/a:b online"} {
		if _, err := ParseList([]byte(bad)); !errors.Is(err, ErrSyntax) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestParseState(t *testing.T) {
	for out, want := range map[string]string{"online\n": Online, "restarter/state astring offline\n": Offline} {
		if got, err := ParseState([]byte(out)); err != nil || got != want {
			t.Errorf("%q: %q, %v", out, got, err)
		}
	}
	for _, bad := range []string{"", "online", "online\noffline\n", "a b\n", "x/state astring online\n", "\n"} {
		if got, err := ParseState([]byte(bad)); !errors.Is(err, ErrSyntax) {
			t.Errorf("%q: %q, %v", bad, got, err)
		}
	}
}

func TestKindsOfFailures(t *testing.T) {
	for words, want := range map[string]error{
		"svcprop: Could not connect to configuration repository: repository server unavailable.\n": host.ErrTransient,
		"svcs: Could not bind to repository server for zone web1: repository server unavailable\n": host.ErrTransient,
		"svcprop: Couldn't find property group `restarter' for instance `" + milestone + "'.\n":    errNoState,
		"svcprop: Couldn't find property `restarter/state' for instance `" + milestone + "'.\n":    errNoState,
		"svcprop: Not found.\n": errNoState,
		"svcprop: Unexpected libscf error: connection to repository broken.  Exiting.\n": host.ErrTransient,
		"svcprop: Pattern 'svc:/x:y' doesn't match any entities\n":                       host.ErrNotFound,
		"svcadm: Pattern 'svc:/x:y' doesn't match any instances\n":                       host.ErrNotFound,
		"svcprop: invalid zone 'web1'\n":                                                 ErrNoZone,
		"svcprop: svcprop -z may only be used from the global zone\n":                    host.ErrPrivileges,
		"svcadm: svc:/a:b: Permission denied.\n":                                         host.ErrPrivileges,
		"svcprop: something new\n":                                                       nil,
	} {
		if got := kind(words); got != want {
			t.Errorf("%q: %v, want %v", words, got, want)
		}
	}
	if !errors.Is(ErrNoZone, host.ErrNotFound) || !errors.Is(errNoState, host.ErrTransient) {
		t.Error("the kinds of this package are none of package host's")
	}
}

func TestSplitFMRI(t *testing.T) {
	for fmri, want := range map[string][2]string{
		"svc:/site/a:b": {"site/a", "b"}, "svc:/site/a": {"site/a", ""}, "site/a:b": {"site/a", "b"},
	} {
		service, instance := SplitFMRI(fmri)
		if diff := cmp.Diff(want, [2]string{service, instance}); diff != "" {
			t.Errorf("%s: %s", fmri, diff)
		}
	}
}

func FuzzParseList(f *testing.F) {
	f.Add([]byte("online*        svc:/c:d global\n"))
	f.Fuzz(func(t *testing.T, out []byte) {
		services, err := ParseList(out)
		if err != nil && services != nil {
			t.Error("services and an error")
		}
		for _, s := range services {
			if s.FMRI == "" || strings.HasSuffix(s.State, "*") && s.Moving && !strings.Contains(string(out), "**") {
				t.Errorf("%+v", s)
			}
		}
	})
}

func FuzzParseState(f *testing.F) {
	f.Add([]byte("online\n"))
	f.Add([]byte("restarter/state astring online\n"))
	f.Fuzz(func(t *testing.T, out []byte) {
		state, err := ParseState(out)
		if (err == nil) == (state == "") || strings.ContainsAny(state, " \n\t") {
			t.Errorf("%q, %v", state, err)
		}
	})
}
