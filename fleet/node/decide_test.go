package node

import "testing"

func TestWhatIsDoneAboutAClaim(t *testing.T) {
	run := func(generation int64, state string) *Run { return &Run{VM: "a", Generation: generation, State: state} }
	claim := Claim{VM: "a", Generation: 3}
	deleting, ended := claim, claim
	deleting.Deleting, ended.Ended = true, true
	for _, c := range []struct {
		name  string
		claim Claim
		here  *Run
		want  Act
	}{
		{"nothing is here", claim, nil, Start},
		{"it starts", claim, run(3, "starting"), Report},
		{"it runs", claim, run(3, "running"), Report},
		{"it is in an unknown state", claim, run(3, "unknown"), Report},
		{"it ended by itself", claim, run(3, "destroyed"), Remove},
		{"it failed", claim, run(3, "failed"), Remove},
		{"its end was told", ended, nil, Wait},
		{"its end was told, and a later one runs", ended, run(4, "running"), Wait},
		{"an earlier one is still here", claim, run(2, "running"), Clear},
		{"an earlier one has ended here", claim, run(2, "failed"), Clear},
		{"a later one runs here", claim, run(4, "running"), Ahead},
		{"a later one runs here, and the claim goes", deleting, run(4, "running"), Ahead},
		{"it is to end", deleting, run(3, "running"), Stop},
		{"it is to end, and its state is unknown", deleting, run(3, "unknown"), Stop},
		{"it has ended", deleting, run(3, "destroyed"), Remove},
		{"it never started", deleting, nil, Forgone},
	} {
		if got := Decide(c.claim, c.here); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestWhatIsDoneAboutAClaimThatComes(t *testing.T) {
	run := func(generation int64, state string, moves Moves, migration string) *Run {
		return &Run{VM: "a", Generation: generation, State: state, Moves: moves, Migration: migration}
	}
	claim := Claim{VM: "a", Generation: 3, From: Origin{Migration: "m", Address: "10.1.0.3:12400"}}
	deleting, welcomed, plain := claim, claim, Claim{VM: "a", Generation: 3}
	deleting.Deleting, welcomed.Arrived = true, true
	for _, c := range []struct {
		name  string
		claim Claim
		here  *Run
		want  Act
	}{
		{"nothing is here", claim, nil, Arrive},
		{"it is not wanted any longer", deleting, nil, Forgone},
		{"it is expected", claim, run(3, "stopped", Expected, "m"), Arrive},
		{"it is expected, and not wanted any longer", deleting, run(3, "stopped", Expected, "m"), Remove},
		{"it is expected, and the claim is of none that comes", plain, run(3, "stopped", Expected, "m"), Remove},
		{"it comes", claim, run(3, "migrating", Arriving, "m"), Report},
		{"it comes, in a state that looks like an end", claim, run(3, "absent", Arriving, "m"), Report},
		{"it comes, and is not wanted any longer", deleting, run(3, "migrating", Arriving, "m"), Report},
		{"it has come", claim, run(3, "running", Arrived, "m"), Welcome},
		{"it has come, and is not wanted any longer", deleting, run(3, "running", Arrived, "m"), Welcome},
		{"it has come, and has ended", claim, run(3, "destroyed", Arrived, "m"), Welcome},
		{"that was told", welcomed, run(3, "running", Arrived, "m"), Report},
		{"it came by another migration", claim, run(3, "running", Arrived, "other"), Report},
		{"it did not come", claim, run(3, "running", Stays, ""), Report},
		{"it is where it comes from", claim, run(2, "running", Stays, ""), Refuse},
		{"something is left of an earlier one", claim, run(2, "failed", Stays, ""), Clear},
	} {
		if got := Decide(c.claim, c.here); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// Whatever is here, an end is told only if nothing of the generation runs, and nothing is
// started next to a VM.
func TestNoEndIsToldOfAVMThatRuns(t *testing.T) {
	states := []string{"creating", "starting", "running", "stopping", "rebooting", "migrating", "unknown", "stopped", "destroyed", "failed", "absent"}
	for generation := int64(1); generation < 4; generation++ {
		for _, state := range states {
			for _, deleting := range []bool{false, true} {
				for _, moves := range []Moves{Stays, Expected, Arriving, Arrived, Departing} {
					here := Run{VM: "a", Generation: generation, State: state, Moves: moves}
					act := Decide(Claim{VM: "a", Generation: 2, Deleting: deleting}, &here)
					if act == Start || act == Finish || act == Forgone {
						t.Errorf("generation %d, %s, %s, deleting %v: %s", generation, state, moves, deleting, act)
					}
					if act == Remove && !here.over() && moves != Expected {
						t.Errorf("%s, %s is removed", state, moves)
					}
				}
			}
		}
	}
}

func TestRunsWithoutAClaimAreFound(t *testing.T) {
	got := Unclaimed([]Claim{{VM: "b"}}, []Run{{VM: "c"}, {VM: "b"}, {VM: "a"}})
	if len(got) != 2 || got[0].VM != "a" || got[1].VM != "c" {
		t.Errorf("%v", got)
	}
}
