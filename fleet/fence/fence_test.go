package fence

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// worlds are what the rule is held to, policy by policy. A restore is explored with few
// ticks, as it needs three sleds.
func worlds() map[string]world {
	return map[string]world{
		"hold":                    {policy: Hold, sleds: 3, kills: 1, maxGen: 3},
		"power":                   {policy: Power, sleds: 2, kills: 1, maxGen: 3},
		"power, late":             {policy: Power, sleds: 2, kills: 1, maxGen: 3, late: 1},
		"power, placed":           {policy: Power, sleds: 2, maxGen: 3, late: 1, placed: true},
		"power, moving":           {policy: Power, sleds: 2, maxGen: 3, late: 1, moves: true},
		"hold, lost":              {policy: Hold, sleds: 3, kills: 1, maxGen: 3, lost: 1},
		"hold, moving, lost":      {policy: Hold, sleds: 3, maxGen: 3, moves: true, lost: 1},
		"storage":                 {policy: Storage, sleds: 2, kills: 1, maxGen: 3},
		"storage, placed":         {policy: Storage, sleds: 2, maxGen: 3, placed: true},
		"storage, local":          {policy: Storage, sleds: 2, maxGen: 3, local: true},
		"storage, edited":         {policy: Storage, sleds: 3, maxGen: 3, edits: 1},
		"storage, moving":         {policy: Storage, sleds: 2, kills: 1, maxGen: 3, moves: true},
		"storage, edited, moving": {policy: Storage, sleds: 2, maxGen: 3, edits: 1, moves: true},
		"lease":                   {policy: Lease, sleds: 2, kills: 1, maxGen: 2},
		"lease, placed":           {policy: Lease, sleds: 2, maxGen: 3, placed: true},
		"hold, restored":          {policy: Hold, sleds: 3, ticks: 2, restores: 1, early: true, maxGen: 3},
		"hold, moving":            {policy: Hold, sleds: 3, kills: 1, maxGen: 4, moves: true},
		"lease, moving":           {policy: Lease, sleds: 2, maxGen: 3, moves: true, moving: true},
		"hold, moving, restored":  {policy: Hold, sleds: 3, ticks: 2, restores: 1, early: true, maxGen: 3, moves: true, moving: true},
		"hold, new leader":        {policy: Hold, sleds: 3, ticks: 1, kills: 1, restores: 1, early: true, maxGen: 2},
	}
}

// most bounds what is explored.
const most = 3_000_000

func TestNoVMRunsTwice(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(worlds())) {
		t.Run(name, func(t *testing.T) {
			w := worlds()[name]
			w.rules = sound()
			start := time.Now()
			found, err := w.explore(most)
			if err != nil {
				t.Fatal(err)
			}
			if found.story != "" {
				t.Fatalf("two copies:\n%s", found.story)
			}
			if found.most < 2 {
				t.Fatalf("no second generation was started in %d states: nothing was explored", found.states)
			}
			t.Logf("%d states in %v, up to generation %d", found.states, time.Since(start).Round(time.Millisecond), found.most)
		})
	}
}

// A rule, node or guard with a defect is found, in the world that is named: two copies can write, or
// no later generation ever can.
func TestADefectIsFound(t *testing.T) {
	for name, mutant := range mutants() {
		t.Run(name, func(t *testing.T) {
			w := worlds()[mutant.world]
			w.rules = sound()
			mutant.plant(&w.rules)
			found, err := w.explore(most)
			if err != nil {
				t.Fatal(err)
			}
			if found.story == "" && found.most >= 2 {
				t.Fatalf("not found in %d states", found.states)
			}
			if os.Getenv("SLEDCTL_STORIES") != "" {
				t.Logf("found in %d states:\n%s", found.states, found.story)
			}
		})
	}
}

type mutant struct {
	world string
	plant func(*rules)
}

