// Package services holds the commands of SMF: svcs, svcadm, svccfg and svcprop. Of
// each it has what sledctl, its pages and its scripts use; all else is refused.
package services

import (
	"fmt"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/scf"
	"github.com/sledctl/sledctl/sim/world/smf"
)

// The texts of scf_strerror(3SCF) that the SMF commands pass on.
const (
	scfNoServer = "repository server unavailable"
	scfBroken   = "connection to repository broken"
)

// smfZone finds the zone that an SMF command works on: its own, or that of -z. One
// that nobody has configured is invalid (scf_handle_decorate in
// usr/src/lib/libscf/common/lowlevel.c).
func smfZone(tx *world.Tx, c cli.Call, option string) (string, *cli.Reply) {
	switch {
	case option == "":
		return c.Zone, nil
	case c.Zone != world.GlobalZone:
		return "", refusal(c, "%s -z may only be used from the global zone\n", c.Tool)
	case option != world.GlobalZone && tx.FindZone(option) == nil:
		return "", refusal(c, "invalid zone '%s'\n", option)
	}
	return option, nil
}

// refusal is a reply that ends a command early.
func refusal(c cli.Call, format string, args ...any) *cli.Reply {
	r := cli.Reply{}.Die(c.Tool, format, args...)
	return &r
}

// smfHandle is a connection to the svc.configd of a zone.
type smfHandle struct {
	tx   *world.Tx
	zone string
	*scf.Repository
}

// bindSMF connects; nil if the repository's server is unavailable.
func bindSMF(tx *world.Tx, zone string) *smfHandle {
	if !smf.DoorOpen(tx, zone) {
		return nil
	}
	r, err := smf.ReadRepository(tx, zone)
	if err != nil {
		return nil
	}
	return &smfHandle{tx, zone, r}
}

// service is what the restarter knows of an instance; nil before it does.
func (h *smfHandle) service(e scf.Entity) *world.Service { return smf.Service(h.tx, h.zone, e.FMRI()) }

// live are the property groups of an instance as they are now, with those that only
// svc.startd keeps; composed with the service's if so wanted.
func (h *smfHandle) live(e scf.Entity, composed bool) scf.Groups {
	groups := e.Instance.Groups
	if composed {
		groups = e.Service.Composed(e.Instance)
	}
	return append(append(scf.Groups{}, groups...), smf.Groups(h.service(e), h.tx.Now)...)
}

// The messages of scf_get_msg(3SCF) for patterns.
const (
	noInstance = "Pattern '%s' doesn't match any instances\n"
	noEntity   = "Pattern '%s' doesn't match any entities\n"
)

// walk resolves operands, which are full FMRIs here, to instances, each once, and
// complains about those that match nothing (scf_walk_fmri in
// usr/src/lib/libscf/common/midlevel.c).
func (h *smfHandle) walk(tool string, operands []string, missing string) (found []scf.Entity, complaints cli.Reply) {
	seen := map[string]bool{}
	for _, operand := range operands {
		f, ok := scf.ParseFMRI(operand)
		if !ok {
			panic(world.Unsimulated{What: fmt.Sprintf("operand %q", operand)})
		}
		instances := h.Instances(f)
		if len(instances) == 0 {
			complaints = complaints.Die(tool, missing, operand)
		}
		for _, e := range instances {
			if !seen[e.FMRI()] {
				seen[e.FMRI()] = true
				found = append(found, e)
			}
		}
	}
	return found, complaints
}
