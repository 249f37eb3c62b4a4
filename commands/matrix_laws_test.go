package commands_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
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
//   - what was acknowledged is there when the state file is opened again: before
//     a host command changes something, its intent lies flushed in the state file.

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

// ledger is what the state file holds, as its lines say it; nil if there is none.
func (s *sled) ledger() map[string]string {
	s.t.Helper()
	for _, name := range s.copies() {
		data, err := host.ReadFile(s.Host().Files(), name)
		if err == nil {
			return factsOf(s.t, data)
		}
	}
	return nil
}

// copies are the names that copies of the state file have, or would have.
func (s *sled) copies() (names []string) {
	if s.laid != nil && s.laid.Ledger() != "" {
		return []string{s.laid.Ledger() + "/ledger.jsonl"}
	}
	pools, _ := s.Host().Files().ReadDir("/pool/int")
	for _, p := range pools {
		names = append(names, path.Join("/pool/int", p.Name, "config/sledctl/ledger.jsonl"))
	}
	return names
}

// factsOf reads the lines of a state file; one that is torn counts for nothing.
func factsOf(t testing.TB, data []byte) map[string]string {
	t.Helper()
	facts := map[string]string{}
	for line := range strings.Lines(string(data)) {
		var l struct {
			Facts []struct {
				Key   string
				Value json.RawMessage
			}
		}
		if !strings.HasSuffix(line, "\n") || json.Unmarshal([]byte(line), &l) != nil {
			continue
		}
		for _, f := range l.Facts {
			if facts[f.Key] = string(f.Value); facts[f.Key] == "null" || strings.HasPrefix(f.Key, "agent/") || strings.HasPrefix(f.Key, "tombstone/") {
				delete(facts, f.Key) // what an agent keeps for a day is nobody else's business
			}
		}
	}
	return facts
}

// settled is what there is, with the names that a run draws replaced: the world,
// the instances, and what is recorded.
func (s *scene) settled() string {
	s.t.Helper()
	s.settle()
	facts := s.ledger()
	var list struct{ Items []shown }
	if len(facts) > 0 {
		if err := json.Unmarshal([]byte(s.run("instance list -o json")), &list); err != nil {
			s.t.Fatal(err)
		}
	}
	names := anonymous(s.t, facts, list.Items)
	drawn := regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|propolis_base_[0-9a-f]{8}`)
	if s.name != "format" { // there a pool is named as it is drawn
		drawn = regexp.MustCompile(`$^`)
	}
	lines := sortedWorld(s.t, drawn.ReplaceAllString(names.Replace(s.world()), "UUID"))
	lines = inherited(lines)
	for _, i := range list.Items {
		lines = append(lines, fmt.Sprint(i.Name, " ", i.State, " ", i.Wanted, " ", i.CPUs, " ", i.Protected, " ", i.Address))
	}
	var keys []string
	for key := range facts {
		keys = append(keys, names.Replace(key+"\n"))
	}
	slices.Sort(keys)
	return drawn.ReplaceAllString(strings.Join(append(lines, keys...), "\n"), "UUID")
}

// inherited leaves out the MTU of the global zone's VNIC where its link has the
// same: a run that goes on does not set it once more, and a sled does not tell
// the two apart.
func inherited(lines []string) []string {
	const same = `,"properties":{"mtu":"1500"}`
	over := regexp.MustCompile(`^links .*"over":"([^"]+)","mac":"GZMAC"`)
	for i, line := range lines {
		m := over.FindStringSubmatch(line)
		if m == nil || slices.ContainsFunc(lines, func(l string) bool {
			return strings.HasPrefix(l, `links {"name":"`+m[1]+`"`) && strings.Contains(l, `"mtu":"9000"`)
		}) {
			continue
		}
		lines[i] = strings.Replace(line, same, "", 1)
	}
	return lines
}

// sortedWorld has one line for each thing: what is drawn has given them their order.
func sortedWorld(t testing.TB, text string) (lines []string) {
	t.Helper()
	var world map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &world); err != nil {
		t.Fatal(err)
	}
	for _, kind := range slices.Sorted(maps.Keys(world)) {
		var things []json.RawMessage
		if json.Unmarshal(world[kind], &things) != nil {
			continue
		}
		var all []string
		for _, thing := range things {
			var line bytes.Buffer
			if err := json.Compact(&line, thing); err != nil {
				t.Fatal(err)
			}
			all = append(all, kind+" "+line.String())
		}
		slices.Sort(all)
		lines = append(lines, all...)
	}
	return lines
}

// shown is what the tests read of an instance.
type shown struct {
	Name, State, Wanted, Address string
	CPUs                         int
	Protected                    bool
	PropolisID                   string `json:"propolis_id"`
	VNICs                        []struct{ Name, MAC string }
}

