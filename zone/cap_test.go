package zone

import (
	"strconv"
	"strings"
	"testing"
)

// zonecfg makes of each cap the hundredths that were meant, with floats of either width.
func TestNcpus(t *testing.T) {
	for n := 1; n <= 100*1024; n++ {
		wide, err := strconv.ParseFloat(ncpus(n), 32)
		if narrow := float32(wide) * 100; err != nil || int(wide*100) != n || int(narrow) != n {
			t.Fatalf("%d: %s is %d or %d, %v", n, ncpus(n), int(wide*100), int(narrow), err)
		}
	}
	for n, want := range map[int]string{1: "0.015", 29: "0.295", 100: "1", 150: "1.5", 12800: "128"} {
		if got := ncpus(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

// A cap is read however the file is written; a resource control that no capped-cpu
// makes is none.
func TestCapOfAConfiguration(t *testing.T) {
	for value, want := range map[string]string{
		`<rctl-value priv="privileged" limit="150" action="deny"/>`:                    "1.5",
		`<rctl-value priv="privileged" limit="150" action="none"/>`:                    "another kind of limit",
		`<rctl-value priv="privileged" limit="0" action="deny"/>`:                      "another kind of limit",
		strings.Repeat(`<rctl-value priv="privileged" limit="150" action="deny"/>`, 2): "another kind of limit",
		"": "",
	} {
		for _, text := range []string{"", "text that only encoding/xml reads"} {
			_, c, err := ParseConfig([]byte(`<zone name="z" zonepath="/z/z"><rctl name="zone.cpu-shares"><rctl-value priv="privileged" limit="7" action="none"/></rctl><rctl name="zone.cpu-cap">` + value + `</rctl>` + text + `</zone>`))
			if err != nil || capText(c.CPUCap) != want {
				t.Errorf("%s: %d, %v", value, c.CPUCap, err)
			}
		}
	}
}
