package controller

import (
	"cmp"
	"fmt"

	"github.com/sledctl/sledctl/fleet/api"
)

// MaxMoves is how many VMs leave a sled at once. As many come to one, for which its node cares.
const MaxMoves = 2

// Asked is what is known of a migration that is asked for, and of its VM.
type Asked struct {
	Phase     string // of the migration
	There     bool   // the VM exists
	Wanted    bool   // it is wanted to run
	Volumes   bool   // it has a volume on its sled
	Mine      bool   // it moves by this migration
	Moving    bool   // it moves by another one
	Stale     bool   // a drain has asked for it, and the VM has left its sled otherwise
	Running   bool   // its sled reports that it runs, and where its Propolis listens
	Silent    bool   // its sled does not answer
	Source    string // its sled
	Target    string // the sled that is asked for; empty: the scheduler chooses
	Leaving   int    // VMs that leave its sled
	Coming    int    // VMs that come to the target that is asked for
	Uncounted string // why nothing may be started; empty: it may
}

// Acts of DecideMigration.
const (
	Begin  Act = "begin"  // raise the next generation, as one that comes from the sled of the VM
	Follow Act = "follow" // tell how far it is
	Fail   Act = "fail"   // tell that it has failed, before anything was begun
)

// DecideMigration says what to do about a migration that is asked for. What waits is looked at again.
func DecideMigration(a Asked) Step {
	switch {
	case a.Phase == api.MigrationSucceeded || a.Phase == api.MigrationFailed:
		return Step{Act: Nothing}
	case a.Mine:
		return Step{Act: Follow}
	case !a.There:
		return Step{Act: Fail, Reason: "there is no such VM"}
	case !a.Wanted:
		return Step{Act: Fail, Reason: "the VM is not wanted to run"}
	case a.Stale:
		return Step{Act: Fail, Reason: "the VM has run again since a drain asked for it"}
	case a.Volumes:
		return Step{Act: Fail, Reason: "the VM has a volume on its sled, which cannot move"}
	case a.Target != "" && a.Target == a.Source:
		return Step{Act: Fail, Reason: fmt.Sprintf("the VM is on sled %s already", a.Source)}
	case a.Moving:
		return Step{Act: Wait, Reason: "the VM moves by another migration"}
	case !a.Running:
		return Step{Act: Wait, Reason: "the VM is not reported to run"}
	case a.Silent:
		return Step{Act: Wait, Reason: fmt.Sprintf("sled %s does not answer", a.Source)}
	case a.Uncounted != "":
		return Step{Act: Wait, Reason: a.Uncounted}
	case a.Leaving >= MaxMoves:
		return Step{Act: Wait, Reason: fmt.Sprintf("%d VMs leave sled %s already", a.Leaving, a.Source)}
	case a.Target != "" && a.Coming >= MaxMoves:
		return Step{Act: Wait, Reason: fmt.Sprintf("%d VMs come to sled %s already", a.Coming, a.Target)}
	}
	return Step{Act: Begin, Reason: cmp.Or(a.Target, "a sled that the scheduler chooses")}
}
