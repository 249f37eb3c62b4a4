package commands_test

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
	files     string            // a directory of this machine's
	plan      string            // a file there
	theirs    []string          // the zones of others
	first     string            // the world before anything of the case
	before    string            // the world when the verb begins
	rested    string            // and when all that takes its time has come to its end; empty: nothing does
	firstKeys []string          // of the ledger before anything of the case
	recorded  map[string]string // in the ledger when the verb begins
	others    string            // what is not sledctl's
	want      string            // what the verb leads to
	end       string            // and what delete and reap do then
	points    map[point]int     // how many there are in the verb
	real      bool              // its time is
}

// scene is the sled of one case.
type scene struct {
	*sled
	*stage
	agents *agentOf // nil: there is none
}

// stage makes the sled of a row, and runs its verb once undisturbed.
func (r row) stage(t *testing.T, files string) *stage {
	if r.config == "" && r.mode == "" {
		r.config = tuned
	}
	r = r.whole()
	g := &stage{row: r, files: files, line: r.line}
	var on *sled
	if r.on != nil {
		on = r.layout(t)
	} else {
		on = newSled(t, sim.Options{Seed: 1, M2: max(r.m2, 1), U2: max(r.u2, 1), Blank: r.blank, Mode: r.mode}, r.config)
	}
	s := &scene{sled: on, stage: g}
	if r.pair {
		s.meet(newSled(t, small(), otherNetwork()))
		s.there.run("bootstrap")
	}
	s.begin()
	g.saved, g.at = s.Sled.Clone(), time.Now()
	if r.pair {
		g.other = s.there.Clone()
	}
	if r.on != nil && r.on.Is(lattice.Latencies) != lattice.None {
		idle := g.open(t)
		idle.settle()
		g.rested = idle.world()
	}
	s = g.open(t)
	witness := s.witness(s.Host())
	dying := host.Crash(witness, 0, host.CrashBefore)
	counting, looks, turns := &failing{Host: dying}, &stopping{}, 0
	looks.Host = counting
	stop := s.turns(func(n int, _ string) { turns = n })
	if a := s.on(t.Context(), looks, s.line); a.exit != 0 {
		t.Fatalf("sledctl %s: exit %d: %s", s.line, a.exit, a.errs)
	}
	stop()
	witness.law(t, "undisturbed")
	g.points = map[point]int{change: dying.Points(), look: looks.count, turn: turns, once: 1}
	maps.Copy(g.points, counting.count)
	for _, line := range r.then {
		s.run(line)
	}
	g.want = s.settled()
	if !r.stays && !r.bare && s.world() == g.before && g.points[command] > 0 {
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
	text := s.sled.world()
	if s.mode == world.Helios || s.laid != nil { // where a link has that MTU by itself, it is not set again
		text = regexp.MustCompile(`,\s*"properties": {\s*"mtu": "9000"\s*}`).ReplaceAllString(text, "")
	}
	if s.laid != nil && s.laid.Is(lattice.Addresses) == lattice.DHCP {
		text = regexp.MustCompile(`"192\.168\.77\.[12]\d\d/24"`).ReplaceAllString(text, `"LEASE"`)
	}
	return regexp.MustCompile(`,\s*"mounted": "[^"]*/propolis_base_[^"/]*/root[^"]*"`).ReplaceAllString(lattice.Undrawn(text), "")
}

// same fails the test if the sled is not as it was.
func (s *scene) same(before, when string) {
	s.t.Helper()
	if now := s.world(); now != before {
		s.t.Fatalf("%s (-before +after):\n%s", when, cmp.Diff(strings.Split(before, "\n"), strings.Split(now, "\n")))
	}
}

// begin leads to where the verb begins.
func (s *scene) begin() {
	s.ground()
	s.lead()
}

// ground prepares the sled, on which others have something, too.
func (s *scene) ground() {
	if s.mode == world.Helios || s.laid != nil && fromImages(*s.laid) {
		s.foreigners("ipkg")
	} else {
		s.foreigners("sparse")
	}
	s.settle()
	s.theirs = s.zones()
	if s.early != nil {
		s.early(s)
	}
	if strings.Contains(s.config, "/secrets") {
		s.secrets(0)
	}
	switch {
	case s.blank:
		s.run("bootstrap --format-blank")
	case !s.bare:
		s.run("bootstrap")
	}
}

// lead leads from there to where the verb begins.
func (s *scene) lead() {
	s.first, s.firstKeys = s.world(), slices.Sorted(maps.Keys(s.ledger()))
	for _, line := range s.ready {
		if line != "REBOOT" {
			s.run(line)
		} else {
			s.reboot()
		}
	}
	if s.prepare != nil {
		s.prepare(s)
	}
	s.before, s.recorded = s.world(), s.ledger()
	s.others = s.foreignThings()
	s.stage.line = s.fill(s.row.line)
}

// open is the sled of one case.
func (g *stage) open(t *testing.T) *scene {
	s := &scene{sled: &sled{Sled: g.saved.Clone(), t: t, laid: g.on}, stage: g}
	t.Cleanup(s.Close)
	time.Sleep(time.Until(g.at)) // each bubble begins at the same time
	s.atWork()
	if g.other != nil {
		other := &sled{Sled: g.other.Clone(), t: t}
		t.Cleanup(other.Close)
		s.meet(other)
	}
	return s
}

// meet connects the sled with another one.
func (s *sled) meet(other *sled) {
	s.t.Helper()
	if err := sim.Connect(s.t.Context(), s.Sled, other.Sled); err != nil {
		s.t.Fatal(err)
	}
	s.there, other.there = other, s
}

// foreigners are what others have on the sled. They stand in every world that
// is compared.
func (s *sled) foreigners(brand string) {
	s.command("zfs create -o mountpoint=/zones rpool/zones")
	s.command("zfs create rpool/zones/db1")
	if err := s.Host().Files().Chmod("/zones/db1", 0o700); err != nil {
		s.t.Fatal(err)
	}
	s.command("dladm create-vnic -l net1 -m 02:08:20:0d:0b:00 db0")
	s.command("zonecfg -z db1 create -b ; set brand=" + brand + " ; set zonepath=/zones/db1 ; set autoboot=true ; set ip-type=exclusive ; add net ; set physical=db0 ; end")
	s.command("zoneadm -z db1 install")
	s.command("zoneadm -z db1 boot")
	s.write("/zones/db1/root/data", "precious")
}

// foreignThings tells of what is not sledctl's.
func (s *sled) foreignThings() string {
	s.t.Helper()
	var seen sim.Snapshot
	if err := json.Unmarshal([]byte(s.world()), &seen); err != nil {
		s.t.Fatal(err)
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
		if strings.HasPrefix(d.Name, "rpool") && (s.laid == nil || !strings.HasPrefix(d.Name+"/", "rpool/zone/")) {
			delete(d.Local, "sledctl:ledger") // the witness, on every pool
			all = append(all, d)
		}
	}
	data, err := host.ReadFile(s.Host().Files(), "/zones/db1/root/data")
	if s.laid != nil {
		others, err := s.laid.Foreign(s.t.Context(), s.Sled)
		if err != nil {
			s.t.Fatal(err)
		}
		all = append(all, others)
	}
	text, err := json.MarshalIndent(append(all, string(data), fmt.Sprint(err)), "", "\t")
	if err != nil {
		s.t.Fatal(err)
	}
	return lattice.Undrawn(string(text))
}

// foreign is the law about what is not sledctl's.
func (s *scene) foreign(at string) {
	s.t.Helper()
	if now := s.foreignThings(); now != s.others {
		s.t.Errorf("%s: what is not sledctl's (-before +now):\n%s", at, cmp.Diff(strings.Split(s.others, "\n"), strings.Split(now, "\n")))
	}
}

// closed sees that no intent is open.
func (s *scene) closed(at string) {
	s.t.Helper()
	for key := range s.ledger() {
		if strings.HasPrefix(key, "intent/") {
			s.t.Errorf("%s: %s is still open", at, key)
		}
	}
	s.secret(at)
	if open := s.openBeforeLedger(); len(open) > 0 {
		s.t.Errorf("%s: intents are open below %s: %q", at, runDir, open)
	}
}

// openBeforeLedger are the intents of what was begun before there was a ledger.
func (s *sled) openBeforeLedger() (names []string) {
	infos, err := s.Host().Files().ReadDir(runDir + "/intent")
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
	s.t.Helper()
	infos, err := s.Host().Files().ReadDir("/etc/zones")
	if err != nil {
		s.t.Fatal(err)
	}
	zones := s.zones()
	for _, i := range infos {
		name, ok := strings.CutSuffix(i.Name, ".xml")
		if ok && strings.HasPrefix(name, "propolis_") && !slices.Contains(zones, name) {
			s.t.Errorf("%s: the configuration of %s is left, which no index names", at, name)
		}
	}
}
