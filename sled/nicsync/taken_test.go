package nicsync

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/peer/napi"
	simnapi "github.com/sledctl/sledctl/sim/napi"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zones"
)

// takeOut removes the NIC of the n-th VM from its configuration, and its link.
func (r *rig) takeOut(n int) {
	r.change(func(tx *world.Tx) {
		z := tx.FindZone(id(n))
		z.Config.Resources = slices.DeleteFunc(slices.Clone(z.Config.Resources), func(res world.Resource) bool { return res.Type == "net" })
		if z.Kernel != nil {
			z.Kernel.Config = z.Config
		}
		tx.State.Links = slices.DeleteFunc(tx.State.Links, func(l *world.Link) bool { return l.MAC == mac(n) })
		if err := zones.SaveZone(tx, z); err != nil {
			r.t.Fatal(err)
		}
	})
}

// A NIC that was taken out of a VM, living or only configured, is released: its
// record goes, unless it is being added, is not this sled's, or may still be in
// use.
func TestANICTakenOutOfAVMIsReleased(t *testing.T) {
	for name, c := range map[string]struct {
		vm, cn, state string
		more          func(*rig)
		want          string
	}{
		"of one that runs":           {"running", ours, "running", nil, "gone"},
		"of one that is stopped":     {"installed", ours, "stopped", nil, "gone"},
		"of one that is configured":  {"configured", ours, "running", nil, "gone"},
		"of one that is incomplete":  {"incomplete", ours, "stopped", nil, "gone"},
		"while it is being added":    {"running", ours, "provisioning", nil, "ours provisioning"},
		"added to a configured one":  {"configured", ours, "provisioning", nil, "ours provisioning"},
		"of another sled":            {"running", theirs, "running", nil, "theirs running"},
		"of no sled":                 {"running", "", "running", nil, " running"},
		"of one that is being moved": {"moving", ours, "running", nil, "ours running"},
		"its MAC on the sled's own link": {"running", ours, "running", func(r *rig) {
			r.change(func(tx *world.Tx) {
				tx.State.Links = append(tx.State.Links, &world.Link{Name: "gz0", Class: "vnic", Over: "net0", MAC: mac(1), Up: true})
			})
		}, "ours running"},
		"its MAC on another VM": {"running", ours, "running", func(r *rig) {
			r.vm(2, "running")
			r.change(func(tx *world.Tx) {
				for _, l := range tx.State.Links {
					if l.Name == "vm2" {
						l.MAC, l.Zone = mac(1), id(2)
					}
				}
				z := tx.FindZone(id(2)) // its configuration says no MAC
				z.Config.Resources = nil
				if err := zones.SaveZone(tx, z); err != nil {
					r.t.Fatal(err)
				}
			})
		}, "ours running"},
		"and put back between the looks": {"running", ours, "running", func(r *rig) { time.AfterFunc(time.Second, func() { r.vm(1, "running") }) }, "ours running"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, t.Context(), simnapi.EraD)
				defer r.sled.Close()
				if c.vm == "moving" {
					r.vm(1, "running", "do-not-inventory")
				} else {
					r.vm(1, c.vm)
				}
				r.record(1, c.cn, c.state)
				r.takeOut(1)
				if c.more != nil {
					c.more(r)
				}
				o := all()
				o.ConfirmTwice = 2 * time.Second
				if _, err := r.sync(o); err != nil || r.has(1) != c.want {
					t.Errorf("%s, want %s: %v", r.has(1), c.want, err)
				}
			})
		})
	}
}

// A VM whose configuration is missing for a moment may have any NIC.
func TestAVMWithoutAConfigurationKeepsItsRecords(t *testing.T) {
	r := napi.Record{Etag: "E", NIC: napi.NIC{MAC: mac(1), BelongsToType: napi.TypeZone, BelongsToUUID: id(1), CNUUID: ours, State: napi.StateRunning}}
	for state, want := range map[string]Verdict{napi.StateRunning: Conflict, napi.StateStopped: WrongState} {
		for _, blind := range []bool{false, true} {
			local := newLocal([]VM{{Name: id(1), IDs: []string{id(1)}, State: state, blind: blind}}, nil)
			f := Judge(Owner{CN: ours}, local, []napi.Record{r})[0]
			if f.Removed == blind || blind && f.Verdict != want {
				t.Errorf("%s, blind %v: %s: %s, goes %v", state, blind, f.Verdict, f.Reason, f.Removed)
			}
		}
	}
}

// A NIC that its VM has again when the record is about to go is kept.
func TestANICThatIsPutBackBeforeTheWrite(t *testing.T) {
	r := newRig(t, t.Context(), simnapi.EraD)
	defer r.sled.Close()
	r.vm(1, "running")
	f := Finding{MAC: mac(1), Removed: true, zones: []string{id(1)}}
	if err := (Options{}).guard(f, nil, r.settings.known(r.env)).Check(t.Context(), r.sled.Host().Files()); err != errHas {
		t.Error(err)
	}
	r.takeOut(1)
	if err := (Options{}).guard(f, nil, r.settings.known(r.env)).Check(t.Context(), r.sled.Host().Files()); err != nil {
		t.Error(err)
	}
}
