package zonecfg

import (
	"strings"
	"testing"
)

// zonecfg_validate_zonename in libzonecfg.c.
func TestZoneNames(t *testing.T) {
	for name, good := range map[string]bool{
		"z": true, "Z-1._": true, "9": true, "a" + strings.Repeat("b", 62): true, "SUNWx": true,
		"": false, "-a": false, ".a": false, "_a": false, "a/b": false, "a b": false, "ä": false, "global": false,
		"a" + strings.Repeat("b", 63): false,
	} {
		if got := validZoneName(name); got != good {
			t.Errorf("%q: %v", name, got)
		}
	}
}

// bytes_to_units and zonecfg_str_to_bytes in zonecfg.c and libzonecfg.c.
func TestZonecfgSizes(t *testing.T) {
	for text, want := range map[string]uint64{"1M": 1 << 20, "1.5g": 3 << 29, "7": 7, "2 T": 2 << 40, "1KK": 0, "x": 0, "-1M": 0} {
		got, ok := memoryLimit(text)
		if got != want || ok != (want != 0) {
			t.Errorf("%s: %d, %v", text, got, ok)
		}
	}
	for bytes, want := range map[uint64]string{0: "0", 1023: "1023", 1024: "1K", 1536: "1.5K", 10 << 30: "10G", 20<<20 + 1: "20M"} {
		if got := inUnits(bytes); got != want {
			t.Errorf("%d: %s, want %s", bytes, got, want)
		}
	}
}