func mutants() map[string]mutant {
	decide := func(change func(*Run, *Evidence)) func(*rules) {
		return func(r *rules) {
			r.decide = func(run Run, e Evidence) Verdict {
				change(&run, &e)
				return Decide(run, e)
			}
		}
	}
	return map[string]mutant{
		"silence proves an end under hold":          {"hold", decide(func(_ *Run, e *Evidence) { e.Confirmed = 9 })},
		"the end of an earlier generation":          {"hold", decide(func(run *Run, e *Evidence) { run.Generation = min(run.Generation, max(1, e.Confirmed)) })},
		"a generation is started twice":             {"hold", func(r *rules) { r.refuse = false }},
		"a raise that compares nothing":             {"hold", func(r *rules) { r.swap = false }},
		"any BMC will do":                           {"power", func(r *rules) { r.anyOff = true }},
		"a BMC is asked too early":                  {"power", func(r *rules) { r.early = true }},
		"a BMC that was asked has done it":          {"power, late", func(r *rules) { r.asked = true }},
		"the first answer is enough":                {"power, late", decide(func(run *Run, e *Evidence) { e.OffFor = run.Terms.Settle })},
		"time between answers is not counted":       {"power, late", func(r *rules) { r.off = settled }},
		"a BMC that does not answer is of no sled":  {"power", func(r *rules) { r.deaf = true }},
		"off is off for the next generation, too":   {"power", func(r *rules) { r.keepOff = true }},
		"a sled that was off starts it again":       {"power", func(r *rules) { r.refuse = false }},
		"a claim is not revoked before a power cut": {"power, placed", func(r *rules) { r.early = true; decide(func(_ *Run, e *Evidence) { e.Revoked = true })(r) }},
		"a target is off before it is empty":        {"power, moving", func(r *rules) { r.early, r.before = true, true }},
		"the BMC of the source is asked":            {"power, moving", func(r *rules) { r.anyOff = true }},
		"a silent sled is stated to be lost":        {"hold, lost", func(r *rules) { r.hasty = true }},
		"a silent target is stated to be lost":      {"hold, moving, lost", func(r *rules) { r.hasty = true }},
		"a lost target has taken the VM along":      {"hold, moving, lost", func(r *rules) { r.along = true }},
		"a statement is about any sled":             {"hold, lost", func(r *rules) { r.anyLost = true }},
		"the generation of volumes is not raised":   {"storage", func(r *rules) { r.opens = func(int8) int8 { return 1 } }},
		"downstairs compare no generations":         {"storage", func(r *rules) { r.careless = true }},
		"a VM with a volume on its sled is moved":   {"storage, local", decide(func(run *Run, _ *Evidence) { run.Local = false })},
		"other volumes are opened":                  {"storage, edited", func(r *rules) { r.missing = nothing }},
		"volumes are changed once it is decided":    {"storage, edited", func(r *rules) { r.unkept = true }},
		"a target that was given up may not write":  {"storage, edited, moving", func(r *rules) { r.forgiven = true }},
		"only the last generation may still write":  {"storage, edited", func(r *rules) { r.kept = true }},
		"no guard":                                 {"lease", func(r *rules) { r.guarded = false }},
		"the fence only is waited for":             {"lease", decide(func(_ *Run, e *Evidence) { e.Silent += haltTicks + marginTicks })},
		"time counts that nothing was read in":     {"lease", func(r *rules) { r.recount = true }},
		"a target's silence is enough":             {"lease, moving", func(r *rules) { r.coming = silenceIsEnough }},
		"what leaves its source has ended":         {"hold, moving", func(r *rules) { r.unmoved = true }},
		"what is registered to come has come":      {"hold, moving", func(r *rules) { r.asArrived = true }},
		"what is on its way has not come":          {"hold, moving", func(r *rules) { r.asStayed = true }},
		"a claim that comes is kept over a census": {"hold, moving, restored", func(r *rules) { r.keepClaims = true }},
		"what comes is found as what runs":         {"hold, moving, restored", func(r *rules) { r.asArrived = true }},
		"silence before the VM has left counts":    {"lease, moving", func(r *rules) { r.before = true }},

		"a renewal starts no new count":              {"lease", func(r *rules) { r.read = sameRenewal }},
		"a cache is read":                            {"lease", func(r *rules) { r.stale = true }},
		"the guard goes by the wall clock":           {"lease", func(r *rules) { r.jump = true }},
		"a VM is started under a lease that is over": {"lease, placed", func(r *rules) { r.startLate = true }},
		"a claim from before a census is started":    {"hold, restored", func(r *rules) { r.keepClaims = true }},
		"a claim is not revoked":                     {"lease, placed", decide(func(_ *Run, e *Evidence) { e.Revoked = true })},
		"silence before a revocation counts":         {"lease, placed", func(r *rules) { r.before = true }},
		"a claim is started that was read long ago":  {"lease, placed", func(r *rules) { r.old = true }},
		"a restarted guard counts again":             {"lease", func(r *rules) { r.forget = true }},
		"a controller takes a restore for none":      {"hold, restored", func(r *rules) { r.noticeRestore = false; r.census = nobody }},
		"a sled misses no beat":                      {"hold, new leader", func(r *rules) { r.has = func(Chain, Beat) bool { return true } }},
		"no sled is counted after a restore":         {"hold, restored", func(r *rules) { r.census = nobody }},
		"a majority is enough after a restore":       {"hold, restored", func(r *rules) { r.census = majority }},
		"no sled is asked by another controller":     {"hold, new leader", func(r *rules) { r.census = nobody }},
	}
}

