package matrix

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
	"github.com/sledctl/sledctl/test/lattice"
	"github.com/sledctl/sledctl/test/sledtest"
)

// The kill matrix: every verb that changes something (the rows, here), disturbed
// at every point of it in every way (modes_test.go), is held against four
// laws (laws_test.go). Where each verb begins is made once and cloned for
// each case. Time is not real: deadlines and pauses cost nothing.

// row is a verb, and the sled on which it is disturbed.
type row struct {
	name    string
	m2, u2  int                    // disks; 0: one
	blank   bool                   // and they are
	mode    world.Mode             // empty: OmniOS
	config  string                 // empty: tuned, or what suits the mode
	bare    bool                   // begins on a sled that is not prepared
	ready   []string               // command lines that lead to where the verb begins; REBOOT is one
	early   func(*scene)           // what comes before all
	prepare func(*scene)           // what else leads there, after ready
	line    string                 // the verb
	ends    []string               // what removes everything again, before a reap; nil: instance delete web1
	stays   bool                   // what the verb does is to outlive that
	restart []string               // what prepares the sled again after a reboot; nil: bootstrap
	adds    bool                   // removes nothing: what was there before need not be reported as left
	mortal  bool                   // what the verb is about does not outlive a reboot
	alters  bool                   // sets and mounts what is there
	boots   bool                   // boots zones that are there
	noBoot  bool                   // a boot would change what it is about
	plain   bool                   // prints nothing
	then    []string               // what it takes next to running it again
	copies  bool                   // makes an image on a further pool first, which is to outlive the rest
	pair    bool                   // takes another sled
	on      *lattice.Row           // the sled of the lattice; nil: it is as m2, u2, mode and config say
	fits    func(lattice.Row) bool // which sleds of the lattice it can be disturbed on; nil: where m2, u2, mode and config say nothing, on all
	may     int                    // an exit code that may be instead of 0 after it was disturbed: it was done, and is no more to be done
}

