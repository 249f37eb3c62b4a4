package world

import "time"

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
	const ms = time.Millisecond
	switch s.Latency {
	case "helios2021":
		switch step {
		case StepConfigure:
			return 12 * ms
		case StepClone:
			return 1700 * ms
		case StepUnconfigure:
			return 1200 * ms // Guess: how much of a clone is that work; host keys of three kinds are made.
		case StepBoot:
			return 680 * ms
		case StepHalt:
			return 1000 * ms
		case StepMilestone:
			return 1310 * ms
		case StepMilestoneUnseeded:
			return 17900 * ms
		case StepDHCP:
			return 4990 * ms
		case StepAddress:
			return 50 * ms
		case StepPropolis:
			return 480 * ms
		case StepVNIC:
			return 30 * ms
		case StepLink:
			return 2 * ms // Guess: nobody published how long it takes to open one.
		case StepInstall:
			return 20 * time.Second // Guess: nobody published how long a sparse zone takes to install.
		}
	case "helios":
		switch step {
		case StepConfigure:
			return 40 * ms
		case StepInstall:
			return 1800 * ms
		case StepClone:
			return 1800 * ms // Guess: as long as an installation; the brand of that sled cannot clone.
		case StepUnconfigure:
			return 1200 * ms // Guess: as above.
		case StepBoot:
			return 200 * ms
		case StepHalt:
			return 1000 * ms
		case StepMilestone, StepMilestoneUnseeded:
			return 3000 * ms
		case StepDHCP:
			return 4990 * ms
		case StepAddress:
			return 50 * ms
		case StepPropolis:
			return 480 * ms
		case StepVNIC:
			return 30 * ms
		case StepLink:
			return 2 * ms // Guess: nobody published how long it takes to open one.
		}
	}
	return 0
}
