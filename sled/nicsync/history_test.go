package nicsync

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	simnapi "github.com/sledctl/sledctl/sim/napi"
	"github.com/sledctl/sledctl/sim/world"
)

// vms is how many VMs a history has to do with.
const vms = 5

// history is a sled, a NAPI and what happens to them.
type history struct {
	*rig
	random *rand.Rand
	moving map[int]bool
	log    []string
}

func (h *history) note(format string, args ...any) {
	h.log = append(h.log, fmt.Sprintf(format, args...))
}

// existing are the VMs that are on the sled, with the state of their zone.
func (h *history) existing() map[int]string {
	all := map[int]string{}
	h.see(func(tx *world.Tx) {
		for n := range vms {
			if z := tx.FindZone(id(n)); z != nil {
				all[n] = z.Current()
			}
		}
	})
	return all
}

// step is one thing that happens: to a VM, to a record, to NAPI, or a sync, in
// the middle of which something else may happen.
func (h *history) step(t *testing.T) {
	n := h.random.IntN(vms)
	states := []string{"configured", "incomplete", "installed", "running", "shutting_down"}
	switch pick(h.random, []string{"vm", "vm", "gone", "gone", "moving", "departs", "arrives", "record", "record", "fault", "era", "restart", "sync", "sync", "sync"}) {
	case "vm":
		state := pick(h.random, states)
		h.note("VM %d is %s", n, state)
		h.vm(n, state)
		h.forgets(id(n))
		h.moving[n] = false
	case "gone":
		h.note("VM %d goes", n)
		h.change(func(tx *world.Tx) { removeVM(h.t, tx, n) })
		h.forgets(id(n))
		h.moving[n] = false
	case "departs":
		h.note("VM %d departs", n)
		h.change(func(tx *world.Tx) { removeVM(h.t, tx, n) })
		h.notes(VM{Name: id(n), IDs: []string{id(n)}, Departed: "went to another sled", NICs: []NIC{{MAC: mac(n)}}})
		h.moving[n] = false
	case "arrives":
		h.note("VM %d arrives", n)
		h.vm(n, "running")
		h.notes(VM{Name: id(n), IDs: []string{id(n)}, Arrived: "came from another sled", NICs: []NIC{{MAC: mac(n), Link: fmt.Sprint("vm", n)}}})
		if h.has(n) == "gone" || h.random.IntN(2) == 0 {
			h.record(n, theirs, "running")
		}
		h.moving[n] = false
	case "moving":
		h.note("VM %d is moved", n)
		h.vm(n, "installed", "do-not-inventory")
		h.moving[n] = true
	case "record":
		cn := pick(h.random, []string{ours, ours, "", theirs})
		state := pick(h.random, []string{"running", "stopped", "provisioning"})
		h.note("record %d says %q %s", n, cn, state)
		h.record(n, cn, state)
	case "fault":
		f := world.Fault{Times: 1, Exit: 500, Text: "x", Delay: time.Minute}
		f.Name = pick(h.random, []string{
			world.FaultNAPIDown, world.FaultNAPIFail, world.FaultNAPIEmpty, world.FaultNAPIHTML, world.FaultNAPITruncated, world.FaultNAPIObject,
			world.FaultNAPIForeign, world.FaultNAPITwice, world.FaultNAPIOwnerless, world.FaultNAPITouch, world.FaultNAPIRace,
		})
		f.Match = pick(h.random, []string{"GET", "PUT", "DELETE", "GET /nics/*", "GET /nics"})
		h.note("fault %s for %s", f.Name, f.Match)
		h.change(func(tx *world.Tx) { tx.Arm(f) })
	case "era":
		era := pick(h.random, simnapi.Eras())
		h.note("NAPI is of era %s", era)
		h.change(func(tx *world.Tx) { tx.State.NAPI.Era = era })
	case "restart":
		h.note("NAPI restarts")
		h.change(func(tx *world.Tx) { tx.State.NAPI.Ready = tx.Now.Add(time.Minute) })
	case "sync":
		comes := h.random.IntN(2) == 0
		here := h.existing()
		for i := range vms { // one that is not here, if there is any: its record may be about to go
			if _, is := here[(n+i)%vms]; !is {
				n = (n + i) % vms
				break
			}
		}
		if comes && h.random.IntN(2) == 0 && h.has(n) == "gone" {
			h.record(n, ours, "running")
		}
		h.note("sync, VM %d comes meanwhile: %v", n, comes)
		if comes {
			timer := time.AfterFunc(time.Duration(1+h.random.IntN(59))*time.Second, func() { h.vm(n, "configured") })
			defer func() { timer.Stop(); synctest.Wait() }()
		}
		h.check(t)
	}
}

