package zonecfg

import (
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
)

// verify checks the configuration and, to commit it, saves it (verify_func in
// zonecfg.c). What it finds decides: an error of an earlier command does not
// keep it from saving. What is wrong with the zone and its resources is refused but
// for what follows here.
func (s *cfgSession) verify(save bool) {
	if !s.initialize(true) {
		return
	}
	problem := ""
	note := func(what, format string, args ...any) {
		s.fail(format, args...)
		if problem == "" {
			problem = what
		}
	}
	switch c := s.config; {
	case c.Zonepath == "":
		note(zMissingResource, "zonepath cannot be empty.")
	case len(c.Zonepath) > zonepathMax:
		note(zMissingResource, "zonepath not specified")
	}
	cli.Simulated(slices.Contains(Brands(s.mode()), s.config.Brand) && BadPrivilege(s.config.Globals["limitpriv"]) == "")
	for i := range s.config.Resources {
		r := &s.config.Resources[i]
		s.verifyResource(r)
		if r.Type == "dataset" && !validDatasetName(r.Get("name")) {
			note(zBadProperty, "dataset: name invalid")
		}
	}
	for _, link := range s.unaddressedRouters() {
		note("", "net: defrouter for %s cannot be specified without allowed-address for an exclusive IP type", link)
		problem = zInvalid
	}
	if !s.global {
		note(zNotSpecific, "resource specification incomplete")
	}
	switch {
	case problem == "" && save:
		s.save()
	case problem != "" && save:
		s.zerr("Zone %s failed to verify", s.zone)
		fallthrough
	case problem != "":
		s.fail("%s: %s", s.zone, problem)
	}
}

// zonepathMax is MAXPATHLEN - 1: a longer one is there, and cannot be read.
const zonepathMax = 1023

// verifyResource refuses a resource that lacks what it needs, or whose kind of stack or
// whose limits do not fit the zone.
func (s *cfgSession) verifyResource(r *world.Resource) {
	for _, name := range strings.Fields(map[string]string{
		"fs": "dir special type", "net": "physical", "rctl": "name value", "attr": "name type value", "dataset": "name",
	}[r.Type]) {
		cli.Simulated(r.Get(name) != "")
	}
	c, pset := s.config, len(s.config.All("dedicated-cpu")) > 0
	class := c.Globals["scheduling-class"]
	switch {
	case r.Type == "net":
		cli.Simulated(c.IPType == "exclusive" && r.Get("address") == "" && s.validPhysical(r.Get("physical")))
	case r.Type == "rctl" && r.Get("name") == "zone.cpu-shares":
		cli.Simulated(!pset && (class == "" || class == "FSS"))
	case r.Type == "rctl" && r.Get("name") == "zone.cpu-cap":
		cli.Simulated(!pset)
	}
}

// unaddressedRouters are the links that have a default router and no allowed address,
// which an exclusive stack wants.
func (s *cfgSession) unaddressedRouters() []string {
	addressed, found := map[string]bool{}, []string(nil)
	for _, r := range s.config.All("net") {
		if r.Get("allowed-address") != "" {
			addressed[r.Get("physical")] = true
		}
	}
	for _, r := range s.config.All("net") {
		if link := r.Get("physical"); r.Get("defrouter") != "" && !addressed[link] {
			found = append(found, link)
		}
	}
	return found
}

// validDatasetName is zfs_name_valid for a file system, as far as zonecfg
// meets it: components of the allowed characters, a pool at least.
func validDatasetName(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || strings.Trim(part, alnum+"-_.: ") != "" {
			return false
		}
	}
	return true
}