func nothing([]string, []string) string { return "" }

func silenceIsEnough(c Coming, e Evidence) (bool, Verdict) {
	c.Emptied = true
	return DecideComing(c, e)
}

func sameRenewal(s Silence, now time.Duration, _ string, gap time.Duration) Silence {
	return s.Read(now, s.Renewal, gap)
}

func settled(_ Off, _, _ time.Duration, off bool, _ time.Duration) Off {
	return Off{Reported: off, Counted: 9}
}

func nobody(string, bool, map[string]Answer) []string { return nil }

func majority(term string, _ bool, answers map[string]Answer) []string {
	kept := maps.Clone(answers)
	for sled, a := range kept {
		a.Restored = false
		kept[sled] = a
	}
	return Census(term, false, kept)
}

func TestALocalVolumeForcesHold(t *testing.T) {
	for _, p := range []Policy{Hold, Power, Storage, Lease, "", "other"} {
		want := Hold
		if p == Power || p == Lease {
			want = p
		}
		if got := (Run{Policy: p}).Effective(); got != want {
			t.Errorf("%q: %q", p, got)
		}
		if got := (Run{Policy: p, Local: true}).Effective(); got != Hold {
			t.Errorf("%q with a volume of its sled: %q", p, got)
		}
		if got := (Run{Policy: p, Crucible: true}).Effective(); p == Storage && got != Storage {
			t.Errorf("%q with a volume in a Crucible: %q", p, got)
		}
		if got := (Run{Policy: p, Crucible: true, Local: true}).Effective(); got != Hold {
			t.Errorf("%q with a volume of its sled, too: %q", p, got)
		}
	}
}

