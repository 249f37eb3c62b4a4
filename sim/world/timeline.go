package world

import (
	"cmp"
	_ "embed" // of the figures
	"slices"
	"strings"
	"time"
)

// At is the point of a timeline that holds at a time: the last one that has
// come. The zero Timepoint means that none has.
func At(timeline []Timepoint, now time.Time) Timepoint {
	for i := len(timeline) - 1; i >= 0; i-- {
		if !timeline[i].From.After(now) {
			return timeline[i]
		}
	}
	return Timepoint{}
}

// Schedule writes down what will happen in this many from now. Events of one
// time happen in the order in which they were scheduled.
func (tx *Tx) Schedule(in time.Duration, kind, zone, name string) {
	e := &Event{At: tx.Now.Add(in), Kind: kind, Zone: zone, Name: name}
	due := tx.State.Due
	i, _ := slices.BinarySearchFunc(due, e.At, func(d *Event, at time.Time) int {
		return cmp.Or(d.At.Compare(at), -1) // behind its equals
	})
	tx.State.Due = slices.Insert(due, i, e)
}

// Scheduled says whether an event of a kind, zone and name is due.
func (tx *Tx) Scheduled(kind, zone, name string) bool {
	return slices.ContainsFunc(tx.State.Due, func(e *Event) bool { return e.Kind == kind && e.Zone == zone && e.Name == name })
}

// Cancel drops the scheduled events of a kind, zone and name; an empty name is
// every name.
func (tx *Tx) Cancel(kind, zone, name string) {
	tx.State.Due = slices.DeleteFunc(tx.State.Due, func(e *Event) bool {
		return e.Kind == kind && e.Zone == zone && (name == "" || e.Name == name)
	})
}

// NextTime is the earliest moment after now at which anything in the state
// reads differently: a due event, a point of a timeline. False if there is none. What
// SMF will do is an event: its timelines and doors are of the past.
func (s *State) NextTime(now time.Time) (time.Time, bool) {
	var next time.Time
	see := func(t time.Time) {
		if t.After(now) && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	line := func(points []Timepoint) {
		for i := len(points) - 1; i >= 0 && points[i].From.After(now); i-- {
			see(points[i].From)
		}
	}
	for _, e := range s.Due {
		see(e.At)
	}
	for _, stack := range s.Stacks {
		for _, a := range stack.Addresses {
			line(a.Timeline)
		}
	}
	for _, p := range s.Processes {
		see(p.Started)
		if p.VM != nil {
			line(p.VM.Timeline)
			for _, m := range []*Migration{p.VM.In, p.VM.Out} {
				if m != nil {
					line(m.Phases)
					see(m.End)
				}
			}
			for _, text := range p.VM.Console.Coming {
				see(text.From)
			}
		}
	}
	return next, !next.IsZero()
}

// The steps whose duration is known.
//
// Guess install-and-clone-times: installing a sparse zone takes 20 s (`helios2021`), a clone 1.8 s
// (`helios`, whose brand cannot clone: as long as an installation).
// Check: `ptime zoneadm -z ZONE install`
//
// Guess unconfigure-is-most-of-a-clone: of a clone's 1.7 s (`helios2021`; 1.8 s `helios`) its hook
// works for 1.2 s in the mounted zone, where it makes host keys of three kinds.
// Check: `zoneadm list -cp` in a loop during `zoneadm clone`
const (
	StepConfigure         = "configure"          // zonecfg, one batch with its commit
	StepInstall           = "install"            // zoneadm install
	StepClone             = "clone"              // zoneadm clone
	StepUnconfigure       = "unconfigure"        // of that, the work of a clone hook in the mounted zone
	StepBoot              = "boot"               // zoneadm boot, to its exit
	StepHalt              = "halt"               // zoneadm halt of a zone with processes
	StepMilestone         = "milestone"          // from boot to single-user, with an SMF repository that knows all manifests
	StepMilestoneUnseeded = "milestone-unseeded" // the same when they are imported at first boot
	StepDHCP              = "dhcp"               // until a lease is there
	StepAddress           = "address"            // until a static address is ok
	StepPropolis          = "propolis"           // from enabling its service until it answers
	StepVNIC              = "vnic"               // dladm create-vnic
	StepReservoir         = "reservoir"          // rsrvrctl -s, for each GiB by which the reservoir grows
	StepLink              = "link"               // dladm show-linkprop, of each link
)

// Latency is how long a step takes on this sled. A figure that is a guess has the guess's id
// behind it. "helios2021" has the figures
// that were measured when the sled agent learnt to clone zones (omicron PR 385)
// and "helios" those of logs of a rack (omicron issues 5318 and 7918); "none"
// and steps that nobody measured take no time.
//
// Guess link-held-two-milliseconds: `dladm show-linkprop` holds each link for 2 ms (`link` in
// latencies.txt).
// Check: `ptime dladm show-linkprop` on a sled with hundreds of VNICs
func (tx *Tx) Latency(step string) time.Duration { return tx.State.LatencyOf(step) }

// LatencyOf is Tx.Latency.
func (s *State) LatencyOf(step string) time.Duration {
	for line := range strings.Lines(latencies) {
		if f := strings.Fields(line); len(f) > 2 && f[0] == s.Latency && f[1] == step {
			took, _ := time.ParseDuration(f[2]) // our own
			return took
		}
	}
	return 0
}

//go:embed latencies.txt
var latencies string