// rows are the verbs. TestEveryVerbIsInTheMatrix sees that none is missing.
func rows() []row {
	const spare = "vnic create spare0 --over net0 --mac 02:08:20:00:00:07"
	const db1 = "volume create db1 --size 1G"
	const onVolume, snapshotOne = "instance ensure web1 --disk size=1G", "instance snapshot create web1 one"
	withSnapshot := []string{"instance snapshot delete web1 one", "instance delete web1", "volume delete web1-0"}
	const debian = "image import ../../image/testdata/disk.xz --name debian"
	const arrive = "instance ensure -f DOCUMENT --migrate-from 10.78.0.2:12400 --migration-id 66666666-6666-4666-8666-666666666666"
	steps := []string{
		"vnic create --instance web1" + sledtest.Web1NICs, "zone create --instance web1", "zone boot --instance web1",
		"zone address --instance web1", "propolis start --instance web1", "propolis ensure --instance web1", "propolis run --instance web1",
	}
	all := []row{
		{name: "bootstrap", line: "bootstrap", bare: true},
		{name: "bootstrap after a reboot", adds: true, alters: true, ready: []string{sledtest.Web1, "REBOOT"}, line: "bootstrap"},
		{name: "ensure", line: sledtest.Web1},
		{name: "active probe", line: "probe record --active", plain: true, ends: []string{"instance delete sledctl-probe"}, stays: true},
		{name: "bootstrap with spares", config: spared(), line: "bootstrap", bare: true},
		{name: "ensure from a spare", config: spared(), line: sledtest.Web1, then: []string{"bootstrap"}, stays: true},
		{name: "ensure from a spare after a reboot", config: spared(), adds: true, ready: []string{"REBOOT", "bootstrap"}, line: sledtest.Web1, then: []string{"bootstrap"}, stays: true},
		{name: "spares filled up", config: spared(), adds: true, ready: []string{"reap --all --yes"}, line: "bootstrap", ends: []string{"reap --all --yes"}, stays: true},
		{name: "ensure from a booted spare", config: booted(), line: sledtest.Web1, then: []string{"bootstrap"}, stays: true},
		{name: "spares booted", config: booted(), adds: true, ready: []string{"reap --all --yes"}, line: "bootstrap", ends: []string{"reap --all --yes"}, stays: true},
		{name: "spares booted after a reboot", config: booted(), adds: true, alters: true, ready: []string{"REBOOT"}, line: "bootstrap", ends: []string{"reap --all --yes"}, stays: true},
		{name: "ensure from images", fits: fromImages, line: sledtest.Web1},
		{name: "stop of what images made", fits: fromImages, ready: []string{sledtest.Web1}, line: "instance stop web1"},
		{name: "ensure in a VPC", mode: world.Helios, config: sledtest.VPCConfig, noBoot: true, line: inVPC},
		{name: "stop in a VPC", mode: world.Helios, config: sledtest.VPCConfig, noBoot: true, ready: []string{inVPC}, line: "instance stop web1"},
		{name: "recreate in a VPC", mode: world.Helios, config: sledtest.VPCConfig, noBoot: true, ready: []string{inVPC}, line: inVPC + ",floating-ip=203.0.113.9 --recreate"},
		{name: "reroute in a VPC", mode: world.Helios, config: sledtest.VPCConfig, noBoot: true, adds: true, ready: []string{inVPC}, line: inVPC + "+custom"},
		{name: "ensure with cloud-init data", line: sledtest.Web1 + " --hostname shop"},
		{name: "cloud-init data of a guest that runs", adds: true, ready: []string{sledtest.Web1}, line: "instance ensure web1 --hostname shop"},
		{name: "recreate", ready: []string{sledtest.Web1}, line: "instance ensure web1 --cpus 4 --recreate"},
		{name: "other limits", ready: []string{"instance ensure web1 --nic over=net0,max-bw=100,allow-ip=10.9.0.5 --nic over=net0"}, line: "instance ensure web1 --nic over=net0,max-bw=200 --nic over=net0,max-bw=5", adds: true, alters: true},
		{name: "protect", fits: unprotected, ready: []string{sledtest.Web1}, line: "instance ensure web1 --protect", ends: []string{"instance delete web1 --yes"}},
		{name: "ensure all", adds: true, boots: true, ready: []string{sledtest.Web1, "instance ensure web2", "REBOOT", "bootstrap"}, line: "instance ensure --all", ends: []string{"instance delete web1 web2"}},
		{name: "stop", ready: []string{sledtest.Web1}, line: "instance stop web1"},
		{name: "stop all", ready: []string{sledtest.Web1, "instance ensure web2"}, line: "instance stop --all", ends: []string{"instance delete web1 web2"}},
		{name: "start", ready: []string{sledtest.Web1, "instance stop web1"}, line: "instance start web1"},
		{name: "reboot", adds: true, mortal: true, ready: []string{sledtest.Web1}, line: "instance reboot web1"},
		{name: "delete", ready: []string{sledtest.Web1}, line: "instance delete web1"},
		{name: "keeper of an instance", noBoot: true, adds: true, ready: []string{sledtest.Web1}, line: "instance keeper web1 fleet --generation 1", ends: []string{"instance keeper web1 operator", "instance delete web1"}},
		{name: "keeper of the sled", plain: true, adds: true, line: "sled keeper fleet", ends: []string{"sled keeper operator"}},
		{name: "migrate", pair: true, noBoot: true, adds: true, ready: []string{sledtest.Web1}, line: sledtest.MigrateWeb1, ends: []string{}, may: 4},
		{name: "migrate with a volume in a Crucible", pair: true, noBoot: true, adds: true, ready: []string{"instance ensure -f testdata/crucible.toml"}, line: sledtest.MigrateWeb1, ends: []string{}, may: 4},
		{name: "move", pair: true, noBoot: true, adds: true, ready: []string{onVolume}, line: sledtest.MigrateWeb1 + " --offline", ends: []string{}, may: 4},
		{name: "receive", prepare: (*scene).sent, line: "volume receive web1-0 --size 1M --for 66666666-6666-4666-8666-666666666666 --snapshot GUID < PLAN", ends: []string{"volume delete web1-0"}},
		{name: "arrive", pair: true, prepare: (*scene).elsewhere, line: arrive},
		{name: "adopt", fits: adoptable, adds: true, mortal: true, stays: true, ready: []string{sledtest.Web1}, prepare: (*scene).forget, line: "instance adopt --all", ends: []string{"instance adopt --all", "instance delete web1"}},
		{name: "import", adds: true, fits: ledgered, ready: []string{sledtest.Web1, "instance stop web1"}, prepare: (*scene).exportAndForget, line: "ledger import PLAN"},
		{name: "power off", adds: true, mortal: true, ready: []string{sledtest.Web1}, line: "propolis stop --instance web1"},
		{name: "power cycle", adds: true, mortal: true, ready: []string{sledtest.Web1}, line: "propolis reboot --instance web1"},
		{name: "nmi", adds: true, mortal: true, ready: []string{sledtest.Web1}, line: "propolis nmi --instance web1"},
		{name: "a VNIC", line: spare, ends: []string{"vnic delete spare0"}},
		{name: "no VNIC", ready: []string{spare}, line: "vnic delete spare0", ends: []string{}},
		{name: "volume", line: db1, ends: []string{"volume delete db1"}},
		{name: "no volume", ready: []string{db1}, line: "volume delete db1", ends: []string{}},
		{name: "resize", ready: []string{db1}, line: "volume resize db1 --size 2G", ends: []string{"volume delete db1"}},
		{name: "rename", ready: []string{db1}, line: "volume rename db1 db2", may: 4, ends: []string{"volume delete db2"}},
		{name: "volume set", ready: []string{db1}, line: "volume set db1 --protect", ends: []string{"volume delete db1 --yes"}},
		{name: "volume adopt", ready: []string{db1}, prepare: (*scene).forget, line: "volume adopt", ends: []string{"volume delete db1"}},
		{name: "ensure with a volume", line: "instance ensure web1 --disk size=1G,delete-with-instance"},
		{name: "delete with a volume", ready: []string{"instance ensure web1 --disk size=1G,delete-with-instance"}, line: "instance delete web1"},
		{name: "attach", adds: true, plain: true, mortal: true, ready: []string{db1, "instance ensure web1"}, line: "volume attach db1 web1", ends: []string{"instance delete web1", "volume delete db1"}},
		{name: "detach", adds: true, plain: true, mortal: true, ready: []string{db1, "instance ensure web1 --disk db1"}, line: "volume detach db1 web1", ends: []string{"instance delete web1", "volume delete db1"}},
		{name: "snapshot", adds: true, ready: []string{onVolume, "instance stop web1"}, line: snapshotOne, may: 5, ends: withSnapshot},
		{name: "no snapshot", adds: true, ready: []string{onVolume, "instance stop web1", snapshotOne}, line: withSnapshot[0], ends: withSnapshot},
		{name: "rollback", adds: true, alters: true, ready: []string{onVolume, "instance stop web1", snapshotOne, "volume resize web1-0 --size 2G"}, line: "instance snapshot rollback web1 one", ends: withSnapshot},
		{name: "export with disks", adds: true, stays: true, ready: []string{onVolume, "instance stop web1"}, line: "instance export web1 /dev/null", plain: true, ends: []string{"instance delete web1", "volume delete web1-0"}},
		{name: "import with disks", line: "instance import testdata/web1.tar", ends: []string{"instance delete web1", "volume delete web1-0"}},
		{name: "copy", adds: true, ready: []string{onVolume, "instance stop web1"}, line: "instance copy web1 web2", ends: append([]string{"instance delete web2", "volume delete web2-0", "instance snapshot delete web1 for-web2"}, withSnapshot[1:]...)},
		{name: "halt", adds: true, mortal: true, ready: []string{sledtest.Web1}, line: "zone halt ZONE"},
		{name: "no zone", fits: oneBase, adds: true, mortal: true, prepare: (*scene).scatter, line: "zone delete ZONE", ends: []string{}},
		{name: "bundle", fits: withDisks, adds: true, mortal: true, ready: []string{sledtest.Web1}, line: "zone bundle create ZONE"},
		{name: "no bundle", fits: withDisks, adds: true, mortal: true, ready: []string{sledtest.Web1}, prepare: (*scene).keepLogs, line: "zone bundle delete BUNDLE"},
		{name: "base", fits: oneBase, prepare: (*scene).noBase, line: "base ensure", ends: []string{}, stays: true},
		{name: "no base and no spares", config: spared(), noBoot: true, line: "base retire BASE", ends: []string{}, stays: true},
		{name: "no base", fits: oneBase, noBoot: true, line: "base retire BASE", ends: []string{}, stays: true},
		{name: "an image", line: debian, ends: []string{"image delete debian"}},
		{name: "a fetched image", fits: roomy, prepare: (*scene).aWebServer, line: "image fetch http://images.example/disk.xz --name debian", ends: []string{"image prune"}},
		{name: "a volume of an image", adds: true, ready: []string{debian}, line: "volume create db1 --image debian --size 1G", ends: []string{"volume delete db1", "image delete debian"}},
		{name: "a volume of an image elsewhere", u2: 2, adds: true, copies: true, ready: []string{debian + " --pool oxp_101964cb-a8ae-45ea-8aa0-399e4ead2671"}, line: "volume create db1 --image debian --size 1G --pool oxp_197e2b31-9a15-413e-9b6c-411e859af082", ends: []string{"volume delete db1", "image delete debian"}},
		{name: "no image", adds: true, ready: []string{debian}, line: "image delete debian", ends: []string{}},
		{name: "no images", adds: true, fits: unimaged, ready: []string{debian}, line: "image prune", ends: []string{}},
		{name: "reap", fits: oneBase, prepare: (*scene).scatter, line: "reap"},
		{name: "reap after a reboot", fits: mindful, mortal: true, ready: []string{sledtest.Web1, "REBOOT"}, line: "reap", ends: []string{"bootstrap", "instance delete web1"}},
		{name: "reap all", fits: func(r lattice.Row) bool { return unprotected(r) && !fromImages(r) }, ready: []string{sledtest.Web1}, line: "reap --all --yes", ends: []string{"base ensure", "instance delete web1"}, stays: true},
		{name: "reap a plan", fits: oneBase, prepare: (*scene).scatterAndPlan, line: "reap --plan PLAN"},
		{name: "heal", m2: 2, restart: []string{"bootstrap --degraded"}, prepare: func(s *scene) { s.RemoveLedger(1) }, line: "ledger heal --degraded", ends: []string{}, stays: true},
		// Afterwards the disk is no longer blank.
		{name: "format", u2: 2, blank: true, early: (*scene).noDisk, prepare: (*scene).aDisk, line: "storage format --yes c12t0d0", then: []string{"bootstrap"}, may: 8, alters: true, ends: []string{}, stays: true},
		{name: "rekey", config: secretTuned(), prepare: func(s *scene) { s.Secrets(1) }, line: "storage rekey", ends: []string{}, stays: true},
		{name: "local disk", config: withLocalDisks(), line: localDisk, ends: []string{"storage local-disk delete " + localDiskID}},
		{name: "another quota of a local disk", config: withLocalDisks(), ready: []string{localDisk}, line: localDisk + " --quota 2G", ends: []string{"storage local-disk delete " + localDiskID}},
		{name: "no local disk", config: withLocalDisks(), ready: []string{localDisk}, line: "storage local-disk delete " + localDiskID, ends: []string{}},
		{name: "forget", u2: 2, prepare: (*scene).noDisk, line: "storage forget c12t0d0 --yes", noBoot: true, plain: true, ends: []string{}, stays: true},
	}
	for n, line := range steps {
		all = append(all, row{name: strings.Join(strings.Fields(line)[:2], " "), adds: true, mortal: n > 0, ready: steps[:n:n], line: line})
	}
	return all
}

