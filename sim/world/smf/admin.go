package smf

import (
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/scf"
)

// This file is what svcadm(8) and svccfg(8) ask of a running svc.startd.

// Adopt writes a zone's repository and tells svc.startd: instances that were
// added, deleted, enabled or disabled count at once, and one that is new gets
// its running snapshot (configure_vertex in usr/src/cmd/svc/startd/graph.c).
// Other changes wait for Refresh.
func Adopt(tx *world.Tx, zone string, repository *scf.Repository) error {
	for _, s := range repository.Services {
		for _, i := range s.Instances {
			if i.Running == nil {
				i.Refresh()
			}
		}
	}
	if err := SaveRepository(tx, zone, repository); err != nil {
		return err
	}
	adopt(tx, zone, repository, false)
	evaluate(tx, zone)
	return nil
}

// SetTemporary is svcadm enable or disable -t; nil takes it back.
func SetTemporary(tx *world.Tx, zone, fmri string, enabled *bool) {
	if s := Service(tx, zone, fmri); s != nil {
		s.Temporary = enabled
		evaluate(tx, zone)
	}
}

// Refresh makes svc.startd read an instance's running snapshot again, and runs
// its refresh method if it is online.
func Refresh(tx *world.Tx, zone, fmri string, e scf.Entity) {
	s := Service(tx, zone, fmri)
	if s == nil {
		return
	}
	configure(s, e)
	if state, next := State(s, tx.Now); state == Online && next == "" && s.Refresh.Exec != "" {
		tx.Schedule(stopTime(tx, zone, s.Refresh), methodKind, zone, "refresh "+fmri)
	}
	refreshDependents(tx, zone, s)
	evaluate(tx, zone)
}

// refreshDependents restarts those that depend with restart_on='refresh'.
func refreshDependents(tx *world.Tx, zone string, refreshed *world.Service) {
	r := Repository(tx, zone)
	for _, fmri := range FMRIs(r) {
		s := r.Instances[fmri]
		for _, d := range s.Depends {
			if d.RestartOn != "refresh" {
				continue
			}
			for _, f := range d.FMRIs {
				for _, on := range instancesOf(r, f) {
					if on == refreshed {
						Restart(tx, zone, fmri)
					}
				}
			}
		}
	}
}

// Restart stops and starts an online instance; others are left alone.
func Restart(tx *world.Tx, zone, fmri string) {
	s := Service(tx, zone, fmri)
	if state, next := State(s, tx.Now); next == "" && (state == Online || state == Degraded) {
		stop(tx, zone, s, Offline, "restart_request", false)
	}
}

// Clear takes an instance out of maintenance, or out of degraded. False: it is
// in neither.
func Clear(tx *world.Tx, zone, fmri string) bool {
	s := Service(tx, zone, fmri)
	switch state, _ := State(s, tx.Now); state {
	case Maintenance:
		s.Failures, s.Restarts = 0, nil
		become(tx, s, Uninitialized, "", "none")
	case Degraded:
		become(tx, s, Online, "", "none")
	default:
		return false
	}
	evaluate(tx, zone)
	return true
}

// MarkMaintenance puts an instance into maintenance; a running one is stopped
// first.
func MarkMaintenance(tx *world.Tx, zone, fmri string) {
	s := Service(tx, zone, fmri)
	switch state, next := State(s, tx.Now); {
	case next != "" || state == "" || state == Maintenance:
	case state == Online || state == Degraded:
		stop(tx, zone, s, Maintenance, "administrative_request", false)
	default:
		become(tx, s, Maintenance, "", "administrative_request")
	}
}
