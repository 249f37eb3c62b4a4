package matrix

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/lattice"
	"github.com/sledctl/sledctl/test/sledtest"
)

// The laws, of whatever has befallen a verb:
//
//   - running it again leads to where it would have led;
//   - deleting and reaping then lead back to the first inventory;
//   - what is not sledctl's is as it was, at every moment;
//   - what was acknowledged is there when the ledger is opened again: before
//     a host command changes something, its intent lies flushed in the ledger.

// stage is where a verb begins, and where it leads when nothing goes wrong.
type stage struct {
	row
	line      string // the row's, with names
	saved     *sim.Sled
	other     *sim.Sled // nil: there is none
	at        time.Time
	files     string                 // a directory of this machine's
	plan      string                 // a file there
	theirs    []string               // the zones of others
	first     string                 // the world before anything of the case
	before    string                 // the world when the verb begins
	rested    string                 // and when all that takes its time has come to its end; empty: nothing does
	firstKeys []string               // of the ledger before anything of the case
	recorded  map[string]string      // in the ledger when the verb begins
	others    string                 // what is not sledctl's
	want      string                 // what the verb leads to
	end       string                 // and what delete and reap do then
	points    map[sledtest.Point]int // how many there are in the verb
	real      bool                   // its time is
}

// scene is the sled of one case.
type scene struct {
	*sledtest.Operator
	*stage
	agents *sledtest.Agent // nil: there is none
}

// stage makes the sled of a row, and runs its verb once undisturbed.
func (r row) stage(t *testing.T, files string) *stage {
	if r.config == "" && r.mode == "" {
		r.config = sledtest.TunedConfig
	}
	r = r.whole()
	g := &stage{row: r, files: files, line: r.line}
	var on *sledtest.Operator
	if r.on != nil {
		on = r.layout(t)
	} else {
		on = sledtest.New(t, sim.Options{Seed: 1, M2: max(r.m2, 1), U2: max(r.u2, 1), Blank: r.blank, Mode: r.mode}, r.config)
	}
	s := &scene{Operator: on, stage: g}
	if r.pair {
		s.Meet(sledtest.New(t, sledtest.Small(), sledtest.OtherNetwork()))
		s.There.Run("bootstrap")
	}
	s.begin()
	g.saved, g.at = s.Sled.Clone(), time.Now()
	if r.pair {
		g.other = s.There.Clone()
	}
	if r.on != nil && r.on.Is(lattice.Latencies) != lattice.None {
		idle := g.open(t)
		idle.settle()
		g.rested = idle.world()
	}
	s = g.open(t)
	witness := s.witness(s.Host())
	dying := host.Crash(witness, 0, host.CrashBefore)
	counting, looks, turns := &sledtest.Failing{Host: dying}, &sledtest.Stopping{}, 0
	looks.Host = counting
	stop := turnsOf(s.Operator, func(n int, _ string) { turns = n })
	if a := s.On(t.Context(), looks, s.line); a.Exit != 0 {
		t.Fatalf("sledctl %s: exit %d: %s", s.line, a.Exit, a.Errs)
	}
	stop()
	witness.law(t, "undisturbed")
	witness.needs(t)
	g.points = map[sledtest.Point]int{sledtest.AtChange: dying.Points(), look: looks.Count, turn: turns, once: 1}
	maps.Copy(g.points, counting.Count)
	for _, line := range r.then {
		s.Run(line)
	}
	g.want = s.settled()
	if !r.stays && !r.bare && s.world() == g.before && g.points[sledtest.AtCommand] > 0 {
		t.Errorf("sledctl %s changes nothing", s.line)
	}
	s.foreign("undisturbed")
	g.end = s.finish("undisturbed")
	if !r.stays && !r.bare {
		s.same(g.first, "undisturbed, after delete and reap")
	}
	return g
}

// whole is the row with what it does not say.
func (r row) whole() row {
	if r.ends == nil {
		r.ends = []string{"instance delete web1"}
	}
	if r.restart == nil && !r.bare {
		r.restart = []string{"bootstrap"}
	}
	return r
}

// world is what is on the sled, but for what a boot leaves unmounted: the roots
// of the bases, which nobody needs mounted.
func (s *scene) world() string {
	text := s.Operator.Comparable()
	if s.mode == world.Helios || s.Laid != nil { // where a link has that MTU by itself, it is not set again
		text = regexp.MustCompile(`,\s*"properties": {\s*"mtu": "9000"\s*}`).ReplaceAllString(text, "")
	}
	if s.Laid != nil && s.Laid.Is(lattice.Addresses) == lattice.DHCP {
		text = regexp.MustCompile(`"192\.168\.77\.[12]\d\d/24"`).ReplaceAllString(text, `"LEASE"`)
	}
	return regexp.MustCompile(`,\s*"mounted": "[^"]*/propolis_base_[^"/]*/root[^"]*"`).ReplaceAllString(lattice.Undrawn(text), "")
}

// same fails the test if the sled is not as it was.
func (s *scene) same(before, when string) {
	s.T.Helper()
	if now := s.world(); now != before {
		s.T.Fatalf("%s (-before +after):\n%s", when, cmp.Diff(strings.Split(before, "\n"), strings.Split(now, "\n")))
	}
}

// begin leads to where the verb begins.
func (s *scene) begin() {
	s.ground()
	s.lead()
}