// spared is tuned with one spare on each pool.
func spared() string { return sledtest.TunedConfig + "[instance]\nspares = 1\n" }

// booted is spared with that spare booted.
func booted() string { return spared() + "spares_booted = 1\n" }

// withLocalDisks is tuned with room for local disks; localDisk makes one that is encrypted.
func withLocalDisks() string {
	return strings.Replace(sledtest.TunedConfig, "[network]", "datasets = [\"u2:crypt/local_storage compression=off\"]\n[network]", 1)
}

const (
	localDiskID = "3d3e6b10-7f0a-4c61-9a5e-0d9a0b7c5a11"
	localDisk   = "storage local-disk ensure " + localDiskID + " --size 1G --encrypted"
)

// inVPC ends with a route, so that another one can be asked for.
const inVPC = "instance ensure web1 --nic opte,vni=100,ip=172.30.0.5,subnet=172.30.0.0/24,rule=dir=in+action=allow+priority=9+protocol=tcp+port=22,route=0.0.0.0/0+ig"

// secretTuned is tuned with keys from a file.
func secretTuned() string {
	return strings.Replace(sledtest.TunedConfig, `"development"`, `"file:/secrets"`, 1)
}

// unchanging are the commands that change nothing on a sled.
func unchanging() []string {
	return strings.Fields(`
		status doctor top storage-list storage-check storage-local-disk-list base-list image-list image-get image-export vnic-list volume-list volume-get zone-list zone-exec zone-bundle-list zone-bundle-get nics-list probe-compare probe-show propolis-get propolis-monitor propolis-spec-show propolis-spec-diff propolis-spec-validate propolis-spec-convert
		instance-list instance-get instance-history instance-logs instance-snapshot-list instance-console instance-wait instance-watch events history trace ledger-show ledger-check ledger-export config-show config-check version completion`)
}

