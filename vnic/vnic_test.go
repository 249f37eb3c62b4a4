package vnic

import (
	"errors"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	for _, good := range []string{"net0", "a0", "vnic_propolis12", "a1.b2", "under_score0", strings.Repeat("a", 30) + "1", "x10"} {
		if err := ValidateName(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"", "net", "0net", "net01", "net00", "a-b0", "a b0", "ä0", "a:0", "a/0", strings.Repeat("a", 31) + "1", "-t0", "a\n0"} {
		err := ValidateName(bad)
		if _, ok := errors.AsType[*NameError](err); !ok {
			t.Errorf("%q: %v, want a *NameError", bad, err)
		}
	}
}

func TestMACs(t *testing.T) {
	for in, want := range map[string]string{
		"2:8:20:a1:0:f": "02:08:20:a1:00:0f", "02:08:20:A1:00:0F": "02:08:20:a1:00:0f", "a8:40:25:ff:a7:c1": "a8:40:25:ff:a7:c1",
	} {
		if got, err := ParseMAC(in); err != nil || got != want {
			t.Errorf("%s: %q, %v", in, got, err)
		}
	}
	for _, bad := range []string{"", "random", "2:8:20:a1:0", "2:8:20:a1:0:f:1", "2:8:20:a1:0:100", "2:8:20:a1:0:g", "2:8:20::0:f", "1:0:5e:0:0:1",
		"ff:ff:ff:ff:ff:ff", "0:0:0:0:0:0", "2-8-20-a1-0-f", "+2:8:20:a1:0:f"} {
		_, err := ParseMAC(bad)
		if _, ok := errors.AsType[*MACError](err); !ok {
			t.Errorf("%q: %v, want a *MACError", bad, err)
		}
	}
}
