package world

import (
	"context"
	"path"
	"slices"
	"strings"
	"time"
)

// The faults. What each does is decided where TakeFault asks for it: the
// dispatcher of commands for those up to FaultKillDuring, the restarter for
// FaultMaintenance.
const (
	FaultFail      = "fail"       // ends with Exit and Text, and does nothing
	FaultAnswer    = "answer"     // prints Text on its standard output, ends with Exit, and does nothing
	FaultBusy      = "busy"       // the same, with the message of a thing in use
	FaultHalf      = "half"       // does its first transaction, then ends as fail
	FaultHang      = "hang"       // does not go on until the fault is disarmed, or for Delay
	FaultMissed    = "missed"     // what it waits for comes, and it does not notice
	FaultLoseDisk  = "lose-disk"  // the disk named by Text is gone from then on
	FaultFailDisk  = "fail-disk"  // the disk named by Text fails from then on
	FaultKilled    = "killed"     // is killed itself, halfway: where it would take its time, or where Text says (mounted)
	FaultKill      = "kill"       // its caller is killed, before it does anything
	FaultKillAfter = "kill-after" // its caller is killed, after it has ended

	// FaultKillDuring kills the caller, and the command lives on.
	FaultKillDuring = "kill-during"

	// What kind of system it is, and what a process may do on it. Words: the command line.
	FaultOldKernel     = "old-kernel"     // the kernel is one that no propolis-server of today runs on; words also: ioctl, a device
	FaultNoDevice      = "no-device"      // a device does not exist; words: ioctl, the device
	FaultFewPrivileges = "few-privileges" // a process has the basic privileges only
	FaultLowSwap       = "low-swap"       // little virtual memory is left
	FaultInZone        = "in-zone"        // a process is in the zone named by Text

	FaultMaintenance = "maintenance" // a start method fails; words: zone, FMRI

	// What happens to a propolis-server; words: propolis, zone, method, those of
	// the path. FaultFail lets a request fail inside, Text being the cause.
	FaultCrash      = "crash"       // the server dies of the request, with its machine
	FaultDrop       = "drop"        // the connection is broken off
	FaultSlowCreate = "slow-create" // making the machine takes longer
	FaultSlowStop   = "slow-stop"   // stopping it does; words: propolis, stop
	FaultOldServer  = "old-server"  // the newest version of the API that it speaks is Text, or 5

	// A stage of a migration takes longer; words: propolis, zone, migrate, stage.
	// With the same words FaultFail and FaultDrop let the migration fail in it.
	FaultSlowMigrate = "slow-migrate"

	// What takes Delay longer; words: zone, of a method also the FMRI.
	FaultSlowDoor      = "slow-door"      // svc.configd answers later
	FaultSlowMilestone = "slow-milestone" // services start later
	FaultSlowMethod    = "slow-method"    // a service is in transition for longer
)

// FaultNames are the names that can be armed.
func FaultNames() []string {
	return append([]string{
		FaultFail, FaultAnswer, FaultBusy, FaultHalf, FaultHang, FaultMissed, FaultKilled, FaultKill, FaultKillAfter, FaultKillDuring,
		FaultLoseDisk, FaultFailDisk,
		FaultHook, FaultSlowClone, FaultBoot, FaultDown, FaultShutdownTimeout, FaultListRace,
		FaultOldKernel, FaultNoDevice, FaultFewPrivileges, FaultInZone, FaultLowSwap,
		FaultMTUIgnored, FaultSlowDAD, FaultNoLease, FaultSlowLink,
		FaultMaintenance, FaultSlowDoor, FaultSlowMilestone, FaultSlowMethod,
		FaultCrash, FaultDrop, FaultOldServer, FaultSlowCreate, FaultSlowStop, FaultSlowMigrate,
	}, slices.Concat(napiFaults(), nexusFaults(), webFaults())...)
}

// Delays says that a fault is nothing without a Delay.
func Delays(name string) bool { return strings.Contains(name, "slow") }

// Slower is how much longer a fault makes something take.
func (tx *Tx) Slower(name string, words ...string) time.Duration {
	if f := tx.TakeFault(words, name); f != nil {
		return f.Delay
	}
	return 0
}

