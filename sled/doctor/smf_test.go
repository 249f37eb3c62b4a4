package doctor

import (
	"io/fs"
	"testing"

	"github.com/sledctl/sledctl/illumos/smf"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/hosttest"
)

// The services are valid, known to SMF, not in maintenance, and start this program.
func TestTheServices(t *testing.T) {
	const file, service, fmri = "/lib/svc/manifest/ooce/sledctl.xml", "svc:/ooce/sledctl/instances", "svc:/ooce/sledctl/instances:default"
	of := func(states map[string]string, program string, other bool) Seen {
		return Seen{Settings: Settings{Program: "/root/sledctl"}, Installed: Installed{
			Manifests: []smf.Manifest{{File: file, Services: []string{service}}}, States: states,
			Programs: map[string]string{file: program}, Other: map[string]bool{program: other},
		}}
	}
	online, ill := map[string]string{fmri: smf.Online}, map[string]string{fmri: smf.Maintenance}
	invalid := Seen{Installed: Installed{Invalid: []*smf.ManifestError{{File: file, Words: "EOF"}}}}
	lost := of(online, "", false)
	lost.Installed.Manifests = nil
	judgeAll(t, map[string]judged{
		"imported":         {"manifests", of(online, "", false), OK, "1 manifests"},
		"not imported":     {"manifests", of(nil, "", false), Fail, "run: svccfg import " + file},
		"invalid":          {"manifests", invalid, Fail, file + " is not valid: EOF; install sledctl again"},
		"lost":             {"manifests", lost, Warn, "SMF knows " + fmri + ", and their manifest is nowhere"},
		"not installed":    {"manifests", Seen{}, OK, "none is installed: no VM starts with the sled"},
		"online":           {"services", of(online, "", false), OK, fmri + " is online"},
		"in maintenance":   {"services", of(ill, "", false), Fail, "repair what this names: svcs -xv " + fmri + ", then run: svcadm clear " + fmri},
		"no services":      {"services", Seen{}, OK, "none is installed"},
		"starts":           {"service-program", of(online, "/opt/sledctl/bin/sledctl", false), OK, "/opt/sledctl/bin/sledctl"},
		"starts nothing":   {"service-program", of(online, "", false), Fail, "the PATH in " + file + " has the program sledctl; install sledctl there again"},
		"starts another":   {"service-program", of(online, "/opt/sledctl/bin/sledctl", true), Warn, "start /opt/sledctl/bin/sledctl, and this is /root/sledctl; use the same one by hand, then run: /opt/sledctl/bin/sledctl doctor"},
		"no service lists": {"service-program", Seen{}, OK, "none is installed"},
	})
}

// What a method starts is the first file in its PATH that can be run, and another one than
// this program only if both can be seen.
func TestTheProgramOfAService(t *testing.T) {
	sled := sim.New(sim.Options{}, hosttest.Files)
	t.Cleanup(sled.Close)
	files := sled.Host().Files()
	for name, mode := range map[string]fs.FileMode{"/a/sledctl": 0o644, "/b/sledctl": 0o755, "/c/sledctl": 0o755} {
		if err := world.Put(files, name, []byte("program"), mode); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		list, self, want string
		other            bool
	}{
		"the first that runs": {"/usr/bin:/a:/b:/c", "/b/sledctl", "/b/sledctl", false},
		"another":             {"/b:/c", "/c/sledctl", "/b/sledctl", true},
		"lies elsewhere":      {"/b", "/home/sledctl", "/b/sledctl", false},
		"is not known":        {"/b", "", "/b/sledctl", false},
		"none":                {"/usr/bin:/a", "/b/sledctl", "", false},
	} {
		if got, other := (Settings{Program: c.self}).program(files, c.list); got != c.want || other != c.other {
			t.Errorf("%s: %q, %v", name, got, other)
		}
	}
}
