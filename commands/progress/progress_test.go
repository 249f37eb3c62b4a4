package progress

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
)

// step is one of a verb that does nothing.
type step string

func (s step) Verb() string                      { return string(s) }
func (step) Explain() []host.Line                { return nil }
func (step) Do(context.Context, host.Host) error { return nil }
func (step) Undo() any                           { return nil }

const zone = "zone propolis_instance_768c2a8b-de75-5e1b-9dd3-8bd4af7b3e3b"

func action(verb, object, why string, change plan.Change) plan.Action {
	return plan.Action{ID: verb + " " + object, Object: object, Why: why, Change: change, Step: step(verb)}
}

var began = time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return began.Add(time.Duration(seconds * float64(time.Second))) }

// started is the n-th of 16 steps of an ensure.
func started(name string, n int, a plan.Action) operation.Event {
	return operation.Event{Event: plan.Event{Kind: plan.Started, Action: a, Step: n, Steps: 16}, Verb: "instance ensure", Name: name, Undoes: true}
}

func finished(name string, a plan.Action) operation.Event {
	return operation.Event{Event: plan.Event{Kind: plan.Finished, Action: a}, Verb: "instance ensure", Name: name, Undoes: true}
}

func TestAStepIsToldInWords(t *testing.T) {
	for want, a := range map[string]plan.Action{
		"set the zone back to its clone":               action("zfs.rollback", "dataset oxp_1/crypt/zone/propolis_instance_768c2a8b-de75-5e1b-9dd3-8bd4af7b3e3b/root", "", plan.Modify),
		"clone the zone from propolis_base_101964cb_1": action("zone.clone", zone, "from propolis_base_101964cb_1", plan.Modify),
		"boot the zone": action("zone.boot", zone, "", plan.Modify),
		"wait for the address: no other host may have it": action("ipadm.await-address", "address vnic_propolis0/control", "no other host may have it", plan.Wait),
		"create the VNIC vnic_propolis0":                  action("vnic.create", "vnic vnic_propolis0", "control VNIC", plan.Create),
		"create the etherstub propolis_stub0":             action("vnic.create-etherstub", "etherstub propolis_stub0", "", plan.Create),
		"create the dataset":                              action("zfs.create", "dataset oxp_101964cb-a8ae-45ea-8aa0-399e4ead2671/crypt/zone/"+strings.TrimPrefix(zone, "zone "), "", plan.Create),
		"create the dataset oxp_101964cb/crypt/debug":     action("zfs.create", "dataset oxp_101964cb-a8ae-45ea-8aa0-399e4ead2671/crypt/debug", "", plan.Create),
		"set the pool oxp_101964cb":                       action("zpool.set", "pool oxp_101964cb-a8ae-45ea-8aa0-399e4ead2671", "", plan.Modify),
		"protect the directory /pool/int/197e2b31/debug":  action("zfs.protect", "directory /pool/int/197e2b31-9a15-413e-9b6c-411e859af082/debug", "", plan.Modify),
		"halt the zone z1":                                action("zone.halt", "zone z1", "", plan.Modify),
	} {
		if got := Words(a); got != want {
			t.Errorf("%s: %q, want %q", a.ID, got, want)
		}
	}
}

func TestOneOperationIsALine(t *testing.T) {
	var b Board
	if lines := b.Lines(began, 79, 20); len(lines) > 0 {
		t.Errorf("before anything: %q", lines)
	}
	clone := action("zone.clone", zone, "from propolis_base_101964cb_1", plan.Modify)
	b.Note(at(0), started("web17", 4, action("vnic.create", "vnic v0", "", plan.Create)))
	b.Note(at(1), started("web17", 5, clone))
	want := "web17   5/16  clone the zone from propolis_base_101964cb_1         1.2s    2.2s"
	if diff := cmp.Diff([]string{want}, b.Lines(at(2.25), 79, 20)); diff != "" {
		t.Error(diff)
	}
	// Where there is no room, the reason goes first.
	if got := b.Lines(at(2.25), 44, 20); len(got) != 1 || got[0] != "web17   5/16  clone the zone    1.2s    2.2s" {
		t.Errorf("%q", got)
	}
	undoing := operation.Event{Event: plan.Event{Kind: plan.Undoing, Action: clone, Step: 1, Steps: 3}, Verb: "instance ensure", Name: "web17"}
	b.Note(at(3), finished("web17", clone))
	b.Note(at(3), undoing)
	if got := b.Lines(at(3), 79, 20)[0]; !strings.HasPrefix(got, "web17  undo 1/3  clone the zone") {
		t.Errorf("%q", got)
	}
}

