package nicsync

import (
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	simnapi "github.com/sledctl/sledctl/sim/napi"
	"github.com/sledctl/sledctl/sim/simtest"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zones"
	"github.com/sledctl/sledctl/test/refdata"
)

// rule is what a keeper of NIC records owes Triton: the section of
// reference/napi-net-agent.md, or the ticket named there, and what the record of the
// first VM's NIC is after a sync.
type rule struct {
	id, says string
	make     func(*rig)
	want     string
	sent     string // the requests that change something, without their results; "-": any
	fails    bool
}

const (
	put    = "PUT /nics/000001"
	remove = "DELETE /nics/000001"
)

func (r *rig) era(name string) { r.change(func(tx *world.Tx) { tx.State.NAPI.Era = name }) }

func (r *rig) arm(f world.Fault) { f.Times = 1; r.change(func(tx *world.Tx) { tx.Arm(f) }) }

// edit changes the first VM's record.
func (r *rig) edit(fn func(*world.NAPINIC)) {
	r.change(func(tx *world.Tx) { fn(tx.State.NAPI.NICs[mac(1)]) })
}

// configure writes the configuration of the first VM's zone again.
func (r *rig) configure(fn func(*world.Zone)) {
	r.change(func(tx *world.Tx) {
		z := tx.FindZone(id(1))
		fn(z)
		if err := zones.SaveZone(tx, z); err != nil {
			r.t.Fatal(err)
		}
	})
}

func own(tx *world.Tx) string { return tx.State.Links[0].MAC }

// requestRules are those of sections 0 and 1: how NAPI is asked.
func requestRules() []rule {
	return []rule{
		{"0.", "5b: without /search/nics nothing is written", func(r *rig) { r.settings.AllowNICs = false; r.record(1, ours, "running") }, "ours running", "", true},
		{"0.", "5c: /nics?cn_uuid= is used where it is allowed", func(r *rig) { r.record(1, ours, "running") }, "gone", remove, false},
		{"NAPI-404", "a NAPI that cannot filter is not relied on", func(r *rig) { r.era(simnapi.EraB); r.record(1, ours, "running") }, "ours running", "", true},
		{"NAPI-299", "a filter that is ignored is noticed", func(r *rig) { r.era(simnapi.EraA); r.record(1, ours, "running"); r.record(2, theirs, "running") }, "ours running", "", true},
		{"1.1", "503 while starting is no reason to reap", func(r *rig) {
			r.record(1, ours, "running")
			r.change(func(tx *world.Tx) { tx.State.NAPI.Ready = tx.Now.Add(time.Hour) })
		}, "ours running", "", true},
		{"1.3", "all pages are read before anything is judged", func(r *rig) {
			for n := 2; n < 1002; n++ {
				r.record(n, ours, "provisioning")
			}
			r.vm(1, "running")
			r.record(1, ours, "stopped")
		}, "ours running", put, false},
		{"1.4", "a MAC is asked for bare, whatever its form in a configuration", func(r *rig) {
			r.vm(1, "running")
			r.configure(func(z *world.Zone) {
				for _, res := range z.Config.Resources {
					for i, p := range res.Properties {
						if p.Name == "mac-addr" {
							res.Properties[i].Values = []string{"90:B8:D0:0:0:1"}
						}
					}
				}
			})
			r.record(1, "", "running")
		}, "ours running", put, false},
		{"1.6", "UUIDs are sent in lower case", func(r *rig) {
			r.vm(1, "running")
			r.configure(func(z *world.Zone) { z.UUID = strings.ToUpper(z.UUID) })
			r.record(1, "", "running")
		}, "ours running", put, false},
		{"1.7", "a record that is gone by itself needs no DELETE", func(r *rig) {
			r.record(1, ours, "running")
			time.AfterFunc(time.Second, func() { r.change(func(tx *world.Tx) { delete(tx.State.NAPI.NICs, mac(1)) }) })
		}, "gone", "", false},
		{"1.8", "412: read again, judged again", func(r *rig) {
			r.record(1, ours, "running")
			r.arm(world.Fault{Name: world.FaultNAPIRace, Match: "DELETE"})
		}, "gone", remove + "; " + remove, false},
		{"1.8", "500 after a lost race: the same", func(r *rig) {
			r.vm(1, "running")
			r.record(1, ours, "stopped")
			r.arm(world.Fault{Name: world.FaultNAPIRace, Match: "PUT"})
		}, "ours running", "-", false},
		{"AGENT-741", "a NAPI of 2014 takes changes", func(r *rig) { r.era(simnapi.Era2014); r.vm(1, "running"); r.record(1, ours, "stopped") }, "ours running", put, false},
		{"TRITON-1652", "owners of networks are not checked: TestTheRecordOfAVMThatChangedHandsIsChanged", func(r *rig) {
			r.vm(1, "running")
			r.record(1, ours, "stopped")
			r.edit(func(n *world.NAPINIC) { n.OwnerUUID = theirs })
		}, "ours running", put, false},
	}
}

