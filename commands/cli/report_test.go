package cli

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sled/failure"
)

func failed() failure.Document {
	return failure.Document{
		Message: "zone.clone: zone propolis_instance_24aeb7a7-1423-547d-9529-254a2c5ef7d2: zoneadm: cannot create snapshot: out of space",
		Step:    "zone.clone of zone propolis_instance_24aeb7a7-1423-547d-9529-254a2c5ef7d2", Elapsed: 300,
		Host: &failure.HostOutput{
			Argv: []string{"zoneadm", "-z", "propolis_instance_24aeb7a7-1423-547d-9529-254a2c5ef7d2", "clone", "propolis_base_bac38764_1"},
			Exit: 1, Stderr: "cannot create snapshot: out of space",
		},
		Changed: true,
		Hint:    "fix the cause and run the same command again; to see what this run did, run: sledctl trace d4baf06d-0c3e-4a5e-9f0e-5f2d8a0d2a11",
	}
}

func TestAFailureOnATerminal(t *testing.T) {
	many := failure.Document{
		Message: "4 of 33 instances: not done\n  ci3, ci7, dev-2: zone.clone: zone propolis_instance_24aeb7a7: zoneadm: cannot create snapshot: out of space\n  web1: locked",
		Hint:    "did you mean web1? to list the instances, run: sledctl instance list",
	}
	narrow := []string{
		"error  zone.clone: zone propolis_instance_24aeb7a7-1423-547d-9529-254a2c5ef7d2:",
		"       zoneadm: cannot create snapshot: out of space",
		"step   zone.clone of zone",
		"       propolis_instance_24aeb7a7-1423-547d-9529-254a2c5ef7d2, after 300ms",
		"host   zoneadm -z propolis_instance_24aeb7a7-1423-547d-9529-254a2c5ef7d2 clone",
		"       propolis_base_bac38764_1",
		"       exit 1: cannot create snapshot: out of space",
		"left   nothing",
		"next   fix the cause and run the same command again",
		"       sledctl trace d4baf06d-0c3e-4a5e-9f0e-5f2d8a0d2a11",
		"         to see what this run did",
	}
	for name, c := range map[string]struct {
		f    failure.Document
		term string
		want []string
	}{
		"of 80 columns":    {failed(), "xterm", narrow},
		"that only prints": {failed(), "dumb", narrow},
		"of several": {many, "xterm", []string{
			"error  4 of 33 instances: not done",
			"  ci3, ci7, dev-2: zone.clone: zone propolis_instance_24aeb7a7: zoneadm:",
			"    cannot create snapshot: out of space",
			"  web1: locked",
			"next   did you mean web1?",
			"       sledctl instance list   to list the instances",
		}},
	} {
		streams, _, errs := terminal.Buffers(terminal.Pretended{Terminal: true, Width: 80, Environ: []string{"TERM=" + c.term}})
		printFailure(c.f, streams.Err, terminal.FormatAuto)
		if diff := cmp.Diff(c.want, strings.Split(strings.TrimSuffix(ansi.Strip(errs.String()), "\n"), "\n")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if coloured := strings.Contains(errs.String(), "\x1b[31merror\x1b[0m") && strings.Contains(errs.String(), "\x1b[1mnext\x1b[0m"); coloured != (c.term == "xterm") {
			t.Errorf("%s: colours: %q", name, errs)
		}
	}
}

type step string

func (s step) Verb() string                      { return string(s) }
func (step) Explain() []host.Line                { return nil }
func (step) Do(context.Context, host.Host) error { return nil }
func (step) Undo() any                           { return nil }

// A step that failed reads as its progress does, with the instance's name first and what the
// host said once; what is not a step of one instance stays as it is.
func TestAStepThatFailedIsSaidInWords(t *testing.T) {
	const zone = "zone propolis_instance_24aeb7a7-1423-547d-9529-254a2c5ef7d2"
	refused := &host.CommandError{Command: host.Command{Program: "zoneadm"}, Result: host.Result{Exit: 1, Stderr: []byte("out of space")}}
	clone := plan.Action{Object: zone, Why: "from propolis_base_1", Step: step("zone.clone")}
	await := plan.Action{Object: zone, Why: "earlier commands race with its boot", Change: plan.Wait, Step: step("smf.await")}
	web1 := operation.Report{Subject: "instance/1", Name: "web1"}
	for want, err := range map[string]error{
		"web1: cannot clone the zone from propolis_base_1: out of space":      failure.WithReport(&plan.StepError{Action: clone, Err: refused}, web1),
		"web1: cannot clone the zone from propolis_base_1: it is in use":      failure.WithReport(&plan.StepError{Action: clone, Err: errors.New("it is in use")}, web1),
		"web1: waiting for the zone's services: time is up":                   failure.WithReport(&plan.StepError{Action: await, Err: context.DeadlineExceeded}, web1),
		"web1: interrupted by a signal":                                       failure.WithReport(&interruptedError{ErrInterrupted}, web1),
		"web1: interrupted by a signal while waiting for the zone's services": failure.WithReport(&interruptedError{&plan.StepError{Action: await, Err: ErrInterrupted}}, web1),
		"": &plan.StepError{Action: clone, Err: refused},
	} {
		f := failureOf(err, time.Now())
		streams, _, errs := terminal.Buffers(terminal.Pretended{Terminal: true, Width: 200, Environ: []string{"TERM=dumb"}})
		if printFailure(f, streams.Err, terminal.FormatAuto); f.Said != want || want != "" && !strings.HasPrefix(errs.String(), "error  "+want+"\n") || strings.Contains(errs.String(), "of zone") != (want == "") || f.Step != "" && !strings.Contains(errs.String(), "step   ") {
			t.Errorf("%q, want %q:\n%s", f.Said, want, errs)
		}
	}
}

// A script finds each line by its label, as ever.
func TestAFailureInAPipe(t *testing.T) {
	streams, _, errs := terminal.Buffers(terminal.Pretended{})
	printFailure(failed(), streams.Err, terminal.FormatAuto)
	for _, line := range []string{"sledctl: error: zone.clone: ", "sledctl: step: ", "sledctl: host: zoneadm ", "sledctl: left on the host: nothing\n", "sledctl: hint: fix "} {
		if !strings.Contains(errs.String(), line) {
			t.Errorf("no %q in\n%s", line, errs)
		}
	}
}
