package commands_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
)

// A machine that moves, and the NAPI of the data centre: its record is never
// removed, and follows it, whichever sled looks first.

const (
	firstCN  = "564d2cec-64ee-4aca-9e27-d71c02af3b6a"
	secondCN = "664d2cec-64ee-4aca-9e27-d71c02af3b6a"
	napiAt   = "10.99.99.12:80"
)

// datacentre are two sleds with one NAPI. The simulator has one next to each, which
// are kept the same.
type datacentre struct {
	t    *testing.T
	a, b *sled
	napi []byte
	mac  string // of the machine's NIC
}

func newDatacentre(t *testing.T) *datacentre {
	nics := func(cn string) string {
		return fmt.Sprintf("[nics]\nurl = \"http://%s\"\ncn_uuid = %q\nallow_nics_endpoint = true\n", napiAt, cn)
	}
	d := &datacentre{t: t, a: newSled(t, small(), tuned+nics(firstCN)), b: newSled(t, small(), otherNetwork()+nics(secondCN))}
	d.a.meet(d.b)
	for _, s := range []*sled{d.a, d.b} {
		if err := s.InitNAPI(t.Context(), sim.NAPIOptions{Address: napiAt, Era: "D"}); err != nil {
			t.Fatal(err)
		}
		s.run("bootstrap")
	}
	d.keep(d.a)
	d.a.run("instance ensure web1 --nic over=net0")
	var web1 struct{ ID string }
	if err := json.Unmarshal([]byte(d.a.run("instance get web1 -o json")), &web1); err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(d.a.run("vnic list -H --columns name,mac"), "\n") {
		if name, mac, _ := strings.Cut(line, "\t"); strings.HasPrefix(name, "vnic_propolis_guest") {
			d.mac = mac
		}
	}
	body := fmt.Sprintf(`{"mac":%q,"belongs_to_type":"zone","belongs_to_uuid":%q,"owner_uuid":"930896af-bf8c-48d4-885c-6573a94b1853","network_uuid":"admin"}`, d.mac, web1.ID)
	if status, answer, err := d.a.AskNAPI(t.Context(), "POST", "/nics", body); err != nil || status != 200 {
		t.Fatal(status, string(answer), err)
	}
	d.keep(d.a)
	d.sync(d.a)
	d.says(firstCN, "the machine was made")
	return d
}

// keep takes the NAPI as a sled has left it.
func (d *datacentre) keep(s *sled) {
	d.t.Helper()
	err := s.World().View(d.t.Context(), func(tx *world.Tx) (err error) {
		d.napi, err = json.Marshal(tx.State.NAPI)
		return err
	})
	if err != nil {
		d.t.Fatal(err)
	}
}

// sync is a look of a sled, and what it prints of the machine's record.
func (d *datacentre) sync(s *sled) (said string) {
	d.t.Helper()
	err := s.World().Update(d.t.Context(), func(tx *world.Tx) error {
		tx.State.NAPI = nil
		return json.Unmarshal(d.napi, &tx.State.NAPI)
	})
	if err != nil {
		d.t.Fatal(err)
	}
	for _, line := range strings.Split(s.run("nics sync --recheck-after 0 -H --columns mac,verdict,result"), "\n") {
		if mac, rest, _ := strings.Cut(line, "\t"); mac == d.mac {
			said = rest
		}
	}
	d.keep(s)
	return said
}

// says holds the record against what it should say; empty: that it is gone.
func (d *datacentre) says(cn, when string) {
	d.t.Helper()
	var n world.NAPI
	if err := json.Unmarshal(d.napi, &n); err != nil {
		d.t.Fatal(err)
	}
	r := n.NICs[d.mac]
	if r == nil && cn != "" || r != nil && r.CNUUID != cn {
		d.t.Fatalf("%s: the record is %+v, and should say %q", when, r, cn)
	}
}

