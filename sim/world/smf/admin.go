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

// Refresh makes svc.startd read an instance's running snapshot again.
func Refresh(tx *world.Tx, zone, fmri string, e scf.Entity) {
	if s := Service(tx, zone, fmri); s != nil {
		configure(s, e)
		evaluate(tx, zone)
	}
}

// Restart stops and starts an online instance; others are left alone.
func Restart(tx *world.Tx, zone, fmri string) {
	s := Service(tx, zone, fmri)
	if state, next := State(s, tx.Now); next == "" && state == Online {
		stop(tx, zone, s, Offline, "restart_request", false)
	}
}

// Clear takes an instance out of maintenance. False: it is not in it.
func Clear(tx *world.Tx, zone, fmri string) bool {
	s := Service(tx, zone, fmri)
	if state, _ := State(s, tx.Now); state != Maintenance {
		return false
	}
	s.Failures, s.Restarts = 0, nil
	become(tx, s, Uninitialized, "", "none")
	evaluate(tx, zone)
	return true
}
