package zoneadm

import (
	"strings"

	"github.com/sledctl/sledctl/sim/tools/net"
	"github.com/sledctl/sledctl/sim/tools/zonecfg"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/network"
)

// This file makes the VNICs of a net resource with a global-nic when the zone
// gets ready, and deletes them when it is down (omniosorg/pkg5
// src/brand/shared/vnic.ksh). They are persistent links, and their MAC address
// is kept in the zone's configuration.

// demandVNICs are the net resources that ask for it. One with an address is
// that of a zone with a shared stack.
func (h *hook) demandVNICs() []*world.Resource {
	var asking []*world.Resource
	z := h.tx.FindZone(h.zone)
	if z == nil {
		return nil
	}
	for _, r := range z.Config.All("net") {
		if r.Get("global-nic") != "" && r.Get("address") == "" {
			asking = append(asking, r)
		}
	}
	return asking
}

// configureVNICs is config_vnics. One that is there is taken as it is.
func (h *hook) configureVNICs() int {
	for _, r := range h.demandVNICs() {
		name, over := r.Get("physical"), r.Get("global-nic")
		if over == "auto" {
			address := r.Get("allowed-address")
			if address == "" {
				return h.fatal("Cannot use 'auto' global NIC without allowed-address.")
			}
			if over = h.linkTowards(address); over == "" {
				return h.fatal("Could not determine global-nic for %s", name)
			}
		}
		if l := network.FindLink(h.tx, name); l != nil && l.Class == "vnic" {
			continue
		}
		if code := h.createVNIC(r, name, over); code != hookOK {
			return code
		}
	}
	return hookOK
}

func (h *hook) createVNIC(r *world.Resource, name, over string) int {
	args := []string{"create-vnic", "-l", over}
	mac := r.Get("mac-addr")
	if mac != "" {
		args = append(args, "-m", mac)
	}
	if vlan := r.Get("vlan-id"); vlan != "" && vlan != "0" {
		args = append(args, "-v", vlan)
	}
	if made := h.run(net.Dladm, "dladm", append(args, name)...); made.Exit != 0 {
		h.err.WriteString(made.Stderr)
		return h.fatal("Could not create VNIC %s/%s", name, over)
	}
	if mac != "" {
		return hookOK
	}
	shown := h.run(net.Dladm, "dladm", "show-vnic", "-p", "-o", "MACADDRESS", name)
	if mac = strings.TrimSpace(shown.Stdout); mac != "" {
		kept := h.run(zonecfg.Run, "zonecfg", "-z", h.zone, "select net physical="+name+"; ", "set mac-addr="+mac+"; ", "end; exit")
		h.err.WriteString(kept.Stderr)
	}
	return hookOK
}

// linkTowards is the link over which the global zone reaches an address.
func (h *hook) linkTowards(address string) string {
	found := h.run(net.Route, "route", "-n", "get", address)
	for line := range strings.Lines(found.Stdout) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "interface:"); ok {
			return strings.TrimSpace(name)
		}
	}
	return ""
}

// removeVNICs is unconfig_vnics: what cannot be deleted is told of, and stays.
func (h *hook) removeVNICs() {
	for _, r := range h.demandVNICs() {
		name := r.Get("physical")
		if gone := h.run(net.Dladm, "dladm", "delete-vnic", name); gone.Exit != 0 {
			h.err.WriteString(gone.Stderr)
			h.outf("Could not delete VNIC %s", name)
		}
	}
}

// prestateVNICs and poststateVNICs are the support program of brands whose
// zones run a virtual machine (omniosorg/pkg5 src/brand/bhyve/support).
func prestateVNICs(h *hook, command int) int {
	if command == stateCommandReady {
		return h.configureVNICs()
	}
	return hookOK
}

func poststateVNICs(h *hook, command int) int {
	if command == stateCommandHalt {
		h.removeVNICs()
	}
	return hookOK
}
