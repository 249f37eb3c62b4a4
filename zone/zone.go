// Package zone drives the zones of an illumos host through zoneadm(8) and
// zonecfg(8): it lists and configures them, clones or installs, boots, halts
// and removes them.
//
// Three habits of the real commands shape everything here. A zone has a state
// in /etc/zones/index and, while the kernel knows it, a state there, and the
// kernel's wins. Exit codes are not to be trusted in either direction (halt can
// fail although the zone is gone, boot succeeds on a zone that is going down),
// so what a step achieved is read from a listing. And zonecfg commits what it
// understood even after an error, so its standard error decides, and what it
// wrote is read back.
package zone

// Zone is a line of `zoneadm list -cp`.
type Zone struct {
	// ID is the kernel's number of the zone, 0 to 9999, a new one at every
	// boot; nil while the kernel has no such zone.
	ID    *int
	Name  string
	State State
	Path  string // the zonepath; "/" for the global zone
	// UUID names an installation, not a zone: it is empty while the zone is
	// configured (and for the global zone) and new after every install.
	UUID   string
	Brand  string
	IPType string // "exclusive" or "shared", as in a Config
}

// State is a state of a zone, named as in zones(7) and zoneadm(8).
type State string

// The states. Configured, Incomplete and Installed stand in the index; the
// others are the kernel's.
const (
	Configured   State = "configured"    // there is a configuration, and nothing on disk
	Incomplete   State = "incomplete"    // an install, clone or uninstall is under way or failed
	Installed    State = "installed"     // can be booted; the kernel has no such zone
	Ready        State = "ready"         // file systems and links are in place, no process
	Mounted      State = "mounted"       // a scratch zone of zoneadm mount: only unmount is legal
	Running      State = "running"       // from the moment at which init is executed
	ShuttingDown State = "shutting_down" // processes are being killed
	Down         State = "down"          // processes are gone, the platform is not yet
)

// Global is the name of the zone in which sledctl runs.
const Global = "global"
