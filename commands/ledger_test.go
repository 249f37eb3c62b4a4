package commands_test

import (
	"encoding/json"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sled/storage"
	"github.com/sledctl/sledctl/test/sledtest"
)

// raw runs a host command that must succeed, and gives what it prints.
func raw(s *sledtest.Operator, words ...string) string {
	s.T.Helper()
	r, err := s.Host().Run(s.T.Context(), host.Command{Program: words[0], Args: words[1:]})
	if err != nil || r.Exit != 0 {
		s.T.Fatalf("%q: %v, exit %d, %s", words, err, r.Exit, r.Stderr)
	}
	return string(r.Stdout)
}

// pools lists the sled's pools of a kind, as oxi_.
func pools(s *sledtest.Operator, prefix string) []string {
	s.T.Helper()
	var names []string
	for name := range strings.FieldsSeq(raw(s, "zpool", "list", "-Ho", "name")) {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	return names
}

// ramdisk is a sled whose root is a RAM disk, with a ledger on its M.2s.
func ramdisk(t *testing.T) (s *sledtest.Operator, m2 []string) {
	t.Helper()
	s = sledtest.New(t, sim.Options{Seed: 1, M2: 2, U2: 2, Mode: world.Helios, Image: []string{"/etc/sledctl/config.toml"}}, "")
	files := s.Host().Files()
	places := ledger.Places{Lock: "/var/run/sledctl/ledger.lock", Witness: storage.Witness{Host: s.Host()}}
	for _, pool := range pools(s, "oxi_") {
		uuid := strings.TrimPrefix(pool, "oxi_")
		raw(s, "zfs", "create", "-o", "mountpoint=/pool/int/"+uuid+"/config", pool+"/config")
		places.Locations, m2 = append(places.Locations, ledger.OnPool(uuid)), append(m2, pool)
	}
	if err := host.MkdirAll(files, "/var/run/sledctl", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := ledger.Create(t.Context(), files, places, ledger.Creation{Who: "test"}); err != nil {
		t.Fatal(err)
	}
	return s, m2
}

// ledgers lists the files of a ledger that lie anywhere on the sled.
func ledgers(s *sledtest.Operator) []string {
	s.T.Helper()
	var found []string
	var walk func(dir string)
	walk = func(dir string) {
		infos, err := s.Host().Files().ReadDir(dir)
		if err != nil {
			s.T.Fatal(err)
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

// stateless are the commands that run without a ledger, with the reason.
var stateless = map[string]string{
	"bootstrap":      "it is what brings the ledger back",
	"doctor":         "it runs before there is a ledger",
	"storage list":   "the ledger lies on what it lists",
	"storage check":  "the ledger lies on what it checks",
	"storage format": "the ledger will lie on what it makes",
	"probe":          "it is about the host's commands, not about sledctl's objects",
	"top":            "it needs a terminal first; then it shows what other commands say",
	"sim":            "it is about the simulation, not about the sled",
	"instance edit":  "it needs a terminal first; then it begins as instance get -o toml does",
	"version":        "it is about the program",
	"config":         "it is about the configuration",
	"sled add":       "it is about the operator's file of sleds",
	"sled list":      "it is about the operator's file of sleds",
	"sled use":       "it is about the operator's file of sleds",
	"sled remove":    "it is about the operator's file of sleds",
	"sled test":      "it is about the operator's file of sleds",

	"propolis spec validate": "it is about a document",
	"propolis spec convert":  "it is about a document",
	"completion":             "it is about the program",
	"exit-codes":             "it is about the program",
	"privileges":             "it is about the program",
}

// statefully is a command line of every other command.
func statefully() []string {
	const uuid = "11111111-1111-4111-8111-111111111111"
	zone := "propolis_instance_" + uuid
	return []string{
		"status", "agent --listen unix:/nowhere/agent.sock", "nics list", "nics sync",
		"base list", "base ensure", "base retire propolis_base_11111111_1",
		"image list", "image get a", "image delete a", "image prune", "image export a b", "image import ../image/testdata/disk.xz", "image fetch http://images.example/a",
		"events", "history", "trace", "trace --list", "trace " + uuid,
		"instance list", "instance get a", "instance get a -o toml", "instance get a --diff", "instance ensure a", "instance ensure --all", "instance start a", "instance stop a", "instance stop --all",
		"instance reboot a", "instance migrate a --to b", "instance delete a", "instance adopt --all", "instance history a", "instance logs a", "instance logs a -f", "instance watch a", "instance wait a --for running", "instance console a", "instance ensure a --degraded",
		"ledger show", "ledger show instance/", "ledger export", "ledger import testdata/export.json", "ledger check", "ledger heal", "ledger heal --keep " + uuid + " --yes",
		"ledger heal --degraded",
		"propolis get --instance a", "propolis start --instance a", "propolis ensure --instance a", "propolis run --instance a",
		"propolis stop --instance a", "propolis reboot --instance a", "propolis monitor --instance a", "propolis nmi --instance a",
		"propolis spec show a", "propolis spec show a --running", "propolis spec diff a",
		"reap", "reap -n", "storage forget c1t0d0 --yes", "storage rekey",
		"instance copy web1 web2", "instance export a b", "instance import ../test/matrix/testdata/web1.tar", "instance keeper a operator", "sled keeper", "sled keeper fleet", "instance snapshot list", "instance snapshot create web1 one", "instance snapshot rollback web1 one", "instance snapshot delete web1 one",
		"storage local-disk list", "storage local-disk ensure " + uuid + " --size 1G", "storage local-disk delete " + uuid,
		"vnic list", "vnic list --all", "vnic create --over net0", "vnic create --instance a", "vnic delete vnic_propolis0",
		"volume list", "volume get a", "volume create a --size 1G", "volume delete a", "volume attach a b", "volume resize a --size 2G", "volume rename a b", "volume set a --protect", "volume adopt", "volume detach a b", "volume receive a --size 1G --snapshot 1 --for " + uuid,
		"zone list", "zone list --all", "zone list -o json", "zone create --instance a", "zone boot --instance a", "zone address --instance a",
		"zone halt " + zone, "zone delete " + zone, "zone exec " + zone + " -- true",
		"zone bundle list", "zone bundle create " + zone, "zone bundle get " + zone, "zone bundle delete a",
	}
}

// No command is forgotten: one that is added later must be listed too.
func TestEveryCommandNeedsTheStateFileOrSaysWhyNot(t *testing.T) {
	lines := statefully()
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		name := strings.TrimPrefix(cmd.CommandPath(), "sledctl ")
		if stateless[name] != "" {
			return
		}
		for _, c := range cmd.Commands() {
			visit(c)
		}
		if !cmd.HasSubCommands() && !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line+" ", name+" ") }) {
			t.Errorf("nobody tries %s without a ledger", name)
		}
	}
	visit(commands.Root())
}

// After a reboot of a sled whose root is a RAM disk no pool is imported. What
// needs the ledger says so, and nothing begins a second one.
func TestNothingBeginsASecondHistoryAfterAReboot(t *testing.T) {
	t.Parallel()
	s, m2 := ramdisk(t)
	id, u2 := ledgerID(s), pools(s, "oxp_")
	if err := s.Reboot(t.Context()); err != nil {
		t.Fatal(err)
	}
	refuse := func(when string, exits ...int) {
		t.Helper()
		for _, line := range statefully() {
			a := s.Try(line)
			good := false
			for _, exit := range exits {
				good = good || a.Exit == exit
			}
			says := strings.Contains(a.Errs, "the ledger")
			if line == "status" { // it prints what is wrong
				says = strings.Contains(a.Out, "ledger")
			}
			if !good || !says {
				t.Errorf("%s: %s: exit %d, %s", when, line, a.Exit, a.Errs)
			}
		}
		if found := ledgers(s); len(found) > 0 {
			t.Fatalf("%s: %v was made", when, found)
		}
	}
	refuse("nothing is imported", 8, 9)

	for _, pool := range u2 {
		raw(s, "zpool", "import", "-f", pool)
	}
	refuse("only U.2s are imported", 9)
	a := s.Try("instance list")
	for _, words := range []string{"ledger " + id, "sledctl bootstrap --new-ledger", "sledctl instance adopt --all"} {
		if !strings.Contains(a.Errs, words) {
			t.Errorf("%q is not said: %s", words, a.Errs)
		}
	}

	for _, pool := range m2 {
		raw(s, "zpool", "import", "-f", pool)
	}
	if got := ledgerID(s); got != id {
		t.Errorf("ledger %s, was %s", got, id)
	}
}

func ledgerID(s *sledtest.Operator) string {
	s.T.Helper()
	var shown struct{ Ledger string }
	if err := json.Unmarshal([]byte(s.Run("ledger show -o json")), &shown); err != nil || shown.Ledger == "" {
		s.T.Fatalf("%+v, %v", shown, err)
	}
	return shown.Ledger
}