// A verb that is new is in no row: it is not forgotten for long.
func TestEveryVerbIsInTheMatrix(t *testing.T) {
	missing := map[string]bool{}
	var walk func(cmd *cobra.Command, words []string)
	walk = func(cmd *cobra.Command, words []string) {
		for _, c := range cmd.Commands() {
			walk(c, append(words[:len(words):len(words)], c.Name()))
		}
		if len(cmd.Commands()) == 0 && cmd.RunE != nil {
			missing[strings.Join(words, "-")] = true
		}
	}
	walk(commands.Root(), nil)
	for _, name := range unchanging() {
		if !missing[name] {
			t.Errorf("%s is no command, or named twice", name)
		}
		delete(missing, name)
	}
	for _, r := range rows() {
		words := strings.Fields(r.line)
		for n := range words {
			delete(missing, strings.Join(words[:n+1], "-"))
		}
	}
	for name := range missing {
		if name == "agent" || name == "instance-edit" || name == "nics-sync" || strings.HasPrefix(name, "sim-") || strings.HasPrefix(name, "sled-") {
			continue // a server, what applies a document as instance ensure does, and what changes records elsewhere, the simulation or the operator's own file: tested where they are
		}
		t.Errorf("sledctl %s changes something, or is new: it is in no row of the kill matrix, nor among what changes nothing", strings.ReplaceAll(name, "-", " "))
	}
}

