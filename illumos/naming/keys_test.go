package naming

import (
	"strings"
	"testing"
)

// A key that could be of two owners would be read by the wrong one.
func TestNoKeyHasTwoOwners(t *testing.T) {
	for i, a := range Keys() {
		if a.Owner == "" || a.Prefix == "" || strings.Trim(a.Prefix, "abcdefghijklmnopqrstuvwxyz/") != "" {
			t.Errorf("%+v", a)
		}
		for j, b := range Keys() {
			if i != j && strings.HasPrefix(a.Prefix, b.Prefix) {
				t.Errorf("%q (%s) lies below %q (%s)", a.Prefix, a.Owner, b.Prefix, b.Owner)
			}
		}
	}
}

func TestOwnerOfKey(t *testing.T) {
	for key, want := range map[string]string{
		"instance/8c4a": "instance", "attached/%2Fdev%2Fzvol": "instance", "disk/a-b-c": "storage", "hold/vnic/v0": "network", "agent/epoch": "agent",
		"instance/": "", "instance": "", "agent/epochs": "", "agent/": "", "disks/a": "", "": "",
	} {
		if got, known := OwnerOfKey(key); got != want || known != (want != "") {
			t.Errorf("%q: %q, %v; want %q", key, got, known, want)
		}
	}
}
