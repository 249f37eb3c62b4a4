package commands_test

import (
	"encoding/json"
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/ledger"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/storage"
)

// raw runs a host command that must succeed, and gives what it prints.
func (s *sled) raw(words ...string) string {
	s.t.Helper()
	r, err := s.Host().Run(s.t.Context(), host.Command{Program: words[0], Args: words[1:]})
	if err != nil || r.Exit != 0 {
		s.t.Fatalf("%q: %v, exit %d, %s", words, err, r.Exit, r.Stderr)
	}
	return string(r.Stdout)
}

// pools lists the sled's pools of a kind, as oxi_.
func (s *sled) pools(prefix string) []string {
	s.t.Helper()
	var names []string
	for name := range strings.FieldsSeq(s.raw("zpool", "list", "-Ho", "name")) {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	return names
}

// ramdisk is a sled whose root is a RAM disk, with a state file on its M.2s.
func ramdisk(t *testing.T) (s *sled, m2 []string) {
	t.Helper()
	s = newSled(t, sim.Options{Seed: 1, M2: 2, U2: 2, Mode: world.Helios}, "")
	files := s.Host().Files()
	places := ledger.Places{Lock: "/var/run/sledctl/ledger.lock", Witness: storage.Witness{Host: s.Host()}}
	for _, pool := range s.pools("oxi_") {
		uuid := strings.TrimPrefix(pool, "oxi_")
		s.raw("zfs", "create", "-o", "mountpoint=/pool/int/"+uuid+"/config", pool+"/config")
		places.Locations, m2 = append(places.Locations, ledger.OnPool(uuid)), append(m2, pool)
	}
	if err := host.MkdirAll(files, "/var/run/sledctl", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := ledger.Create(t.Context(), files, places, "test"); err != nil {
		t.Fatal(err)
	}
	return s, m2
}

// ledgers lists the files of a state file that lie anywhere on the sled.
func (s *sled) ledgers() []string {
	s.t.Helper()
	var found []string
	var walk func(dir string)
	walk = func(dir string) {
		infos, err := s.Host().Files().ReadDir(dir)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, info := range infos {
			name := path.Join(dir, info.Name)
			if info.Mode.IsDir() {
				walk(name)
			} else if info.Mode&fs.ModeSymlink == 0 && strings.Contains(info.Name, "ledger.jsonl") {
				found = append(found, name)
			}
		}
	}
	walk("/")
	return found
}

// After a reboot of a sled whose root is a RAM disk no pool is imported. What
// needs the state file says so, and nothing begins a second one.
func TestNothingBeginsASecondHistoryAfterAReboot(t *testing.T) {
	t.Parallel()
	s, m2 := ramdisk(t)
	id, u2 := s.ledgerID(), s.pools("oxp_")
	if err := s.Reboot(t.Context()); err != nil {
		t.Fatal(err)
	}
	uuid := "11111111-1111-4111-8111-111111111111"
	commands := []string{
		"instance list", "instance get a", "instance ensure a", "instance start a", "instance stop a", "instance reboot a", "instance delete a",
		"instance history a", "base list", "base ensure", "reap", "reap -n", "history", "vnic create --over net0", "vnic create --instance a",
		"zone create --instance a", "propolis get --instance a", "ledger show", "ledger show instance/", "ledger export", "ledger check", "ledger heal",
		"ledger heal --keep " + uuid + " --yes", "instance ensure a --degraded", "ledger heal --degraded",
	}
	refuse := func(when string, exits ...int) {
		t.Helper()
		for _, line := range commands {
			a := s.try(line)
			good := false
			for _, exit := range exits {
				good = good || a.exit == exit
			}
			if !good || !strings.Contains(a.errs, "state file") {
				t.Errorf("%s: %s: exit %d, %s", when, line, a.exit, a.errs)
			}
		}
		if found := s.ledgers(); len(found) > 0 {
			t.Fatalf("%s: %v was made", when, found)
		}
	}
	refuse("nothing is imported", 8, 9)

	for _, pool := range u2 {
		s.raw("zpool", "import", "-f", pool)
	}
	refuse("only U.2s are imported", 9)
	a := s.try("instance list")
	for _, words := range []string{"ledger " + id, "sledctl bootstrap --new-ledger", "sledctl instance adopt --all"} {
		if !strings.Contains(a.errs, words) {
			t.Errorf("%q is not said: %s", words, a.errs)
		}
	}

	for _, pool := range m2 {
		s.raw("zpool", "import", "-f", pool)
	}
	if got := s.ledgerID(); got != id {
		t.Errorf("ledger %s, was %s", got, id)
	}
}

func (s *sled) ledgerID() string {
	s.t.Helper()
	var shown struct{ Ledger string }
	if err := json.Unmarshal([]byte(s.run("ledger show -o json")), &shown); err != nil || shown.Ledger == "" {
		s.t.Fatalf("%+v, %v", shown, err)
	}
	return shown.Ledger
}
