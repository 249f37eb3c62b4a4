package instance

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/engine/operation/operationtest"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/record"
)

const (
	thisOne  = "11111111-1111-4111-8111-111111111111"
	otherOne = "22222222-2222-4222-8222-222222222222"
)

func vm(state string, in, out *propolis.Migration) VM {
	return VM{State: state, ID: "web1", Generation: 1, Migration: propolis.Migrations{In: in, Out: out}}
}

func phase(id, state string) *propolis.Migration { return &propolis.Migration{ID: id, State: state} }

// Where a machine is, as each side's Propolis says. What cannot be determined is never
// taken for an end.
func TestWhereaboutsByTheSource(t *testing.T) {
	silent := VM{Err: errors.New("no route to host")}
	for name, c := range map[string]struct {
		vm       VM
		ours, by whereabouts // by this migration, and by any
	}{
		"it runs":                          {vm("Running", nil, nil), atSource, atSource},
		"it runs after another has failed": {vm("Running", nil, phase(otherOne, "Error")), atSource, atSource},
		"it runs after this has failed":    {vm("Running", nil, phase(thisOne, "Error")), atSource, atSource},
		"it reboots":                       {vm("Rebooting", nil, nil), atSource, atSource},
		"it moves":                         {vm("Migrating", nil, phase(thisOne, "RamPush")), onTheWay, onTheWay},
		"it has sent all":                  {vm("Migrating", nil, phase(thisOne, "Finish")), onTheWay, onTheWay},
		"it moves by another":              {vm("Migrating", nil, phase(otherOne, "RamPush")), onTheWay, onTheWay},
		"it stops, having moved":           {vm("Stopping", nil, phase(thisOne, "Finish")), atTarget, atTarget},
		"it is gone, having moved":         {vm("Destroyed", nil, phase(thisOne, "Finish")), atTarget, atTarget},
		"it is gone by another":            {vm("Destroyed", nil, phase(otherOne, "Finish")), unclear, atTarget},
		"it has ended by itself":           {vm("Destroyed", nil, nil), unclear, unclear},
		"it has failed":                    {vm("Failed", nil, phase(thisOne, "Error")), unclear, unclear},
		"there is none":                    {VM{Err: propolis.ErrNoInstance}, unclear, unclear},
		"nobody answers":                   {silent, unclear, unclear},
		"there is another machine":         {VM{State: "Running", ID: "db1"}, unclear, unclear},
	} {
		if ours, by := c.vm.outOf("web1", thisOne), c.vm.outOf("web1", ""); ours != c.ours || by != c.by {
			t.Errorf("%s: %d by this, %d by any; want %d, %d", name, ours, by, c.ours, c.by)
		}
	}
}

