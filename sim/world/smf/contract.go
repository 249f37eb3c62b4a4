package smf

import (
	"slices"

	"github.com/sledctl/sledctl/sim/world"
)

// Exit is the death of a process. svc.startd notices when it was the last one
// of its contract.
func Exit(tx *world.Tx, pid int) {
	i := slices.IndexFunc(tx.State.Processes, func(p *world.Process) bool { return p.PID == pid })
	if i < 0 {
		return
	}
	p := tx.State.Processes[i]
	tx.State.Processes = slices.Delete(tx.State.Processes, i, i+1)
	s := Service(tx, p.Zone, p.FMRI)
	if s == nil {
		return
	}
	state, next := State(s, tx.Now)
	if state == Online && next == "" && usesContract(s) && !contractAlive(tx, p.Zone, s) {
		contractEmpty(tx, p.Zone, s, "ct_ev_exit")
	}
}

// Abort is the death of a process that says why, in the log of its service.
func Abort(tx *world.Tx, pid int, stderr string) {
	for _, p := range tx.State.Processes {
		if p.PID == pid && p.FMRI != "" {
			logLine(tx, p.Zone, p.FMRI, stderr)
		}
	}
	Exit(tx, pid)
}

// contractAlive says whether a process of the instance is left.
func contractAlive(tx *world.Tx, zone string, s *world.Service) bool {
	return slices.ContainsFunc(tx.State.Processes, func(p *world.Process) bool { return p.Zone == zone && p.FMRI == s.FMRI })
}

func killContract(tx *world.Tx, zone string, s *world.Service) {
	tx.State.Processes = slices.DeleteFunc(tx.State.Processes, func(p *world.Process) bool {
		return p.Zone == zone && p.FMRI == s.FMRI
	})
	s.Contract = 0
}

func killZone(tx *world.Tx, zone string) {
	tx.State.Processes = slices.DeleteFunc(tx.State.Processes, func(p *world.Process) bool { return p.Zone == zone })
}