// How long it takes is of this sled's own past, asked for once, or is left out; and so it is
// while what was made is taken back.
func TestHowLongItTakesIsKnownOrLeftOut(t *testing.T) {
	clone := action("zone.clone", zone, "", plan.Modify)
	for _, w := range []struct {
		usual func(asked *int) func() time.Duration
		kind  plan.EventKind
		end   string
	}{
		{func(*int) func() time.Duration { return nil }, plan.Started, "  1.0s    1.0s"},
		{func(*int) func() time.Duration { return func() time.Duration { return 0 } }, plan.Started, "  1.0s    1.0s"},
		{func(n *int) func() time.Duration {
			return func() time.Duration { *n++; return 4300 * time.Millisecond }
		}, plan.Started, "  1.0s    1.0s of ~4.3s"},
		{func(*int) func() time.Duration { return func() time.Duration { return time.Second } }, plan.Undoing, "  1.0s    1.0s"},
	} {
		var b Board
		asked := 0
		e := started("web17", 5, clone)
		e.Kind, e.Usual = w.kind, w.usual(&asked)
		b.Note(at(0), e)
		for range 2 {
			if got := b.Lines(at(1), 79, 20)[0]; !strings.HasSuffix(got, w.end) || len(got) != 79 {
				t.Errorf("%q, want ... %q", got, w.end)
			}
		}
		if asked > 1 {
			t.Errorf("asked %d times", asked)
		}
	}
}

func TestManyAreCountedAndTheLongestComesFirst(t *testing.T) {
	var b Board
	b.Begin(began, 9)
	boot := action("zone.boot", zone, "", plan.Modify)
	for i, name := range []string{"web1", "web10", "web3"} {
		b.Note(at(float64(i)), started(name, 7+i, boot))
	}
	b.End("ci3", 2*time.Second, errors.New("out of space\n  more"))
	b.End("ci7", 2*time.Second, errors.New("out of space"))
	for range 2 {
		b.End("done", 4*time.Second, nil)
	}
	got := b.Lines(at(4), 79, 4)
	want := []string{
		"instance ensure   2 of 9 done, 3 at work, 2 wait, 2 failed        4.0s  ~7s left",
		"  web1    7/16  boot the zone                                      4.0s    4.0s",
		"  (2 more at work)",
		"FAILED ci3, ci7: out of space",
	}
	want[0] = got[0]
	if diff := cmp.Diff(want, got); diff != "" || !strings.Contains(got[0], "2 of 9 done, 3 at work, 2 wait, 2 failed") || !strings.HasSuffix(got[0], "4.0s  ~7s left") {
		t.Error(diff, got[0])
	}
	if b.Finish(); len(b.Lines(at(4), 79, 4)) != 1 {
		t.Errorf("afterwards: %q", b.Lines(at(4), 79, 4))
	}
}

func TestALogHasALineForEachLongStepOnce(t *testing.T) {
	var b Board
	b.Note(at(0), started("web17", 5, action("zone.clone", zone, "", plan.Modify)))
	for _, test := range []struct {
		at   float64
		want []string
	}{{0.9, nil}, {1.25, []string{"08:00:01 web17 5/16 zone.clone 1.2s"}}, {2, nil}} {
		if diff := cmp.Diff(test.want, b.Long(at(test.at))); diff != "" {
			t.Errorf("after %v s: %s", test.at, diff)
		}
	}
	if got := Ended(at(4), "web17", 4*time.Second, nil) + "|" + Ended(at(4), "ci3", 300*time.Millisecond, errors.New("zone.clone: out of space\nmore")); got != "08:00:04 web17 ok 4.0s|08:00:04 ci3 FAILED 0.3s zone.clone: out of space" {
		t.Error(got)
	}
}

