package record

import (
	"errors"
	"testing"

	"github.com/sledctl/sledctl/engine/ledger"
)

// A record from before there were keepers is the control plane's if that has registered a VM of
// it, and else the operator's; what is freed is the operator's.
func TestARecordWithoutAKeeperHasOne(t *testing.T) {
	for _, c := range []struct {
		json string
		want Keeper
	}{
		{`{"id":"a","name":"web1"}`, Operator},
		{`{"id":"a","name":"web1","vmm":{"propolis_id":"b"}}`, Nexus},
		{`{"id":"a","name":"web1","vmm":{"propolis_id":"b"},"keeper":"fleet","keeper_generation":7}`, Fleet},
	} {
		r, err := Decode([]byte(c.json))
		if err != nil || r.KeptBy() != c.want {
			t.Errorf("%s is kept by %s, want %s: %v", c.json, r.KeptBy(), c.want, err)
		}
		for _, asks := range Keepers() {
			_, kept := errors.AsType[*KeeperError](r.CheckKeeper(asks))
			if kept != (asks != c.want) {
				t.Errorf("%s: the %s is refused: %v", c.json, asks, kept)
			}
		}
		if err := r.CheckKeeper(""); err != nil {
			t.Errorf("%s: the sled itself is refused: %v", c.json, err)
		}
		if free := r.Freed(); free.KeptBy() != Operator || free.KeeperGeneration != 0 || free.VMM != nil {
			t.Errorf("%s: freed, it is %+v", c.json, free)
		}
	}
}

// On a sled that was never handed over, the operator places instances, and a control plane as it
// did before there were keepers.
func TestASledWithoutAKeeperIsTheOperators(t *testing.T) {
	for asks, want := range map[Keeper]bool{"": true, Operator: true, Nexus: true, Fleet: false} {
		if err := CheckPlace(ledger.View{}, asks); (err == nil) != want {
			t.Errorf("%q: %v", asks, err)
		}
	}
}

func TestAGenerationIsAbove0(t *testing.T) {
	for n, want := range map[uint64]bool{0: false, 1: true, MaxGeneration: true, MaxGeneration + 1: false} {
		if err := CheckGeneration(ledger.View{}, "a", n); (err == nil) != want {
			t.Errorf("%d: %v", n, err)
		}
	}
}