// releaseRules are those of sections 2.4, 2.5 and 2.7: which records go.
func releaseRules() []rule {
	return []rule{
		{"2.5", "the VM is gone, all holds: it goes", func(r *rig) { r.record(1, ours, "running") }, "gone", remove, false},
		{"2.5", "the NIC is gone from its VM: it goes", func(r *rig) { r.vm(1, "running"); r.takeOut(1); r.record(1, ours, "stopped") }, "gone", remove, false},
		{"2.5", "not while it is being provisioned", func(r *rig) { r.record(1, ours, "provisioning") }, "ours provisioning", "", false},
		{"2.5", "not without an Etag", func(r *rig) { r.era(simnapi.EraC); r.record(1, ours, "running") }, "ours running", "", false},
		{"2.5", "not of another sled", func(r *rig) { r.record(1, theirs, "running") }, "theirs running", "", false},
		{"2.5", "not of a VM that says another: a conflict, and no reboot", func(r *rig) {
			r.vm(1, "running")
			r.record(1, ours, "running")
			r.edit(func(n *world.NAPINIC) { n.BelongsToUUID = id(9) })
		}, "ours running", "", false},
		{"2.4", "4: not if it was changed between the looks", func(r *rig) {
			r.record(1, ours, "running")
			time.AfterFunc(time.Second, func() { r.edit(func(n *world.NAPINIC) { n.Etag = "4DD569CB" }) })
		}, "ours running", "", false},
		{"2.4", "5: not of a VM that came between the looks", func(r *rig) {
			r.record(1, ours, "running")
			time.AfterFunc(time.Second, func() { r.vm(1, "running") })
		}, "ours running", "", false},
		{"2.7", "a VM in any state is there", func(r *rig) { r.vm(1, "configured"); r.record(1, ours, "running") }, "ours running", "", false},
		{"2.7", "an answer without the global zone is none", func(r *rig) {
			r.record(1, ours, "running")
			r.arm(world.Fault{Name: world.FaultAnswer, Match: "zoneadm list"})
		}, "ours running", "", true},
		{"AGENT-878", "a configuration that is gone for a moment is there", func(r *rig) {
			r.vm(1, "running")
			r.record(1, ours, "running")
			r.removes(1)
			time.AfterFunc(time.Second, func() { r.vm(1, "running") })
		}, "ours running", "", false},
		{"3.8", "a NIC is its VM's before there is a link", func(r *rig) { r.vm(1, "incomplete"); r.record(1, ours, "running") }, "ours running", "", false},
	}
}

