package watch

import (
	"testing"

	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// Only a VM that answers is followed: of one that an operation takes down, a monitor
// would report that its zone is gone, as if it had failed.
func TestOnlyAVMThatAnswersIsFollowed(t *testing.T) {
	built := record.Record{ID: "i", Incarnation: &record.Incarnation{PropolisID: "p", Ensured: true}}
	for name, c := range map[string]struct {
		of     record.Record
		status instance.Status
		want   bool
	}{
		"it runs": {built, instance.Status{State: "running"}, true},
		"it runs, and something of it was changed": {built, instance.Status{State: "running", Reason: "its VNIC vnic0 is gone"}, true},
		"it ends by itself":                        {built, instance.Status{State: record.Stopping}, true},
		"an operation takes it down":               {built, instance.Status{State: record.Stopping, Reason: "instance delete is running"}, false},
		"it has ended":                             {built, instance.Status{State: "destroyed"}, false},
		"it has failed":                            {built, instance.Status{State: record.Failed}, false},
		"it could not be asked":                    {built, instance.Status{State: record.Unknown}, false},
		"it has no VM yet":                         {record.Record{ID: "i", Incarnation: &record.Incarnation{}}, instance.Status{State: record.Creating}, false},
		"it has no run":                            {record.Record{ID: "i"}, instance.Status{State: record.Stopped}, false},
	} {
		if got := tells(instance.Instance{Record: c.of, Status: c.status}); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
