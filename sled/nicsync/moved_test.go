package nicsync

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation/operationtest"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/peer/napi"
	simnapi "github.com/sledctl/sledctl/sim/napi"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/vnic"
)

// The records of an instance that has moved: its new sled claims what is its own
// beyond doubt, its old one leaves them alone, and nobody else is concerned.
func TestVerdictsOnWhatHasMoved(t *testing.T) {
	vm := func(arrived, moving string, nics ...NIC) VM {
		return VM{Name: "web1", IDs: []string{id(1)}, State: napi.StateRunning, Arrived: arrived, Moving: moving, NICs: nics}
	}
	nic := NIC{MAC: mac(1), Link: "vnic1"}
	came, moves := "came by migration m", "it is arriving"
	departed := VM{Name: "web1", IDs: []string{id(1), id(11)}, Departed: "went to sled2", NICs: []NIC{{MAC: mac(1)}}, Stayed: []string{mac(7)}}
	claim := napi.Change{CNUUID: ours}
	for name, c := range map[string]struct {
		recorded []VM
		own      []NIC
		mac, vm  string
		cn       string
		state    string
		verdict  Verdict
		change   napi.Change
		goes     bool
	}{
		"arrived, and its old sled's":                {[]VM{vm(came, "", nic)}, nil, mac(1), id(1), theirs, "running", Arrived, claim, false},
		"arrived, and of another state":              {[]VM{vm(came, "", nic)}, nil, mac(1), id(1), theirs, "stopped", Arrived, napi.Change{CNUUID: ours, State: "running"}, false},
		"arrived, and ours already":                  {[]VM{vm(came, "", nic)}, nil, mac(1), id(1), ours, "running", InUse, napi.Change{}, false},
		"arrived, and without an owner":              {[]VM{vm(came, "", nic)}, nil, mac(1), id(1), "", "running", NeedsCN, claim, false},
		"arriving":                                   {[]VM{vm(came, moves, nic)}, nil, mac(1), id(1), theirs, "running", Migrating, napi.Change{}, false},
		"not arrived":                                {[]VM{vm("", "", nic)}, nil, mac(1), id(1), theirs, "running", Conflict, napi.Change{}, false},
		"arrived, of another VM":                     {[]VM{vm(came, "", nic)}, nil, mac(1), id(2), theirs, "running", Conflict, napi.Change{}, false},
		"arrived, of another MAC":                    {[]VM{vm(came, "", nic)}, nil, mac(2), id(1), theirs, "running", Conflict, napi.Change{}, false},
		"arrived, its MAC taken here, too":           {[]VM{vm(came, "", nic), {Name: "web2", IDs: []string{id(2)}, NICs: []NIC{nic}}}, nil, mac(1), id(1), theirs, "running", Conflict, napi.Change{}, false},
		"departed":                                   {[]VM{departed}, nil, mac(1), id(1), ours, "running", Departed, napi.Change{}, false},
		"departed, by its Propolis id":               {[]VM{departed}, nil, mac(1), id(11), ours, "stopped", Departed, napi.Change{}, false},
		"departed, by its MAC":                       {[]VM{departed}, nil, mac(1), id(5), ours, "running", Departed, napi.Change{}, false},
		"departed, in provisioning":                  {[]VM{departed}, nil, mac(1), id(1), ours, "provisioning", Departed, napi.Change{}, false},
		"departed, a MAC that nobody knows":          {[]VM{departed}, nil, mac(4), id(1), ours, "running", Departed, napi.Change{}, false},
		"departed, and claimed":                      {[]VM{departed}, nil, mac(1), id(1), theirs, "running", NotOurs, napi.Change{}, false},
		"departed, and without an owner":             {[]VM{departed}, nil, mac(1), id(1), "", "running", NotOurs, napi.Change{}, false},
		"departed, and its control VNIC's":           {[]VM{departed}, nil, mac(7), id(1), ours, "running", Leaked, napi.Change{}, true},
		"departed, and a foreign one that is leaked": {[]VM{departed}, nil, mac(2), id(2), ours, "running", Leaked, napi.Change{}, true},
		"departed, and its MAC on a link":            {[]VM{departed}, []NIC{nic}, mac(1), id(1), ours, "running", Conflict, napi.Change{}, false},
		"departed, and here again":                   {[]VM{departed, vm("", "", nic)}, nil, mac(1), id(1), ours, "running", InUse, napi.Change{}, false},
		"departed, and on its way here again":        {[]VM{departed, vm("", moves, nic)}, nil, mac(1), id(1), ours, "running", Migrating, napi.Change{}, false},
		"departed, and its MAC is taken by now":      {[]VM{departed, {Name: "web2", IDs: []string{id(2)}, State: napi.StateRunning, NICs: []NIC{nic}}}, nil, mac(1), id(2), ours, "running", InUse, napi.Change{}, false},
	} {
		var links []vnic.Link
		for _, n := range c.own {
			links = append(links, vnic.Link{Name: n.Link, MAC: n.MAC, Class: "vnic"})
		}
		local := here(naming.DefaultPrefixes(), nil, nil, links, c.recorded)
		r := napi.Record{Etag: "E", NIC: napi.NIC{MAC: c.mac, BelongsToType: napi.TypeZone, BelongsToUUID: c.vm, CNUUID: c.cn, State: c.state}}
		for _, f := range Judge(Owner{CN: ours}, local, []napi.Record{r}) {
			if f.Record != nil && (f.Verdict != c.verdict || f.Change != c.change || f.Removed != c.goes) {
				t.Errorf("%s: %s: %s, change %+v, goes %v", name, f.Verdict, f.Reason, f.Change, f.Removed)
			}
		}
	}
}

