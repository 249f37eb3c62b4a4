package instance

import (
	"path"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/illumos/ipadm"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/illumos/smf"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/ports"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/instance/secrets"
	"github.com/sledctl/sledctl/vnic"
	"github.com/sledctl/sledctl/zfs"
	"github.com/sledctl/sledctl/zone"
)

// Stage is a part of the bring-up that a subcommand of its own can do.
type Stage string

// The stages, in order.
const (
	StageVNIC    Stage = "vnic create"
	StageZone    Stage = "zone create"
	StageBoot    Stage = "zone boot"
	StageAddress Stage = "zone address"
	StageStart   Stage = "propolis start"
	StageEnsure  Stage = "propolis ensure"
	StageRun     Stage = "propolis run"
)

// Stages lists them in order.
func Stages() []Stage {
	return []Stage{StageVNIC, StageZone, StageBoot, StageAddress, StageStart, StageEnsure, StageRun}
}

// progress is how far an incarnation has come, as seen on the host. True: there, and as
// recorded.
type progress struct {
	vnics      map[string]bool // by name
	ports      ports.Observed
	mtu        bool // of the control VNIC
	wide       bool // the control link gives its VNICs that MTU by itself
	dataset    bool
	noted      bool         // it says what the instance is
	memo       zfs.Value    // what it says now
	mounted    bool         // the dataset is, on the zonepath
	private    bool         // its mountpoint has its mode
	configured bool         // but for its cap
	cap        *zone.SetCap // puts the cap of the zone that is there right; nil: it is
	installed  bool
	profiled   bool
	booted     bool
	limits     map[string]vnic.Limits // that guest VNICs are held to, by name
	held       map[string]bool        // by the name of a guest VNIC: to its limits
	relimited  bool                   // other limits are asked for
	// back are the snapshots to which the zone is taken back before it boots.
	back []zfs.Dataset
	// without are images that the host lacks, and that the zone is installed without.
	without []string
	// lends says that the zone runs and has no links yet.
	lends bool
	// spare is the one whose zone is taken; nil: none is.
	spare *record.Spare
	root  string // of the zone, where that is to be mounted
	// freed are those that are removed so that there is room.
	freed     GivenUp
	settled   bool // the milestone
	linkLocal bool
	address   bool
	usable    bool // the address is ok
	routed    bool
	enabled   bool
	online    bool
	ensured   bool
	running   bool
}

// way builds the actions up. Each appends to a stage and is left out when the
// host is already there; later ones come after the last of those kept.
type way struct {
	actions map[Stage][]plan.Action
}

func (w *way) add(stage Stage, done bool, a plan.Action) string {
	if done {
		return ""
	}
	w.actions[stage] = append(w.actions[stage], a)
	return a.ID
}

// after drops the ids of actions that were left out.
func after(ids ...string) []string {
	var kept []string
	for _, id := range ids {
		if id != "" {
			kept = append(kept, id)
		}
	}
	return kept
}

// bringUpActions lists what is still to do from here to a running VM, by stage. It fails
// if Propolis would refuse the machine. With arrive, that is how the machine
// comes.
func bringUpActions(b layout.Blueprint, r record.Record, p progress, arrive *propolis.Arrive) (map[Stage][]plan.Action, error) {
	request, err := layout.RequestOf(b.Underlay, r)
	if err != nil {
		return nil, err
	}
	w := way{actions: map[Stage][]plan.Action{}}
	links := upVNICs(b, &w, r, p)
	zoned := upZone(b, &w, r, p)
	booted, held := upBoot(&w, r, p, append(links, zoned...))
	applied := ""
	if p.lends {
		booted, held, applied = upBooted(&w, r, p)
		held = append(held, zoned...)
	}
	addressed := upAddress(b, &w, r, p, booted)
	started := upPropolis(b, &w, r, p, after(addressed, applied))
	upMachine(b, &w, r, p, request, arrive, after(append(held, started)...))
	if p.spare != nil {
		w.unsetMemo(r.Incarnation.Dataset)
	}
	return w.actions, nil
}