// tally counts what was run of the matrix.
type tally struct {
	mu       sync.Mutex
	run, all map[string]int // by mode
	sleds    []lattice.Row
}

// on counts a sled.
func (m *tally) on(r row) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.on != nil {
		m.sleds = append(m.sleds, *r.on)
	}
}

func (m *tally) add(mode string, run, all int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.run[mode] += run
	m.all[mode] += all
}

// print reports what was run, and its result on one line.
func (m *tally) print(t *testing.T) {
	run, all := 0, 0
	for _, mode := range modes() {
		t.Logf("%-55s %5d of %5d", mode.name, m.run[mode.name], m.all[mode.name])
		run, all = run+m.run[mode.name], all+m.all[mode.name]
	}
	if t.Failed() {
		t.Logf("%d cases of %d, and what is told above", run, all)
		return
	}
	table := lattice.Sleds()
	pairs, of := table.Explored(m.sleds, 2)
	line := fmt.Sprintf("kill matrix: %d cases, 0 leaks (%d verbs, %d ways, one in %.1f of all %d cases; on sleds with %d of %d pairs of the lattice)\n",
		run, len(rows()), len(modes()), float64(all)/float64(max(run, 1)), all, pairs, of)
	fmt.Print(line)
	if name := os.Getenv("SLEDCTL_KILL_MATRIX"); name != "" { // go test hides what a package prints that passes
		if err := os.WriteFile(name, []byte(line), 0o666); err != nil {
			t.Error(err)
		}
	}
}