// remembers are the VMs of a ledger whose facts are VMs.
func remembers(view ledger.View) ([]VM, error) {
	var vms []VM
	for key, value := range view.All("vm/") {
		var vm VM
		if err := json.Unmarshal(value, &vm); err != nil {
			return nil, err
		}
		vm.Handover = ledger.Fact{Key: key, Value: value}
		vms = append(vms, vm)
	}
	return vms, nil
}

// notes writes a VM into the ledger.
func (r *rig) notes(vm VM) {
	r.t.Helper()
	value, err := json.Marshal(vm)
	if err != nil {
		r.t.Fatal(err)
	}
	r.write(ledger.Fact{Key: "vm/" + vm.Name, Value: value})
}

func (r *rig) forgets(name string) { r.write(ledger.Fact{Key: "vm/" + name}) }

func (r *rig) write(f ledger.Fact) {
	r.t.Helper()
	book, err := r.env.Ledger(r.ctx)
	if err == nil {
		_, err = book.Update(r.ctx, func(ledger.View) ([]ledger.Fact, error) { return []ledger.Fact{f}, nil })
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) remembered() []VM {
	r.t.Helper()
	vms, err := remembers(operationtest.View(r.t, r.env))
	if err != nil {
		r.t.Fatal(err)
	}
	return vms
}

// What is remembered of a move is forgotten by a sync that finds that all records
// have followed, and not before.
func TestHandoversGoWhenTheRecordsHaveFollowed(t *testing.T) {
	departed := VM{Name: "web1", IDs: []string{id(1)}, Departed: "went to sled2", NICs: []NIC{{MAC: mac(1)}, {MAC: mac(2)}}}
	for name, c := range map[string]struct {
		make func(*rig)
		o    Options
		want int // handovers
		has  string
	}{
		"not claimed yet":                {func(r *rig) { r.notes(departed); r.record(1, ours, "running") }, all(), 1, "ours running"},
		"claimed":                        {func(r *rig) { r.notes(departed); r.record(1, theirs, "running") }, all(), 0, "theirs running"},
		"no record":                      {func(r *rig) { r.notes(departed) }, all(), 0, "gone"},
		"claimed by half":                {func(r *rig) { r.notes(departed); r.record(1, theirs, "running"); r.record(2, ours, "running") }, all(), 1, "theirs running"},
		"a dry run":                      {func(r *rig) { r.notes(departed); r.record(1, theirs, "running") }, Options{Backfill: true, DryRun: true}, 1, "theirs running"},
		"next to what is removed":        {func(r *rig) { r.notes(departed); r.record(1, theirs, "running"); r.record(3, ours, "running") }, all(), 0, "theirs running"},
		"next to a failure":              {func(r *rig) { r.notes(departed); r.record(1, theirs, "running"); r.fails() }, all(), 1, "theirs running"},
		"arrived":                        {func(r *rig) { r.arrives(); r.record(1, ours, "running") }, all(), 0, "ours running"},
		"arrived, to claim":              {func(r *rig) { r.arrives(); r.record(1, theirs, "running") }, all(), 1, "ours running"},
		"arrived, not to be claimed now": {func(r *rig) { r.arrives(); r.record(1, theirs, "running") }, Options{State: true, Reap: true, MaxDelete: -1}, 1, "theirs running"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, t.Context(), simnapi.EraD)
				defer r.sled.Close()
				r.settings.Recorded = remembers
				c.make(r)
				_, err := r.sync(c.o)
				if name != "next to a failure" && err != nil {
					t.Error(err)
				}
				if got := len(r.remembered()); got != c.want || r.has(1) != c.has {
					t.Errorf("%d handovers, and the record is %q", got, r.has(1))
				}
			})
		})
	}
}

