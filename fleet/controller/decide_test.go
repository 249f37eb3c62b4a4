package controller

import (
	"testing"
	"time"

	"github.com/sledctl/sledctl/fleet/fence"
)

func terms() fence.Terms {
	return fence.Terms{Fence: 15 * time.Second, Halt: 5 * time.Second, Margin: 10 * time.Second, Settle: 8 * time.Second}
}

func TestWhatIsDoneAboutAVM(t *testing.T) {
	wanted := Machine{Running: true, Generation: 3, Ended: 2}
	ended := Machine{Running: true, Generation: 3, Ended: 3}
	first := Machine{Running: true}
	stopped, deleted := Machine{Generation: 3, Ended: 2}, Machine{Running: true, Deleting: true, Generation: 3, Ended: 2}
	bound := &Pod{Sled: "sled1"}
	silent := &Pod{Sled: "sled1", Silent: true}
	uncounted := fence.Evidence{Uncounted: []string{"sled2"}}
	lease := fence.Run{Generation: 3, Sled: "sled1", Policy: fence.Lease, Terms: terms(), Started: true}
	claimed := fence.Run{Generation: 3, Sled: "sled1", Policy: fence.Lease, Terms: terms()}
	storage := fence.Run{Generation: 3, Sled: "sled1", Policy: fence.Storage, Terms: terms(), Started: true, Crucible: true}
	unstarted, local, diskless := storage, storage, storage
	unstarted.Started, local.Local, diskless.Crucible = false, true, false
	taken := Machine{Running: true, Generation: 3, Ended: 3, Proof: fence.Volumes}
	kept := taken
	kept.Kept = "volume"
	spinning := &Pod{Sled: "sled1", Deleting: true, Silent: true}
	hold := fence.Run{Generation: 3, Sled: "sled1", Policy: fence.Hold}
	for _, c := range []struct {
		name  string
		m     Machine
		p     *Pod
		found Found
		run   fence.Run
		e     fence.Evidence
		want  Act
		proof fence.Proof
	}{
		{"the first generation", first, nil, Found{}, fence.Run{}, fence.Evidence{}, Raise, ""},
		{"the first, and sleds are not counted", first, nil, Found{}, fence.Run{}, uncounted, Wait, ""},
		{"raised", wanted, nil, Found{}, hold, fence.Evidence{}, Claim, ""},
		{"raised, and sleds are not counted", wanted, nil, Found{}, hold, uncounted, Wait, ""},
		{"raised, and not wanted any longer", stopped, nil, Found{}, hold, fence.Evidence{}, Conclude, fence.NeverRan},
		{"the same, and sleds are not counted", stopped, nil, Found{}, hold, uncounted, Wait, ""},
		{"not bound yet", wanted, &Pod{}, Found{}, hold, fence.Evidence{}, Nothing, ""},
		{"it runs", wanted, bound, Found{Sled: "sled1", Generation: 3}, hold, fence.Evidence{}, Nothing, ""},
		{"it runs, and sleds are not counted", wanted, bound, Found{}, hold, uncounted, Nothing, ""},
		{"it is to stop", stopped, bound, Found{}, hold, fence.Evidence{}, Evict, ""},
		{"it is to go", deleted, bound, Found{}, hold, fence.Evidence{}, Evict, ""},
		{"it is stopping", stopped, &Pod{Sled: "sled1", Deleting: true}, Found{}, hold, fence.Evidence{}, Nothing, ""},
		{"a drain deleted its pod", wanted, &Pod{Sled: "sled1", Deleting: true}, Found{}, hold, fence.Evidence{}, Nothing, ""},
		{"deleted before it was bound", stopped, &Pod{Deleting: true}, Found{}, hold, fence.Evidence{}, Conclude, fence.NeverRan},
		{"its sled reports the end", wanted, &Pod{Sled: "sled1", Ended: true}, Found{}, hold, fence.Evidence{}, Conclude, fence.Confirmed},
		{"hold, and its sled is silent", wanted, silent, Found{}, hold, fence.Evidence{Silent: time.Hour}, Wait, ""},
		{"lease, and its sled is silent", wanted, silent, Found{}, lease, fence.Evidence{Silent: 29 * time.Second}, Wait, ""},
		{"lease, and it is over", wanted, silent, Found{}, lease, fence.Evidence{Silent: 30 * time.Second}, Conclude, fence.Expired},
		{"lease, and it was never started", wanted, silent, Found{}, claimed, fence.Evidence{Silent: time.Hour}, Evict, ""},
		{"the same, and its claim goes", wanted, &Pod{Sled: "sled1", Silent: true, Deleting: true}, Found{}, claimed, fence.Evidence{Silent: time.Second, Revoked: true}, Wait, ""},
		{"the same, and it is over", wanted, &Pod{Sled: "sled1", Silent: true, Deleting: true}, Found{}, claimed, fence.Evidence{Silent: 30 * time.Second, Revoked: true}, Conclude, fence.Expired},
		{"lease, over, and sleds are not counted", wanted, silent, Found{}, lease, fence.Evidence{Silent: time.Hour, Uncounted: []string{"sled2"}}, Wait, ""},
		{"ended, with its pod", ended, bound, Found{}, lease, fence.Evidence{}, Release, ""},
		{"ended, without", ended, nil, Found{}, lease, fence.Evidence{}, Raise, ""},
		{"ended, and not wanted", Machine{Generation: 3, Ended: 3}, nil, Found{}, lease, fence.Evidence{}, Nothing, ""},
		{"ended, and to go", Machine{Generation: 3, Ended: 3, Deleting: true}, nil, Found{}, lease, uncounted, Forget, ""},
		{"storage, and its sled is silent", wanted, silent, Found{}, storage, fence.Evidence{Silent: 29 * time.Second}, Wait, ""},
		{"storage, and was for long enough", wanted, silent, Found{}, storage, fence.Evidence{Silent: 30 * time.Second}, Conclude, fence.Volumes},
		{"the same, and so were most sleds", wanted, silent, Found{}, storage, fence.Evidence{Silent: 30 * time.Second, Braked: "most are silent"}, Wait, ""},
		{"storage, and it was never started", wanted, silent, Found{}, unstarted, fence.Evidence{Silent: time.Hour}, Evict, ""},
		{"storage, and it has a volume on its sled, too", wanted, silent, Found{}, local, fence.Evidence{Silent: time.Hour}, Wait, ""},
		{"storage, and it has none in a Crucible", wanted, silent, Found{}, diskless, fence.Evidence{Silent: time.Hour}, Wait, ""},
		{"taken over, and its sled is to end it", taken, silent, Found{}, storage, fence.Evidence{}, Evict, ""},
		{"the same, and that is written down", taken, spinning, Found{}, storage, fence.Evidence{}, Raise, ""},
		{"the same, and sleds are not counted", taken, spinning, Found{}, storage, uncounted, Wait, ""},
		{"the same, and it is not wanted", Machine{Generation: 3, Ended: 3, Proof: fence.Volumes}, spinning, Found{}, storage, fence.Evidence{}, Nothing, ""},
		{"the same, and to go", Machine{Generation: 3, Ended: 3, Proof: fence.Volumes, Deleting: true}, spinning, Found{}, storage, fence.Evidence{}, Wait, ""},
		{"its sled has ended it", taken, &Pod{Sled: "sled1", Deleting: true, Ended: true}, Found{}, storage, fence.Evidence{}, Release, ""},
		{"its sled is lost", taken, &Pod{Sled: "sled1", Deleting: true, Silent: true, Lost: true}, Found{}, storage, fence.Evidence{}, Release, ""},
		{"taken over, and the VM is to have another volume", kept, spinning, Found{}, storage, fence.Evidence{}, Wait, ""},
		{"raised, and the VM is to have another volume", Machine{Running: true, Generation: 4, Ended: 3, Kept: "volume"}, nil, Found{}, storage, fence.Evidence{}, Wait, ""},
		{"the same, and not wanted any longer", Machine{Generation: 4, Ended: 3, Kept: "volume"}, nil, Found{}, storage, fence.Evidence{}, Conclude, fence.NeverRan},
		{"a sled runs a later one", ended, nil, Found{Sled: "sled2", Generation: 4}, lease, uncounted, CatchUp, ""},
		{"a sled runs a later one than the pod", wanted, bound, Found{Sled: "sled2", Generation: 4}, lease, fence.Evidence{}, CatchUp, ""},
		{"a later one comes to a sled", wanted, bound, Found{Sled: "sled2", Generation: 4, Coming: true}, hold, fence.Evidence{}, CatchUpMove, ""},
		{"one comes to a sled that was given up", Machine{Running: true, Generation: 3, Raised: 4, Ended: 2}, bound, Found{Sled: "sled2", Generation: 4, Coming: true}, hold, fence.Evidence{}, Nothing, ""},
		{"one runs that was given up", Machine{Running: true, Generation: 3, Raised: 4, Ended: 2}, bound, Found{Sled: "sled2", Generation: 4}, hold, fence.Evidence{}, CatchUp, ""},
		{"a sled still reports an earlier one", ended, nil, Found{Sled: "sled2", Generation: 2}, lease, fence.Evidence{}, Raise, ""},
	} {
		got := Decide(c.m, c.p, c.found, c.run, c.e)
		if got.Act != c.want || got.Proof != c.proof {
			t.Errorf("%s: %+v, want %s %s", c.name, got, c.want, c.proof)
		}
	}
}
