package world

import "github.com/sledctl/sledctl/sim/world/scf"

// This file is what svcadm(8) and svccfg(8) ask of a running svc.startd.

// Adopt writes a zone's repository and tells svc.startd: instances that were
// added, deleted, enabled or disabled count at once, and one that is new gets
// its running snapshot (configure_vertex in usr/src/cmd/svc/startd/graph.c).
// Other changes wait for Refresh.
func (tx *Tx) Adopt(zone string, repository *scf.Repository) error {
	for _, s := range repository.Services {
		for _, i := range s.Instances {
			if i.Running == nil {
				i.Refresh()
			}
		}
	}
	if err := tx.SaveRepository(zone, repository); err != nil {
		return err
	}
	tx.adopt(zone, repository, false)
	tx.evaluate(zone)
	return nil
}

// SetTemporary is svcadm enable or disable -t; nil takes it back.
func (tx *Tx) SetTemporary(zone, fmri string, enabled *bool) {
	if s := tx.Service(zone, fmri); s != nil {
		s.Temporary = enabled
		tx.evaluate(zone)
	}
}

// Refresh makes svc.startd read an instance's running snapshot again, and runs
// its refresh method if it is online.
func (tx *Tx) Refresh(zone, fmri string, e scf.Entity) {
	s := tx.Service(zone, fmri)
	if s == nil {
		return
	}
	s.configure(e)
	if state, next := s.State(tx.Now); state == Online && next == "" && s.Refresh.Exec != "" {
		tx.Schedule(tx.stopTime(zone, s.Refresh), methodKind, zone, "refresh "+fmri)
	}
	tx.refreshDependents(zone, s)
	tx.evaluate(zone)
}

// refreshDependents restarts those that depend with restart_on='refresh'.
func (tx *Tx) refreshDependents(zone string, refreshed *Service) {
	r := tx.Repository(zone)
	for _, fmri := range r.FMRIs() {
		s := r.Instances[fmri]
		for _, d := range s.Depends {
			if d.RestartOn != "refresh" {
				continue
			}
			for _, f := range d.FMRIs {
				for _, on := range r.instancesOf(f) {
					if on == refreshed {
						tx.Restart(zone, fmri)
					}
				}
			}
		}
	}
}

// Restart stops and starts an online instance; others are left alone.
func (tx *Tx) Restart(zone, fmri string) {
	s := tx.Service(zone, fmri)
	if state, next := s.State(tx.Now); next == "" && (state == Online || state == Degraded) {
		tx.stop(zone, s, Offline, "restart_request", false)
	}
}

// Clear takes an instance out of maintenance, or out of degraded. False: it is
// in neither.
func (tx *Tx) Clear(zone, fmri string) bool {
	s := tx.Service(zone, fmri)
	switch state, _ := s.State(tx.Now); state {
	case Maintenance:
		s.Failures, s.Restarts = 0, nil
		tx.become(s, Uninitialized, "", "none")
	case Degraded:
		tx.become(s, Online, "", "none")
	default:
		return false
	}
	tx.evaluate(zone)
	return true
}

// MarkMaintenance puts an instance into maintenance; a running one is stopped
// first.
func (tx *Tx) MarkMaintenance(zone, fmri string) {
	s := tx.Service(zone, fmri)
	switch state, next := s.State(tx.Now); {
	case next != "" || state == "" || state == Maintenance:
	case state == Online || state == Degraded:
		tx.stop(zone, s, Maintenance, "administrative_request", false)
	default:
		tx.become(s, Maintenance, "", "administrative_request")
	}
}