func TestKillMatrix(t *testing.T) {
	count := &tally{run: map[string]int{}, all: map[string]int{}}
	t.Run("rows", func(t *testing.T) {
		for i, r := range dealt() {
			t.Run(r.name, func(t *testing.T) {
				if sledtest.Quick() && i%16 != 0 {
					t.Skip("one verb in sixteen, where a developer waits")
				}
				if sledtest.Raced && i%2 != 0 {
					t.Skip("every second verb, where the race detector watches: what runs side by side is in each")
				}
				t.Parallel()
				r.matrix(t, count)
			})
		}
	})
	count.print(t)
}

// matrix runs the cases of one verb, shared out over its sleds.
func (v dealtRow) matrix(t *testing.T, count *tally) {
	var stages []*stage
	for _, r := range v.sleds {
		files := t.TempDir()
		synctest.Test(t, func(t *testing.T) { stages = append(stages, r.stage(t, files)) })
		count.on(r)
	}
	var twin *stage
	if r := v.row; r.m2 == 0 && r.u2 == 0 && r.mode == "" { // where a copy of the ledger can be missing
		r.m2 = 2
		files := t.TempDir()
		synctest.Test(t, func(t *testing.T) { twin = r.stage(t, files) })
	}
	exits := map[string]map[int]int{}
	for m, mode := range modes() {
		g := stages[(m+len(v.name))%len(stages)]
		if mode.name == string(sledtest.Loses) {
			if g = twin; g == nil {
				continue
			}
		}
		exits[mode.name] = map[int]int{}
		t.Run(mode.name, func(t *testing.T) {
			run, points := 0, g.points[mode.of]
			if mode.name == "power cut" && g.noBoot {
				points = 0
			}
			for n := 1; n <= points; n++ {
				if !mode.takes(n, points, m+len(v.name)) {
					continue
				}
				run++
				synctest.Test(t, func(t *testing.T) { exits[mode.name][mode.disturb(g.open(t), n)]++ })
			}
			count.add(mode.name, run, points)
		})
	}
	for _, g := range stages {
		t.Logf("points: %v on %v", g.points, g.on)
	}
	t.Logf("exit codes by mode: %v", exits)
}

// keepLogs takes a bundle of the instance's zone.
func (s *scene) keepLogs() { s.Run(s.fill("zone bundle create ZONE")) }