func TestAnEventInJSON(t *testing.T) {
	e := started("web17", 5, action("zone.clone", zone, "", plan.Modify))
	e.Err = errors.New("no")
	var got map[string]any
	if err := json.Unmarshal([]byte(JSON(at(0), e)), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"time": "2026-11-26T08:00:00Z", "event": "started", "verb": "instance ensure", "name": "web17", "step": 5.0, "steps": 16.0,
		"action": "zone.clone " + zone, "object": zone, "elapsed_ms": 0.0, "error": "no",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSignalsSayWhatEndsAndWhatIsLeft(t *testing.T) {
	var b Board
	if got := b.Interrupted("^C", nil); got != "^C: nothing more is begun" {
		t.Error(got)
	}
	if lines, left := Abandoned("^C", b.All()); left || len(lines) != 1 {
		t.Error(lines, left)
	}
	for _, vnic := range []string{"vnic v0", "vnic v1"} {
		a := action("vnic.create", vnic, "", plan.Create)
		b.Note(at(0), started("web17", 1, a))
		b.Note(at(0), finished("web17", a))
	}
	clone := action("zone.clone", zone, "", plan.Modify)
	b.Note(at(1), started("web17", 5, clone))
	want := `^C: web17: "clone the zone" ends first (it cannot be stopped), then 2 things are taken back; ^C again stops at once and leaves it all`
	if got := b.Interrupted("^C", nil); got != want {
		t.Error(got)
	}
	lines, left := Abandoned("^C", b.All())
	if diff := cmp.Diff([]string{
		"^C again: stopped. Left: 2 VNICs, zone of web17 (incomplete)",
		"sledctl instance ensure web17 goes on from here; sledctl reap removes what no instance needs",
	}, lines); diff != "" || !left {
		t.Error(diff)
	}
	b.Note(at(1), started("web18", 5, clone))
	if got := b.Interrupted("^C", nil); !strings.HasPrefix(got, "^C: 2 operations end their steps and are taken back; ^C again") {
		t.Error(got)
	}
}

// A migration is not waited for any longer: its memory moves on where it has begun to.
func TestASignalSaysWhatAMigrationDoes(t *testing.T) {
	var b Board
	b.Note(at(0), started("web17", 5, action("instance.send", "instance web17", "", plan.Modify)))
	m := &Move{Name: "web17", Since: at(0)}
	want := "^C: web17: the target removes what it has made, if no memory moves yet; ^C again stops at once and leaves it all"
	if got := b.Interrupted("^C", []*Move{m}); got != want {
		t.Error(got)
	}
	m.Enter(at(1), "RamPush")
	want = "^C: web17: its memory moves on (RamPush), which cannot be cancelled now; ^C again stops at once and leaves it all"
	if got := b.Interrupted("^C", []*Move{{Name: "web1"}, m}); got != want {
		t.Error(got)
	}
}

func TestWhatIsNotTakenBackIsNotSaidTo(t *testing.T) {
	var b Board
	made := action("zfs.create", "dataset d", "", plan.Create)
	for _, e := range []operation.Event{started("", 1, made), finished("", made), started("", 2, action("zfs.await", "dataset d", "", plan.Wait))} {
		e.Undoes = false
		b.Note(at(0), e)
	}
	if got := b.Interrupted("SIGTERM", nil); !strings.HasPrefix(got, "SIGTERM: instance ensure: it stops waiting; SIGTERM again") {
		t.Error(got)
	}
}

func TestALineStaysOfWhatEndedWell(t *testing.T) {
	for want, e := range map[string]operation.Event{
		"web17  ensure  ok  4.4s":              {Event: plan.Event{Kind: operation.Over, Elapsed: 4400 * time.Millisecond}, Verb: "instance ensure", Name: "web17"},
		"bootstrap  ok  1.2s":                  {Event: plan.Event{Kind: operation.Over, Elapsed: 1200 * time.Millisecond}, Verb: "bootstrap"},
		"oxp_101964cb  base ensure  ok  20.0s": {Event: plan.Event{Kind: operation.Over, Elapsed: 20 * time.Second}, Verb: "base ensure", Name: "oxp_101964cb-a8ae-45ea-8aa0-399e4ead2671"},
	} {
		if got := Stays(e); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Between two steps of an instance nothing of it runs, and it has begun nevertheless.
func TestWhatHasBegunDoesNotWaitBetweenSteps(t *testing.T) {
	var b Board
	b.Begin(at(0), 3)
	clone := action("zone.clone", zone, "", plan.Modify)
	b.Note(at(0), started("web1", 1, clone))
	b.Note(at(1), finished("web1", clone))
	if got := b.Lines(at(1), 79, 20)[0]; !strings.HasPrefix(got, "instance ensure   0 of 3 done, 1 at work, 2 wait ") {
		t.Error(got)
	}
	if got := b.Interrupted("^C", nil); got != "^C: nothing more is begun" {
		t.Error(got)
	}
	b.Note(at(1), started("web2", 1, clone))
	if got := b.Interrupted("^C", nil); !strings.HasSuffix(got, ", 1 is not begun; ^C again stops at once and leaves it all") {
		t.Error(got)
	}
	b.End("web1", time.Second, nil)
	if got := b.Lines(at(1), 79, 20)[0]; !strings.HasPrefix(got, "instance ensure   1 of 3 done, 1 at work, 1 wait ") {
		t.Error(got)
	}
}
