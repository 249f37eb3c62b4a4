package smf

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sledctl/sledctl/sim/world"
)

// The events of a method: it is due to run, it has ended.
const (
	methodKind = "smf-method" // start FMRI
	exitKind   = "smf-exit"   // start FMRI STATUS
)

// MethodCall is a method for a shell to run: /sbin/sh -c Script.
type MethodCall struct {
	Zone, FMRI string
	Name       string // start, stop
	Script     string
	Env        map[string]string
	Contract   int  // of the start that it belongs to
	Child      bool // it goes on as the service's process
}

// MethodResult is how a method went.
type MethodResult struct {
	Exit   int
	Output string        // of both streams
	Took   time.Duration // beyond the time when it was due
	Hung   bool          // it waits for what cannot come
}

// Shell runs methods. What a method does is there when it begins.
type Shell func(*world.Tx, MethodCall) MethodResult

// The exit codes of methods that mean more than failure (smf_method(7)).
//
// Guess three-failures-are-maintenance: three failures of a start method in a row are
// *maintenance*.
// Check: a service that fails
// State: settled by usr/src/cmd/svc/startd/startd.h (FAULT_THRESHOLD) and method.c (method_thread)
const (
	exitFatal     = 95
	exitConfig    = 96
	exitNoSMF     = 99
	exitPerm      = 100
	exitTimedOut  = 1 // svc.startd kills a method that takes too long, and counts it as failed
	startAttempts = 3 // start methods that fail in a row before maintenance
)

// quickRestarts is after how many starts svc.startd looks at their average
// distance, and quickRate the distance that is too short (RINST_START_TIMES and
// RINST_FAILURE_RATE_NS in usr/src/cmd/svc/startd/startd.h).
//
// Guess five-starts-are-maintenance: five starts in ten minutes are *maintenance*: to be exact,
// five that are on average less than ten minutes apart.
// Check: a service that fails
// State: settled by usr/src/cmd/svc/startd/startd.h:401-403
const (
	QuickRestarts = 5
	quickRate     = 10 * time.Minute
)

// start begins the start method of an instance whose dependencies are met.
func start(tx *world.Tx, zone string, s *world.Service) {
	become(tx, s, Offline, Online, "dependencies_satisfied")
	if s.Start.Exec == "" { // as milestones without a method
		become(tx, s, Online, "", "")
		return
	}
	s.Contract = int(tx.Count("contract")) + 50
	touch(tx, s)
	tx.Schedule(methodTime(tx, zone, s.Start)+tx.Slower(world.FaultSlowMethod, zone, s.FMRI), methodKind, zone, "start "+s.FMRI)
}

// stop begins the stop method of an instance that is on its way to a state.
func stop(tx *world.Tx, zone string, s *world.Service, next, auxiliary string, failure bool) {
	state, _ := State(s, tx.Now)
	become(tx, s, state, next, auxiliary)
	tx.Schedule(stopTime(tx, zone, s.Stop)+tx.Slower(world.FaultSlowMethod, zone, s.FMRI), methodKind, zone, "stop "+s.FMRI)
	if failure {
		touch(tx, s)
	}
}

// methodTime is how long a start method takes.
//
// Guess start-method-is-a-tenth: of the 480 ms until Propolis answers, 48 are the start method's.
// Check: `svcs -p`, and the method's log
func methodTime(tx *world.Tx, zone string, m world.Method) time.Duration {
	if zone == world.GlobalZone {
		return 0
	}
	if m.Exec == ":true" || m.Exec == manifestImporter {
		return Repository(tx, zone).Pace
	}
	return tx.Latency(world.StepPropolis) / 10
}

func stopTime(tx *world.Tx, zone string, m world.Method) time.Duration {
	if m.Exec == "" || strings.HasPrefix(m.Exec, ":") {
		return 0
	}
	return methodTime(tx, zone, m)
}

// runMethod carries out a method that is due; how it ended is seen when its
// time has passed.
func runMethod(tx *world.Tx, e *world.Event, shell Shell) {
	name, fmri, _ := strings.Cut(e.Name, " ")
	s := Service(tx, e.Zone, fmri)
	state, next := State(s, tx.Now)
	if state == "" || name == "start" && next != Online || name == "stop" && next == "" {
		return
	}
	m := map[string]world.Method{"start": s.Start, "stop": s.Stop}[name]
	if name == "start" {
		s.PID, s.Started = int(tx.Count("pid"))+1000, tx.Now
	}
	if awaitsProgram(tx, e.Zone, s, name, m) {
		return
	}
	result := execute(tx, e.Zone, s, name, m, shell)
	if result.Hung {
		if m.Timeout == 0 {
			return // it stays in transition until the zone is halted
		}
		result.Took, result.Exit = time.Duration(m.Timeout)*time.Second, exitTimedOut
	}
	if result.Took > 0 {
		tx.Schedule(result.Took, exitKind, e.Zone, fmt.Sprintf("%s %s %d", name, fmri, result.Exit))
		return
	}
	ended(tx, e.Zone, s, name, result.Exit)
}