func TestWhatIsMissingIsSaid(t *testing.T) {
	terms := Terms{Fence: 15 * time.Second, Halt: 5 * time.Second, Margin: 10 * time.Second, Settle: 8 * time.Second}
	run := func(p Policy) Run { return Run{Generation: 3, Sled: "sled1", Policy: p, Terms: terms, Started: true} }
	claimed := Run{Generation: 3, Sled: "sled1", Policy: Lease, Terms: terms}
	stored := Run{Generation: 3, Sled: "sled1", Policy: Storage, Terms: terms, Started: true, Crucible: true}
	placed := Run{Generation: 3, Sled: "sled1", Policy: Power, Terms: terms}
	for _, c := range []struct {
		run  Run
		e    Evidence
		want Proof
		says string
	}{
		{Run{}, Evidence{}, NeverRan, "no generation"},
		{Run{}, Evidence{Uncounted: []string{"sled2"}}, "", "1 sleds have not yet reported"},
		{run(Hold), Evidence{}, "", "policy hold waits"},
		{run(Hold), Evidence{Confirmed: 2}, "", "policy hold waits"},
		{run(Hold), Evidence{Confirmed: 3}, Confirmed, "reported the end of generation 3"},
		{run(Hold), Evidence{Off: "sled1", Silent: time.Hour}, "", "policy hold waits"},
		{run(Power), Evidence{Off: "sled2", Silent: time.Hour}, "", "does not report"},
		{run(Power), Evidence{Off: "sled1", OffFor: 7 * time.Second}, "", "for 8s"},
		{run(Power), Evidence{Off: "sled1", OffFor: 8 * time.Second}, PowerOff, "is off"},
		{placed, Evidence{Off: "sled1", OffFor: time.Minute}, "", "may still start generation 3"},
		{placed, Evidence{Off: "sled1", OffFor: time.Minute, Revoked: true}, PowerOff, "is off"},
		{run(Hold), Evidence{Lost: "sled2"}, "", "policy hold waits"},
		{run(Hold), Evidence{Lost: "sled1"}, Stated, "stated that sled sled1 is lost"},
		{placed, Evidence{Lost: "sled1"}, Stated, "is lost for good"},
		{run(Hold), Evidence{Lost: "sled1", Uncounted: []string{"sled2"}}, "", "1 sleds have not yet reported"},
		{run(Storage), Evidence{Off: "sled1", Silent: time.Hour}, "", "it has no disk in a Crucible"},
		{Run{Generation: 3, Sled: "sled1", Policy: Storage, Terms: terms, Started: true, Crucible: true, Local: true}, Evidence{Silent: time.Hour}, "", "storage counts as hold: it has a volume on its sled"},
		{stored, Evidence{Silent: 29 * time.Second}, "", "silent for 1s longer"},
		{stored, Evidence{Silent: 30 * time.Second}, Volumes, "can no longer write"},
		{stored, Evidence{Silent: 30 * time.Second, Braked: "2 of 3 sleds are silent"}, "", "not taken over from sled sled1 now: 2 of 3"},
		{stored, Evidence{Lost: "sled1", Braked: "2 of 3 sleds are silent"}, Stated, "is lost for good"},
		{stored, Evidence{Confirmed: 3, Braked: "2 of 3 sleds are silent"}, Confirmed, "reported the end"},
		{run(Lease), Evidence{Silent: 30 * time.Second, Braked: "2 of 3 sleds are silent"}, Expired, "silent for 30s"},
		{run(Power), Evidence{Off: "sled1", OffFor: 8 * time.Second, Braked: "2 of 3 sleds are silent"}, PowerOff, "is off"},
		{Run{Generation: 3, Sled: "sled1", Policy: Storage, Terms: terms, Crucible: true}, Evidence{Silent: time.Hour}, "", "may still start generation 3"},
		{run(Lease), Evidence{Silent: 29 * time.Second}, "", "over in 1s"},
		{run(Lease), Evidence{Silent: 30 * time.Second}, Expired, "silent for 30s"},
		{claimed, Evidence{Silent: time.Hour}, "", "may still start generation 3"},
		{claimed, Evidence{Silent: time.Hour, Revoked: true}, Expired, "silent for 30s"},
		{Run{Generation: 1, Sled: "sled1", Policy: Lease, Started: true}, Evidence{Silent: time.Hour}, "", "want durations above zero"},
	} {
		got := Decide(c.run, c.e)
		if got.Proof != c.want || !strings.Contains(got.Reason, c.says) {
			t.Errorf("%+v, %+v: %+v", c.run, c.e, got)
		}
	}
}

func TestOnlyTimeInWhichTheLeaseWasReadCounts(t *testing.T) {
	var s Silence
	for _, read := range []struct {
		at      time.Duration
		renewal string
		want    time.Duration
	}{
		{10, "a", 0}, {12, "a", 2}, {14, "a", 4},
		{60, "a", 4}, // nothing was read for long
		{62, "a", 6}, {63, "b", 0}, {64, "b", 1},
		{50, "b", 0}, // another clock
	} {
		if s = s.Read(read.at, read.renewal, 5); s.Counted != read.want {
			t.Errorf("at %d: %d, want %d", read.at, s.Counted, read.want)
		}
	}
}

