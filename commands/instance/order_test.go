package instance

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
)

func TestOnlyWhatStartsFollowsTheStartOrder(t *testing.T) {
	order := func(s string) record.StartOrder { return record.StartOrder(strings.Index("-abc", s) * 10) }
	given := []string{"-", "b", "a", "-"}
	for s, want := range map[sequence][][]string{
		allAtOnce:    {{"-", "b", "a", "-"}},
		inStartOrder: {{"a"}, {"b"}, {"-", "-"}},
	} {
		if diff := cmp.Diff(want, waves(s, given, order)); diff != "" {
			t.Errorf("%t: %s", s, diff)
		}
	}
}

// A dry run names those of one number before what would be done with them. Those that are
// up are not named, and without any number nothing is said.
func TestADryRunSaysTheStartOrder(t *testing.T) {
	result := func(name string, order record.StartOrder, changes bool) instance.Result {
		r := instance.Result{Record: record.Record{Name: name, Spec: record.Spec{StartOrder: order}}, Report: operation.Report{Name: name}}
		if changes {
			r.Report.Plan.Actions = []plan.Action{{ID: name}}
		}
		return r
	}
	for name, c := range map[string]struct {
		sequence sequence
		results  []instance.Result
		want     string
	}{
		"two numbers, and none": {
			inStartOrder, []instance.Result{result("db1", 11, true), result("db2", 11, true), result("app1", 21, true), result("web1", 0, true)},
			"# start order 10: db1, db2|db1|db2|# start order 20: app1|app1|# start order none: web1|web1",
		},
		"some are up":     {inStartOrder, []instance.Result{result("db1", 11, false), result("db2", 11, true), result("app1", 21, false)}, "# start order 10: db2|db1|db2|app1"},
		"no number":       {inStartOrder, []instance.Result{result("web1", 0, true), result("web2", 0, true)}, "web1|web2"},
		"not in sequence": {allAtOnce, []instance.Result{result("web1", 11, true), result("web2", 0, true)}, "web1|web2"},
		"nothing":         {inStartOrder, nil, ""},
	} {
		var got []string
		for _, r := range ordered(c.sequence, c.results) {
			if r.Plan.Why != "" {
				got = append(got, "# "+r.Plan.Why)
			} else {
				got = append(got, r.Name)
			}
		}
		if diff := cmp.Diff(c.want, strings.Join(got, "|")); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
