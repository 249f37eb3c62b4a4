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

// Whatever is here, an end is told only if nothing of the generation runs, and nothing is
// started next to a VM.
func TestNoEndIsToldOfAVMThatRuns(t *testing.T) {
	states := []string{"creating", "starting", "running", "stopping", "rebooting", "migrating", "unknown", "stopped", "destroyed", "failed", "absent"}
	for generation := int64(1); generation < 4; generation++ {
		for _, state := range states {
			for _, deleting := range []bool{false, true} {
				here := Run{VM: "a", Generation: generation, State: state}
				act := Decide(Claim{VM: "a", Generation: 2, Deleting: deleting}, &here)
				if act == Start || act == Finish || act == Forgone {
					t.Errorf("generation %d, %s, deleting %v: %s", generation, state, deleting, act)
				}
				if act == Remove && !here.over() {
					t.Errorf("%s is removed", state)
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
