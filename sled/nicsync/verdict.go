package nicsync

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/peer/napi"
)

// Verdict is what a record, or a NIC without one, is found to be.
type Verdict string

// The verdicts. Leaked is the only one whose record goes.
const (
	InUse      Verdict = "in use"
	NeedsCN    Verdict = "needs cn_uuid"         // of a NIC that is here, and says no sled
	Stuck      Verdict = "stuck in provisioning" // of a VM that is no longer being provisioned
	WrongState Verdict = "wrong state"           // of a VM that is in another state
	Unclaimed  Verdict = "unclaimed"             // made by the boot server for a link of this sled
	Arrived    Verdict = "arrived"               // of a VM that came from another sled, which it still says
	Departed   Verdict = "departed"              // of a VM that went to another sled, which is to claim it
	Leaked     Verdict = "leaked"                // of this sled, and of a VM that is not on it, or no longer has the NIC
	Conflict   Verdict = "conflict"              // sled and record disagree on whose it is
	NotOurs    Verdict = "foreign"
	Migrating  Verdict = "migrating"   // of a VM that is being moved
	InProgress Verdict = "in progress" // being provisioned
	NoRecord   Verdict = "no record"   // a NIC that is here, of which NAPI knows nothing
)

// Finding is a NIC or record with its verdict.
type Finding struct {
	MAC     string
	VM      string // that is here and has it, or is said to; empty: none
	Link    string // or where the MAC was found; empty: it is not here
	State   string // of the VM; empty: neither running nor stopped, or there is none
	Verdict Verdict
	Reason  string
	Record  *napi.Record // nil: there is none
	// Change is what would make the record match the sled, and Removed says that it
	// should be removed.
	Change  napi.Change
	Removed bool
	zones   []string // those of the VMs that it is about
	ids     []string // their ids, and what the record calls its VM
	// arrived is how the VM came from another sled.
	arrived string
}

// Owner is this sled, and the data centre's administrator.
type Owner struct {
	CN    string // the sled's UUID
	Admin string // the administrator's; empty: not known
}

// Judge gives every record and every NIC that is here its verdict, by MAC.
// Nothing else is looked at: it is a pure function.
func Judge(owner Owner, local Local, records []napi.Record) []Finding {
	findings := make([]Finding, 0, len(records))
	recorded := make(map[string]bool, len(records))
	for i := range records {
		r := &records[i]
		recorded[r.MAC] = true
		f := Finding{MAC: r.MAC, Record: r}
		switch r.BelongsToType {
		case napi.TypeZone:
			f.judgeZone(owner, local)
		case napi.TypeServer:
			f.judgeServer(owner, local)
		default:
			f.judgeOther(owner, local)
		}
		findings = append(findings, f)
	}
	for _, mac := range local.macs() {
		if recorded[mac] {
			continue
		}
		f := Finding{MAC: mac, Verdict: NoRecord, Reason: "NAPI has no record of it, and none is made"}
		f.place(local)
		findings = append(findings, f)
	}
	slices.SortFunc(findings, func(a, b Finding) int { return cmp.Compare(a.MAC, b.MAC) })
	return findings
}

// place says where the MAC is.
func (f *Finding) place(local Local) {
	for _, vm := range local.with(f.MAC) {
		f.of(vm)
		return
	}
	if n, ok := local.own[f.MAC]; ok {
		f.Link = n.Link
	}
}

// of says that it is this VM's.
func (f *Finding) of(vm VM) {
	f.VM, f.State, f.arrived = vm.Name, vm.State, vm.Arrived
	for _, n := range vm.NICs {
		if n.MAC == f.MAC {
			f.Link = n.Link
		}
	}
}

func (f *Finding) is(v Verdict, reason string, args ...any) {
	f.Verdict, f.Reason = v, fmt.Sprintf(reason, args...)
}

// judgeZone judges the record of a VM.
func (f *Finding) judgeZone(owner Owner, local Local) {
	r := f.Record
	holders := local.with(f.MAC)
	vm, exists := local.vm(r.BelongsToUUID)
	f.place(local)
	if exists {
		f.of(vm)
	}
	has := local.has(r.BelongsToUUID, f.MAC)
	moves := append(slices.Clip(holders), vm)
	f.ids = []string{r.BelongsToUUID}
	for _, vm := range moves {
		f.zones, f.ids = append(f.zones, vm.zones...), append(f.ids, vm.IDs...)
	}
	m := slices.IndexFunc(moves, func(vm VM) bool { return vm.Moving != "" })
	switch {
	case m >= 0:
		f.is(Migrating, "%s is being moved: %s", moves[m].Name, moves[m].Moving)
	case r.CNUUID != "" && r.CNUUID != owner.CN:
		f.judgeElsewhere(owner, has && len(holders) == 1 && vm.Arrived != "", exists || len(holders) > 0)
	case len(holders) > 1 || len(holders) == 1 && !has:
		f.is(Conflict, "the record says VM %s, and its MAC is on %s", r.BelongsToUUID, namesOf(holders))
	case has:
		f.judgeOurs(owner)
	case exists && r.CNUUID == "":
		f.is(NotOurs, "the record says no sled, and no NIC of %s with this MAC is seen", vm.Name)
	case exists:
		f.judgeTakenOut(owner, vm)
	default:
		f.judgeAbsent(local)
	}
}

