package commands_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/sledtest"
	"github.com/sledctl/sledctl/vnic"
	"github.com/sledctl/sledctl/zone"
)

// What --explain prints is what the run then does: for every action, each
// command, file and request that changes something, in order and word by word,
// as the run's own trace tells; and nothing that changes something happens
// outside an action.

// explainedAction is an action as --explain -o json prints it.
type explainedAction struct {
	Verb     string
	Object   string
	Commands []string
}

func (a explainedAction) key() string {
	return a.Verb + " " + a.Object + "\n" + strings.Join(a.Commands, "\n")
}

// explains dry-runs a command line, runs it, and compares. It gives the number
// of the lines that were compared. Words are what both runs draw their ids
// from.
func explains(s *sledtest.Operator, line string) int {
	s.T.Helper()
	seed := fmt.Sprint(line, len(traces(s)))
	s.Draws = repeatable(seed)
	var explained struct{ Items []explainedAction }
	if err := json.Unmarshal([]byte(s.Run(line+" --explain -o json")), &explained); err != nil {
		s.T.Fatal(err)
	}
	s.Draws = repeatable(seed)
	defer func() { s.Draws = nil }()
	r := traced(s, line)
	if r.Exit != 0 {
		s.T.Fatalf("sledctl %s: exit %d: %s", line, r.Exit, r.Errs)
	}
	compare(s, line, explained.Items, r)
	n := changes(s, line, r)
	if n == 0 {
		s.T.Errorf("sledctl %s changed nothing: nothing was compared", line)
	}
	return n
}

// tracedRun is a run with all that it did.
type tracedRun struct {
	sledtest.Answer
	actions map[string]plan.Action // that were done, by id
	traces  []operation.Trace      // that it kept
	events  []host.Event           // that passed the host
}

func traced(s *sledtest.Operator, line string) tracedRun {
	s.T.Helper()
	before := map[string]bool{}
	for _, head := range traces(s) {
		before[head.ID] = true
	}
	r := tracedRun{actions: map[string]plan.Action{}}
	var mu sync.Mutex
	h := host.Trace(s.Host(), func(e host.Event) {
		mu.Lock()
		defer mu.Unlock()
		r.events = append(r.events, e)
	})
	s.OnEvent = func(e plan.Event) {
		if e.Kind == plan.Finished {
			r.actions[e.Action.ID] = e.Action
		}
	}
	r.Answer = s.On(s.T.Context(), h, line)
	s.OnEvent = nil
	for _, head := range traces(s) {
		if before[head.ID] {
			continue
		}
		trace, err := operation.ReadTrace(s.Host().Files(), sledtest.RunDir, head.ID)
		if err != nil {
			s.T.Fatal(err)
		}
		r.traces = append(r.traces, trace)
	}
	return r
}

func traces(s *sledtest.Operator) []operation.TraceHead {
	s.T.Helper()
	heads, err := operation.TraceList(s.Host().Files(), sledtest.RunDir)
	if err != nil {
		s.T.Fatal(err)
	}
	return heads
}

// compare holds what was printed against the actions that were done, and each
// of them against its part of the trace.
func compare(s *sledtest.Operator, line string, explained []explainedAction, r tracedRun) {
	s.T.Helper()
	var said, done []string
	drawn := r.drawn()
	for _, a := range explained {
		said = append(said, drawn.Replace(a.key()))
	}
	inTrace := map[string][]string{}
	for _, t := range r.traces {
		for _, e := range t.Events {
			if e.Line.Mutates() {
				inTrace[e.Action] = append(inTrace[e.Action], e.Line.Text)
			}
		}
	}
	for _, a := range r.actions {
		shown := explainedAction{Verb: a.Step.Verb(), Object: a.Object}
		var changes []string
		for _, l := range a.Step.Explain() {
			shown.Commands = append(shown.Commands, l.Text)
			if l.Mutates() {
				changes = append(changes, l.Short().Text)
			}
		}
		done = append(done, shown.key())
		if diff := cmp.Diff(changes, inTrace[a.ID]); diff != "" {
			s.T.Errorf("sledctl %s: %s (-explained +trace):\n%s", line, a.ID, diff)
		}
		delete(inTrace, a.ID)
		needs(s, line, a, r)
	}
	slices.Sort(said)
	slices.Sort(done)
	if diff := cmp.Diff(said, done); diff != "" {
		s.T.Errorf("sledctl %s (-explained +done):\n%s", line, diff)
	}
	if len(inTrace) > 0 {
		s.T.Errorf("sledctl %s: the trace has what belongs to no action: %v", line, inTrace)
	}
}

