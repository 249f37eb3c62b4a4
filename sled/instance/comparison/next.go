package comparison

import (
	"slices"

	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/zone"
)

// Next is a command to type, and what it does.
type Next struct{ Command, Does string }

// Next are the commands that repair what is wrong with the instance, or show more of it.
// While a run is at work on it, there is none.
func (c Comparison) Next() []Next {
	down := []record.State{record.Failed, record.Absent, record.Creating, "destroyed", record.Stopped}
	switch {
	case c.Busy != nil || c.State == record.Unknown:
		return nil
	case c.Migration != nil:
		return []Next{{"sledctl instance migrate " + c.Name, "resumes the migration"}}
	case c.AtRisk:
		return []Next{{"sledctl storage list", "shows the pool and its disk"}}
	case c.Wanted == record.WantedRunning && slices.Contains(down, c.State):
		return []Next{{"sledctl instance ensure " + c.Name, "rebuilds it: same UUID, address and MACs"}}
	case c.Wanted == record.WantedStopped && c.State == record.Stopped:
		return []Next{{"sledctl instance start " + c.Name, "starts it"}}
	case c.mendable():
		return []Next{
			{"sledctl instance get " + c.Name + " --diff", "shows what differs"},
			{"sledctl instance ensure " + c.Name, "puts it back, while the VM runs on"},
		}
	case len(c.Differing()) > 0:
		return []Next{
			{"sledctl instance get " + c.Name + " --diff", "shows what differs"},
			{"sledctl instance stop " + c.Name + " && sledctl instance start " + c.Name, "rebuilds it: powers the VM off"},
		}
	}
	return nil
}

// mendable reports whether all that differs is put back while the VM runs on: the cap in the
// configuration of its zone, and what its guest NICs are held to, or were told.
func (c Comparison) mendable() bool {
	all := c.Differing()
	return len(all) > 0 && !slices.ContainsFunc(all, func(r Row) bool { return !r.Mendable && r.Field != "zone "+zone.CPUCap })
}
