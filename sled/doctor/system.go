package doctor

import (
	"slices"
	"strings"

	"github.com/sledctl/sledctl/host/privilege"
	"github.com/sledctl/sledctl/illumos/system"
	"github.com/sledctl/sledctl/sled/rights"
)

// systemChecks ask what system it is, and what sledctl may do there.
func systemChecks() []Check {
	const group = "system"
	return []Check{
		{ID: "release", Group: group, About: "the distribution is one that sledctl was written for", Asks: []Question{askRelease, askKernel}, Judge: judgeRelease},
		{ID: "kernel", Group: group, About: "the kernel is new enough for a propolis-server of today", Asks: []Question{askKernel}, Judge: judgeKernel},
		{ID: "global-zone", Group: group, About: "sledctl runs in the global zone", Asks: []Question{askZone}, Judge: judgeZone},
		{ID: "privileges", Group: group, About: "sledctl has the privileges that its commands need", Asks: []Question{askPrivileges}, Judge: judgePrivileges},
		{ID: "packaging", Group: group, About: "the brand and the files are there with which Propolis comes into a zone", Asks: []Question{askKernel}, Judge: judgePackaging},
	}
}

func judgeRelease(s Seen) Finding {
	switch s.Kernel.Distribution {
	case system.Unknown:
		return warns("%s is not a distribution that sledctl was tried with", s.Release)
	case system.SmartOS:
		return fine("%s: no VMs, NIC records only", s.Release)
	}
	return fine("%s", s.Release)
}

// The OmniOS releases whose kernels matter: the first whose viona has several queues, and
// the first that an older server runs on.
const (
	multiqueue = 151058
	older      = 151050
)

// judgeKernel judges by the release.
//
// Guess multi-queue-since-r151058: multi-queue viona first came with OmniOS r151058, as its release
// notes say, so older kernels do not run a propolis-server of today. No header was read.
// Check: `uname -v; propolis-server --version`, and whether it starts
func judgeKernel(s Seen) Finding {
	k := s.Kernel
	switch {
	case k.Distribution == system.OmniOS && k.Release > 0 && k.Release < older:
		return fails("kernel %s is older than any that a propolis-server runs on", k.Version).byHand("upgrade the system")
	case k.Distribution == system.OmniOS && k.Release > 0 && k.Release < multiqueue:
		return warns("kernel %s runs servers up to Propolis 2dc64374 (2026-01-06) only", k.Version)
	}
	return fine("%s", k.Version)
}

func judgeZone(s Seen) Finding {
	if s.Zone != "global" {
		return fails("sledctl runs in zone %s; VMs are made in the global zone", s.Zone).byHand("log in to the global zone").then("pfexec sledctl doctor")
	}
	return fine("in the global zone")
}

// judgePrivileges tells an operator with a rights profile which commands that lets run. Who
// has no more than every user fails.
func judgePrivileges(s Seen) Finding {
	p := privilege.Process{User: s.Privileges.User, Effective: s.Privileges.Effective}
	if p.All() {
		return fine("all")
	}
	var named []string
	for _, program := range privilege.Programs() {
		named = append(named, program.Need.Privileges...)
	}
	if !slices.ContainsFunc(append(named, privilege.Read()...), p.Effective.Has) {
		return fails("the effective privileges are %s; changes need all", p.Effective).then("pfexec sledctl doctor")
	}
	all, lacking := rights.Commands(), rights.Lacking(p, s.Settings.DHCP)
	var may []string
	for _, c := range all {
		if _, ok := lacking[c.Name]; !ok {
			may = append(may, c.Name)
		}
	}
	return warns("user %d with %s may run %d of %d commands: %s", p.User, p.Effective, len(may), len(all), strings.Join(may, ", ")).
		byHand("to run the others too, use a profile that has what they need (docs/privileges.md)").then("pfexec sledctl doctor")
}

// judgePackaging takes what instance ensure would say.
func judgePackaging(s Seen) Finding {
	why := s.Settings.Lacking
	switch {
	case s.Kernel.Distribution == system.SmartOS:
		return fine("sledctl runs no VMs on SmartOS")
	case why == nil:
		return fine("all of it is there")
	}
	return fails("%v", why).byHand("install what is missing, or set propolis.packaging, propolis.directory and propolis.images").then("sledctl doctor")
}
