package world

import (
	_ "embed" // of the figures
	"strings"
	"time"
)

// The steps whose duration is known.
const (
	StepConfigure         = "configure"          // zonecfg, one batch with its commit
	StepInstall           = "install"            // zoneadm install
	StepClone             = "clone"              // zoneadm clone
	StepUnconfigure       = "unconfigure"        // of that, the work of a clone hook in the mounted zone
	StepBoot              = "boot"               // zoneadm boot, to its exit
	StepHalt              = "halt"               // zoneadm halt of a zone with processes
	StepMilestone         = "milestone"          // from boot to single-user, with an SMF repository that knows all manifests
	StepMilestoneUnseeded = "milestone-unseeded" // the same when they are imported at first boot
	StepDHCP              = "dhcp"               // until a lease is there
	StepAddress           = "address"            // until a static address is ok
	StepPropolis          = "propolis"           // from enabling its service until it answers
	StepVNIC              = "vnic"               // dladm create-vnic
	StepLink              = "link"               // dladm show-linkprop, of each link
)

// Latency is how long a step takes on this sled. "helios2021" has the figures
// that were measured when the sled agent learnt to clone zones (omicron PR 385)
// and "helios" those of logs of a rack (omicron issues 5318 and 7918); "none"
// and steps that nobody measured take no time.
func (tx *Tx) Latency(step string) time.Duration { return tx.State.LatencyOf(step) }

// LatencyOf is Tx.Latency.
func (s *State) LatencyOf(step string) time.Duration {
	for line := range strings.Lines(latencies) {
		if f := strings.Fields(line); len(f) > 2 && f[0] == s.Latency && f[1] == step {
			took, _ := time.ParseDuration(f[2]) // our own
			return took
		}
	}
	return 0
}

//go:embed latencies.txt
var latencies string
