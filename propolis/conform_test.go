package propolis_test

import (
	"errors"
	"testing"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/hosttest"
	"github.com/sledctl/sledctl/test/steptest"
)

const migrationID = "66666666-6666-4666-8666-666666666666"

func TestSteps(t *testing.T) {
	on := func(steps ...steptest.Step) func(*testing.T) steptest.Sled {
		return func(t *testing.T) steptest.Sled {
			s := sim.New(sim.Options{Latency: "helios2021"}, hosttest.Files)
			t.Cleanup(s.Close)
			r := rig{t, s, s.Host()}
			r.lay(0)
			r.do(propolis.AwaitHTTP{Target: target()})
			r.do(steps...)
			r.change(func(tx *world.Tx) { // as the target of a migration that is over
				if vm := tx.State.Processes[0].VM; vm != nil {
					vm.In = &world.Migration{ID: migrationID, Phases: []world.Timepoint{{State: "Finish"}}, End: tx.Now}
				}
			})
			return steptest.Sled{Host: r.host, State: func() any {
				time.Sleep(time.Minute) // until a change that was only asked for is made
				now, err := r.client().Get(t.Context())
				if err != nil && !errors.Is(err, propolis.ErrNoInstance) {
					t.Fatal(err)
				}
				return now
			}}
		}
	}
	make := propolis.Ensure{Target: target(), Request: rig{t: t}.request()}
	run := propolis.ChangeState{Target: target(), State: propolis.Run}
	running := propolis.AwaitState{Target: target(), States: []string{propolis.StateRunning}}
	cases := []steptest.Case{
		{Step: propolis.AwaitHTTP{Target: target()}, Sled: on(), NoFailure: true},
		{Step: make, Sled: on(), Again: propolis.ErrAlreadyInitialized},
		{Step: run, Sled: on(make)},
		{Step: ask(propolis.Reboot), Sled: on(make, run, running)},
		{Step: ask(propolis.Stop), Sled: on(make, run, running), Again: propolis.ErrNoInstance},
		{Step: running, Sled: on(make, run), NoFailure: true},
		{Step: propolis.InjectNMI{Target: target()}, Sled: on(make, run, running)},
		{Step: propolis.PowerOff{Target: target()}, Sled: on(make, run, running)},
		{Step: propolis.Arrive{Target: target(), ID: migrationID}, Sled: on(make, run, running), NoFailure: true},
	}
	for i := range cases {
		cases[i].Bubble = true
		cases[i].Kinds = []error{propolis.ErrNoInstance, propolis.ErrAlreadyInitialized, propolis.ErrForbidden, host.ErrStillRunning}
	}
	steptest.Conform(t, cases...)
}
