package agent

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sledctl/sledctl/agent/figures"
	"github.com/sledctl/sledctl/sled/doctor"
	"github.com/sledctl/sledctl/sled/reap"
	"github.com/sledctl/sledctl/sled/status"
)

// Prometheus takes the alert rules, and each raises its alert when it is to, and
// not before.
func TestRulesInPromtool(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed: Debian's package prometheus has it")
	}
	for _, args := range [][]string{{"check", "rules", "sledctl.rules.yml"}, {"test", "rules", "sledctl_test.yml"}} {
		run := exec.CommandContext(t.Context(), promtool, args...)
		run.Dir = "../packaging/prometheus"
		if out, err := run.CombinedOutput(); err != nil {
			t.Errorf("promtool %q: %v\n%s", args, err, out)
		}
	}
}

// Alert rules and the dashboard name figures that a scrape has.
func TestRulesAndDashboardNameFigures(t *testing.T) {
	var out figures.Page
	sledFigures(&out, status.Status{Memory: &status.Memory{}, Doctor: &status.Doctor{}})
	(&agent{table: newTable(1), notifier: &notifier{}, work: &work{}}).measure(&out)
	for _, write := range []func(*figures.Page){
		func(p *figures.Page) { figures.CPU(p, nil) },
		func(p *figures.Page) {
			figures.Counts(p, "sledctl_reap_objects", "x", "verdict", map[reap.Verdict]int{})
		},
		func(p *figures.Page) { figures.Doctor(p, &doctor.Result{}) },
		func(p *figures.Page) {
			figures.NewDurations(time.Now()).Write(p)
			p.Family("sledctl_operation_duration_seconds_count", "counter", "of it")
		},
	} {
		write(&out)
	}
	text := out.String() + "# TYPE sledctl_status_success gauge\n# TYPE sledctl_propolis_unreachable_total counter\n"
	for _, file := range []string{"prometheus/sledctl.rules.yml", "grafana/sledctl.json"} {
		content, err := os.ReadFile("../packaging/" + file)
		if err != nil {
			t.Fatal(err)
		}
		names := regexp.MustCompile(`\bsledctl_[a-z_]+`).FindAllString(string(content), -1)
		if len(names) < 10 {
			t.Errorf("%s names %q only", file, names)
		}
		for _, name := range names {
			if !strings.Contains(text, "# TYPE "+name+" ") {
				t.Errorf("%s: no scrape has %s", file, name)
			}
		}
	}
}