// unsetMemo takes the memo of an instance off a dataset that stays.
func (w *way) unsetMemo(dataset string) {
	for i, a := range w.actions[StageEnsure] {
		if step, ok := a.Step.(zfs.Set); ok && step.Dataset == dataset {
			w.actions[StageEnsure][i].Cleanup = unset(step)
		}
	}
}

func upVNICs(b layout.Blueprint, w *way, r record.Record, p progress) []string {
	var ids []string
	k := layout.PackagingOf(b, *r.Incarnation)
	for _, v := range r.Incarnation.VNICs() {
		if v.Port {
			for _, a := range ports.Up(b, r, v, p.ports) {
				ids = append(ids, w.add(StageVNIC, false, a))
			}
			continue
		}
		mtu, why := 0, "guest NIC"
		if v == r.Incarnation.Control {
			mtu, why = k.MTU, "control VNIC"
			if p.wide {
				mtu = 0
			}
		}
		ids = append(ids, w.add(StageVNIC, p.vnics[v.Name], plan.Action{
			ID: "vnic.create " + v.Name, Object: "vnic " + v.Name, Why: why, Change: plan.Create,
			Step: vnic.Create{Name: v.Name, Over: v.Over, MAC: v.MAC, VLAN: v.VLAN, MTU: mtu, Mbps: layout.LimitsOf(r, v).Mbps},
		}))
	}
	control := r.Incarnation.Control
	ids = append(ids, w.add(StageVNIC, p.mtu || !p.vnics[control.Name], plan.Action{
		ID: "vnic.set-mtu " + control.Name, Object: "vnic " + control.Name, Why: "its creation was interrupted", Change: plan.Modify,
		Step: vnic.SetMTU{Name: control.Name, Over: control.Over, MAC: control.MAC, MTU: k.MTU},
	}))
	return ids
}

func upZone(b layout.Blueprint, w *way, r record.Record, p progress) []string {
	incarnation := *r.Incarnation
	object := "zone " + incarnation.Zone
	dataset := w.add(StageZone, p.dataset, plan.Action{
		ID: "zfs.create " + incarnation.Dataset, Object: "dataset " + incarnation.Dataset, Why: "zonepath, marked as sledctl's", Change: plan.Create,
		Step: zfs.Create{
			Dataset: incarnation.Dataset, Mountpoint: incarnation.Zonepath, Mode: layout.ZonepathMode,
			Properties: record.Marks(r),
		},
	})
	dataset = lastOf(w.add(StageZone, p.mounted || !p.dataset, plan.Action{
		ID: "zfs.mount " + incarnation.Dataset, Object: "dataset " + incarnation.Dataset, Why: "its removal was interrupted", Change: plan.Modify,
		Step: zfs.Mount{Dataset: incarnation.Dataset},
	}), dataset)
	dataset = lastOf(w.add(StageZone, p.private || !p.dataset, plan.Action{
		ID: "zfs.set-mode " + incarnation.Dataset, Object: "dataset " + incarnation.Dataset, Why: "its creation was interrupted",
		Change: plan.Modify, After: after(dataset),
		Step: zfs.SetMode{Dataset: incarnation.Dataset, Mountpoint: incarnation.Zonepath, Mode: layout.ZonepathMode},
	}), dataset)
	configured := w.add(StageZone, p.configured, plan.Action{
		ID: "zone.configure " + incarnation.Zone, Object: object, Why: "instance " + r.Name, Change: plan.Create, After: after(dataset),
		Step: zone.Configure{Name: incarnation.Zone, Config: layout.ZoneConfig(b, r)},
	})
	installed := w.add(StageZone, p.installed, installZone(b, incarnation, p.without, after(dataset, configured)))
	recapped := upCap(w, p)
	back := upRoot(w, p, incarnation.Zonepath, upBack(w, p, dataset))
	if p.spare != nil {
		configured = upSpare(b, w, r, p)
		installed = ""
	}
	profiled := w.add(StageZone, p.profiled, plan.Action{
		ID: "smf.write-profile " + incarnation.Zone, Object: object, Why: "what Propolis needs to know", Change: plan.Modify, After: append(after(installed), back...),
		Step: smf.WriteProfile{Root: path.Join(incarnation.Zonepath, "root"), Profile: layout.ProfileOf(b, r)},
	})
	snapshots := layout.SnapshotOf(incarnation)
	kept := w.add(StageZone, p.installed && p.spare == nil || p.lends || !layout.KeepsClean(b, r), keepClean(incarnation, snapshots, after(lastOf(profiled, installed))))
	if p.spare != nil {
		back = append(back, configured)
	}
	return append(append(back, recapped), lastOf(kept, profiled, installed, configured, dataset))
}