func TestOnlyWhatABMCReportsWithoutABreakCounts(t *testing.T) {
	var o Off
	for _, read := range []struct {
		asked, answered time.Duration
		off             bool
		want            time.Duration
	}{
		{10, 11, true, 0}, {12, 14, true, 1}, {15, 15, true, 2},
		{16, 16, false, 0}, {17, 17, true, 0}, {19, 20, true, 2},
		{60, 60, true, 0}, // it was not asked for long
		{59, 59, true, 0}, // another clock
	} {
		if o = o.Read(read.asked, read.answered, read.off, 5); o.Counted != read.want || o.Reported != read.off {
			t.Errorf("asked at %d: %+v, want %d", read.asked, o, read.want)
		}
	}
}

func TestAChainRemembersItsTerms(t *testing.T) {
	c := Chain(nil).Next("a").Next("a").Next("b")
	for _, b := range []Beat{{}, {"a", 1}, {"a", 2}, {"b", 1}} {
		if !c.Has(b) {
			t.Errorf("%v is missing", b)
		}
	}
	for _, b := range []Beat{{"a", 3}, {"b", 2}, {"c", 1}} {
		if c.Has(b) {
			t.Errorf("%v was never written", b)
		}
	}
	for range 2 * longest {
		c = c.Next(string(rune('A' + len(c)%7)))
	}
	if len(c) > longest {
		t.Errorf("%d terms", len(c))
	}
}

func TestWhatASledAnswers(t *testing.T) {
	before := Chain{{"a", 9}, {"b", 4}}
	for name, c := range map[string]struct {
		chain      Chain
		remembered Chain
		said       Answer
		counted    string
		want       Answer
	}{
		"nothing is remembered":                      {Chain{{"a", 1}}, nil, Answer{}, "", Answer{"a", false}},
		"the store goes on":                          {Chain{{"a", 9}, {"b", 5}}, before, Answer{"b", false}, "b", Answer{"b", false}},
		"a new leader":                               {Chain{{"a", 9}, {"b", 5}, {"c", 1}}, before, Answer{"b", false}, "b", Answer{"c", false}},
		"restored, counted before":                   {Chain{{"a", 9}, {"b", 3}}, before, Answer{"b", false}, "b", Answer{"b", true}},
		"restored, counted before, said already":     {Chain{{"a", 9}, {"b", 3}}, before, Answer{"b", true}, "b", Answer{"b", true}},
		"restored to an earlier term, counted in it": {Chain{{"a", 8}}, before, Answer{"a", true}, "a", Answer{"a", true}},
		"restored, a new leader":                     {Chain{{"a", 8}, {"c", 1}}, before, Answer{"a", true}, "a", Answer{"c", true}},
		"restored, counted without this sled":        {Chain{{"a", 8}, {"c", 1}}, before, Answer{"a", true}, "c", Answer{"c", true}},
		"restored, and counted":                      {Chain{{"a", 8}, {"c", 2}}, before, Answer{"c", true}, "c", Answer{"c", false}},
	} {
		if got := c.chain.Answer(c.remembered, c.said, c.counted); got != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestWhoIsAskedInACensus(t *testing.T) {
	all := func(terms ...string) map[string]Answer {
		out := map[string]Answer{}
		for i, term := range terms {
			out[string(rune('a'+i))] = Answer{Term: strings.TrimSuffix(term, "!"), Restored: strings.HasSuffix(term, "!")}
		}
		return out
	}
	for _, c := range []struct {
		restored bool
		answers  map[string]Answer
		want     string
	}{
		{false, all(), ""},
		{false, all("", "", "1"), "a b"},
		{false, all("1", "0", "1"), ""},
		{false, all("1", "0"), "b"},
		{false, all("1!", "0", "1"), "b"},
		{true, all("1", "0", "1"), "b"},
		{true, all("1!", "1", "1"), ""},
	} {
		if got := strings.Join(Census("1", c.restored, c.answers), " "); got != c.want {
			t.Errorf("%v, %v: %q, want %q", c.restored, c.answers, got, c.want)
		}
	}
}
