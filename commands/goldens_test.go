package commands_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/test/sledtest"
)

// The command lines that make a base zone and an instance, as --explain prints
// them, pinned whole in testdata/golden (go test -update rewrites them).
//
// They follow Oxide's sled agent (github.com/oxidecomputer/omicron, sled-agent
// and illumos-utils): that of 2021 for the base zone, its seeding and the clone
// (commit cf9a9ee9be), that of 2026 for the profile that is written before the
// zone boots (since 2d46f8cc06). Where they differ, and why:
//
//   - No pfexec before each command: sledctl itself runs with all privileges in
//     the global zone, and checks that before it changes anything.
//   - zonecfg create -b, without -F: -F overwrites an existing
//     configuration, also a foreign one. sledctl creates its own only after a
//     listing has shown that there is none, and reads it back.
//   - zonecfg's first resources are attrs (sledctl-instance, sledctl-base): whose
//     a zone is stands in the zone, not only in its name. The agent marks
//     nothing and removes whatever bears its prefix.
//   - Values are quoted for zonecfg's own lexer: a name or path is data.
//   - The zonepath's dataset is made by us, marked, mode 0700, before install or
//     clone; the agent leaves it to the brand. After the ledger is lost the mark
//     alone says what may be destroyed.
//   - VNICs are temporary (-t), as the agent's are since cf9a9ee9be at the latest,
//     and have a MAC that we draw and keep (-m): what is stopped and started keeps
//     its own. The agent leaves the control VNIC's to dladm. The MTU, where one
//     is configured, is a set-linkprop of its own, as the agent does since
//     0ca28dceef (illumos 15695), and the VNIC goes if that fails: the agent
//     leaks it.
//   - The base zone has no lofs of Propolis' directory. The agent of 2021 gave it
//     one; a base is never booted, and zoneadm clone warns at every clone of what
//     both zones share.
//   - The repository is seeded as by the agent of 2021, with three changes: our
//     own manifest is imported too, from the file system of the zone
//     (manifest-import drops a service whose file is gone), so that no svccfg
//     import is sent in after boot; the new repository is made next to the old one
//     and renamed over it (the agent copied over it in place); and the mark that
//     the base is whole is set after all else (the agent took an installed base
//     for a seeded one).
//   - site.xml in the zone's root before it boots, instead of svccfg over zlogin
//     after it (2021), as the agent of 2026 does; values are escaped for XML.
//   - The milestone that is waited for is single-user, since 46ddbe0fd3 the
//     agent's own, not network (2021); by svcprop -w with a deadline and
//     maintenance as an end, where the agent polls forever. Waits are comments
//     here, and left out of the goldens.
//   - The address object is VNIC/control, static, and made from outside: that of
//     2021 was VNIC/omicron by DHCP, that of 2026 is VNIC/omicron6, made by the
//     start method of Propolis' service inside the zone.
//   - Disks: a lofs mount of each file, and the raw device of each volume, which
//     the agent of 2026 delegates in the same way.
func TestCommandLines(t *testing.T) {
	s := sledtest.New(t, sledtest.Small(), "")
	disks(s)
	s.Run("bootstrap")
	s.Run("base retire " + s.Value("base list -H -o name"))
	golden(t, "base.txt", headOf(explained(s, "base ensure")))
	// What Propolis is asked for is pinned in propolis/spec.
	s.Run("base ensure")
	golden(t, "instance.txt", explained(s, "instance ensure web1 --cpus 4 --memory 8G --nic over=net0,vlan=100 --disk rpool/volumes/web1 --disk /data/cd.iso,readonly"))
}

// explained lists the lines of --explain that change something.
func explained(s *sledtest.Operator, line string) []string {
	s.T.Helper()
	s.Draws = repeatable(line)
	defer func() { s.Draws = nil }()
	var plan struct{ Items []explainedAction }
	if err := json.Unmarshal([]byte(s.Run(line+" --explain -o json")), &plan); err != nil {
		s.T.Fatal(err)
	}
	body := regexp.MustCompile(`--data '\{.*\}'`)
	var lines []string
	for _, a := range plan.Items {
		for _, l := range a.Commands {
			if !strings.HasPrefix(l, "# ") {
				lines = append(lines, body.ReplaceAllString(l, "--data '{…}'"))
			}
		}
	}
	return lines
}

// headOf leaves the contents of files out, which are files of this repository,
// and the mark, which is made of them.
func headOf(lines []string) []string {
	mark := regexp.MustCompile(`sledctl:base=[0-9]+:[0-9a-f]+`)
	for i := range lines {
		head, _, _ := strings.Cut(lines[i], "\n")
		lines[i] = mark.ReplaceAllString(head, "sledctl:base=FORMAT:HASH")
	}
	return lines
}

func golden(t *testing.T, name string, lines []string) {
	t.Helper()
	name = filepath.Join("testdata", "golden", name)
	got := strings.Join(lines, "\n") + "\n"
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s (-golden +explained):\n%s", name, diff)
	}
}