// upCap puts the cap of a zone right that somebody has changed.
func upCap(w *way, p progress) string {
	if p.cap == nil {
		return ""
	}
	why := "another program has changed its cap; what is put back counts from its next boot"
	return w.add(StageZone, false, plan.Action{
		ID: p.cap.Verb() + " " + p.cap.Name, Object: "zone " + p.cap.Name, Why: why, Change: plan.Modify, Step: *p.cap,
	})
}

// installZone gives a configured zone its root: a clone of the base, or the
// contents of images.
//
// Guess omicron1-on-mounted-zonepath: an omicron1 zone can be installed on a dataset of its own
// that is mounted on its zonepath, which then holds `root` and nothing else.
// Check: `sledctl instance ensure web1` on Helios; `zfs list -r` of the zonepath
func installZone(b layout.Blueprint, incarnation record.Incarnation, without, before []string) plan.Action {
	object := "zone " + incarnation.Zone
	images := slices.DeleteFunc(slices.Clone(layout.PackagingOf(b, incarnation).Images), func(name string) bool { return slices.Contains(without, name) })
	if len(images) > 0 {
		return plan.Action{
			ID: "zone.install " + incarnation.Zone, Object: object, Why: "from " + strings.Join(images, " and "), Change: plan.Modify, After: before,
			Step: zone.Install{Name: incarnation.Zone, Zonepath: incarnation.Zonepath, Args: images},
		}
	}
	return plan.Action{
		ID: "zone.clone " + incarnation.Zone, Object: object, Why: "from " + incarnation.Base, Change: plan.Modify, After: before,
		Step:    zone.Clone{Name: incarnation.Zone, Source: incarnation.Base, Zonepath: incarnation.Zonepath},
		Cleanup: []plan.Action{removeSnapshots(incarnation)},
	}
}

func lastOf(ids ...string) string {
	for _, id := range ids {
		if id != "" {
			return id
		}
	}
	return ""
}

// upBoot boots the zone. What held names is done before there is a guest.
func upBoot(w *way, r record.Record, p progress, before []string) (last string, held []string) {
	incarnation := *r.Incarnation
	booted := w.add(StageBoot, p.booted, plan.Action{
		ID: "zone.boot " + incarnation.Zone, Object: "zone " + incarnation.Zone, Change: plan.Modify, After: after(before...),
		Step: zone.Boot{Name: incarnation.Zone},
	})
	if !p.lends {
		held = upLimits(w, r, incarnation.Guests, p, booted)
	}
	settled := w.add(StageBoot, p.settled, plan.Action{
		ID: "smf.await " + incarnation.Zone + " single-user", Object: "zone " + incarnation.Zone, Change: plan.Wait, After: after(booted),
		Why: "earlier commands race with its boot", Step: smf.Await{Zone: incarnation.Zone, Root: path.Join(incarnation.Zonepath, "root"), FMRI: layout.Milestone, State: smf.Online},
	})
	return lastOf(settled, booted), held
}

