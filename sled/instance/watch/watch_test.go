package watch

import (
	"context"
	"encoding/json"
	"io/fs"
	"net"
	"testing"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation/operationtest"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/test/hosttest"
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

// filesOnly is a host that only has files.
type filesOnly struct{ files *hosttest.MemoryFiles }

func (f filesOnly) Run(context.Context, host.Command) (host.Result, error) { return host.Result{}, nil }
func (f filesOnly) Files() host.Files                                      { return f.files }
func (f filesOnly) Dial(context.Context, string, string) (net.Conn, error) { return nil, net.ErrClosed }

func (filesOnly) DeviceVersion(context.Context, host.Device) (int, error) { return 0, fs.ErrNotExist }

// A VM ends because its instance is stopped. A watch hears of the end before it has read of
// the stop in the ledger, and does not take it for a failure.
func TestTheEndOfAVMIsNoFailureIfAnOperationIsTheReason(t *testing.T) {
	ctx := t.Context()
	for name, c := range map[string]struct {
		fact ledger.Fact
		told bool
	}{
		"nobody did anything":      {ledger.Fact{Key: "name/other", Value: json.RawMessage(`"j"`)}, true},
		"an operation has begun":   {ledger.Fact{Key: "intent/1", Value: json.RawMessage(`{"verb":"instance stop","subject":"instance/i"}`)}, false},
		"it has ended already":     {ledger.Fact{Key: "instance/i", Value: json.RawMessage(`{"id":"i","wanted":"stopped"}`)}, false},
		"one on another has begun": {ledger.Fact{Key: "intent/2", Value: json.RawMessage(`{"verb":"instance stop","subject":"instance/j"}`)}, true},
	} {
		env := operationtest.New(t, filesOnly{hosttest.Memory()})
		book, err := env.Ledger(ctx)
		if err != nil {
			t.Fatal(err)
		}
		put := func(f ledger.Fact) {
			_, err := book.Update(ctx, func(ledger.View) ([]ledger.Fact, error) { return []ledger.Fact{f}, nil })
			if err != nil {
				t.Fatal(err)
			}
		}
		told := false
		w := watch{
			book: book, told: map[string]instance.Instance{"i": {Record: record.Record{ID: "i", Wanted: record.WantedRunning}}}, listening: map[string]string{"i": "run"},
			tell: func(instance.Instance) error { told = true; return nil },
		}
		put(ledger.Fact{Key: "instance/i", Value: json.RawMessage(`{"id":"i","wanted":"running"}`)})
		put(c.fact)
		err = w.hear(ctx, heard{id: "i", run: "run", status: instance.Status{State: record.Failed, Reason: "its zone is gone"}})
		if err != nil || told != c.told {
			t.Errorf("%s: told is %v, %v", name, told, err)
		}
	}
}