// trails are the facts of migrations that a sled remembers.
func (s *sled) trails() (kinds []string) {
	s.t.Helper()
	for key := range s.ledger() {
		if kind, _, _ := strings.Cut(key, "/"); kind == "departed" || kind == "arrived" {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

func (d *datacentre) remember(source, target string) {
	d.t.Helper()
	if a, b := strings.Join(d.a.trails(), " "), strings.Join(d.b.trails(), " "); a != source || b != target {
		d.t.Errorf("the first sled remembers %q and the second %q; want %q and %q", a, b, source, target)
	}
}

const moves = "instance migrate web1 --to-command there"

func TestTheNICRecordFollowsTheMachine(t *testing.T) {
	for name, story := range map[string]func(*datacentre){
		"the source looks first": func(d *datacentre) {
			d.a.run(moves)
			d.remember("departed", "arrived")
			for range 2 {
				d.expect(d.sync(d.a), "departed\t-", firstCN)
			}
			d.expect(d.sync(d.b), "arrived\tchanged", secondCN)
			d.expect(d.sync(d.b), "in use\t-", secondCN)
			d.expect(d.sync(d.a), "", secondCN)
			d.remember("", "")
		},
		"the target looks first": func(d *datacentre) {
			d.a.run(moves)
			d.expect(d.sync(d.b), "arrived\tchanged", secondCN)
			d.expect(d.sync(d.a), "", secondCN)
			d.remember("", "arrived")
			d.expect(d.sync(d.b), "in use\t-", secondCN)
			d.remember("", "")
		},
		"the target starts it anew before it looks": func(d *datacentre) {
			d.a.run(moves)
			d.b.run("instance stop web1")
			d.expect(d.sync(d.b), "arrived\tchanged", secondCN)
			d.b.run("instance start web1")
			d.expect(d.sync(d.b), "wrong state\tchanged", secondCN)
		},
		"it is deleted on the target": func(d *datacentre) {
			d.a.run(moves)
			d.expect(d.sync(d.b), "arrived\tchanged", secondCN)
			d.b.run("instance delete web1")
			d.remember("departed", "")
			d.expect(d.sync(d.a), "", secondCN)
			d.expect(d.sync(d.b), "leaked\tremoved", "")
			d.remember("", "")
		},
		"it is deleted on the target, which never looked": func(d *datacentre) {
			d.a.run(moves)
			d.b.run("instance delete web1")
			d.expect(d.sync(d.b), "", firstCN)
			d.expect(d.sync(d.a), "departed\t-", firstCN) // the source cannot know
		},
		"it moves back": func(d *datacentre) {
			d.a.run(moves)
			d.expect(d.sync(d.a), "departed\t-", firstCN)
			d.expect(d.sync(d.b), "arrived\tchanged", secondCN)
			d.b.run(moves)
			d.remember("arrived", "departed")
			d.expect(d.sync(d.b), "departed\t-", secondCN)
			d.expect(d.sync(d.a), "arrived\tchanged", firstCN)
			d.expect(d.sync(d.b), "", firstCN)
			d.expect(d.sync(d.a), "in use\t-", firstCN)
			d.remember("", "")
			d.a.run("instance delete web1")
			d.expect(d.sync(d.a), "leaked\tremoved", "")
		},
		"it moves back before anybody looks": func(d *datacentre) {
			d.a.run(moves)
			d.b.run(moves)
			d.expect(d.sync(d.b), "", firstCN)
			d.expect(d.sync(d.a), "in use\t-", firstCN)
			d.remember("", "")
		},
		"the way back breaks off": func(d *datacentre) {
			d.a.run(moves)
			d.a.arm(world.Fault{Name: world.FaultFail, Match: "propolis * migrate Device", Times: 1})
			if a := d.b.try(moves); a.exit != 1 {
				d.t.Errorf("exit %d: %s", a.exit, a.errs)
			}
			d.remember("departed", "arrived")
			d.expect(d.sync(d.a), "departed\t-", firstCN)
			d.expect(d.sync(d.b), "arrived\tchanged", secondCN)
		},
		"it does not arrive": func(d *datacentre) {
			d.b.arm(world.Fault{Name: world.FaultFail, Match: "propolis * migrate Device", Times: 1})
			if a := d.a.try(moves); a.exit != 1 {
				d.t.Errorf("exit %d: %s", a.exit, a.errs)
			}
			d.remember("", "")
			d.expect(d.sync(d.b), "", firstCN)
			d.expect(d.sync(d.a), "in use\t-", firstCN)
		},
		"both look while it moves": func(d *datacentre) {
			d.b.arm(world.Fault{Name: world.FaultSlowMigrate, Match: "propolis * migrate", Delay: 10e9})
			ended := make(chan answer, 1)
			go func() { ended <- d.a.try(moves) }()
			for !strings.Contains(d.b.run("instance list -H --columns state"), "migrating") {
			}
			d.expect(d.sync(d.b), "migrating\t-", firstCN)
			d.expect(d.sync(d.a), "migrating\t-", firstCN)
			if a := <-ended; a.exit != 0 {
				d.t.Errorf("exit %d: %s", a.exit, a.errs)
			}
			d.expect(d.sync(d.a), "departed\t-", firstCN)
			d.expect(d.sync(d.b), "arrived\tchanged", secondCN)
		},
		"it is made anew on the source": func(d *datacentre) {
			d.a.run(moves)
			d.b.run("instance delete web1")
			d.a.run("instance ensure web1 --nic over=net0,mac=" + d.mac)
			d.remember("", "")
			d.expect(d.sync(d.a), "in use\t-", firstCN)
			d.a.run("instance delete web1")
			d.expect(d.sync(d.a), "leaked\tremoved", "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { story(newDatacentre(t)) })
		})
	}
}

func (d *datacentre) expect(said, want, cn string) {
	d.t.Helper()
	if said != want {
		d.t.Errorf("the sled says %q, want %q", said, cmp.Or(want, "nothing"))
	}
	d.says(cn, cmp.Or(want, "it says nothing"))
}
