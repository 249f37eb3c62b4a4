package instance

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/operation/operationtest"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sled/instance/migration"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/test/hosttest"
	"github.com/sledctl/sledctl/zone"
)

func TestStatus(t *testing.T) {
	c := settings()
	running := made(t, c, web(1))
	begun := half(running)
	stopped, never := running, running
	stopped.Incarnation, stopped.Wanted = nil, record.WantedStopped
	never.Incarnation = nil
	z := func(state zone.State) evidence {
		return evidence{boot: thisBoot, there: true, zone: zone.Zone{Name: running.Incarnation.Zone, State: state}}
	}
	vm := func(vm migration.VM) evidence { g := z(zone.Running); g.vm = vm; return g }
	gone := evidence{boot: thisBoot}
	rebooted := func(g evidence) evidence { g.boot = "a later boot"; return g }
	open := func(g evidence) evidence { g.open = "instance ensure"; return g }
	atWork := func(g evidence) evidence { g = open(g); g.atWork = true; return g }
	drifted := func(g evidence) evidence { g.drift = []string{"its VNIC is gone"}; return g }
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for name, s := range map[string]struct {
		record   record.Record
		evidence evidence
		state    record.State
		reason   string // part of it
	}{
		"stopped on purpose":                      {stopped, gone, record.Stopped, ""},
		"wanted, and nothing of it made":          {never, gone, record.Absent, "nothing of it"},
		"the zones cannot be listed":              {running, evidence{zones: errors.New("no list"), boot: thisBoot}, record.Unknown, "no list"},
		"its zone is gone, the sled rebooted":     {running, rebooted(gone), record.Absent, "rebooted while it ran; its zone is missing"},
		"it was being made at the reboot":         {begun, rebooted(z(zone.Installed)), record.Absent, "rebooted while it was being created; its zone is from before the reboot"},
		"an operation was killed":                 {running, open(gone), record.Absent, "missing; instance ensure started and did not finish"},
		"a verb that died changed it":             {running, open(drifted(z(zone.Installed))), record.Failed, "not running; instance ensure started and did not finish"},
		"a verb halts its zone":                   {running, atWork(z(zone.ShuttingDown)), record.Stopping, "instance ensure is running"},
		"a verb has removed its zone":             {running, atWork(gone), record.Stopping, "instance ensure is running"},
		"a verb stops its Propolis":               {running, atWork(vm(migration.VM{Err: refused})), record.Stopping, "instance ensure is running"},
		"a verb rebuilds it after a reboot":       {running, rebooted(atWork(gone)), record.Absent, "rebooted while it ran"},
		"a verb makes its zone":                   {begun, atWork(gone), record.Creating, "not created yet; instance ensure is running"},
		"it was halted and changed":               {running, drifted(z(zone.Installed)), record.Failed, "not running; its VNIC is gone"},
		"its VM runs, and it was changed":         {running, drifted(vm(migration.VM{State: "Running", ID: running.ID})), record.Running, "its VNIC is gone"},
		"nobody listens":                          {running, vm(migration.VM{Err: refused}), record.Failed, "does not run"},
		"its zone is gone":                        {running, gone, record.Absent, "removed by another program"},
		"its zone is not created yet":             {begun, gone, record.Creating, "not created yet"},
		"its zone is being made":                  {begun, open(gone), record.Creating, "instance ensure started and did not finish"},
		"its zone was left by an earlier boot":    {running, rebooted(z(zone.Installed)), record.Absent, "before the reboot"},
		"its zone is installed, and to be booted": {begun, z(zone.Installed), record.Creating, "installed"},
		"its zone was halted":                     {running, z(zone.Installed), record.Failed, "installed, not running"},
		"its zone hangs":                          {running, z(zone.ShuttingDown), record.Failed, "shutting_down"},
		"its VM runs":                             {running, vm(migration.VM{State: "Running", ID: running.ID}), record.Running, ""},
		"its VM reboots":                          {running, vm(migration.VM{State: "Rebooting", ID: running.ID}), "rebooting", ""},
		"its VM has failed":                       {running, vm(migration.VM{State: "Failed", ID: running.ID}), record.Failed, ""},
		"its Propolis has a foreign VM":           {running, vm(migration.VM{Err: &propolis.OtherError{ID: otherID}}), record.Unknown, otherID},
		"its Propolis has no VM yet":              {begun, vm(migration.VM{Err: propolis.ErrNoInstance}), record.Creating, "no VM yet"},
		"its Propolis does not answer yet":        {begun, vm(migration.VM{Err: errors.New("refused")}), record.Creating, "no VM yet"},
		"its Propolis has lost the VM":            {running, vm(migration.VM{Err: fmt.Errorf("get: %w", propolis.ErrNoInstance)}), record.Failed, "lost the VM"},
		"its Propolis hangs":                      {running, vm(migration.VM{Err: context.DeadlineExceeded}), record.Unknown, "did not answer"},
		"its Propolis cannot be reached":          {running, vm(migration.VM{Err: errors.New("refused")}), record.Unknown, "refused"},
		"its address is being removed":            {running, open(vm(migration.VM{Err: syscall.EHOSTUNREACH})), record.Unknown, "its address or the route to it is missing; instance ensure started and did not finish"},
	} {
		t.Run(name, func(t *testing.T) {
			got := judgeStatus(s.record, s.evidence)
			if got.State != s.state || !strings.Contains(got.Reason, s.reason) || s.reason == "" && got.Reason != "" {
				t.Errorf("%s: %q", got.State, got.Reason)
			}
			if s.evidence.open != "" && strings.Contains(got.Reason, "its VNIC") {
				t.Errorf("a change of a running operation is blamed on others: %q", got.Reason)
			}
		})
	}
}

