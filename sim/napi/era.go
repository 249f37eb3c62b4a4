package napi

import (
	"fmt"
	"slices"
	"strings"
)

// The eras, by the changes that a sled notices. Their dates are those of
// sdc-napi's history.
const (
	Era2014 = "2014"         // A, and nothing is done for an agent of the time (AGENT-741)
	EraA    = "A"            // until NAPI-299, June 2015: filters that it does not know are ignored
	EraB    = "B"            // until NAPI-404, January 2017: they are refused
	EraC    = "C"            // until TRITON-314, April 2018: cn_uuid is one that it knows
	EraD    = "D"            // since then: conditional requests
	EraRFD  = "RFD58"        // as RFD 58 describes it: /search/nics?cn_uuid=
	EraTip  = "NAPI-360-tip" // that branch as it was left: /search/nics without cn_uuid
)

// Eras are the names of all.
func Eras() []string { return []string{Era2014, EraA, EraB, EraC, EraD, EraRFD, EraTip} }

// era is what a server of it does.
type era struct {
	strict   bool // lists refuse filters that they do not know
	cn       bool // lists filter by cn_uuid
	search   bool // there is /search/nics
	paging   bool // lists take limit and offset
	etag     bool
	times    bool // records say when they were made and changed
	bareMACs bool // paths take a MAC address of twelve digits only
	deaf     bool // changes by net-agent are answered with nothing
}

func eraOf(name string) (era, error) {
	e, known := map[string]era{
		Era2014: {bareMACs: true, deaf: true},
		EraA:    {bareMACs: true},
		EraB:    {strict: true, paging: true},
		EraC:    {strict: true, paging: true, cn: true, times: true},
		EraD:    {strict: true, paging: true, cn: true, times: true, etag: true},
		EraRFD:  {strict: true, paging: true, cn: true, search: true},
		EraTip:  {strict: true, paging: true, search: true},
	}[name]
	if !known {
		return e, fmt.Errorf("no era %q: %s", name, strings.Join(Eras(), ", "))
	}
	return e, nil
}

// Checkings are the names of the ways to take what is not known.
func Checkings() []string { return []string{"", "strict", "loose"} }

// Check refuses settings that no server has.
func Check(eraName, checking string) error {
	if !slices.Contains(Checkings(), checking) {
		return fmt.Errorf("no checking %q: strict or loose", checking)
	}
	_, err := eraOf(eraName)
	return err
}
