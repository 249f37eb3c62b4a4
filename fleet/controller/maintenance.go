package controller

import (
	"fmt"
	"strings"

	"github.com/sledctl/sledctl/fleet/api"
	"github.com/sledctl/sledctl/fleet/eviction"
)

// Left is a VM that is still on a sled which is to be emptied.
type Left struct {
	VM      string
	Verdict eviction.Verdict
	Stuck   string // why its last migration came to nothing, if it is not tried again
}

// Emptied is how far a sled is emptied.
type Emptied struct {
	Phase     string
	Remaining int32
	Reason    string
}

// Empties says how far a sled is emptied, by the VMs that are left. It is blocked if one of them
// does not leave by itself; the others leave nevertheless.
func Empties(sled bool, left []Left) Emptied {
	if !sled {
		return Emptied{Phase: api.MaintenanceBlocked, Reason: "there is no such sled"}
	}
	if len(left) == 0 {
		return Emptied{Phase: api.MaintenanceReady}
	}
	e := Emptied{Phase: api.MaintenanceDraining, Remaining: int32(len(left))}
	var stay []string
	for _, l := range left {
		switch {
		case l.Verdict.Act == eviction.Refuse:
			stay = append(stay, l.Verdict.Reason)
		case l.Stuck != "":
			stay = append(stay, fmt.Sprintf("VM %s: %s", l.VM, l.Stuck))
		}
	}
	if len(stay) > 0 {
		e.Phase = api.MaintenanceBlocked
		const told = 3
		e.Reason = strings.Join(stay[:min(told, len(stay))], "; ")
		if more := len(stay) - told; more > 0 {
			e.Reason += fmt.Sprintf("; and %d more", more)
		}
	}
	return e
}
