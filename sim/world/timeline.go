package world

import (
	"cmp"
	"slices"
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
// reads differently: a due event, a point of a timeline, the door of a
// repository. False if there is none.
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
	for _, r := range s.Services {
		see(r.Door)
		for _, svc := range r.Instances {
			line(svc.Timeline)
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