// Arm adds a fault.
func (tx *Tx) Arm(f Fault) { tx.State.Faults = append(tx.State.Faults, &f) }

// Disarm removes the faults of a name and match, or all if name is empty.
func (tx *Tx) Disarm(name, match string) {
	tx.State.Faults = slices.DeleteFunc(tx.State.Faults, func(f *Fault) bool {
		return name == "" || f.Name == name && f.Match == match
	})
}

// TakeFault finds the first armed fault of one of these names that matches
// words, and uses it up by one. Nil if there is none, or if it lets this one
// pass.
func (tx *Tx) TakeFault(words []string, names ...string) *Fault {
	for i, f := range tx.State.Faults {
		if f.Times == spent || !slices.Contains(names, f.Name) || !f.matches(words) {
			continue
		}
		if f.Skip > 0 {
			f.Skip--
			return nil
		}
		taken := *f
		switch {
		case f.Times == 0:
		case f.Times > 1:
			f.Times--
		case f.Name == FaultHang || f.Name == FaultMissed:
			f.Times = spent
		default:
			tx.State.Faults = slices.Delete(tx.State.Faults, i, i+1)
		}
		return &taken
	}
	return nil
}

// Expects tells whether TakeFault would find a fault, and takes none.
func (tx *Tx) Expects(words []string, names ...string) bool {
	return slices.ContainsFunc(tx.State.Faults, func(f *Fault) bool {
		return f.Times != spent && slices.Contains(names, f.Name) && f.matches(words)
	})
}

// spent is the Times of a fault that matches nothing more but still holds those
// that it holds.
const spent = -1

// FaultsArmed tells whether any fault is there.
func (w *World) FaultsArmed(ctx context.Context) (armed bool, err error) {
	err = w.View(ctx, func(tx *Tx) error { armed = len(tx.State.Faults) > 0; return nil })
	return armed, err
}

// Armed tells whether a fault of this name and match is there.
func (tx *Tx) Armed(name, match string) bool {
	return slices.ContainsFunc(tx.State.Faults, func(f *Fault) bool { return f.Name == name && f.Match == match })
}

// matches reports whether each word of Match occurs among words, in order,
// others between them or not. A word of Match may be a pattern of path.Match.
func (f *Fault) matches(words []string) bool {
	for _, want := range strings.Fields(f.Match) {
		i := slices.IndexFunc(words, func(w string) bool {
			fits, err := path.Match(want, w)
			return w == want || err == nil && fits
		})
		if i < 0 {
			return false
		}
		words = words[i+1:]
	}
	return true
}

// The faults of zoneadm(8); words: its command line.
const (
	FaultHook            = "hook"             // the brand's hook fails with Exit (253, 254, 255) and Text
	FaultSlowClone       = "slow-clone"       // the clone hook works for Delay longer in the zone, which is mounted
	FaultBoot            = "boot"             // the zone gets ready, and then does not boot
	FaultDown            = "down"             // halt stops halfway: the zone is down
	FaultShutdownTimeout = "shutdown-timeout" // the zone does not shut down by itself in time
	FaultListRace        = "list-race"        // a listing loses the zone named by Text
)

// The faults of the network. Words: the command line.
const (
	FaultMTUIgnored = "mtu-ignored" // create-vnic -p mtu= is not applied (illumos 15695)
	FaultSlowDAD    = "slow-dad"    // an address stays tentative for Delay longer
	FaultNoLease    = "no-lease"    // no DHCP server answers
	FaultSlowLink   = "slow-link"   // show-linkprop looks at a link for Delay longer; words: the command line, the link
)

// The faults of a web server. Their words are its name, the method and the path: "web GET /disk.img".
const (
	FaultWebFail  = "web-fail"  // answers with the status Exit
	FaultWebHTML  = "web-html"  // answers with a page, and status 200
	FaultWebCut   = "web-cut"   // breaks off after half of what it was to send
	FaultWebStall = "web-stall" // sends half of it, and then nothing
)

func webFaults() []string { return []string{FaultWebFail, FaultWebHTML, FaultWebCut, FaultWebStall} }