// upBooted gives a zone that runs already what it would have had as it booted. Addresses wait
// for last, the control link, and the start of Propolis for the profile.
func upBooted(w *way, r record.Record, p progress) (last string, held []string, applied string) {
	incarnation, object := *r.Incarnation, "zone "+r.Incarnation.Zone
	lent := map[string]string{}
	for _, v := range incarnation.VNICs() {
		lent[v.Name] = w.add(StageBoot, false, plan.Action{
			ID: "vnic.lend " + v.Name, Object: "vnic " + v.Name, Why: "its zone runs already", Change: plan.Modify, After: after("vnic.create " + v.Name),
			Step: vnic.Lend{Name: v.Name, MAC: v.MAC, Over: v.Over, Zone: incarnation.Zone},
		})
	}
	for _, v := range incarnation.Guests {
		held = append(held, upLimits(w, r, []record.VNIC{v}, p, lent[v.Name])...)
	}
	applied = w.add(StageBoot, false, plan.Action{
		ID: "smf.apply-profile " + incarnation.Zone, Object: object, Why: "its zone runs already", Change: plan.Modify,
		After: after("smf.write-profile " + incarnation.Zone), Step: smf.ApplyProfile{Zone: incarnation.Zone},
	})
	return lent[incarnation.Control.Name], held, applied
}

// upLimits holds the guest NICs to their limits: each boot of the zone begins without. They are
// changed while the VM runs, too.
func upLimits(w *way, r record.Record, guests []record.VNIC, p progress, booted string) []string {
	why := "its guest sends from its own addresses only"
	if p.relimited {
		why = "as is asked for; the VM runs on"
	}
	var ids []string
	for _, v := range guests {
		if v.Port {
			continue
		}
		ids = append(ids, w.add(StageBoot, p.held[v.Name], plan.Action{
			ID: "vnic.set-limits " + v.Name, Object: "vnic " + v.Name, Why: why, Change: plan.Modify, After: after(booted),
			Step: vnic.SetLimits{Name: v.Name, Over: v.Over, MAC: v.MAC, Limits: layout.LimitsOf(r, v), Before: p.limits[v.Name], Changed: p.relimited},
		}))
	}
	return ids
}

// upAddress makes the control address. Where Propolis' own service does that,
// only what another program has removed since is made here.
func upAddress(b layout.Blueprint, w *way, r record.Record, p progress, before string) string {
	incarnation, a, object := *r.Incarnation, r.Spec.Address, layout.AddressObject(b, r)
	if layout.PackagingOf(b, incarnation).ByItself && !p.online {
		return before
	}
	thing := "address " + object
	create := func(object, kind, address, why string, done bool, before ...string) string {
		return w.add(StageAddress, done, plan.Action{
			ID: "ipadm.create-address " + object, Object: "address " + object, Why: why, Change: plan.Create, After: after(before...),
			Step: ipadm.CreateAddress{Zone: incarnation.Zone, Object: object, Type: kind, Address: address},
		})
	}
	if a.Mode == record.Static && a.Prefix.Addr().Is6() {
		before = lastOf(create(incarnation.Control.Name+"/ll", record.Addrconf, "", "a static IPv6 address needs a link-local one", p.linkLocal, before), before)
	}
	address := ""
	if a.Mode == record.Static {
		address = a.Prefix.String()
	}
	created := create(object, a.Mode, address, "Propolis listens there", p.address, before)
	usable := w.add(StageAddress, p.usable, plan.Action{
		ID: "ipadm.await-address " + object, Object: thing, Change: plan.Wait, After: after(lastOf(created, before)),
		Why: "no other host may have it", Step: ipadm.AwaitAddress{Zone: incarnation.Zone, Object: object, Routed: a.Mode == record.Addrconf},
	})
	gateway := layout.GatewayOf(b, a)
	routed := w.add(StageAddress, p.routed || !gateway.IsValid(), plan.Action{
		ID: "ipadm.add-route " + incarnation.Zone, Object: "route default of " + incarnation.Zone, Change: plan.Modify,
		After: after(lastOf(usable, created, before)),
		Step:  ipadm.AddRoute{Zone: incarnation.Zone, Destination: "default", Gateway: gateway.String(), Link: incarnation.Control.Name},
	})
	return lastOf(routed, usable, created, before)
}

