package figures

import (
	"strings"
	"testing"
	"time"

	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/sled/doctor"
	"github.com/sledctl/sledctl/sled/events"
)

func has(t *testing.T, p *Page, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(p.String(), line+"\n") {
			t.Errorf("no %s in\n%s", line, p)
		}
	}
}

// An operation is counted once, however often it is listed, and not if it ended before the
// agent started, or without a known beginning.
func TestDurations(t *testing.T) {
	start := time.Unix(1000, 0)
	ended := func(id string, at, took time.Duration, result operation.Result) events.Event {
		return events.Event{Last: operation.Last{ID: id, Verb: "instance ensure", Start: start.Add(at - took), End: start.Add(at), Result: result}}
	}
	d := NewDurations(start)
	before := ended("a", -time.Second, time.Second, operation.Done)
	quick, slow, failed := ended("b", time.Second, 400*time.Millisecond, operation.Done), ended("c", time.Minute, 400*time.Second, operation.Done), ended("d", time.Minute, 2*time.Second, operation.Failed)
	unknown := ended("e", time.Second, 0, operation.Done)
	unknown.Start = time.Time{}
	d.Count([]events.Event{before, quick, unknown})
	d.Count([]events.Event{quick, slow, failed})
	d.Count([]events.Event{slow, failed})
	var p Page
	d.Write(&p)
	of := func(result string) string { return `{verb="instance ensure",result="` + result + `"` }
	const name = "sledctl_operation_duration_seconds"
	has(t, &p,
		name+"_bucket"+of("ok")+`,le="0.1"} 0`, name+"_bucket"+of("ok")+`,le="0.5"} 1`, name+"_bucket"+of("ok")+`,le="300"} 1`, name+"_bucket"+of("ok")+`,le="+Inf"} 2`,
		name+"_sum"+of("ok")+"} 400.4", name+"_count"+of("ok")+"} 2", name+"_bucket"+of("failed")+`,le="2"} 1`, name+"_count"+of("failed")+"} 1")
}

func TestFiguresOfTheHost(t *testing.T) {
	var p Page
	CPU(&p, []VM{{"web1", 1500 * time.Millisecond}})
	Counts(&p, "x_zones", "Zones.", "state", map[string]int{"running": 2, "installed": 1})
	Doctor(&p, nil)
	Doctor(&p, &doctor.Result{Checks: []doctor.Checked{{ID: "b", Verdict: doctor.Fail}, {ID: "a", Verdict: doctor.OK}}})
	has(t, &p, `sledctl_vm_cpu_seconds_total{vm="web1"} 1.5`, `x_zones{state="installed"} 1`, `x_zones{state="running"} 2`,
		"sledctl_doctor_check{check=\"a\",result=\"ok\"} 1\nsledctl_doctor_check{check=\"b\",result=\"fail\"} 1")
}
