package smf

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
)

// What a package puts on the sled are programs that nothing here simulates. So the methods
// of services in the global zone may be left to a process that runs them as programs, and
// says here how they ended.

// awaitsProgram notes a method that is a program's to run.
func awaitsProgram(tx *world.Tx, zone string, s *world.Service, name string, m world.Method) bool {
	if !tx.State.Methods || zone != world.GlobalZone || m.Exec == "" || strings.HasPrefix(m.Exec, ":") || m.Exec == manifestImporter {
		return false
	}
	s.Program = name
	logEvent(tx, zone, s.FMRI, fmt.Sprintf("Executing %s method (%q).", name, m.Exec))
	return true
}

// Programs are the methods that wait for a program, or are run by one. One that cannot be
// prepared has failed.
func Programs(tx *world.Tx) (calls []MethodCall) {
	r := tx.SMF(world.GlobalZone)
	if r == nil {
		return nil
	}
	for _, fmri := range FMRIs(r) {
		s := r.Instances[fmri]
		if s.Program == "" {
			continue
		}
		m := map[string]world.Method{"start": s.Start, "stop": s.Stop}[s.Program]
		call, err := methodCall(tx, world.GlobalZone, fmri, s.Program, m)
		if err != nil {
			call = MethodCall{Zone: world.GlobalZone, FMRI: fmri, Name: s.Program, Script: fmt.Sprintf("exit %d", exitConfig)}
		}
		call.Contract, call.Child = s.Contract, s.Duration == child && s.Program == "start"
		calls = append(calls, call)
	}
	return calls
}

// ProgramEnded is the end of a method that a program has run. One that no longer counts,
// e.g. because the sled was rebooted, changes nothing.
func ProgramEnded(tx *world.Tx, call MethodCall, exit int, output string) {
	s := Service(tx, world.GlobalZone, call.FMRI)
	if s == nil || s.Program != call.Name {
		return
	}
	s.Program = ""
	if output != "" {
		logLine(tx, world.GlobalZone, call.FMRI, output)
	}
	ended(tx, world.GlobalZone, s, call.Name, exit)
}

// child is the duration of a service whose process is its start method.
const child = "child"

// ProgramBegan is the start of a method that goes on as the service's process.
func ProgramBegan(tx *world.Tx, call MethodCall, pid int) {
	s := Service(tx, world.GlobalZone, call.FMRI)
	if s == nil || s.Program != call.Name || s.Contract != call.Contract {
		return
	}
	s.Program, s.PID = "", pid
	tx.State.Processes = append(tx.State.Processes, &world.Process{
		PID: pid, OSPID: pid, Zone: world.GlobalZone, FMRI: call.FMRI, Argv: strings.Fields(call.Script), Started: tx.Now,
	})
	started(tx, world.GlobalZone, s, 0)
	evaluate(tx, world.GlobalZone)
}

// Lives says whether a process of such a service is there; with pid 0, any.
func Lives(tx *world.Tx, pid int) bool {
	return slices.ContainsFunc(tx.State.Processes, func(p *world.Process) bool {
		s := Service(tx, p.Zone, p.FMRI)
		return s != nil && s.Duration == child && (pid == 0 || p.PID == pid)
	})
}

// ChildEnded is the end of a service's process: it is started again, unless it was to end.
func ChildEnded(tx *world.Tx, call MethodCall, pid int, output string) {
	s := Service(tx, world.GlobalZone, call.FMRI)
	if s == nil || !Lives(tx, pid) {
		return
	}
	if output != "" {
		logLine(tx, world.GlobalZone, call.FMRI, output)
	}
	Exit(tx, pid)
	if state, next := State(s, tx.Now); state == Online && next == "" {
		contractEmpty(tx, world.GlobalZone, s, "ct_ev_exit")
	}
}
