package zone

import (
	"strconv"
	"strings"
)

// CPUCap is the resource control that zonecfg(8) keeps a capped-cpu as, and is named by a
// Difference.
const CPUCap = "zone.cpu-cap"

// strangeCap is the CPUCap of a zone whose resource control is none that a capped-cpu
// makes.
const strangeCap = -1

func validCap(hundredths int) error {
	if hundredths < 0 {
		return &ValueError{Property: "capped-cpu ncpus", Value: strconv.Itoa(hundredths), Reason: "is below 0"}
	}
	return nil
}

// capText is a cap as text; empty: there is none.
func capText(hundredths int) string {
	switch hundredths {
	case 0:
		return ""
	case strangeCap:
		return "another kind of limit"
	}
	return Hundredths(hundredths)
}

// Hundredths is a number of hundredths as a decimal number: "1.5".
func Hundredths(n int) string {
	return strconv.FormatFloat(float64(n)/100, 'f', -1, 64)
}

// ncpus is a cap as zonecfg takes it. zonecfg cuts off what is behind the hundredths of a
// float (set_func in usr/src/cmd/zonecfg/zonecfg.c), and 0.29 as a float is a bit less: it
// gets half a hundredth more where that matters.
func ncpus(hundredths int) string {
	text := Hundredths(hundredths)
	if f, err := strconv.ParseFloat(text, 32); err == nil && int(f*100) == hundredths {
		return text
	}
	whole, decimals, _ := strings.Cut(text, ".")
	return whole + "." + (decimals + "00")[:2] + "5"
}

type rctlElement struct {
	Name   string       `xml:"name,attr"`
	Values []rctlValues `xml:"rctl-value"`
}

type rctlValues struct {
	Priv   string `xml:"priv,attr"`
	Limit  string `xml:"limit,attr"`
	Action string `xml:"action,attr"`
}

func (r *rctlElement) value(name string) element {
	if name != "rctl-value" {
		return element{}
	}
	v := added(&r.Values)
	return element{attributes: []attribute{{"priv", &v.Priv}, {"limit", &v.Limit}, {"action", &v.Action}}}
}

// capOf is the cap among resource controls.
func capOf(all []rctlElement) int {
	for _, r := range all {
		if r.Name != CPUCap || len(r.Values) == 0 {
			continue
		}
		if len(r.Values) != 1 || r.Values[0].Priv != "privileged" || r.Values[0].Action != "deny" {
			return strangeCap
		}
		if n, err := strconv.Atoi(r.Values[0].Limit); err == nil && n > 0 {
			return n
		}
		return strangeCap
	}
	return 0
}