// judgeElsewhere judges a record that names another sled.
func (f *Finding) judgeElsewhere(owner Owner, arrived, here bool) {
	switch {
	case arrived:
		f.judgeOurs(owner)
	case here:
		f.is(Conflict, "the record says sled %s, and it is of %s here", f.Record.CNUUID, cmp.Or(f.VM, f.Link))
	default:
		f.is(NotOurs, "the record says sled %s", f.Record.CNUUID)
	}
}

// judgeTakenOut judges a record of this sled, of a VM that is here and has no NIC
// with its MAC.
func (f *Finding) judgeTakenOut(owner Owner, vm VM) {
	r := f.Record
	switch {
	case f.Link != "":
		f.is(Conflict, "the record says VM %s, and link %s has its MAC", r.BelongsToUUID, f.Link)
	case vm.blind && vm.State == napi.StateRunning:
		f.is(Conflict, "%s runs here, and no NIC with this MAC is seen", vm.Name)
	case vm.blind:
		f.judgeOurs(owner)
	case r.State == napi.StateProvisioning:
		f.is(InProgress, "%s has no NIC with this MAC, which may be on its way", vm.Name)
	default:
		f.Removed = true
		f.is(Leaked, "%s is here, and no longer has this NIC", vm.Name)
	}
}

// judgeAbsent judges the record of a VM that is not here.
func (f *Finding) judgeAbsent(local Local) {
	r := f.Record
	gone, departed := local.departed(r)
	switch {
	case f.Link != "":
		f.is(Conflict, "VM %s is not here, and link %s has its MAC", r.BelongsToUUID, f.Link)
	case r.CNUUID == "":
		f.is(NotOurs, "the record says no sled, and no such NIC is here")
	case departed:
		f.is(Departed, "%s %s, which claims the record", gone.Name, gone.Departed)
	case r.State == napi.StateProvisioning:
		f.is(InProgress, "VM %s is not here, and may be on its way", r.BelongsToUUID)
	default:
		f.Removed = true
		f.is(Leaked, "VM %s is not here", r.BelongsToUUID)
	}
}

// judgeOurs judges the record of a VM that is here.
func (f *Finding) judgeOurs(owner Owner) {
	r := f.Record
	if f.State != "" && r.State != f.State {
		f.Change.State = f.State
	}
	if r.CNUUID != owner.CN {
		f.Change.CNUUID = owner.CN
	}
	switch {
	case r.CNUUID != "" && r.CNUUID != owner.CN:
		f.is(Arrived, "%s %s, and the record says sled %s", f.VM, f.arrived, r.CNUUID)
	case r.CNUUID == "" && f.Change.State != "":
		f.is(NeedsCN, "it is of %s here, which is %s", f.VM, f.State)
	case r.CNUUID == "":
		f.is(NeedsCN, "it is of %s here", f.VM)
	case f.Change.State != "" && r.State == napi.StateProvisioning:
		f.is(Stuck, "%s is %s", f.VM, f.State)
	case f.Change.State != "":
		f.is(WrongState, "%s is %s", f.VM, f.State)
	case r.State == napi.StateProvisioning:
		f.is(InProgress, "%s is neither running nor stopped yet", f.VM)
	default:
		f.is(InUse, "by %s", f.VM)
	}
}

func namesOf(vms []VM) string {
	var names []string
	for _, vm := range vms {
		names = append(names, vm.Name)
	}
	return strings.Join(names, " and ")
}

// judgeServer judges the record of a sled's own NIC. None of them is ever
// removed, and one of this sled is known by the link that is here.
func (f *Finding) judgeServer(owner Owner, local Local) {
	r := f.Record
	f.place(local)
	_, own := local.own[f.MAC]
	switch {
	case r.BelongsToUUID != owner.CN && f.Link != "":
		f.is(Conflict, "the record says sled %s, and %s of this one has its MAC", r.BelongsToUUID, f.Link)
	case r.BelongsToUUID != owner.CN:
		f.is(NotOurs, "it is of sled %s", r.BelongsToUUID)
	case !own:
		f.is(Conflict, "it is of this sled, and none of its own links has its MAC")
	case r.State == napi.StateProvisioning:
		f.Change.State = napi.StateRunning
		f.is(Stuck, "link %s of this sled is there", f.Link)
	default:
		f.is(InUse, "by link %s of this sled", f.Link)
	}
}

// judgeOther judges the record of what is neither. The boot server makes one for
// the link that a sled first boots by, in the administrator's name; the sled makes
// it its own (TRITON-1304).
func (f *Finding) judgeOther(owner Owner, local Local) {
	r := f.Record
	f.place(local)
	_, own := local.own[f.MAC]
	switch {
	case !own:
		f.is(NotOurs, "it is of nothing on a sled")
	case owner.Admin == "" || r.BelongsToUUID != owner.Admin:
		f.is(Conflict, "it is of %s, and link %s of this sled has its MAC", r.BelongsToUUID, f.Link)
	default:
		f.Change = napi.Change{BelongsToType: napi.TypeServer, BelongsToUUID: owner.CN}
		if r.State == napi.StateProvisioning {
			f.Change.State = napi.StateRunning
		}
		f.is(Unclaimed, "it is of link %s of this sled", f.Link)
	}
}
