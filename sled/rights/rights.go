// Package rights says what each command of sledctl needs on illumos, and which of them a
// process may run. The manual's page is made from it, and doctor looks at it.
package rights

import (
	"slices"
	"strings"

	"github.com/sledctl/sledctl/host/privilege"
)

// Command is a command with what it needs.
type Command struct {
	Name string          // as it is typed, without sledctl
	File privilege.Files // what it does with files of root's
	Host []string        // the programs of the host that it changes something with
	// Asks says that it asks the Propolis of VMs. Where their control addresses come from
	// DHCP, it reads them in their zones first.
	Asks bool
}

// Programs are the programs of the host that it needs privileges for.
func (c Command) Programs(dhcp bool) []string {
	if c.Asks && dhcp && !slices.Contains(c.Host, "zlogin") {
		return append(slices.Clone(c.Host), "zlogin")
	}
	return c.Host
}

// Need is what a process must have for it.
func (c Command) Need(dhcp bool) privilege.Need {
	return privilege.Need{Files: c.File}.And(privilege.Of(c.Programs(dhcp)...))
}

// Lacking are the commands that a process may not run, each with what it lacks.
func Lacking(p privilege.Process, dhcp bool) map[string][]string {
	all := map[string][]string{}
	for _, c := range Commands() {
		if lacks := c.Need(dhcp).Lacks(p); len(lacks) > 0 {
			all[c.Name] = lacks
		}
	}
	return all
}

// Commands are the commands that work on a sled, by name. With --dry-run, one that changes
// something needs what one that reads does. What is not here is about the program, the
// simulation, or a file of the operator's.
func Commands() []Command {
	all := []Command{}
	add := func(like Command, names ...string) {
		for _, like.Name = range names {
			all = append(all, like)
		}
	}
	add(Command{}, "config check", "config show", "probe compare", "probe show", "propolis spec convert", "propolis spec validate")
	reads := Command{File: privilege.ReadFiles}
	add(reads, "base list", "doctor", "events", "history", "image export", "image get", "image list", "instance history", "instance logs", "instance snapshot list", "ledger check", "ledger export", "ledger show", "probe record",
		"storage check", "storage list", "storage local-disk list", "trace", "vnic list", "volume get", "volume list", "zone bundle get", "zone bundle list", "zone list")
	reads.Asks = true
	add(reads, "instance console", "instance get", "instance list", "instance wait", "instance watch", "nics list", "propolis get", "propolis monitor", "propolis spec diff",
		"propolis spec show", "status", "top")
	writes := func(programs ...string) Command { return Command{File: privilege.WriteFiles, Host: programs} }
	add(writes(), "ledger import", "nics sync", "sled keeper", "storage forget", "volume adopt", "volume attach", "volume detach", "volume set", "zone bundle delete")
	asks := writes()
	asks.Asks = true
	add(asks, "instance keeper", "instance reboot", "propolis ensure", "propolis nmi", "propolis reboot", "propolis run", "propolis stop")
	add(writes("dladm", "opteadm"), "vnic create")
	add(writes("dladm"), "vnic delete")
	add(writes("zfs"), "image delete", "image fetch", "image import", "image prune", "instance export", "instance snapshot create", "instance snapshot delete", "instance snapshot rollback", "ledger heal", "storage local-disk delete", "storage local-disk ensure", "storage rekey", "volume create", "volume delete", "volume receive", "volume rename", "volume resize")
	add(writes("chmod", "zfs", "zpool"), "storage format")
	add(writes("zlogin"), "instance adopt", "zone address", "zone bundle create", "zone exec")
	add(writes("svcadm", "zlogin"), "propolis start")
	add(writes("zoneadm"), "zone halt")
	add(writes("dladm", "zoneadm"), "zone boot")
	add(writes("dladm", "opteadm", "zfs", "zoneadm", "zonecfg"), "zone create", "zone delete")
	add(writes("svccfg", "zfs", "zoneadm", "zonecfg"), "base ensure", "base retire")
	up := []string{"dladm", "mount", "opteadm", "svcadm", "svccfg", "zfs", "zlogin", "zoneadm", "zonecfg"}
	add(writes(up...), "agent", "instance copy", "instance delete", "instance edit", "instance ensure", "instance import", "instance migrate", "instance start", "instance stop", "probe record --active", "reap")
	add(writes(append([]string{"chmod", "ipadm", "route", "rsrvrctl", "zpool"}, up...)...), "bootstrap")
	slices.SortFunc(all, func(a, b Command) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Group are the commands that need the same.
type Group struct {
	Need privilege.Need
	// Asking need everything where control addresses come from DHCP; the others never do.
	Asking, Others []string
}

// Groups are all commands by what they need where control addresses are chosen, the least
// first.
func Groups() (all []Group) {
	for _, c := range Commands() {
		need := c.Need(false)
		i := slices.IndexFunc(all, func(g Group) bool { return g.Need.String() == need.String() })
		if i < 0 {
			all, i = append(all, Group{Need: need}), len(all)
		}
		if c.Asks {
			all[i].Asking = append(all[i].Asking, c.Name)
		} else {
			all[i].Others = append(all[i].Others, c.Name)
		}
	}
	slices.SortStableFunc(all, func(a, b Group) int { return weight(a.Need) - weight(b.Need) })
	return all
}

// weight orders needs: all privileges are the most.
func weight(n privilege.Need) int {
	if slices.Contains(n.Privileges, privilege.All) {
		return 1000
	}
	return 10*len(n.Privileges) + int(n.Files)
}