// anonymous replaces what differs from run to run: ids, and the names and
// addresses of VNICs.
func anonymous(t testing.TB, facts map[string]string, instances []shown) *strings.Replacer {
	t.Helper()
	var network struct {
		MAC string `json:"gz_mac"`
	}
	if text, ok := facts["network"]; ok {
		if err := json.Unmarshal([]byte(text), &network); err != nil {
			t.Fatal(err)
		}
	}
	var pairs []string
	if network.MAC != "" {
		pairs = append(pairs, network.MAC, "GZMAC", linkLocal(t, network.MAC), "GZLL")
	}
	for i, item := range instances {
		if item.PropolisID != "" {
			pairs = append(pairs, item.PropolisID, fmt.Sprint("PROPOLIS", i))
		}
		for n, v := range item.VNICs {
			name := fmt.Sprint("VNIC", i, n)
			pairs = append(pairs, v.MAC, fmt.Sprint("MAC", i, n), linkLocal(t, v.MAC), fmt.Sprint("LL", i, n), `"`+v.Name+`"`, `"`+name+`"`, v.Name+"/", name+"/", "/"+v.Name+"\n", "/"+name+"\n")
		}
	}
	for key := range facts {
		if mac, ok := strings.CutPrefix(key, "nic/"); ok { // of an instance that is stopped
			pairs = append(pairs, mac, "MAC")
		}
	}
	return strings.NewReplacer(pairs...)
}

// linkLocal is the address that an interface gets from its MAC (RFC 4291,
// appendix A).
func linkLocal(t testing.TB, mac string) string {
	t.Helper()
	m, err := net.ParseMAC(mac)
	if err != nil {
		t.Fatal(err)
	}
	return netip.AddrFrom16([16]byte{0: 0xfe, 0x80, 8: m[0] ^ 2, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]}).String()
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

// witnessing sees that what changes the host is written down, and flushed, before.
type witnessing struct {
	host.Host
	files *flushes
	scene *scene
}

func (s *scene) witness(h host.Host) *witnessing {
	w := &witnessing{Host: h, scene: s}
	w.files = newFlushes(h.Files())
	for _, name := range s.copies() {
		if info, err := h.Files().Stat(name); err == nil {
			w.files.sizes[name] = info.Size
		}
	}
	return w
}

// Files tells what of the state file was flushed.
func (w *witnessing) Files() host.Files { return w.files }

// law fails the test if a command changed the host that nothing had announced.
func (w *witnessing) law(t testing.TB, at string) {
	t.Helper()
	w.files.mu.Lock()
	defer w.files.mu.Unlock()
	for _, line := range w.files.unannounced {
		t.Errorf("%s: no intent was flushed before %s", at, line)
	}
}

// announced says whether an intent is open in what is flushed.
func (w *witnessing) announced() bool {
	for name, size := range w.files.flushed() {
		data, err := host.ReadFile(w.Host.Files(), name)
		if err != nil {
			continue
		}
		for key := range factsOf(w.scene.t, data[:min(int(size), len(data))]) {
			if strings.HasPrefix(key, "intent/") {
				return true
			}
		}
	}
	return len(w.scene.openBeforeLedger()) > 0
}

// Run is also the law that what changes something was announced. The witness of
// the state file itself is no business of an intent's.
func (w *witnessing) Run(ctx context.Context, c host.Command) (host.Result, error) {
	line := strings.Join(append([]string{c.Program}, c.Args...), " ")
	if !c.ReadOnly && !strings.Contains(line, "sledctl:ledger=") && !w.announced() {
		w.files.mu.Lock()
		w.files.unannounced = append(w.files.unannounced, line)
		w.files.mu.Unlock()
	}
	return w.Host.Run(ctx, c)
}

// flushes are files that remember how much of each was flushed.
type flushes struct {
	host.Files
	*flushing
}

type flushing struct {
	mu          sync.Mutex
	sizes       map[string]int64 // by name
	unannounced []string
}

func newFlushes(files host.Files) *flushes {
	return &flushes{files, &flushing{sizes: map[string]int64{}}}
}

// flushed are the copies of the state file, with how much of them is certain.
func (f *flushing) flushed() map[string]int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := map[string]int64{}
	for name, size := range f.sizes {
		if strings.HasSuffix(name, "/ledger.jsonl") {
			all[name] = size
		}
	}
	return all
}

func (f *flushes) certain(name string, size int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sizes[name] = size
}

func (f *flushes) Sync(name string) error {
	info, err := f.Files.Stat(name)
	if err == nil {
		err = f.Files.Sync(name)
	}
	if err == nil {
		f.certain(name, info.Size)
	}
	return err
}

func (f *flushes) Rename(from, to string) error {
	err := f.Files.Rename(from, to)
	if err == nil {
		f.mu.Lock()
		f.sizes[to] = f.sizes[from]
		f.mu.Unlock()
	}
	return err
}

func (f *flushes) Open(name string, flag int, perm fs.FileMode) (host.File, error) {
	file, err := f.Files.Open(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &flushingFile{file, f, name}, nil
}

type flushingFile struct {
	host.File
	files *flushes
	name  string
}

func (f *flushingFile) Sync() error {
	info, err := f.File.Stat()
	if err == nil {
		err = f.File.Sync()
	}
	if err == nil {
		f.files.certain(f.name, info.Size)
	}
	return err
}
