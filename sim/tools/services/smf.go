// Package services holds the commands of SMF: svcs, svcadm, svccfg and svcprop.
package services

import (
	"fmt"
	"strings"

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

// smfZone finds the zone that an SMF command works on: its own, or that of -z.
// known is false for one that nobody has configured, which the command calls
// invalid (scf_handle_decorate in usr/src/lib/libscf/common/lowlevel.c).
func smfZone(tx *world.Tx, c cli.Call, option string) (zone string, known bool) {
	if option == "" {
		return c.Zone, true
	}
	return option, option == world.GlobalZone || tx.FindZone(option) != nil
}

// smfHandle is a connection to the svc.configd of a zone.
type smfHandle struct {
	tx   *world.Tx
	zone string
	*scf.Repository
}

// changeSMF is bindSMF for those who change something of the repository.
func changeSMF(tx *world.Tx, zone string) (*smfHandle, string) {
	h, text := bindSMF(tx, zone)
	if h != nil {
		h.Repository = h.Clone()
	}
	return h, text
}

// bindSMF connects; the text is scf_strerror's if that fails.
func bindSMF(tx *world.Tx, zone string) (*smfHandle, string) {
	if !smf.DoorOpen(tx, zone) {
		return nil, scfNoServer
	}
	r, err := smf.ReadRepository(tx, zone)
	if err != nil {
		return nil, scfNoServer
	}
	return &smfHandle{tx: tx, zone: zone, Repository: r}, ""
}

// service is what the restarter knows of an instance; nil before it does.
func (h *smfHandle) service(e scf.Entity) *world.Service { return smf.Service(h.tx, h.zone, e.FMRI()) }

// live are the property groups of an entity, as they are now and with those
// that only svc.startd keeps; composed with the service's if so wanted.
func (h *smfHandle) live(e scf.Entity, composed bool) scf.Groups {
	groups := *e.Groups()
	if composed && e.Instance != nil {
		groups = e.Service.Composed(e.Instance)
	}
	if e.Instance == nil {
		return groups
	}
	return append(append(scf.Groups{}, groups...), smf.Groups(h.service(e), h.tx.Now)...)
}

// The messages of scf_get_msg(3SCF) for patterns.
const (
	noInstance   = "Pattern '%s' doesn't match any instances\n"
	noInstSvc    = "Pattern '%s' doesn't match any instances or services\n"
	noEntity     = "Pattern '%s' doesn't match any entities\n"
	severalMatch = "Pattern '%s' matches multiple instances:\n"
	legacyMatch  = "Operation not supported for legacy service '%s'\n"
)

// walk resolves operands to entities, each once, and collects the complaints
// about those that match nothing. Without operands it is every instance.
func (h *smfHandle) walk(operands []string, services bool, missing string) (found []scf.Match, complaints []string) {
	if len(operands) == 0 {
		return h.Matches("*", false), nil
	}
	seen := map[string]bool{}
	for _, operand := range operands {
		matches := h.Matches(operand, services)
		if len(matches) == 0 {
			complaints = append(complaints, fmt.Sprintf(missing, operand))
		}
		for _, m := range matches {
			key := m.FMRI() + "/" + m.Group + "/" + m.Property
			if !seen[key] {
				seen[key] = true
				found = append(found, m)
			}
		}
	}
	return found, complaints
}

// isGlob says whether an operand may stand for several instances on purpose.
func isGlob(operand string) bool { return strings.ContainsAny(operand, "*?[") }
