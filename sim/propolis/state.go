package propolis

import (
	"net/http"
	"slices"
	"time"

	"github.com/sledctl/sledctl/sim/world"
)

// putState answers PUT /instance/state. A request is queued or already
// covered (204), or denied; what follows from it is written down at once.
func (c *call) putState() (answer, error) {
	var want string
	if err := decode(c.body, "word/Run,Stop,Reboot", c.version, &want); err != nil {
		return answer{}, err
	}
	err := c.update(func(tx *world.Tx, p *world.Process) error {
		if !active(tx, p) {
			return noInstance()
		}
		vm := queue{tx: tx, vm: p.VM}
		switch want {
		case "Run":
			return vm.run()
		case "Stop":
			return vm.stop()
		}
		return vm.reboot()
	})
	return answer{status: http.StatusNoContent}, err
}

// active says whether a machine is live: made, and not torn down.
func active(tx *world.Tx, p *world.Process) bool {
	return p.VM != nil && p.VM.Spec != nil && !tx.Now.Before(p.VM.Ready) && !finished(world.At(p.VM.Timeline, tx.Now).State)
}

// queue is the request queue of a machine
// (bin/propolis-server/src/lib/vm/request_queue.rs). What it has accepted is in
// the timeline, also where its time has not come.
type queue struct {
	tx *world.Tx
	vm *world.VM
}

// phase is how far the accepted requests lead.
type phase int

const (
	unstarted phase = iota
	starting
	running
	rebooting
	arriving // comes from another server, and does not run yet
	leaving  // goes to another server
	stopping // a stop is queued or at work
	stopped  // over, but not yet torn down
)

func (q queue) phase() phase {
	now := world.At(q.vm.Timeline, q.tx.Now).State
	if now == "Stopped" {
		return stopped
	}
	switch {
	case q.vm.Out.Flows(q.tx.Now):
		return leaving
	case q.vm.In.Flows(q.tx.Now):
		return arriving
	}
	for _, point := range q.vm.Timeline {
		if point.State == "Stopping" || point.State == "Stopped" {
			return stopping
		}
	}
	n := len(q.vm.Timeline)
	switch last := q.vm.Timeline[n-1]; {
	case last.State == "Creating":
		return unstarted
	case !last.From.After(q.tx.Now):
		return running
	case q.vm.Timeline[n-2].State == "Rebooting":
		return rebooting
	}
	return starting
}

// deny is why a start or a reboot is refused at a phase; nil: it is not.
func (q queue) deny(reboot bool) error {
	p := q.phase()
	why := map[phase]string{stopping: "Instance is preparing to stop", stopped: "Instance has already halted"}
	if reboot {
		why[unstarted], why[leaving] = "Operation requires an active instance", "Operation cannot be performed on a migration source"
		why[starting], why[arriving] = "Instance is currently starting", "Instance is currently starting"
	}
	if why[p] == "" {
		return nil
	}
	return &fault{status: http.StatusForbidden, code: "instance state change not allowed: " + why[p], message: "Forbidden"}
}

func (q queue) run() error {
	if q.phase() != unstarted {
		return q.deny(false)
	}
	q.then("Starting", q.tx.Now)
	end := q.tx.Now.Add(q.tx.Latency(StepStart))
	if q.tx.TakeFault([]string{"propolis", "run"}, world.FaultFail) != nil || activate(q.tx, q.vm) != nil {
		q.then("Failed", end)
		return nil
	}
	q.runs(end)
	return nil
}

// runs writes down when the machine does.
func (q queue) runs(at time.Time) {
	q.then("Running", at)
	guest(q).boots(at)
}

// stop cuts a start short. A reboot that is at work ends first.
//
// Guess arriving-machine-waits-with-states: a state that is asked for while a machine arrives waits
// until it runs.
// Check: `PUT /instance/state` on a target
func (q queue) stop() error {
	at := q.tx.Now
	switch q.phase() {
	case stopping, stopped:
		return nil
	case leaving: // it is over by then, unless the migration fails
		q.vm.Out.Stop = true
		if !q.vm.Out.Fails || q.vm.Out.End.IsZero() {
			return nil
		}
		at = q.vm.Out.End
		q.then("Stopping", at)
	case starting:
		q.vm.Timeline = q.vm.Timeline[:len(q.vm.Timeline)-1]
	case arriving, rebooting:
		at = q.vm.Timeline[len(q.vm.Timeline)-1].From
		q.then("Stopping", at)
	default:
		q.then("Stopping", at)
	}
	q.vm.Console.Cut(at)
	end := at.Add(q.tx.Latency(StepStop) + q.tx.Slower(world.FaultSlowStop, "propolis", "stop"))
	q.then("Stopped", end)
	q.then("Destroyed", end)
	return nil
}

func (q queue) reboot() error {
	if q.phase() != running {
		return q.deny(true)
	}
	q.then("Rebooting", q.tx.Now)
	q.runs(q.tx.Now.Add(q.tx.Latency(StepReboot)))
	return nil
}

// migrates says whether a request to migrate away is accepted.
func (q queue) migrates() bool {
	return slices.Contains([]phase{starting, running, rebooting}, q.phase())
}

// then publishes a state, with the next generation.
func (q queue) then(state string, at time.Time) {
	last := q.vm.Timeline[len(q.vm.Timeline)-1]
	q.vm.Timeline = append(q.vm.Timeline, world.Timepoint{State: state, Generation: last.Generation + 1, From: at})
}
