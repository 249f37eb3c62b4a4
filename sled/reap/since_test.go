package reap

import (
	"testing"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/operation/operationtest"
	"github.com/sledctl/sledctl/illumos/naming"
)

// The zones were listed before an instance was made and the datasets while it
// was, and by the time of the decision it is finished: its dataset is no orphan.
func TestWhatWasWorkedOnWhileTheSledWasLookedAtStays(t *testing.T) {
	const dataset = "rpool/zone/" + zone1
	sawHalf := empty()
	sawHalf.home(zone1, naming.PropertyInstance)
	recorded, begun := empty(), empty()
	recorded.record(t, "web1", run(zone1, "vnic_propolis0"))
	begun.intent(t, "instance/x", true, operation.Intent{Makes: []operation.Object{{Kind: "dataset", Name: dataset}}})
	for name, c := range map[string]struct {
		before, now *scene
		want        Verdict
	}{
		"nothing was":                       {empty(), empty(), Orphan},
		"its zone was gone before":          {recorded, recorded, Orphan},
		"made meanwhile":                    {empty(), recorded, InProgress},
		"deleted meanwhile":                 {recorded, empty(), InProgress},
		"begun before, and ended meanwhile": {begun, empty(), InProgress},
	} {
		before, after := operationtest.Book(t, c.before.facts...), operationtest.Book(t, c.now.facts...)
		k, err := Settings{Names: naming.DefaultPrefixes()}.know(after, seen{boot: thisBoot, before: before}, now(), func(string) (operation.Holder, bool) {
			return operation.Holder{}, false
		})
		if err != nil {
			t.Fatal(err)
		}
		f, err := judge(k, inventory.Of(sawHalf.Listings), Choice{})
		if err != nil {
			t.Fatal(err)
		}
		if got := verdicts(f)["dataset "+dataset]; got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
