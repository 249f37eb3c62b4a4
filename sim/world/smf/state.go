// Package smf is svc.startd and svc.configd of each zone of a simulated sled. The
// repository's form is that of package scf.
package smf

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/scf"
)

// The states of smf(7).
const (
	Uninitialized = "uninitialized"
	Offline       = "offline"
	Online        = "online"
	Maintenance   = "maintenance"
	Disabled      = "disabled"
)

// The instances that the restarter treats in a way of their own.
const (
	RestarterFMRI           = "svc:/system/svc/restarter:default"
	EarlyManifestImportFMRI = "svc:/system/early-manifest-import:default"
	ManifestImportFMRI      = "svc:/system/manifest-import:default"
	SingleUserFMRI          = "svc:/milestone/single-user:default"
)

// Repository is the SMF of a zone, or nil while the kernel has no such zone.
// The caller may change it.
func Repository(tx *world.Tx, zone string) *world.Repository {
	tx.TouchServices(zone)
	return tx.SMF(zone)
}

// DoorOpen says whether svc.configd of the zone answers.
func DoorOpen(tx *world.Tx, zone string) bool {
	r := Repository(tx, zone)
	return r != nil && !r.Door.IsZero() && !tx.Now.Before(r.Door)
}

// Service is a service instance of a zone as the restarter knows it, or nil.
func Service(tx *world.Tx, zone, fmri string) *world.Service {
	if r := Repository(tx, zone); r != nil {
		return r.Instances[fmri]
	}
	return nil
}

// State is the instance's state and the next one if it is in transition.
// Both are empty for an instance that the restarter has not taken in.
func State(s *world.Service, now time.Time) (state, next string) {
	if s == nil {
		return "", ""
	}
	state, next, _ = strings.Cut(world.At(s.Timeline, now).State, ">")
	return state, next
}

// Generation is the generation of the restarter property group; it rises with
// every change of it.
func Generation(s *world.Service, now time.Time) uint64 {
	if s == nil {
		return 0
	}
	return world.At(s.Timeline, now).Generation
}

// Since is when the instance got into its state; the zero time for one that
// the restarter has not taken in.
func Since(s *world.Service, now time.Time) time.Time {
	if s == nil {
		return time.Time{}
	}
	return world.At(s.Timeline, now).From
}

// Wanted says whether the instance is enabled: for now, or else for good.
func Wanted(s *world.Service) bool {
	if s.Temporary != nil {
		return *s.Temporary
	}
	return s.Enabled
}

// become writes down a state. Only the last one is kept: what comes later is
// an event.
func become(tx *world.Tx, s *world.Service, state, next, auxiliary string) {
	generation := Generation(s, tx.Now) + 1
	point := world.Timepoint{State: state, Generation: generation, From: tx.Now}
	if next != "" {
		point.State += ">" + next
		// The state's own timestamp stays while it is on its way to another.
		if was, _ := State(s, tx.Now); was == state {
			point.From = Since(s, tx.Now)
		}
	}
	s.Timeline = []world.Timepoint{point}
	if auxiliary != "" {
		s.Auxiliary = auxiliary
	}
}

// touch is a change of the restarter property group that is none of the state.
func touch(tx *world.Tx, s *world.Service) {
	if len(s.Timeline) > 0 {
		s.Timeline[len(s.Timeline)-1].Generation++
	}
}

// FMRIs are the instances that the restarter knows, sorted.
func FMRIs(r *world.Repository) []string { return slices.Sorted(maps.Keys(r.Instances)) }

// Groups are the property groups that svc.startd keeps in memory for an
// instance: general_ovr and restarter (restarter.h, libscf_priv.h). Nil for an
// instance that it has not taken in.
func Groups(s *world.Service, now time.Time) scf.Groups {
	state, next := State(s, now)
	if state == "" {
		return nil
	}
	var groups scf.Groups
	if s.Temporary != nil {
		groups = append(groups, &scf.Group{Name: "general_ovr", Type: "framework", Transient: true, Properties: []*scf.Property{
			{Name: "enabled", Type: "boolean", Values: []string{strconv.FormatBool(*s.Temporary)}},
		}})
	}
	if next == "" {
		next = "none"
	}
	restarter := &scf.Group{Name: "restarter", Type: "framework", Transient: true}
	add := func(name, typ string, values ...string) {
		restarter.Properties = append(restarter.Properties, &scf.Property{Name: name, Type: typ, Values: values})
	}
	if s.Start.Exec != "" {
		add("logfile", "astring", LogPath(s.FMRI))
	}
	if s.Contract != 0 {
		add("contract", "count", strconv.Itoa(s.Contract))
	}
	if !s.Started.IsZero() {
		add("start_pid", "count", strconv.Itoa(s.PID))
		add("start_method_timestamp", "time", scfTime(s.Started))
		add("start_method_waitstatus", "integer", strconv.Itoa(s.Wait))
	}
	if s.Auxiliary != "" {
		add("auxiliary_state", "astring", s.Auxiliary)
	}
	add("next_state", "astring", next)
	add("state", "astring", state)
	add("state_timestamp", "time", scfTime(Since(s, now)))
	return append(groups, restarter)
}

// scfTime is a time as the repository prints it.
func scfTime(t time.Time) string { return fmt.Sprintf("%d.%09d", t.Unix(), t.Nanosecond()) }
