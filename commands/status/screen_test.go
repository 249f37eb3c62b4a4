package status

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/sled/status"
)

var update = flag.Bool("update", false, "rewrite the screens in testdata")

const pool = "oxp_6eb758c7-ee2e-4e47-ae36-2884c421fb31"

// sick is a sled with problems of several lengths.
func sick() status.Status {
	at := time.Date(2026, 11, 23, 6, 44, 10, 0, time.UTC)
	earlier, booted := at.Add(-17*time.Minute), at.Add(-18*time.Minute)
	vm := func(name string) status.Subject { return status.Subject{Kind: "instance", Name: name} }
	const long = "Propolis restarted and lost the VM, and because of that this text is longer than a terminal is wide"
	s := status.Status{
		Sled: status.Sled{Name: "drill", Time: at, Release: "OmniOS v11 r151058", Booted: &booted}, Verdict: status.IsTrouble,
		Problems: []status.Problem{
			{Code: "disk-absent", Severity: status.Trouble, Subject: status.Subject{Kind: "disk", Name: "c14t0d0"}, Hands: "put it back",
				Text: "disk c14t0d0 (u2:3, A412F396) is absent; 10 VMs run on, without its pool", Next: []string{"zpool clear " + pool}, Count: 10},
			{Code: "vm-failed", Severity: status.Trouble, Subject: vm("web01"), Since: &earlier, Reason: "its service is in maintenance", Text: "web01 failed: its service is in maintenance", Next: []string{"sledctl instance ensure web01"}},
			{Code: "vm-failed", Severity: status.Trouble, Subject: vm("web06"), NotBefore: &earlier, Reason: long, Text: "web06 failed: " + long, Next: []string{"sledctl instance ensure web06"}},
			{Code: "vm-absent", Severity: status.Trouble, Subject: status.Subject{Kind: "instances"}, Text: "12 VMs are absent: sled was rebooted", Next: []string{"sledctl instance ensure --all"}, Count: 12},
			{Code: "pool-full", Severity: status.Attention, Text: "pool rpool is 95% full: 10.3G free", Next: []string{"sledctl storage list --pool rpool"}},
			{Code: "vm-changed", Severity: status.Attention, Subject: vm("web10"), Text: "web10 runs, and its zone's configuration was changed: net", Next: []string{"sledctl instance get web10"}},
			{Code: "fault-armed", Severity: status.Attention, Text: `simulated sled: 1 fault is armed (fail "zoneadm clone")`, Next: []string{"sledctl sim fault list"}},
		},
		Instances: status.Instances{Total: 40, WantedUp: 38, Up: 23, ByState: map[string]int{"running": 22, "migrating": 1, "failed": 3, "absent": 12, "stopped": 2, "paused": 1}},
		Disks:     []status.Disk{{Slot: "u2:3", State: "absent"}, {Slot: "u2:1", State: "ready"}, {Slot: "m2:17", State: "ready"}},
		Pools:     []status.Pool{{Name: pool, State: "unavail"}, {Name: "rpool", State: "ready", Size: 1000, Used: 950}},
		Ledger:    status.Ledger{Copies: []status.Copy{{Verdict: "member"}, {Verdict: "missing"}}, Epoch: 1, Seq: 103, Written: &earlier},
		Memory:    &status.Memory{Limit: 800 << 30, Used: 400 << 30, Reserved: 64 << 30}, CPUs: status.CPUs{VCPUs: 166},
		Network: status.Network{Link: "propolis_stub0", Control: 38, Guest: 38},
		Work: []status.Work{{Subject: vm("web12"), Verb: "instance migrate", PID: 23669, User: "root", Since: at.Add(-26 * time.Second), Step: "instance.send", At: 1, Steps: 1,
			Migration: &status.Moving{Direction: "departing", Sled: "sled2", Phase: "RamPush"}}},
		Last: []status.Last{
			{Verb: "instance stop", Subject: vm("ci8"), Start: earlier},
			{Verb: "base ensure", Subject: status.Subject{Kind: "base", Name: pool}, Start: earlier, Error: "no"},
		},
	}
	return s
}

// wellSled is one on which nothing is wrong.
func wellSled() status.Status {
	s := sick()
	s.Verdict, s.Problems, s.Work = status.IsOK, nil, nil
	s.Disks, s.Pools = s.Disks[1:], s.Pools[1:]
	return s
}