// drawn puts in what the run has drawn, where a dry run only says that it would.
func (r tracedRun) drawn() *strings.Replacer {
	var pairs []string
	for _, id := range slices.Sorted(maps.Keys(r.actions)) {
		switch step := r.actions[id].Step.(type) {
		case zone.Configure:
			if id := step.Name[max(0, len(step.Name)-36):]; uuid.Validate(id) == nil { // no base
				pairs = append(pairs, "ZONE-UUID", id, "SPARE0-UUID", id)
			}
		case vnic.Create:
			if r.actions[id].Why == "control VNIC" {
				pairs = append(pairs, "CONTROL-MAC", step.MAC)
			} else {
				pairs = append(pairs, fmt.Sprintf("NIC%d-MAC", strings.Count(strings.Join(pairs, " "), "NIC")), step.MAC)
			}
		}
	}
	return strings.NewReplacer(pairs...)
}

// changes sees that nothing was changed outside an action but sledctl's own
// files, and counts the changes within.
func changes(s *sledtest.Operator, line string, r tracedRun) (n int) {
	s.T.Helper()
	for _, e := range r.events {
		if !e.Line.Mutates() {
			continue
		}
		if e.Action != "" {
			n++
			continue
		}
		words := strings.Fields(e.Line.Text)
		own := slices.ContainsFunc(words, func(w string) bool {
			ledger, _ := path.Match("/pool/int/*/config/sledctl*", w)
			return strings.HasPrefix(w, sledtest.RunDir) || ledger || strings.HasPrefix(w, path.Dir(w)+"/ledger.jsonl")
		})
		witness := strings.HasPrefix(e.Line.Text, "zfs set sledctl:ledger=") // as the ledger itself
		if !witness && (e.Line.Kind != host.LineFile || !own) {
			s.T.Errorf("sledctl %s: changed outside any action: %s", line, e.Line.Text)
		}
	}
	return n
}

// story is a way to describe one instance.
type story struct {
	config string // instead of the simulated sled's
	flags  string
	image  bool // zones are installed from images
}

func stories() map[string]story {
	const net = "[storage]\nslots = \"gimlet\"\nkey = \"development\"\n[network]\netherstub = \"propolis_stub0\"\ngz_vnic = \"propolis_gz0\"\nguest_link = \"net0\"\n"
	return map[string]story{
		"static": {flags: ""},
		"dhcp":   {flags: "--nic over=net1", config: "[storage]\nslots = \"gimlet\"\nkey = \"development\"\n[network]\ncontrol_link = \"net0\"\n"},
		"disks":  {flags: "--disk rpool/volumes/web1 --disk /data/web1.img --disk /data/cd.iso,readonly"},
		"nics":   {flags: "--nic over=net0,mac=02:08:20:11:22:33 --nic over=net1,vlan=100"},
		"mtu":    {flags: "--nic over=net0", config: net + "gz_address = \"10.77.0.1/16\"\nunderlay = \"10.77.0.0/16\"\nmtu = 1500\n"},
		"gateway": {flags: "--nic over=propolis_stub0", config: net +
			"gz_address = \"10.77.0.1/16\"\nunderlay = \"10.77.0.0/16\"\ngateway = \"10.77.0.1\"\n"},
		"image": {flags: "--nic over=net0 --disk rpool/volumes/web1 --disk /data/cd.iso,readonly", image: true},
		"ipv6": {flags: "--address fd00:1122:3344:101::17/64,gateway=fd00:1122:3344:101::1", config: net +
			"gz_address = \"fd00:1122:3344:101::1/64\"\nunderlay = \"fd00:1122:3344:101::/64\"\n"},
	}
}

func TestExplainIsWhatTheTraceShows(t *testing.T) {
	t.Parallel()
	for at, name := range slices.Sorted(maps.Keys(stories())) {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && at > 1 {
				t.Skip(unraced)
			}
			synctest.Test(t, func(t *testing.T) { explainStory(t, stories()[name]) })
		})
	}
}