// handovers are the VMs of which is remembered that they arrived, or departed.
func (h *history) handovers() map[int]Verdict {
	all := map[int]Verdict{}
	for n := range vms {
		for _, vm := range h.remembered() {
			switch {
			case vm.Name != id(n):
			case vm.Departed != "":
				all[n] = Departed
			default:
				all[n] = Arrived
			}
		}
	}
	return all
}

// check syncs, and holds it to that no record of a VM that exists is removed, here
// or where it has gone, before or after, and none of another sled, and that what
// moves is not touched.
func (h *history) check(t *testing.T) {
	before, had, handovers := h.existing(), map[int]string{}, h.handovers()
	for n := range vms {
		had[n] = h.has(n)
	}
	o := all()
	o.ConfirmTwice = 2 * time.Minute
	_, err := h.sync(o)
	if len(h.strayed) > 0 {
		h.fail(t, "firewalls, networks, addresses and pools were touched: %q", h.strayed)
	}
	after := h.existing()
	for n := range vms {
		_, was := before[n]
		_, is := after[n]
		now := h.has(n)
		if now == "gone" && had[n] != "gone" && (was || is || handovers[n] == Departed || strings.HasPrefix(had[n], "theirs") || strings.HasPrefix(had[n], " ") || strings.HasSuffix(had[n], "provisioning")) {
			h.fail(t, "record %d (%s) is gone; the VM was there before: %v, after: %v; %v", n, had[n], was, is, err)
		}
		foreign := strings.HasPrefix(had[n], "theirs") && !(handovers[n] == Arrived && was)
		if (h.moving[n] && was || foreign) && now != had[n] {
			h.fail(t, "record %d became %s, was %s", n, now, had[n])
		}
	}
}

func (h *history) fail(t *testing.T, format string, args ...any) {
	t.Fatalf("%s\n%s", strings.Join(h.log, "\n"), fmt.Sprintf(format, args...))
}

// agree is what one look must reach when nothing disturbs it.
func (h *history) agree(t *testing.T) {
	h.change(func(tx *world.Tx) {
		tx.State.Faults, tx.State.NAPI.Era, tx.State.NAPI.Ready = nil, simnapi.EraD, time.Time{}
	})
	had, handovers := map[int]string{}, h.handovers()
	for n := range vms {
		had[n] = h.has(n)
	}
	if _, err := h.sync(all()); err != nil {
		h.fail(t, "with faults over: %v", err)
	}
	here := h.existing()
	for n := range vms {
		state, exists := here[n]
		cn, recorded, _ := strings.Cut(had[n], " ")
		want := had[n]
		switch {
		case had[n] == "gone" || cn == "theirs" && !(handovers[n] == Arrived && exists) || h.moving[n] && exists || handovers[n] == Departed && !exists:
		case !exists && cn == "ours" && recorded != "provisioning":
			want = "gone"
		case exists && state == "running":
			want = "ours running"
		case exists && state == "installed":
			want = "ours stopped"
		case exists:
			want = "ours " + recorded
		}
		if got := h.has(n); got != want {
			h.fail(t, "record %d is %q, was %q, and should be %q; the VM is %q", n, got, had[n], want, state)
		}
	}
	h.requests()
	if _, err := h.sync(all()); err != nil || len(writes(h.requests())) > 0 {
		h.fail(t, "a second sync writes: %v", err)
	}
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// Random histories of VMs, records, faults and restarts: no record of a VM that
// exists is ever removed; with faults over, records and sled agree after one look.
func TestHistories(t *testing.T) {
	histories := 300
	switch {
	case os.Getenv("SLEDCTL_SOAK") != "":
		histories = 20_000
	case testing.Short():
		histories = 15
	}
	for seed := range histories {
		synctest.Test(t, func(t *testing.T) {
			h := &history{rig: newRig(t, t.Context(), simnapi.EraD), random: rand.New(rand.NewPCG(uint64(seed), 1)), moving: map[int]bool{}}
			h.settings.Recorded = remembers
			defer h.sled.Close()
			h.settings.WithoutEtag = seed%2 == 0
			h.note("seed %d", seed)
			for range 1 + h.random.IntN(12) {
				h.step(t)
			}
			h.agree(t)
		})
	}
}