// arrives makes a VM that has come from another sled.
func (r *rig) arrives() {
	r.vm(1, "running")
	r.notes(VM{Name: "web1", IDs: []string{id(1)}, Arrived: "came by migration m", NICs: []NIC{{MAC: mac(1), Link: "vm1"}}})
}

// fails makes a write necessary that fails.
func (r *rig) fails() {
	r.vm(4, "installed")
	r.record(4, ours, "running")
	r.change(func(tx *world.Tx) {
		tx.Arm(world.Fault{Name: world.FaultNAPIFail, Match: "PUT", Times: 0, Exit: 422, Text: "no"})
	})
}

// The ledger is asked about a VM right before each write: one that has
// begun to move since the look, has left or was made, is judged again.
func TestTheStateFileIsAskedBeforeEachWrite(t *testing.T) {
	mover := VM{Name: "web1", IDs: []string{id(1)}, NICs: []NIC{{MAC: mac(1)}}}
	moving, departed, other := mover, mover, mover
	moving.Moving = "it is departing"
	departed.Departed = "went to sled2"
	other.Name, other.IDs, other.Moving = "web2", []string{id(2)}, "it is departing"
	other.NICs = nil
	for name, c := range map[string]struct {
		now  VM
		cn   string
		o    Options
		want string
		err  bool
	}{
		"departing, and to be filled in":        {moving, "", all(), " running", false},
		"departing, and in another state":       {moving, ours, all(), "ours running", false},
		"departed, and to be filled in":         {departed, "", all(), " running", false},
		"another one departs":                   {other, "", all(), "ours stopped", false},
		"another one departs, which forbids it": {other, "", Options{Backfill: true, State: true, MaxDelete: -1, DisableDuringMigration: true}, " running", true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, t.Context(), simnapi.EraD)
				defer r.sled.Close()
				r.settings.Recorded = remembers
				stopped := mover
				stopped.State = napi.StateStopped
				r.notes(stopped)
				r.record(1, c.cn, "running")
				looks := 0
				r.env.Host = host.Trace(r.env.Host, func(e host.Event) {
					if !strings.HasPrefix(e.Line.Text, "dladm show-phys") {
						return
					}
					if looks++; looks == 2 { // the last that is asked before anything is decided
						r.notes(c.now)
					}
				})
				_, err := r.sync(c.o)
				if (err != nil) != c.err || r.has(1) != c.want {
					t.Errorf("the record is %q, want %q: %v", r.has(1), c.want, err)
				}
			})
		})
	}
}
