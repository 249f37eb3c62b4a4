package nicsync

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/sim/napi"
	"github.com/sledctl/sledctl/sim/simtest"
	"github.com/sledctl/sledctl/sim/world"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// situations are what a sled and its NAPI can be in, by name.
func situations() []struct {
	name string
	make func(*rig)
} {
	return []struct {
		name string
		make func(*rig)
	}{
		{"all is well", func(r *rig) { r.vm(1, "running"); r.record(1, ours, "running") }},
		{"a stopped VM", func(r *rig) { r.vm(1, "installed"); r.record(1, ours, "stopped") }},
		{"needs cn_uuid", func(r *rig) { r.vm(1, "running"); r.record(1, "", "running") }},
		{"needs cn_uuid and a state", func(r *rig) { r.vm(1, "installed"); r.record(1, "", "provisioning") }},
		{"stuck in provisioning", func(r *rig) { r.vm(1, "running"); r.record(1, ours, "provisioning") }},
		{"wrong state", func(r *rig) { r.vm(1, "installed"); r.record(1, ours, "running") }},
		{"being provisioned here", func(r *rig) { r.vm(1, "configured"); r.record(1, ours, "provisioning") }},
		{"being provisioned elsewhere", func(r *rig) { r.record(1, ours, "provisioning") }},
		{"leaked", func(r *rig) { r.record(1, ours, "running") }},
		{"moving", func(r *rig) { r.vm(1, "installed", "do-not-inventory"); r.record(1, ours, "running") }},
		{"conflict", func(r *rig) { r.vm(1, "running"); r.record(1, theirs, "running") }},
		{"no record", func(r *rig) { r.vm(1, "running") }},
		{"a sled's own link", func(r *rig) {
			r.change(func(tx *world.Tx) {
				simtest.AddNIC(tx, tx.State.Links[0].MAC, world.NAPINIC{BelongsToType: "server", BelongsToUUID: ours, OwnerUUID: admin, State: "provisioning"})
			})
		}},
		{"the boot server's", func(r *rig) {
			r.change(func(tx *world.Tx) {
				simtest.AddNIC(tx, tx.State.Links[0].MAC, world.NAPINIC{BelongsToType: "other", BelongsToUUID: admin, OwnerUUID: admin, State: "provisioning"})
			})
		}},
	}
}

// Every era in every situation: which requests are sent, in this order, with what
// the server said. The table is testdata/requests.txt.
func TestRequestsByEraAndSituation(t *testing.T) {
	var b strings.Builder
	for _, era := range napi.Eras() {
		for _, allowed := range []bool{false, true} {
			for _, s := range situations() {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, t.Context(), era)
					defer r.sled.Close()
					r.settings.AllowNICs = allowed
					s.make(r)
					others := r.others()
					_, err := r.sync(all())
					sent := r.requests()
					fmt.Fprintf(&b, "%s, /nics allowed %v, %s: %s\n", era, allowed, s.name, strings.Join(unversioned(r, sent), "; "))
					unsupported := era != napi.EraRFD && !(allowed && (era == napi.EraC || era == napi.EraD)) && !(allowed && (era == napi.EraA || era == napi.Era2014) && !others)
					if _, is := errors.AsType[*UnsupportedError](err); is != unsupported || !is && err != nil {
						t.Errorf("%s, %v, %s: %v", era, allowed, s.name, err)
					}
					if unsupported && len(writes(sent)) > 0 {
						t.Errorf("%s, %v, %s: %v", era, allowed, s.name, sent)
					}
					if unsupported {
						return
					}
					// A second sync right after the first sends no write.
					if _, err := r.sync(all()); err != nil || len(writes(r.requests())) > 0 {
						t.Errorf("%s, %s: the second sync: %v", era, s.name, err)
					}
				})
			}
		}
	}
	const golden = "testdata/requests.txt"
	want, err := os.ReadFile(golden)
	if err != nil || string(want) != b.String() {
		t.Errorf("%s: %v\n%s", golden, err, cmp.Diff(strings.Split(string(want), "\n"), strings.Split(b.String(), "\n")))
		if *update {
			_ = os.WriteFile(golden, []byte(b.String()), 0o644)
		}
	}
}

// unversioned leaves the sled's own addresses out.
func unversioned(r *rig, sent []string) []string {
	link := ""
	r.see(func(tx *world.Tx) { link = strings.ReplaceAll(tx.State.Links[0].MAC, ":", "") })
	sent = slices.Clone(sent)
	for i, s := range sent {
		sent[i] = strings.ReplaceAll(s, link, "net0")
	}
	// Reads of single records are side by side: between two other requests they
	// stand in the order of their names.
	for i := 0; i < len(sent); {
		j := i
		for j < len(sent) && strings.HasPrefix(sent[j], "GET /nics/") {
			j++
		}
		slices.Sort(sent[i:j])
		i = j + 1
	}
	return sent
}

// others says whether NAPI has a record that a server without filters would list,
// and that does not say it is this sled's.
func (r *rig) others() (some bool) {
	r.see(func(tx *world.Tx) {
		for _, rec := range tx.State.NAPI.NICs {
			some = some || rec.CNUUID != ours
		}
	})
	return some
}

// What becomes of the records in each situation, in the eras that can be synced.
func TestWhatASyncLeaves(t *testing.T) {
	want := map[string]string{
		"all is well": "ours running", "a stopped VM": "ours stopped", "needs cn_uuid": "ours running", "needs cn_uuid and a state": "ours stopped",
		"stuck in provisioning": "ours running", "wrong state": "ours stopped", "being provisioned here": "ours provisioning",
		"being provisioned elsewhere": "ours provisioning", "leaked": "gone", "moving": "ours running", "conflict": "theirs running", "no record": "gone",
		"a sled's own link": "gone", "the boot server's": "gone",
	}
	for _, era := range []string{napi.EraC, napi.EraD, napi.EraRFD} {
		for _, s := range situations() {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, t.Context(), era)
				defer r.sled.Close()
				s.make(r)
				if _, err := r.sync(all()); err != nil {
					t.Fatal(err)
				}
				w := want[s.name]
				if s.name == "leaked" && era != napi.EraD { // no conditional requests
					w = "ours running"
				}
				if got := r.has(1); got != w {
					t.Errorf("%s, %s: %s, want %s", era, s.name, got, w)
				}
				r.see(func(tx *world.Tx) {
					if rec := tx.State.NAPI.NICs[tx.State.Links[0].MAC]; rec != nil && (rec.BelongsToType != "server" || rec.BelongsToUUID != ours || rec.State != "running") {
						t.Errorf("%s, %s: %+v", era, s.name, rec)
					}
				})
			})
		}
	}
}

// Without conditional requests a leaked record goes only where that is allowed,
// and if it was the same in both looks.
func TestReapingWithoutEtag(t *testing.T) {
	for _, touched := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, t.Context(), napi.EraC)
			defer r.sled.Close()
			r.settings.WithoutEtag = true
			r.record(1, ours, "running")
			o := all()
			o.ConfirmTwice = time.Minute
			if touched {
				time.AfterFunc(30*time.Second, func() {
					r.change(func(tx *world.Tx) { tx.State.NAPI.NICs[mac(1)].Modified = tx.Now })
				})
			}
			_, err := r.sync(o)
			if want := map[bool]string{false: "gone", true: "ours running"}[touched]; err != nil || r.has(1) != want {
				t.Errorf("touched %v: %s, %v", touched, r.has(1), err)
			}
		})
	}
}