// The places of the sled that only the sled itself knows the names of.
func (s *scene) fill(line string) string {
	zone, base := "", ""
	for _, z := range s.Zones() {
		switch {
		case slices.Contains(s.theirs, z): // some are called nearly as ours are
		case strings.HasPrefix(z, "propolis_instance_"):
			zone = z
		case strings.HasPrefix(z, "propolis_base_"):
			base = z
		}
	}
	id := ""
	if strings.Contains(line, "BUNDLE") {
		id = strings.TrimSpace(s.Run("zone bundle list -H --columns id"))
	}
	return strings.NewReplacer("ZONE", zone, "BASE", base, "BUNDLE", id, "PLAN", s.plan, "DOCUMENT", s.plan, "GUID", path.Base(s.plan)).Replace(line)
}

// disk does something to a disk.
func disk(s *sledtest.Operator, do func(*world.Tx, string) bool, name string) {
	s.T.Helper()
	err := s.World().Update(s.T.Context(), func(tx *world.Tx) error {
		if !do(tx, name) {
			return fmt.Errorf("there is no disk %s", name)
		}
		return nil
	})
	if err != nil {
		s.T.Fatal(err)
	}
}

// forget loses the ledger, and begins another.
func (s *scene) forget() {
	s.LoseLedger()
	s.Run("bootstrap --new-ledger")
	s.Run("bootstrap")
}

// exportAndForget loses all that was exported.
func (s *scene) exportAndForget() {
	s.plan = fmt.Sprint(s.files, "/export", s.m2, ".json")
	if err := os.WriteFile(s.plan, []byte(s.Run("ledger export")), 0o600); err != nil {
		s.T.Fatal(err)
	}
	s.forget()
}

// elsewhere has the machine run on the other sled, and describes it.
func (s *scene) elsewhere() {
	s.There.Run(sledtest.Web1)
	var i struct {
		ID    string
		VNICs []struct {
			Over, MAC string
			VLAN      int
		}
	}
	if err := json.Unmarshal([]byte(s.There.Run("instance get web1 -o json")), &i); err != nil {
		s.T.Fatal(err)
	}
	text, err := json.Marshal(map[string]any{"id": i.ID, "name": "web1", "cpus": 2, "memory": "2G", "nics": i.VNICs[1:]})
	if err != nil {
		s.T.Fatal(err)
	}
	s.plan = fmt.Sprint(s.files, "/document", s.m2, ".json")
	if err := os.WriteFile(s.plan, []byte(strings.NewReplacer("Over", "over", "MAC", "mac", "VLAN", "vlan").Replace(string(text))), 0o600); err != nil {
		s.T.Fatal(err)
	}
}

// scatter makes a zone, a configuration and a VNIC that only reap removes.
func (s *scene) scatter() {
	pool := s.Value("base list -H --columns pool")
	zone := s.Unrecorded(pool, s.Value("base list -H -o name"))
	s.Command("zoneadm -z " + zone + " halt")
	const lone = "propolis_instance_8c4a2b1e-6a57-4a5c-9d3e-000000000009"
	home := "/pool/ext/" + strings.TrimPrefix(pool, "oxp_") + "/crypt/zone/" + lone
	s.WriteFile("/etc/zones/"+lone+".xml", `<zone name="`+lone+`" zonepath="`+home+`" brand="sparse"/>`)
	s.Run("vnic create --over net1 --hold 1ns")
	time.Sleep(time.Second) // of the bubble: the hold ends
}

// scatterAndPlan also makes a plan that removes them.
func (s *scene) scatterAndPlan() {
	s.scatter()
	s.plan = fmt.Sprint(s.files, "/plan", s.m2, ".json")
	if err := os.WriteFile(s.plan, []byte(s.Run("reap --dry-run -o json")), 0o600); err != nil {
		s.T.Fatal(err)
	}
}

func (s *scene) noBase() { s.Run("base retire " + s.Value("base list -H -o name")) }

// noDisk takes a U.2 disk out.
func (s *scene) noDisk() { disk(s.Operator, zfs.LoseDisk, "c12t0d0") }

// aDisk puts it in again.
func (s *scene) aDisk() { disk(s.Operator, zfs.InsertDisk, "c12t0d0") }