func explainStory(t *testing.T, story story) {
	options := sledtest.Small()
	if story.image {
		options = helios()
	}
	s := sledtest.New(t, options, story.config)
	disks(s)
	n := explainsStorage(s)
	say := func(lines ...string) {
		for _, line := range lines {
			n += explains(s, line)
		}
	}
	say("bootstrap")
	for _, step := range []string{"vnic create", "zone create", "zone boot", "zone address", "propolis start", "propolis ensure", "propolis run"} {
		if story.image && (step == "zone address" || step == "propolis start") {
			s.Run(step + " --instance web1") // waits at most: the zone's own service does that
			continue
		}
		say(step + " --instance web1 " + story.flags)
	}
	say(
		"propolis reboot --instance web1", "propolis stop --instance web1", "instance ensure web1", "instance reboot web1", "instance stop web1", "instance start web1",
		"instance ensure web1 --cpus 4 --recreate", "instance delete web1",
		"instance ensure web1 "+story.flags,
	)
	say("zone halt "+s.Value("instance get web1 -H --columns zone"), "instance ensure web1", "instance delete web1")
	explainsTheRest(s, say, story.image)
	if story.image {
		explainsImages(s, say)
	} else {
		explainsBases(s, say)
	}
	say("instance ensure web1", "instance delete web1")
	t.Logf("%d changes were explained", n)
}

// disks makes what the stories use as disks.
func disks(s *sledtest.Operator) {
	s.Command("zfs create rpool/volumes")
	s.Command("zfs create -V 1G rpool/volumes/web1")
	s.WriteFile("/data/web1.img", "disk")
	s.WriteFile("/data/cd.iso", "disk")
}

// explainsStorage lets a first bootstrap end right after its storage: a dry run
// sees no further, since what follows is written on what it makes.
func explainsStorage(s *sledtest.Operator) int {
	s.T.Helper()
	var explained struct{ Items []explainedAction }
	if err := json.Unmarshal([]byte(s.Run("bootstrap --explain -o json")), &explained); err != nil {
		s.T.Fatal(err)
	}
	s.Arm(world.Fault{Name: world.FaultFail, Match: "dladm show-link", Times: 1, Exit: 1, Text: "dladm: no"})
	r := traced(s, "bootstrap")
	if r.Exit == 0 || len(r.actions) == 0 {
		s.T.Fatalf("bootstrap: exit %d after %d actions: %s", r.Exit, len(r.actions), r.Errs)
	}
	compare(s, "bootstrap", explained.Items, r)
	return changes(s, "bootstrap", r)
}

// explainsTheRest is about what no instance needs.
func explainsTheRest(s *sledtest.Operator, say func(...string), image bool) {
	say("vnic create vnic_propolis7 --over net1 --vlan 7", "vnic delete vnic_propolis7")

	// What a reboot leaves, and a VNIC that nobody took.
	s.Run("instance ensure web1 --nic over=net0")
	s.Run("instance ensure web2")
	tampered := s.Value("instance get web2 -H --columns zone")
	if err := s.Reboot(s.T.Context()); err != nil {
		s.T.Fatal(err)
	}
	if image { // of its RAM disk nothing is left, and no pool is imported
		s.WriteFile("/etc/sledctl/config.toml", cli.SimulatedConfig(world.Helios))
		s.Run("bootstrap")
	} else {
		s.Command("zonecfg -z " + tampered + " set bootargs=-v")
	}
	s.Run("vnic create --over net1 --hold 1ns")
	time.Sleep(time.Second) // of the bubble: the hold ends
	say("reap")
	s.Run("bootstrap")
	if rolls := strings.Contains(s.Run("instance ensure web1 --explain"), "zfs rollback"); rolls == image {
		s.T.Errorf("the zone is rolled back, which needs one that was cloned: %v", rolls)
	}
	say("instance ensure web1")
	s.Run("instance delete web1 web2")
}

// explainsImages is about what an uninstall leaves: a brand that installs images
// does not destroy the zonepath's dataset.
func explainsImages(s *sledtest.Operator, say func(...string)) {
	s.T.Helper()
	s.Run("instance ensure web1")
	zone := s.Value("instance get web1 -H --columns zone")
	s.Command("zoneadm -z " + zone + " halt")
	s.Command("zoneadm -z " + zone + " uninstall -F")
	s.Command("zonecfg -z " + zone + " delete -F")
	say("instance stop web1", "instance start web1", "instance delete web1")
}

func explainsBases(s *sledtest.Operator, say func(...string)) {
	// A zone that the ledger does not know.
	base := s.Value("base list -H -o name")
	pool := s.Value("base list -H --columns pool")
	zone := s.Unrecorded(pool, base)
	say("zone delete " + zone)

	say("base retire "+base, "base ensure")
	s.Run("base retire " + s.Value("base list -H -o name"))
}