// A service that is down is never reported as a foreign VM that runs there.
func TestTheStatusOfAnInstanceWhosePropolisIsDownIsUnknown(t *testing.T) {
	c := settings()
	r := made(t, c, web(1))
	if got := statusIn(c.Blueprint(), r, prepared().bring(c, r, atAddress).look()); got.State != record.Unknown || !strings.Contains(got.Reason, "not online") {
		t.Errorf("%+v", got)
	}
	if got := statusIn(c.Blueprint(), half(r), prepared().bring(c, r, atAddress).look()); got.State != record.Creating {
		t.Errorf("of one that is being made: %+v", got)
	}
}

// A verb that ended after the ledger was read, and before its lock was tried, has not died: else who
// watches would be told for an instant that it did not finish.
func TestAVerbThatEndedMeanwhileDidNotDie(t *testing.T) {
	for ended, want := range map[bool]string{true: "is running", false: "started and did not finish"} {
		s := sim.New(sim.Options{Seed: 1}, hosttest.Files)
		defer s.Close()
		env := operationtest.New(t, s.Host())
		book, err := env.Ledger(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		update := func(facts ...ledger.Fact) {
			t.Helper()
			if _, err := book.Update(t.Context(), func(ledger.View) ([]ledger.Fact, error) { return facts, nil }); err != nil {
				t.Fatal(err)
			}
		}
		r := made(t, settings(), web(1))
		incarnation := *r.Incarnation
		incarnation.Boot, r.Incarnation = "", &incarnation // as on this sled, which has no boot yet
		intent := `{"verb":"instance delete","subject":"` + record.Subject(r.ID) + `"}`
		update(ledger.Fact{Key: naming.KeyIntent + "1", Value: []byte(intent)})
		before := operationtest.View(t, env)
		if ended {
			update(operation.Forget("1"))
		}
		all, err := Settings{}.ObserveIn(t.Context(), env, before, []record.Record{r}, &inventory.Inventory{})
		if err != nil || !strings.Contains(all[0].Status.Reason, want) {
			t.Errorf("ended is %v: %+v, %v", ended, all, err)
		}
	}
}