// marked shows a style by letters, so that a screen in testdata shows it, too.
func marked(style terminal.Style, text string) string {
	return map[terminal.Style]string{terminal.Good: "<g>", terminal.Warn: "<y>", terminal.Bad: "<r>", terminal.Strong: "<b>", terminal.Faint: "<f>"}[style] + text + "</>"
}

func plain(_ terminal.Style, text string) string { return text }

func TestScreens(t *testing.T) {
	unknown := sick()
	unknown.Verdict, unknown.Unknown = status.IsUnknown, []string{"look at pools: zpool did not answer within 5 s"}
	for name, text := range map[string]string{
		"sick-80":       draw(sick(), 80, plain).text(),
		"sick-140":      draw(sick(), 140, plain).text(),
		"sick-60":       draw(sick(), 60, plain).text(),
		"colours-80":    draw(sick(), 80, marked).text(),
		"well-80":       draw(wellSled(), 80, plain).text(),
		"unknown-80":    draw(unknown, 80, plain).text(),
		"problems-80":   draw(sick(), 80, plain).list(),
		"unprepared-80": draw(status.Status{Sled: status.Sled{Name: "s1", Time: sick().Sled.Time}, Verdict: status.IsUnknown}, 80, plain).text(),
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join("testdata", name+".txt")
			if *update {
				if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if diff := cmp.Diff(string(want), text); diff != "" || err != nil {
				t.Error(diff, err)
			}
		})
	}
}

// What is at work is told with how far it has come, and by whom.
func TestWhatIsAtWork(t *testing.T) {
	at := time.Date(2026, 11, 23, 6, 44, 10, 0, time.UTC)
	vm := status.Subject{Kind: "instance", Name: "web1"}
	for want, w := range map[string]status.Work{
		"web1 migrate to sled2, RamPush, 26s (root, pid 7)":     {Subject: vm, Verb: "instance migrate", User: "root", Step: "x", Steps: 3, Migration: &status.Moving{Direction: "departing", Sled: "sled2", Phase: "RamPush"}},
		"web1 migrate to sled2, step 1/3 x, 26s (pid 7)":        {Subject: vm, Verb: "instance migrate", Step: "x", At: 1, Steps: 3, Migration: &status.Moving{Direction: "departing", Sled: "sled2"}},
		"web1 ensure from 10.0.0.1:12400, RamPull, 26s (pid 7)": {Subject: vm, Verb: "instance ensure", Migration: &status.Moving{Direction: "arriving", Sled: "10.0.0.1:12400", Phase: "RamPull"}},
		"web1 ensure, step 7/16 zone.boot, 26s (anna, pid 7)":   {Subject: vm, Verb: "instance ensure", User: "anna", Step: "zone.boot", At: 7, Steps: 16},
		"reap, 26s (pid 7)": {Subject: status.Subject{Kind: "sled", Name: "reap"}, Verb: "reap"},
	} {
		w.PID, w.Since = 7, at.Add(-26*time.Second)
		s := draw(status.Status{Sled: status.Sled{Time: at}, Work: []status.Work{w}}, 80, plain)
		if got := strings.Join(s.work(), ""); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

func draw(s status.Status, width int, style func(terminal.Style, string) string) screen {
	return screen{Status: s, width: width, lines: lines, style: style, zone: time.UTC}
}

// A screen fits the terminal at each width, and cuts no text and no command.
func TestAScreenFits(t *testing.T) {
	for width := 60; width <= 150; width++ {
		for what, text := range map[string]string{"screen": draw(sick(), width, plain).text(), "problems": draw(sick(), width, plain).list()} {
			for line := range strings.Lines(text) {
				if line = strings.TrimRight(line, "\n"); ansi.StringWidth(line) > width {
					t.Fatalf("%s at %d: a line of %d: %q", what, width, ansi.StringWidth(line), line)
				}
			}
			if n := strings.Count(text, "\n"); what == "screen" && n > lines {
				t.Errorf("at %d: %d lines", width, n)
			}
			if what == "problems" {
				joined := strings.Join(strings.Fields(text), " ")
				for _, p := range sick().Problems {
					if !strings.Contains(joined, strings.TrimSuffix(p.Text, ": "+p.Reason)) || !strings.Contains(joined, p.Reason) || !strings.Contains(joined, p.Next[0]) {
						t.Errorf("at %d: %q or %q is not whole", width, p.Text, p.Next[0])
					}
				}
			}
		}
	}
}