// methodExit carries out the end of a method that took time.
func methodExit(tx *world.Tx, e *world.Event) {
	var name, fmri string
	var exit int
	if _, err := fmt.Sscan(e.Name, &name, &fmri, &exit); err != nil {
		return
	}
	if s := Service(tx, e.Zone, fmri); s != nil {
		ended(tx, e.Zone, s, name, exit)
	}
}

func ended(tx *world.Tx, zone string, s *world.Service, name string, exit int) {
	logEvent(tx, zone, s.FMRI, fmt.Sprintf("Method %q exited with status %d.", name, exit))
	switch name {
	case "start":
		started(tx, zone, s, exit)
	case "stop":
		stopped(tx, zone, s)
	}
	evaluate(tx, zone)
}

// execute runs a method.
func execute(tx *world.Tx, zone string, s *world.Service, name string, m world.Method, shell Shell) MethodResult {
	if name == "start" && tx.TakeFault([]string{zone, s.FMRI}, world.FaultMaintenance) != nil {
		return MethodResult{Exit: exitFatal}
	}
	switch {
	case m.Exec == "" || m.Exec == ":true":
		return MethodResult{}
	case strings.HasPrefix(m.Exec, ":kill"): // with or without a signal; the contract is emptied either way
		return MethodResult{}
	case m.Exec == manifestImporter:
		return MethodResult{Exit: manifestImport(tx, zone)}
	}
	call, err := methodCall(tx, zone, s.FMRI, name, m)
	if err != nil {
		logEvent(tx, zone, s.FMRI, err.Error())
		return MethodResult{Exit: exitConfig}
	}
	logEvent(tx, zone, s.FMRI, fmt.Sprintf("Executing %s method (%q).", name, call.Script))
	result := shell(tx, call)
	if result.Output != "" {
		logLine(tx, zone, s.FMRI, result.Output)
	}
	return result
}

// started is the end of a start method.
func started(tx *world.Tx, zone string, s *world.Service, exit int) {
	s.Wait = exit << 8
	switch exit {
	case 0:
		s.Failures = 0
		become(tx, s, Online, "", "dependencies_satisfied")
		touch(tx, s)
		if usesContract(s) && !contractAlive(tx, zone, s) {
			contractEmpty(tx, zone, s, "ct_ev_exit")
		}
		return
	case exitFatal, exitConfig, exitNoSMF, exitPerm:
		killContract(tx, zone, s)
		become(tx, s, Maintenance, "", "method_failed")
		return
	}
	killContract(tx, zone, s)
	if s.Failures++; s.Failures >= startAttempts {
		become(tx, s, Maintenance, "", "fault_threshold_reached")
		return
	}
	become(tx, s, Offline, "", "method_failed")
}

// usesContract says whether svc.startd watches the instance's processes
// (svc.startd(8), "Service Startup").
func usesContract(s *world.Service) bool { return s.Duration == "" || s.Duration == "contract" }

// stopped is the end of a stop method; what is left of the contract dies.
func stopped(tx *world.Tx, zone string, s *world.Service) {
	killContract(tx, zone, s)
	_, next := State(s, tx.Now)
	if next == "" {
		return
	}
	become(tx, s, next, "", "")
	left(tx, zone, s, s.Auxiliary == "ct_ev_exit")
}

// contractEmpty is what svc.startd does when the last process of an online
// instance is gone: stop and start again, unless that happens all the time.
func contractEmpty(tx *world.Tx, zone string, s *world.Service, why string) {
	s.Restarts = append(s.Restarts, tx.Now)
	if extra := len(s.Restarts) - QuickRestarts; extra > 0 {
		s.Restarts = slices.Delete(s.Restarts, 0, extra)
	}
	if n := len(s.Restarts); n == QuickRestarts && s.Restarts[n-1].Sub(s.Restarts[0])/(QuickRestarts-1) < quickRate {
		logEvent(tx, zone, s.FMRI, "Restarting too quickly, changing state to maintenance.")
		s.Restarts = nil
		killContract(tx, zone, s)
		become(tx, s, Maintenance, "", "restarting_too_quickly")
		left(tx, zone, s, true)
		return
	}
	logEvent(tx, zone, s.FMRI, "Stopping because all processes in service exited.")
	stop(tx, zone, s, Offline, why, true)
}
