package world

import (
	"slices"
)

// Exit is the death of a process. svc.startd notices when it was the last one
// of its contract.
func (tx *Tx) Exit(pid int) {
	i := slices.IndexFunc(tx.State.Processes, func(p *Process) bool { return p.PID == pid })
	if i < 0 {
		return
	}
	p := tx.State.Processes[i]
	tx.State.Processes = slices.Delete(tx.State.Processes, i, i+1)
	s := tx.Service(p.Zone, p.FMRI)
	if s == nil {
		return
	}
	state, next := s.State(tx.Now)
	if (state == Online || state == Degraded) && next == "" && s.usesContract() && !tx.contractAlive(p.Zone, s) {
		tx.contractEmpty(p.Zone, s, "ct_ev_exit")
	}
}

// Abort is the death of a process that says why, in the log of its service.
func (tx *Tx) Abort(pid int, stderr string) {
	for _, p := range tx.State.Processes {
		if p.PID == pid && p.FMRI != "" {
			tx.logLine(p.Zone, p.FMRI, stderr)
		}
	}
	tx.Exit(pid)
}

// contractAlive says whether a process of the instance is left.
func (tx *Tx) contractAlive(zone string, s *Service) bool {
	return slices.ContainsFunc(tx.State.Processes, func(p *Process) bool { return p.Zone == zone && p.FMRI == s.FMRI })
}

func (tx *Tx) killContract(zone string, s *Service) {
	tx.State.Processes = slices.DeleteFunc(tx.State.Processes, func(p *Process) bool {
		return p.Zone == zone && p.FMRI == s.FMRI
	})
	s.Contract = 0
}

func (tx *Tx) killZone(zone string) {
	tx.State.Processes = slices.DeleteFunc(tx.State.Processes, func(p *Process) bool { return p.Zone == zone })
}