// changeRules are those of sections 2.4 to 2.6 and 2.9: which records are changed.
func changeRules() []rule {
	return []rule{
		{"2.4", "1: backfill", func(r *rig) { r.vm(1, "running"); r.record(1, "", "running") }, "ours running", put, false},
		{"2.4", "8: backfill does not say running of what is stopped", func(r *rig) { r.vm(1, "installed"); r.record(1, "", "provisioning") }, "ours stopped", put, false},
		{"2.4", "3: a NIC on the second page is not missing", func(r *rig) {
			for n := range 1001 {
				r.change(func(tx *world.Tx) { addRecord(tx, n+1<<12, ours, "provisioning") })
			}
			r.vm(1, "running")
			r.record(1, ours, "running")
		}, "ours running", "", false},
		{"NAPI-358", "no backfill of a VM that is not proved to have the MAC", func(r *rig) { r.vm(1, "running"); r.takeOut(1); r.record(1, "", "running") }, " running", "", false},
		{"2.5", "a running VM's record says running", func(r *rig) { r.vm(1, "running"); r.record(1, ours, "provisioning") }, "ours running", put, false},
		{"2.5", "any other VM's says stopped", func(r *rig) { r.vm(1, "installed"); r.record(1, ours, "running") }, "ours stopped", put, false},
		{"TRITON-730", "a VM that is being provisioned is left alone", func(r *rig) { r.vm(1, "configured"); r.record(1, ours, "provisioning") }, "ours provisioning", "", false},
		{"TRITON-1304", "the boot server's record becomes the sled's", func(r *rig) {
			r.change(func(tx *world.Tx) {
				simtest.AddNIC(tx, own(tx), world.NAPINIC{BelongsToType: "other", BelongsToUUID: admin, OwnerUUID: admin, State: "provisioning"})
			})
		}, "gone", "PUT /nics/net0", false},
		{"2.6", "one of type other that is on no link is foreign", func(r *rig) {
			r.record(1, "", "provisioning")
			r.edit(func(n *world.NAPINIC) { n.BelongsToType, n.BelongsToUUID = "other", admin })
		}, " provisioning", "", false},
		{"2.6", "a server's leaves provisioning, and never goes", func(r *rig) {
			r.record(1, "", "running")
			r.edit(func(n *world.NAPINIC) { n.BelongsToType, n.BelongsToUUID = "server", ours })
			r.change(func(tx *world.Tx) {
				simtest.AddNIC(tx, own(tx), world.NAPINIC{BelongsToType: "server", BelongsToUUID: ours, OwnerUUID: admin, State: "provisioning"})
			})
		}, " running", "PUT /nics/net0", false},
		{"TRITON-1814", "a VM that is being moved is left alone", func(r *rig) { r.vm(1, "running", "do_not_inventory"); r.record(1, ours, "stopped") }, "ours stopped", "", false},
		{"sdc-net-agent#3", "and so it is when it is gone", func(r *rig) {
			r.vm(1, "running", "do-not-inventory")
			r.record(1, ours, "running")
			if _, err := r.sync(all()); err != nil {
				r.t.Fatal(err)
			}
			r.removes(1)
		}, "ours running", "", false},
		{"2.9", "a lock file forbids each write", func(r *rig) { r.vm(1, "running"); r.record(1, ours, "stopped"); r.forbid("web1 moves") }, "ours stopped", "", true},
	}
}

// Each rule of the reference is kept, and none of them leads to anything else than
// NICs being read and written (2.11).
func TestTheRulesOfTriton(t *testing.T) {
	reference, missing := refdata.Read("reference/napi-net-agent.md")
	bare := regexp.MustCompile(`^(GET|PUT|DELETE) /(search/nics\?cn|nics\?cn.*|nics/([0-9a-f]{6}|net0)) \d+$`)
	count := 0
	for _, all := range [][]rule{requestRules(), releaseRules(), changeRules()} {
		for _, c := range all {
			count++
			if missing == nil && !strings.Contains(string(reference), c.id) {
				t.Errorf("%s: the reference has no such rule", c.id)
			}
			t.Run(c.id+" "+c.says, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { c.check(t, bare) }) })
		}
	}
	t.Logf("%d rules", count)
}

func (c rule) check(t *testing.T, bare *regexp.Regexp) {
	r := newRig(t, t.Context(), simnapi.EraD)
	defer r.sled.Close()
	c.make(r)
	r.requests()
	o := all()
	o.MaxDelete, o.ConfirmTwice = 8, 2*time.Second
	_, err := r.sync(o)
	sent := unversioned(r, r.requests())
	var changes []string
	for _, q := range writes(sent) {
		changes = append(changes, q[:strings.LastIndex(q, " ")])
	}
	for _, q := range sent {
		if !bare.MatchString(q) && !strings.Contains(q, "&") {
			t.Errorf("the form of a request: %s", q)
		}
	}
	if got := strings.Join(changes, "; "); got != c.sent && c.sent != "-" || r.has(1) != c.want || (err != nil) != c.fails {
		t.Errorf("%q, want %q; sent %q, want %q; %v", r.has(1), c.want, got, c.sent, err)
	}
	if len(r.strayed) > 0 {
		t.Errorf("it did what is not about NICs: %q", r.strayed)
	}
}
