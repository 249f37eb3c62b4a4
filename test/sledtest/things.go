package sledtest

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/sim"
)

// LeftOf reads what the error says that is left.
func LeftOf(t testing.TB, a Answer) []string {
	t.Helper()
	if a.Exit == 0 {
		return nil
	}
	var failure struct{ Left []string }
	lines := strings.Split(strings.TrimSpace(a.Errs), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &failure); err != nil {
		t.Fatalf("%v: %s", err, a.Errs)
	}
	return failure.Left
}

// Things lists what is on a sled as an error names it, each with what it lies
// in or goes with.
func Things(t testing.TB, comparable string) map[string][]string {
	t.Helper()
	var world sim.Snapshot
	if err := json.Unmarshal([]byte(comparable), &world); err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for _, z := range world.Zones {
		all["zone "+z.Name] = nil
	}
	for _, l := range world.Links {
		kind := l.Class
		if kind == "misc" {
			kind = "port" // of OPTE
		}
		all[kind+" "+l.Name] = nil
	}
	for _, stack := range world.Stacks {
		for _, a := range stack.Addresses {
			link, _, _ := strings.Cut(a.Object, "/")
			all["address "+a.Object] = []string{"zone " + stack.Zone, "vnic " + link}
		}
	}
	for _, d := range world.Datasets {
		d.Name = regexp.MustCompile(`^\d+:`).ReplaceAllString(d.Name, "") // of a pool that is not imported
		pool, _, _ := strings.Cut(d.Name, "/")
		if d.Local["sledctl:volume"] != "" {
			all["volume "+d.Name] = []string{"pool " + pool}
			continue
		}
		all["dataset "+d.Name] = []string{"pool " + pool}
		for name := d.Name; name != ""; name = name[:max(0, strings.LastIndexAny(name, "/@"))] {
			base := name[strings.LastIndexByte(name, '/')+1:]
			all["dataset "+d.Name] = append(all["dataset "+d.Name], "dataset "+name, "zone "+base)
		}
		if head, snapshot, ok := strings.Cut(d.Name, "@"); ok {
			all["dataset "+d.Name] = append(all["dataset "+d.Name], "volume "+head, "snapshot "+d.Name, "snapshots "+snapshot, "zone "+strings.TrimSuffix(snapshot, "_snap"))
		}
	}
	return all
}