// ground prepares the sled, on which others have something, too.
func (s *scene) ground() {
	if s.mode == world.Helios || s.Laid != nil && fromImages(*s.Laid) {
		foreigners(s.Operator, "ipkg")
	} else {
		foreigners(s.Operator, "sparse")
	}
	s.settle()
	s.theirs = s.Zones()
	if s.early != nil {
		s.early(s)
	}
	if strings.Contains(s.config, "/secrets") {
		s.Secrets(0)
	}
	switch {
	case s.blank:
		s.Run("bootstrap --format-blank")
	case !s.bare:
		s.Run("bootstrap")
		if s.Laid == nil {
			return
		}
		if line, _ := s.Laid.Import(); line != "" {
			s.Run(line)
		}
	}
}

// lead leads from there to where the verb begins.
func (s *scene) lead() {
	s.first, s.firstKeys = s.world(), slices.Sorted(maps.Keys(s.Ledger()))
	for _, line := range s.ready {
		if line != "REBOOT" {
			s.Run(line)
		} else {
			s.reboot()
		}
	}
	if s.prepare != nil {
		s.prepare(s)
	}
	s.before, s.recorded = s.world(), s.Ledger()
	s.others = foreignThings(s.Operator)
	s.stage.line = s.fill(s.row.line)
}

// open is the sled of one case.
func (g *stage) open(t *testing.T) *scene {
	s := &scene{Operator: &sledtest.Operator{Sled: g.saved.Clone(), T: t, Laid: g.on}, stage: g}
	t.Cleanup(s.Close)
	time.Sleep(time.Until(g.at)) // each bubble begins at the same time
	s.atWork()
	if g.other != nil {
		other := &sledtest.Operator{Sled: g.other.Clone(), T: t}
		t.Cleanup(other.Close)
		s.Meet(other)
	}
	return s
}

// foreigners are what others have on the sled. They stand in every world that
// is compared.
func foreigners(s *sledtest.Operator, brand string) {
	s.Command("zfs create -o mountpoint=/zones rpool/zones")
	s.Command("zfs create rpool/zones/db1")
	if err := s.Host().Files().Chmod("/zones/db1", 0o700); err != nil {
		s.T.Fatal(err)
	}
	s.Command("dladm create-vnic -l net1 -m 02:08:20:0d:0b:00 db0")
	s.Command("zonecfg -z db1 create -b ; set brand=" + brand + " ; set zonepath=/zones/db1 ; set autoboot=true ; set ip-type=exclusive ; add net ; set physical=db0 ; end")
	s.Command("zoneadm -z db1 install")
	s.Command("zoneadm -z db1 boot")
	s.WriteFile("/zones/db1/root/data", "precious")
}

// foreignThings returns what is foreign on the sled.
func foreignThings(s *sledtest.Operator) string {
	s.T.Helper()
	var seen sim.Snapshot
	if err := json.Unmarshal([]byte(s.Comparable()), &seen); err != nil {
		s.T.Fatal(err)
	}
	var all []any
	for _, z := range seen.Zones {
		if z.Name == "db1" {
			all = append(all, z)
		}
	}
	for _, l := range seen.Links {
		if l.Name == "db0" || l.Class == "phys" {
			all = append(all, l)
		}
	}
	for _, d := range seen.Datasets {
		if strings.HasPrefix(d.Name, "rpool/sledctl_image_") || strings.HasPrefix(d.Name, "rpool/volume_") && d.Type == "snapshot" {
			continue // an image, and snapshots
		}
		if strings.HasPrefix(d.Name, "rpool") && d.Local["sledctl:volume"] == "" && (s.Laid == nil || !strings.HasPrefix(d.Name+"/", "rpool/zone/")) {
			delete(d.Local, "sledctl:ledger") // the witness, on every pool
			all = append(all, d)
		}
	}
	data, err := host.ReadFile(s.Host().Files(), "/zones/db1/root/data")
	if s.Laid != nil {
		others, err := s.Laid.Foreign(s.T.Context(), s.Sled)
		if err != nil {
			s.T.Fatal(err)
		}
		all = append(all, others)
	}
	text, err := json.MarshalIndent(append(all, string(data), fmt.Sprint(err)), "", "\t")
	if err != nil {
		s.T.Fatal(err)
	}
	return lattice.Undrawn(string(text))
}

// foreign is the law about what is not sledctl's.
func (s *scene) foreign(at string) {
	s.T.Helper()
	if now := foreignThings(s.Operator); now != s.others {
		s.T.Errorf("%s: what is not sledctl's (-before +now):\n%s", at, cmp.Diff(strings.Split(s.others, "\n"), strings.Split(now, "\n")))
	}
}

// closed sees that no intent is open.
func (s *scene) closed(at string) {
	s.T.Helper()
	for key := range s.Ledger() {
		if strings.HasPrefix(key, "intent/") {
			s.T.Errorf("%s: %s is still open", at, key)
		}
	}
	s.secret(at)
	if open := openBeforeLedger(s.Operator); len(open) > 0 {
		s.T.Errorf("%s: intents are open below %s: %q", at, sledtest.RunDir, open)
	}
}

// openBeforeLedger are the intents of what was begun before there was a ledger.
func openBeforeLedger(s *sledtest.Operator) (names []string) {
	infos, err := s.Host().Files().ReadDir(sledtest.RunDir + "/intent")
	if err != nil {
		return nil
	}
	for _, i := range infos {
		names = append(names, i.Name)
	}
	return names
}

// named is the law that no configuration is left of a zone that no index names.
func (s *scene) named(at string) {
	s.T.Helper()
	infos, err := s.Host().Files().ReadDir("/etc/zones")
	if err != nil {
		s.T.Fatal(err)
	}
	zones := s.Zones()
	for _, i := range infos {
		name, ok := strings.CutSuffix(i.Name, ".xml")
		if ok && strings.HasPrefix(name, "propolis_") && !slices.Contains(zones, name) {
			s.T.Errorf("%s: the configuration of %s is left, which no index names", at, name)
		}
	}
}
