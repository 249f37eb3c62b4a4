package commands_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/sledtest"
)

const moves = "instance migrate web1 --to-command there"

func TestTheNICRecordFollowsTheMachine(t *testing.T) {
	t.Parallel()
	for name, story := range map[string]func(*sledtest.Datacentre){
		"the source looks first": func(d *sledtest.Datacentre) {
			d.A.Run(moves)
			d.Remember("departed", "arrived")
			for range 2 {
				d.Expect(d.Sync(d.A), "departed\t-", sledtest.FirstCN)
			}
			d.Expect(d.Sync(d.B), "arrived\tchanged", sledtest.SecondCN)
			d.Expect(d.Sync(d.B), "in use\t-", sledtest.SecondCN)
			d.Expect(d.Sync(d.A), "", sledtest.SecondCN)
			d.Remember("", "")
		},
		"the target looks first": func(d *sledtest.Datacentre) {
			d.A.Run(moves)
			d.Expect(d.Sync(d.B), "arrived\tchanged", sledtest.SecondCN)
			d.Expect(d.Sync(d.A), "", sledtest.SecondCN)
			d.Remember("", "arrived")
			d.Expect(d.Sync(d.B), "in use\t-", sledtest.SecondCN)
			d.Remember("", "")
		},
		"the target restarts it before it looks": func(d *sledtest.Datacentre) {
			d.A.Run(moves)
			d.B.Run("instance stop web1")
			d.Expect(d.Sync(d.B), "arrived\tchanged", sledtest.SecondCN)
			d.B.Run("instance start web1")
			d.Expect(d.Sync(d.B), "wrong state\tchanged", sledtest.SecondCN)
		},
		"it is deleted on the target": func(d *sledtest.Datacentre) {
			d.A.Run(moves)
			d.Expect(d.Sync(d.B), "arrived\tchanged", sledtest.SecondCN)
			d.B.Run("instance delete web1")
			d.Remember("departed", "")
			d.Expect(d.Sync(d.A), "", sledtest.SecondCN)
			d.Expect(d.Sync(d.B), "leaked\tremoved", "")
			d.Remember("", "")
		},
		"it is deleted on the target, which never looked": func(d *sledtest.Datacentre) {
			d.A.Run(moves)
			d.B.Run("instance delete web1")
			d.Expect(d.Sync(d.B), "", sledtest.FirstCN)
			d.Expect(d.Sync(d.A), "departed\t-", sledtest.FirstCN) // the source cannot know
		},
		"it moves back": func(d *sledtest.Datacentre) {
			d.A.Run(moves)
			d.Expect(d.Sync(d.A), "departed\t-", sledtest.FirstCN)
			d.Expect(d.Sync(d.B), "arrived\tchanged", sledtest.SecondCN)
			d.B.Run(moves)
			d.Remember("arrived", "departed")
			d.Expect(d.Sync(d.B), "departed\t-", sledtest.SecondCN)
			d.Expect(d.Sync(d.A), "arrived\tchanged", sledtest.FirstCN)
			d.Expect(d.Sync(d.B), "", sledtest.FirstCN)
			d.Expect(d.Sync(d.A), "in use\t-", sledtest.FirstCN)
			d.Remember("", "")
			d.A.Run("instance delete web1")
			d.Expect(d.Sync(d.A), "leaked\tremoved", "")
		},
		"it moves back before anybody looks": func(d *sledtest.Datacentre) {
			d.A.Run(moves)
			d.B.Run(moves)
			d.Expect(d.Sync(d.B), "", sledtest.FirstCN)
			d.Expect(d.Sync(d.A), "in use\t-", sledtest.FirstCN)
			d.Remember("", "")
		},
		"the way back breaks off": func(d *sledtest.Datacentre) {
			d.A.Run(moves)
			d.A.Arm(world.Fault{Name: world.FaultFail, Match: "propolis * migrate Device", Times: 1})
			if a := d.B.Try(moves); a.Exit != 1 {
				d.T.Errorf("exit %d: %s", a.Exit, a.Errs)
			}
			d.Remember("departed", "arrived")
			d.Expect(d.Sync(d.A), "departed\t-", sledtest.FirstCN)
			d.Expect(d.Sync(d.B), "arrived\tchanged", sledtest.SecondCN)
		},
		"it does not arrive": func(d *sledtest.Datacentre) {
			d.B.Arm(world.Fault{Name: world.FaultFail, Match: "propolis * migrate Device", Times: 1})
			if a := d.A.Try(moves); a.Exit != 1 {
				d.T.Errorf("exit %d: %s", a.Exit, a.Errs)
			}
			d.Remember("", "")
			d.Expect(d.Sync(d.B), "", sledtest.FirstCN)
			d.Expect(d.Sync(d.A), "in use\t-", sledtest.FirstCN)
		},
		"both look while it moves": func(d *sledtest.Datacentre) {
			d.B.Arm(world.Fault{Name: world.FaultSlowMigrate, Match: "propolis * migrate", Delay: 10e9})
			ended := make(chan sledtest.Answer, 1)
			go func() { ended <- d.A.Try(moves) }()
			for !strings.Contains(d.B.Run("instance list -H --columns state"), "migrating") {
				time.Sleep(100 * time.Millisecond) // of the bubble: else nothing moves
			}
			d.Expect(d.Sync(d.B), "migrating\t-", sledtest.FirstCN)
			d.Expect(d.Sync(d.A), "migrating\t-", sledtest.FirstCN)
			if a := <-ended; a.Exit != 0 {
				d.T.Errorf("exit %d: %s", a.Exit, a.Errs)
			}
			d.Expect(d.Sync(d.A), "departed\t-", sledtest.FirstCN)
			d.Expect(d.Sync(d.B), "arrived\tchanged", sledtest.SecondCN)
		},
		"it is created again on the source": func(d *sledtest.Datacentre) {
			d.A.Run(moves)
			d.B.Run("instance delete web1")
			d.A.Run("instance ensure web1 --nic over=net0,mac=" + d.MAC)
			d.Remember("", "")
			d.Expect(d.Sync(d.A), "in use\t-", sledtest.FirstCN)
			d.A.Run("instance delete web1")
			d.Expect(d.Sync(d.A), "leaked\tremoved", "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			sledtest.Sample(t, name)
			synctest.Test(t, func(t *testing.T) { story(sledtest.NewDatacentre(t)) })
		})
	}
}