// upPropolis starts the server.
func upPropolis(b layout.Blueprint, w *way, r record.Record, p progress, before []string) string {
	incarnation := *r.Incarnation
	target := layout.TargetOf(b, r)
	act := func(stage Stage, done bool, id, why string, change plan.Change, step plan.Step, before ...string) string {
		return lastOf(append(after(
			w.add(stage, done, plan.Action{ID: id, Object: "propolis " + r.Name, Why: why, Change: change, After: after(before...), Step: step})),
			before...,
		)...)
	}
	fmri, byItself := layout.ServiceFMRI(b, r), layout.PackagingOf(b, incarnation).ByItself
	at := act(
		StageStart, p.enabled || byItself && !p.booted, "smf.enable "+incarnation.Zone, "", plan.Modify,
		smf.Enable{Zone: incarnation.Zone, FMRI: fmri, Temporary: true}, before...,
	)
	at = act(
		StageStart, p.online, "smf.await "+incarnation.Zone+" propolis", "", plan.Wait,
		smf.Await{Zone: incarnation.Zone, FMRI: fmri, State: "online"}, at,
	)
	at = lastOf(w.add(StageStart, p.online || !byItself, plan.Action{
		ID: "ipadm.await-address " + layout.AddressObject(b, r), Object: "address " + layout.AddressObject(b, r), Change: plan.Wait, After: after(at),
		Why: "its service has made it; no other host may have it", Step: ipadm.AwaitAddress{Zone: incarnation.Zone, Object: layout.AddressObject(b, r)},
	}), at)
	return act(StageStart, p.online, "propolis.await-http "+r.Name, "", plan.Wait, propolis.AwaitHTTP{Target: target}, at)
}

// upMachine gives the server its machine, and runs it.
func upMachine(b layout.Blueprint, w *way, r record.Record, p progress, request spec.EnsureRequest, arrive *propolis.Arrive, before []string) {
	target, dataset := layout.TargetOf(b, r), r.Incarnation.Dataset
	w.add(StageEnsure, p.noted || !p.dataset, plan.Action{
		ID: "zfs.set " + dataset, Object: "dataset " + dataset, Why: "says what the instance is", Change: plan.Modify,
		Step: zfs.Set{Dataset: dataset, Name: naming.PropertySpec, Value: record.MemoOf(r), Old: p.memo.Value, OldSource: p.memo.Source},
	})
	// What a server was told goes with its zone, if this run takes that back; in
	// one that was there before it lasts.
	told := func(step plan.Step) bool {
		switch step.(type) {
		case propolis.Ensure, propolis.ChangeState:
			return p.booted
		}
		return false
	}
	act := func(stage Stage, done bool, id, why string, change plan.Change, step plan.Step) {
		if done := w.add(
			stage, done,
			plan.Action{ID: id, Object: "propolis " + r.Name, Why: why, Change: change, After: before, Step: step, Irrevocable: told(step)},
		); done != "" {
			before = []string{done}
		}
	}
	if arrive != nil {
		act(StageEnsure, p.running, "propolis.arrive "+r.Name, "from "+r.Migration.Source, plan.Create, *arrive)
		return
	}
	act(
		StageEnsure, p.ensured, "propolis.ensure "+r.Name, "the VM itself", plan.Create,
		propolis.Ensure{Target: target, Request: request, Secrets: secrets.Opener(r)},
	)
	act(StageRun, p.running, "propolis.run "+r.Name, "", plan.Modify, propolis.ChangeState{Target: target, State: "Run"})
	act(
		StageRun, p.running, "propolis.await-state "+r.Name, "", plan.Wait,
		propolis.AwaitState{Target: target, States: []string{"Running"}},
	)
}

// Target is where the Propolis of a record with an incarnation answers.
func (s Settings) Target(r record.Record) propolis.Target { return layout.TargetOf(s.Blueprint(), r) }
