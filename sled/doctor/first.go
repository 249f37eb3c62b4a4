package doctor

import (
	"fmt"
	"time"

	"github.com/sledctl/sledctl/host/fault"
)

// firstPatience is how long the questions may take before the first bootstrap, which
// takes longer itself.
const firstPatience = 10 * time.Second

// Before are the settings for the checks before the first bootstrap, and the checks to
// leave out: bootstrap makes right what they ask for, or refuses by itself and has more to
// say; and services that start with the sled run bootstrap themselves.
func (s Settings) Before() (Settings, []string) {
	s.Patience = firstPatience
	return s, []string{
		"global-zone", "privileges", "sled-agent", "vmadmd", "other-zones", "other-vms", "packaging", "pools", "failmode", "ledger-place",
		"sync", "reservoir", "control-link", "link-mtu", "default-route", "manifests", "services", "service-program",
	}
}

// Warnings are the checks that came to a warning, each with how it is repaired.
func (r Result) Warnings() []error {
	var all []error
	for _, c := range r.Checks {
		if c.Verdict == Warn {
			all = append(all, fmt.Errorf("doctor: %s: %s; %s", c.ID, c.Evidence, c.Repair()))
		}
	}
	return all
}

// NotAbleError means that a sled is not prepared, since its host cannot run VMs.
type NotAbleError struct{ Failed *FailedError }

// Error names the checks that failed.
func (e *NotAbleError) Error() string { return "this host cannot run VMs: " + e.Failed.Error() }

func (*NotAbleError) Kind() fault.Kind { return fault.Refused }

// Unwrap gives the checks.
func (e *NotAbleError) Unwrap() error { return e.Failed }

// Hint is how the first of them is repaired, and how to go past them.
func (e *NotAbleError) Hint() string {
	return e.Failed.Hint() + "; to prepare the sled as it is, run: sledctl bootstrap --skip-doctor"
}