func TestWhereaboutsByTheTarget(t *testing.T) {
	for name, c := range map[string]struct {
		vm   VM
		want whereabouts
	}{
		"there is none":                 {VM{Err: propolis.ErrNoInstance}, atSource},
		"it was not asked":              {VM{}, atSource},
		"nobody answers":                {VM{Err: errors.New("no route to host")}, unclear},
		"it comes":                      {vm("Migrating", phase(thisOne, "RamPush"), nil), onTheWay},
		"all of it has come":            {vm("Migrating", phase(thisOne, "Finish"), nil), onTheWay},
		"it runs":                       {vm("Running", phase(thisOne, "Finish"), nil), atTarget},
		"its guest has shut down since": {vm("Destroyed", phase(thisOne, "Finish"), nil), atTarget},
		"it has failed since":           {vm("Failed", phase(thisOne, "Finish"), nil), atTarget},
		"it could not be made":          {vm("Failed", phase(thisOne, "Sync"), nil), atSource},
		"the migration broke off":       {vm("Failed", phase(thisOne, "Error"), nil), atSource},
		"of an earlier try":             {vm("Failed", phase(otherOne, "Error"), nil), atSource},
		"there is another machine":      {VM{State: "Running", ID: "db1"}, unclear},
	} {
		if got := c.vm.into("web1", thisOne); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// Of another sled's sledctl nothing is believed that it has not said.
func TestAnswersOfATarget(t *testing.T) {
	const good = `{"apiVersion":"sledctl/v1","kind":"Instance","id":"web1","state":"running","migration":{"id":"` + thisOne + `","state":"arrived","peer":""}}`
	for name, c := range map[string]struct {
		out string
		ok  bool
	}{
		"the instance, arrived":    {good, true},
		"rebooting meanwhile":      {strings.Replace(good, "running", "rebooting", 1), true},
		"nothing":                  {"", false},
		"a banner":                 {"Welcome to sled2!\n" + good, false},
		"more than the instance":   {good + good, false},
		"another instance":         {strings.Replace(good, `"web1"`, `"db1"`, 1), false},
		"by another migration":     {strings.Replace(good, thisOne, otherOne, 1), false},
		"not arrived":              {strings.Replace(good, "arrived", "arriving", 1), false},
		"by no migration":          {`{"kind":"Instance","id":"web1","state":"running","migration":null}`, false},
		"of an older sledctl":      {`{"kind":"Instance","id":"web1","state":"running"}`, false},
		"a list":                   {`{"kind":"InstanceList","items":[` + good + `]}`, false},
		"what is no JSON any more": {good[:len(good)-1], false},
	} {
		if err := arrivalOf(Answer{Stdout: []byte(c.out)}, "web1", thisOne); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRefusalsOfATarget(t *testing.T) {
	told := func(exit int, left string) string {
		return fmt.Sprintf(`{"kind":"Error","exit":%d,"cause":"failed","message":"not today","left":%s,"hint":"repair it"}`, exit, left)
	}
	for name, c := range map[string]struct {
		answer  Answer
		err     error
		clean   bool
		message string
	}{
		"it has taken all back":           {Answer{Exit: 1, Stderr: []byte("sledctl: warning: x\n" + told(1, "[]") + "\n")}, nil, true, "sled2: not today"},
		"it has left something":           {Answer{Exit: 3, Stderr: []byte(told(3, `["zone z"]`))}, nil, false, "sled2: not today"},
		"another one is at work":          {Answer{Exit: 6, Stderr: []byte(told(6, "[]"))}, nil, false, "sled2: not today"},
		"it says another code":            {Answer{Exit: 255, Stderr: []byte(told(1, "[]"))}, nil, false, ""},
		"the connection is gone":          {Answer{Exit: 255, Stderr: []byte("Connection to sled2 closed by remote host.\n")}, nil, false, "sled2: Connection to sled2 closed by remote host."},
		"it says nothing":                 {Answer{Exit: 1}, nil, false, "sled2: exited with 1 and printed nothing"},
		"it was killed after it had said": {Answer{Exit: -1, Stderr: []byte(told(1, "[]"))}, nil, false, ""},
		"there is no such program":        {Answer{Exit: -1}, errors.New("no such program"), true, "sled2: no such program"},
	} {
		got := refusalOf("sled2", c.answer, c.err)
		if got.clean() != c.clean || c.message != "" && got.Error() != c.message {
			t.Errorf("%s: clean %v: %v", name, got.clean(), got)
		}
	}
}

// ssh passes its arguments to a shell, others get them unchanged.
func TestWordsForATarget(t *testing.T) {
	args := []string{"instance", "ensure", "--migrate-from", "[fd00::5]:12400"}
	for want, target := range map[string][]string{
		"ssh sled2 sledctl instance ensure --migrate-from '[fd00::5]:12400'":         {"ssh", "sled2", "sledctl"},
		"/usr/bin/ssh -p 7 sled2 x instance ensure --migrate-from '[fd00::5]:12400'": {"/usr/bin/ssh", "-p", "7", "sled2", "x"},
		"sledctl --host sim:b instance ensure --migrate-from [fd00::5]:12400":        {"sledctl", "--host", "sim:b"},
	} {
		if got := strings.Join(commandLine(target, args), " "); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// While a machine may be on either of two sleds, no verb goes by what one side
// knows.
func TestVerbsOnAnArrival(t *testing.T) {
	c := settings()
	r := half(made(t, c, web(1)))
	r.Migration = &record.Migration{ID: thisOne, Source: "10.78.0.2:12400"}
	at := func(state string, in *propolis.Migration, source VM) Observed {
		s := prepared().bring(c, r, atOnline)
		if state != "" {
			s.seen.Inside.VM = VM{State: state, ID: r.ID, Generation: 3, Migration: propolis.Migrations{In: in}}
		}
		source.ID = r.ID
		s.seen.Source = peer{VM: source}
		return s.look()
	}
	running, gone, silent := VM{State: "Running"}, VM{State: "Destroyed", Migration: propolis.Migrations{Out: phase(thisOne, "Finish")}}, VM{Err: errors.New("silent")}
	again, another := &record.Migration{ID: thisOne, Source: "10.78.0.2:12400"}, &record.Migration{ID: otherOne, Source: "10.78.0.2:12400"}
	for name, w := range map[string]struct {
		seen                            Observed
		ensure, same, other, stop, drop string // what each verb says; empty: it goes on
	}{
		"it has not come":             {at("", nil, running), "has not arrived", "", "", "is being migrated", ""},
		"it comes":                    {at("Migrating", phase(thisOne, "RamPush"), running), "", "", "is being migrated", "is being migrated", "is being migrated"},
		"it is here":                  {at("Running", phase(thisOne, "Finish"), gone), "", "", "is being migrated", "", ""},
		"it was here, and is lost":    {at("", nil, gone), "", "", "is being migrated", "", ""},
		"it broke off":                {at("Failed", phase(thisOne, "Error"), running), "has not arrived", "", "", "is being migrated", ""},
		"the source does not answer":  {at("", nil, silent), "is being migrated", "", "", "is being migrated", ""},
		"it is here, whatever source": {at("Running", phase(thisOne, "Finish"), silent), "", "", "is being migrated", "", ""},
	} {
		stopped := r
		for verb, said := range map[string]struct {
			want string
			err  error
		}{
			"ensure":            {w.ensure, checkMigration(r, true, w.seen, EnsureRequest{})},
			"the same again":    {w.same, checkMigration(r, true, w.seen, EnsureRequest{From: again})},
			"another migration": {w.other, checkMigration(r, true, w.seen, EnsureRequest{From: another})},
			"a single step":     {"is being migrated", checkMigration(r, true, w.seen, EnsureRequest{Only: StageRun})},
			"stop":              {w.stop, second(spared(r, stopped, w.seen, removal{}))},
			"delete":            {w.drop, second(spared(r, record.Record{}, w.seen, removal{}))},
		} {
			if (said.err == nil) != (said.want == "") || said.err != nil && !strings.Contains(said.err.Error(), said.want) {
				t.Errorf("%s: %s: %v, want %q", name, verb, said.err, said.want)
			}
		}
		if spared, err := spared(r, record.Record{}, w.seen, removal{arrival: otherOne}); !spared || err != nil {
			t.Errorf("%s: giving up another migration: %v, %v", name, spared, err)
		}
	}
	departs := r
	departs.Migration = &record.Migration{ID: thisOne, Target: []string{"ssh", "sled2", "sledctl"}}
	for verb, err := range map[string]error{
		"ensure": checkMigration(departs, true, at("Running", nil, silent), EnsureRequest{}), "migrate-from": checkMigration(departs, true, at("Running", nil, silent), EnsureRequest{From: again}),
		"stop": second(spared(departs, departs, at("Running", nil, silent), removal{})), "delete": second(spared(departs, record.Record{}, at("Running", nil, silent), removal{})),
	} {
		if moving, ok := errors.AsType[*MigratingError](err); !ok || !strings.Contains(moving.Hint(), "sledctl instance migrate web1") {
			t.Errorf("%s of one that departs: %v", verb, err)
		}
	}
}

func second(_ bool, err error) error { return err }

// A machine that somebody else has migrated away is not made twice.
func TestWhatHasLeftIsNotMadeAgain(t *testing.T) {
	c := settings()
	r := made(t, c, web(1))
	s := prepared().bring(c, r, atRunning)
	s.seen.Inside.VM = VM{State: "Destroyed", ID: r.ID, Generation: 18, Migration: propolis.Migrations{Out: phase(thisOne, "Finish")}}
	err := checkMigration(r, true, s.look(), EnsureRequest{})
	if _, ok := errors.AsType[*MovedError](err); !ok {
		t.Errorf("ensure: %v", err)
	}
	if err := checkMigration(r, true, s.look(), EnsureRequest{Recreate: true}); err != nil {
		t.Errorf("--recreate: %v", err)
	}
}

// Another sled is told what the instance is, and nothing of this sled's own.
func TestDocumentForAnotherSled(t *testing.T) {
	c := settings()
	w := web(1)
	w.NICs = []record.NIC{{Over: "net0", VLAN: 7}, {Over: "stub0"}}
	r := made(t, c, w)
	text, err := c.Document(r)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		ID, Name      string
		CPUs          int
		Memory        uint64
		NICs          []record.NIC
		Address, Pool *string
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if got.ID != r.ID || got.Name != r.Name || got.CPUs != r.Spec.CPUs || got.Memory != r.Spec.Memory || got.Address != nil || got.Pool != nil {
		t.Errorf("%+v", got)
	}
	if len(got.NICs) != 2 || got.NICs[0].Over != "" || got.NICs[1].Over != "stub0" || got.NICs[0].MAC != r.Spec.NICs[0].MAC || got.NICs[0].VLAN != 7 {
		t.Errorf("NICs: %+v", got.NICs)
	}
}

// The target asks for a machine that is there, runs, and would be the same: all
// else is told before anything is made.
func TestIncomingIsHeldAgainstTheSource(t *testing.T) {
	c := settings()
	w := web(1)
	w.NICs = []record.NIC{{Over: "net0"}}
	r := made(t, c, w)
	r.Migration = &record.Migration{ID: thisOne, Source: "10.78.0.2:12400"}
	own, err := layout.RequestOf(c.Underlay, r)
	if err != nil {
		t.Fatal(err)
	}
	theirs := own.Init.Spec.Clone()
	theirs.Components["net0-backend"] = spec.VirtioNetwork{VNIC: "vnic_propolis_guest7"}
	source := func(change func(*peer)) peer {
		m := theirs.Clone()
		p := peer{VM{ID: r.ID, State: propolis.StateRunning}, &m}
		change(&p)
		return p
	}
	for name, f := range map[string]struct {
		from peer
		want string
	}{
		"the same machine":     {source(func(*peer) {}), ""},
		"more memory":          {source(func(p *peer) { p.Spec.Board.MemoryMiB++ }), "board.memory_mb: is 1025 at the source, and would be 1024"},
		"a bridge":             {source(func(p *peer) { p.Spec.Components["b"] = spec.PCIBridge{} }), "components.b: a pci_pci_bridge cannot be migrated"},
		"another machine":      {source(func(p *peer) { p.ID = "db1" }), "it has another machine, db1"},
		"one that has stopped": {source(func(p *peer) { p.State = "Destroyed" }), "its machine is Destroyed, and must be Running"},
		"one that is made":     {source(func(p *peer) { p.Spec = nil }), "it does not say what its machine is"},
		"nobody":               {peer{VM: VM{Err: errors.New("no route to host")}}, "the migration's source, 10.78.0.2:12400: no route to host"},
	} {
		var step propolis.Arrive
		err := incoming(c.Underlay, r, Observed{Source: f.from}, &step)
		if (err == nil) != (f.want == "") || err != nil && !strings.Contains(err.Error(), f.want) {
			t.Errorf("%s: %v, want %q", name, err, f.want)
		}
		if err != nil {
			continue
		}
		to := step.Request.Init.Migration
		if to.ID != thisOne || to.Source != "10.78.0.2:12400" || len(to.Replace) != 1 || to.Replace["net0-backend"].Component != (spec.VirtioNetwork{VNIC: r.Run.Guests[0].Name}) {
			t.Errorf("%s: %+v", name, to)
		}
	}
}

// A migration moves no disks: each that would stay behind is named.
func TestWhatOfAMachineStays(t *testing.T) {
	c := settings()
	_, r, err := withDisks().decide(t, c, operationtest.Book(t), EnsureRequest{Wanted: Wanted{
		Ref: "web1", Machine: machineOf(t, machineConfig), NICs: []record.NIC{{VLAN: 1}, {VLAN: 2}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	r.Spec.Machine.Components["third"], r.Spec.Machine.Components["far"] = spec.VirtioDisk{Backend: "far", PCI: spec.PCIPath{Device: 22}}, spec.CrucibleStorage{Request: "{}"}
	bridge, crucible, file, volume := `components."pci-bridge-0.20.0"`, "components.far.component.request_json", "components.image.component.path", "components.volume.component.path"
	for shared, want := range map[bool][]string{false: {bridge, crucible, file, volume}, true: {bridge, crucible, volume}} {
		problems, err := staying(c.Underlay, r, shared)
		if err != nil {
			t.Fatal(err)
		}
		var paths []string
		for _, p := range problems {
			paths = append(paths, p.Path)
		}
		slices.Sort(paths)
		slices.Sort(want)
		if diff := cmp.Diff(want, paths); diff != "" {
			t.Errorf("shared %v: %s", shared, diff)
		}
	}
}
