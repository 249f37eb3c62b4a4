package api

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

const uid = types.UID("0f2a7c1e-6f0b-4c62-9a51-5a3a4d3f6a11")

func TestEveryRunHasAnIDOfItsOwn(t *testing.T) {
	seen := map[string]bool{}
	for generation := int64(1); generation < 100; generation++ {
		id, err := PropolisID(uid, generation)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := PropolisID(uid, generation)
		if seen[id] || id != again || id[14] != '5' {
			t.Errorf("generation %d: %s, then %s", generation, id, again)
		}
		seen[id] = true
	}
	// As another tool makes it from the same names (uuid5 of Python).
	if id, _ := PropolisID(uid, 1); id != "e85a919c-6717-504d-a365-a6fe959d5663" {
		t.Errorf("generation 1 is %s", id)
	}
}

func TestWhatNamesNoRunIsRefused(t *testing.T) {
	for _, generation := range []int64{0, -1} {
		if id, err := PropolisID(uid, generation); err == nil {
			t.Errorf("%d: %s", generation, id)
		}
	}
	for _, bad := range []types.UID{"", "web", types.UID(strings.ToUpper(string(uid))), "{" + uid + "}"} {
		if id, err := InstanceID(bad); err == nil {
			t.Errorf("%q: %s", bad, id)
		}
	}
}

func TestPodsAreNamedByTheirRun(t *testing.T) {
	for _, vm := range []string{"web", "web-1", "a.b", "1"} {
		got, generation, ok := ParsePodName(PodName(vm, 7))
		if !ok || got != vm || generation != 7 {
			t.Errorf("%s: %s, %d, %v", vm, got, generation, ok)
		}
	}
	for _, bad := range []string{"", "web", "-1", "web-", "web-0", "web--1", "web-01", "web-+1", "web-1x", "web-99999999999999999999"} {
		if vm, generation, ok := ParsePodName(bad); ok && PodName(vm, generation) != bad {
			t.Errorf("%q is taken for generation %d of %s", bad, generation, vm)
		}
	}
}
