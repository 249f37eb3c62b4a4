package nicsync

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sledctl/sledctl/engine/operation/operationtest"
	"github.com/sledctl/sledctl/illumos/naming"
	simnapi "github.com/sledctl/sledctl/sim/napi"
	"github.com/sledctl/sledctl/sim/world"
)

// moved are the names of the VMs that the ledger remembers as moved by others.
func (r *rig) moved() string {
	var names []string
	for key := range operationtest.View(r.t, r.env).All(naming.KeyMoved) {
		names = append(names, strings.TrimPrefix(key, naming.KeyMoved))
	}
	return strings.Join(names, " ")
}

func (r *rig) removes(n int) { r.change(func(tx *world.Tx) { removeVM(r.t, tx, n) }) }

// The records of a VM that Triton moves away are never removed, no matter how late
// the other sled claims them: what was marked and is gone has departed. A mark that
// goes while the VM is here is no more than that.
func TestAVMThatTritonMovesAwayIsRemembered(t *testing.T) {
	const marked, fields = "ours running", "do-not-inventory"
	for name, steps := range map[string]func(r *rig, sync func(has, moved string)){
		"claimed late": func(r *rig, sync func(has, moved string)) {
			r.vm(1, "running", fields)
			sync(marked, id(1))
			r.removes(1)
			for range 3 {
				sync(marked, id(1))
			}
			r.record(1, theirs, "running")
			sync("theirs running", "")
		},
		"claimed at once": func(r *rig, sync func(has, moved string)) {
			r.vm(1, "installed", fields)
			sync(marked, id(1))
			r.record(1, theirs, "running")
			sync("theirs running", id(1)) // as long as it is here and marked
			r.removes(1)
			sync("theirs running", "")
		},
		"given up": func(r *rig, sync func(has, moved string)) {
			r.vm(1, "running", fields)
			sync(marked, id(1))
			r.vm(1, "running")
			sync(marked, "")
			r.removes(1)
			sync("gone", "")
		},
		"come back": func(r *rig, sync func(has, moved string)) {
			r.vm(1, "running", fields)
			sync(marked, id(1))
			r.removes(1)
			sync(marked, id(1))
			r.vm(1, "running")
			sync(marked, "")
		},
		"marked while records are locked": func(r *rig, sync func(has, moved string)) {
			r.vm(1, "running", fields)
			r.forbid("web1 moves")
			if _, err := r.sync(all()); err == nil {
				r.t.Fatal("the lock file forbids nothing")
			}
			r.removes(1)
			if err := r.sled.Host().Files().Remove("/etc/sledctl/nics.lock"); err != nil {
				r.t.Fatal(err)
			}
			sync(marked, id(1))
		},
		"its NIC taken out first": func(r *rig, sync func(has, moved string)) {
			r.vm(1, "running", fields)
			sync(marked, id(1))
			r.takeOut(1)
			sync(marked, id(1))
			r.removes(1)
			sync(marked, id(1))
		},
		"another one is deleted meanwhile": func(r *rig, sync func(has, moved string)) {
			r.vm(1, "running", fields)
			sync(marked, id(1))
			r.removes(1)
			r.record(2, ours, "running")
			sync(marked, id(1))
			if r.has(2) != "gone" {
				r.t.Fatal("what is leaked did not go")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, t.Context(), simnapi.EraD)
				defer r.sled.Close()
				r.record(1, ours, "running")
				steps(r, func(has, moved string) {
					t.Helper()
					if _, err := r.sync(all()); err != nil || r.has(1) != has || r.moved() != moved {
						t.Errorf("%q, want %q; remembered %q, want %q: %v", r.has(1), has, r.moved(), moved, err)
					}
				})
			})
		})
	}
}
